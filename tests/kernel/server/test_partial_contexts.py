"""A long context that the kernel opens with its last blocks, until more is needed."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from pycrdt import Doc, Map, Text

from antiphon_kernel.client.local_replica import ReplicaState
from antiphon_kernel.client.replica import Replica
from antiphon_kernel.contexts import Context
from antiphon_kernel.contexts.opening import (
    OpenContexts,
    loader,
    open_contexts,
    open_document,
    page,
)
from antiphon_kernel.document.document import Document
from antiphon_kernel.limits import Limits
from antiphon_kernel.maintenance.run_checks import run_checks
from antiphon_kernel.server.limits import DEFAULT_SERVER_LIMITS
from antiphon_kernel.storage import ContextRow, Journal, Records, Snapshot, StoredContext
from antiphon_kernel.tools.all_tools import KERNEL_TOOLS
from antiphon_kernel.turns import TURN_TOOLS, TurnRunner
from antiphon_kernel.turns.models import Models
from antiphon_kernel.types.errors import AntiphonError
from antiphon_kernel.types.ids import DRAFT_SEQ_MIN, BlockId
from antiphon_kernel.types.roles import AccessRole
from antiphon_kernel.validation import LazyItemIndex
from antiphon_kernel.yjs.close_codes import CloseCode
from antiphon_kernel.yjs.frames import SyncStep1, SyncUpdate
from antiphon_kernel.yjs.id_set import NO_STATE, decode_state_vector, encode_state_vector
from tests.kernel.recent_replicas import ALL, RECENT, held, matches, texts
from tests.kernel.served import ServedKernel, served_kernel
from tests.kernel.turns.stage import Replying
from tests.waiting import until

ROUNDS = 60 if os.environ.get("ANTIPHON_LONG") else 1


LIMITS = Limits(
    recent_blocks=RECENT,
    whole_context_seconds=0.0,
    idle_context_seconds=0.0,
    idle_check_seconds=1e6,
)


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data of a kernel whose context has many blocks, which tests copy."""
    folder = tmp_path_factory.mktemp("filled")

    async def fill() -> None:
        async with served_kernel(folder, DEFAULT_SERVER_LIMITS, kernel_limits=LIMITS) as served:
            for number in range(ALL):
                await served.block(f"text {number}")

    asyncio.run(fill())
    return folder / "data"


@pytest.fixture
async def served(
    tmp_path: Path, filled: Path, request: pytest.FixtureRequest
) -> AsyncIterator[ServedKernel]:
    if "blocks" in request.fixturenames:
        shutil.copytree(filled, tmp_path / "data")
    async with served_kernel(tmp_path, DEFAULT_SERVER_LIMITS, kernel_limits=LIMITS) as served:
        yield served


@pytest.fixture
async def blocks(served: ServedKernel) -> list[str]:
    return list((await served.context()).document.block_ids())


async def restart(served: ServedKernel) -> None:
    await served.stop()
    await served.start()


async def kill(served: ServedKernel, monkeypatch: pytest.MonkeyPatch) -> None:
    """Restart a kernel that writes nothing more than what has been committed."""

    async def close(_: OpenContexts) -> None:
        pass

    with monkeypatch.context() as patched:
        patched.setattr(OpenContexts, "close", close)
        await served.stop()
    await served.start()


async def opened(served: ServedKernel) -> Context:
    """The context as it is open now."""
    return await served.kernel.context(is_partial=True)


@pytest.fixture
async def replica(served: ServedKernel, blocks: list[str]) -> Replica:
    """A replica of the last blocks of a partial context."""
    assert blocks
    await restart(served)
    replica = await served.replica(recent=RECENT)
    assert (await opened(served)).is_partial
    return replica


async def test_context_opened_for_recent_blocks_holds_only_these(
    served: ServedKernel, replica: Replica, blocks: list[str]
) -> None:
    context = await opened(served)
    assert list(context.document.block_ids()) == blocks[-RECENT:]
    assert context.block_count == ALL
    assert list(replica.document.block_ids()) == blocks[-RECENT:]
    assert replica.omitted == ALL - RECENT
    page = await served.call("context.page")
    assert (page["count"], page["before"]) == (ALL, ALL - RECENT)
    assert [one["content"] for one in page["blocks"]] == [f"text {n}" for n in range(30, 40)]


async def test_page_around_a_block_is_read_without_the_oldest_where_they_are_not_on_it(
    served: ServedKernel, replica: Replica, blocks: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert replica.omitted
    monkeypatch.setattr(page, "PAGE_BLOCKS", 4)
    for place, is_partial in ((ALL - 1, True), (ALL - RECENT + 2, True), (ALL - RECENT + 1, False)):
        found = await served.call("context.page", around=blocks[place])
        begin = found["before"]
        assert [one["block_id"] for one in found["blocks"]] == blocks[begin : begin + 4]
        assert begin == min(place - 2, ALL - 4)
        assert (await opened(served)).is_partial is is_partial


async def test_text_typed_into_recent_blocks_leaves_the_context_partial_and_the_folder_sound(
    served: ServedKernel,
    replica: Replica,
    blocks: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    replica.document.splice(blocks[-1], 0, 4, "mine")
    replica.document.splice(blocks[-2], 2, 0, "😀")
    await replica.saved()
    assert (await opened(served)).is_partial
    await kill(served, monkeypatch)
    assert (await opened(served)).is_partial
    await served.stop()
    await until(lambda: replica.state is not ReplicaState.LIVE)
    replica.document.splice(blocks[-3], 0, 4, "offline")
    assert (await run_checks(tmp_path / "data")).clean
    await served.start()
    await replica.saved()
    assert (await opened(served)).is_partial
    found = await texts(served)
    assert [found[one] for one in blocks[-3:]] == ["offline 37", "te😀xt 38", "mine 39"]
    assert list(found) == blocks


async def test_viewer_of_a_partial_context_writes_nothing(
    served: ServedKernel, replica: Replica, blocks: list[str]
) -> None:
    vic, amy = await served.kernel.principal("vic"), served.kernel.owner
    await served.kernel.access.change_role(vic, AccessRole.VIEWER, amy)
    viewer = await served.replica("vic", recent=RECENT)
    viewer.document.splice(blocks[-1], 0, 0, "no ")
    await until(lambda: "permission_denied" in (viewer.rejection or ""))
    replica.document.splice(blocks[-1], 0, 0, "yes ")
    await replica.saved()
    assert (await texts(served))[blocks[-1]] == "yes text 39"


async def test_tool_call_finds_the_whole_context(
    served: ServedKernel, replica: Replica, blocks: list[str]
) -> None:
    replica.document.splice(blocks[-1], 0, 0, "my ")
    await replica.saved()
    before = (await opened(served)).blocks.version(blocks[-1])
    await served.call("block.append", block_id=blocks[0], text="!")
    await served.call("block.append", block_id=blocks[-1], text="!")
    assert not (await opened(served)).is_partial
    await until(lambda: replica.document.text(blocks[-1]) == "my text 39!")
    assert (await texts(served))[blocks[0]] == "text 0!"
    assert (await opened(served)).blocks.version(blocks[-1]) == before + 1
    runs = (await served.call("block.blame", block_id=blocks[-1]))["runs"]
    assert [(run["start"], run["end"]) for run in runs] == [(0, 3), (3, 10), (10, 11)]
    await served.call("block.undo", block_id=blocks[-1])
    await served.call("block.undo", block_id=blocks[-1])
    assert (await texts(served))[blocks[-1]] == "text 39"


async def test_replica_of_everything_that_comes_back_loses_nothing(
    served: ServedKernel, blocks: list[str]
) -> None:
    whole = await served.replica()
    await served.stop()
    await until(lambda: whole.state is not ReplicaState.LIVE)
    whole.document.splice(blocks[0], 0, 4, "offline")
    whole.document.splice(blocks[-1], 0, 4, "offline")
    await served.start()
    assert (await opened(served)).is_partial
    await whole.saved()
    found = await texts(served)
    assert (found[blocks[0]], found[blocks[-1]]) == ("offline 0", "offline 39")
    assert held(whole.document) == found
    assert list(found) == blocks


async def test_more_recent_blocks_than_are_kept_apart_come_all(
    served: ServedKernel, replica: Replica, blocks: list[str]
) -> None:
    other = await served.replica(recent=RECENT + 5)
    assert list(other.document.block_ids()) == blocks[-RECENT - 5 :]
    await replica.read_earlier(ALL)
    await until(lambda: list(replica.document.block_ids()) == blocks)


async def test_text_written_while_the_rest_is_read_is_kept(
    served: ServedKernel, replica: Replica, blocks: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    reading, go_on = asyncio.Event(), asyncio.Event()

    async def slowly(
        journal: Journal, row: ContextRow, client: int
    ) -> tuple[StoredContext, Document]:
        found = await open_document(journal, row, client)
        reading.set()
        await go_on.wait()
        return found

    monkeypatch.setattr(open_contexts, "open_document", slowly)
    replica.document.splice(blocks[-1], 0, 0, "before ")
    await replica.saved()
    waiting = asyncio.create_task(texts(served))
    await reading.wait()
    replica.document.splice(blocks[-1], 0, 0, "meanwhile ")
    replica.document.splice(blocks[-2], 0, 4, "")
    await replica.saved()
    go_on.set()
    found = await waiting
    assert (found[blocks[-1]], found[blocks[-2]]) == ("meanwhile before text 39", " 38")
    replica.document.splice(blocks[-2], 0, 0, "after")
    await replica.saved()
    assert (await texts(served))[blocks[-2]] == "after 38"
    await restart(served)
    assert held((await served.context()).document)[blocks[-1]] == found[blocks[-1]]


@pytest.mark.parametrize("makes_new", [False, True])
async def test_context_with_more_than_new_texts_since_its_last_blocks_were_stored_is_opened_whole(
    served: ServedKernel,
    replica: Replica,
    blocks: list[str],
    monkeypatch: pytest.MonkeyPatch,
    *,
    makes_new: bool,
) -> None:
    assert replica.omitted
    if makes_new:
        blocks.append(await served.block("xtext 0"))
    else:
        whole = await served.replica()
        whole.document.splice(blocks[0], 0, 0, "x")
        await whole.saved()
    await kill(served, monkeypatch)
    assert not (await opened(served)).is_partial
    found = await texts(served)
    assert list(found) == blocks
    assert found[blocks[-1 if makes_new else 0]] == "xtext 0"


async def idle(served: ServedKernel) -> Context:
    """Let everything go that nobody needs; return the context as it is then."""
    for _ in range(2):
        await served.kernel.open_contexts.close_idle()
    return await opened(served)


async def test_blocks_that_nobody_needs_any_more_are_left_out_again(
    served: ServedKernel, replica: Replica, blocks: list[str]
) -> None:
    await served.call("block.append", block_id=blocks[-1], text="!")
    new = await served.block("new")
    context = await idle(served)
    assert context.is_partial
    assert context.block_count == ALL + 1
    replica.document.splice(blocks[-1], 0, 4, "")
    await replica.saved()
    assert context.is_partial
    await served.call("block.append", block_id=blocks[0], text="!")
    await served.call("block.undo", block_id=blocks[-1])
    await until(lambda: replica.document.text(blocks[-1]) == "text 39!")
    found = await texts(served)
    assert list(found) == [*blocks, new]
    assert found[blocks[0]] == "text 0!"


async def test_blocks_that_a_replica_shows_are_not_left_out(
    served: ServedKernel, replica: Replica, blocks: list[str]
) -> None:
    await replica.read_earlier(RECENT + 5)
    await until(lambda: len(replica.document) == RECENT + 5)
    context = await idle(served)
    assert context.is_partial
    assert set(replica.document.block_ids()) <= set(context.document.block_ids())


async def test_nothing_is_left_out_while_anybody_needs_it(
    served: ServedKernel, replica: Replica, blocks: list[str]
) -> None:
    await served.call("block.subscribe", block_ids=[blocks[0]])
    assert not (await idle(served)).is_partial
    assert replica.omitted
    whole = await served.replica()
    assert not (await idle(served)).is_partial
    assert list(whole.document.block_ids()) == blocks


@pytest.mark.parametrize("change", ["state = x'00'", "about = '[]'", "format = 7"])
async def test_damaged_recent_state_is_left_out(
    served: ServedKernel, blocks: list[str], change: str, tmp_path: Path
) -> None:
    await served.stop()
    with closing(sqlite3.connect(tmp_path / "data" / "journal.db")) as database:
        database.execute(f"UPDATE recent_states SET {change}")
        database.commit()
    await served.start()
    assert not (await opened(served)).is_partial
    assert list(await texts(served)) == blocks


async def test_context_whose_rest_is_damaged_says_so_and_keeps_what_is_typed(
    served: ServedKernel, blocks: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await served.stop()
    with closing(sqlite3.connect(tmp_path / "data" / "journal.db")) as database:
        database.execute("DELETE FROM snapshots")
        database.execute("UPDATE ops SET changes = x'ff' WHERE seq = 3")
        database.commit()
    await served.start()
    replica = await served.replica(recent=RECENT)
    with pytest.raises(AntiphonError, match="damaged"):
        await served.call("block.read", block_id=blocks[0])
    replica.document.splice(blocks[-1], 0, 0, "kept ")
    await replica.saved()
    assert (await opened(served)).document.text(blocks[-1]) == "kept text 39"
    monkeypatch.setattr(open_contexts, "open_document", None)  # what is damaged is read once
    raw = await served.raw()
    await raw.send(SyncStep1(NO_STATE))
    assert (await raw.closed())[0] == CloseCode.NOT_FOUND
    (listed,) = (await served.call("context.list"))["contexts"]
    assert "damaged" in listed["damaged"]
    replica.document.splice(blocks[-1], 0, 0, "a long text " * 1_000)  # is checked with the rest
    await until(lambda: replica.rejection_code == CloseCode.NOT_FOUND, "it does not come back")
    assert "damaged" in (replica.rejection or "")


async def test_old_call_that_waits_is_among_the_recent_blocks(served: ServedKernel) -> None:
    for number in range(ALL):
        await served.block(f"text {number}")
    waiting = await served.block(kind="tool_call")
    for number in range(RECENT + 5):
        await served.block(f"more {number}")
    await restart(served)
    context = await opened(served)
    assert context.is_partial
    assert context.document.open_blocks([waiting]) == [waiting]


async def test_model_chosen_in_a_partial_context_takes_the_place_of_an_older_choice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = count(900, -100)
    monkeypatch.setattr(loader, "_short", lambda *_: next(ids))
    models = Models({"aria": Replying(()), "bo": Replying(())})
    limits, tools = Limits(recent_blocks=RECENT), (*KERNEL_TOOLS, *TURN_TOOLS)
    async with served_kernel(tmp_path, tools=tools, kernel_limits=limits) as served:
        runner = TurnRunner(served.kernel, models)
        await served.call("context.model", model="bo")
        for number in range(ALL):
            await served.block(f"text {number}")
        await runner.close()
        await restart(served)
        runner = TurnRunner(served.kernel, models)
        assert (await opened(served)).is_partial
        await served.call("context.model", model="aria")
        assert (await served.context()).document.default_model == "aria"
        await runner.close()
        await restart(served)
        assert (await served.context()).document.default_model == "aria"


async def test_path_of_an_old_block_is_found_in_another_context_that_is_partial(
    served: ServedKernel,
) -> None:
    await served.call("context.create", label="long")
    said = {"context": "long", "role": "user", "kind": "text", "status": "done"}
    for number in range(ALL):
        await served.block(f"text {number}", **said)
    items = (await served.call("context.layout", context="long"))["items"]
    path = next(one["path"] for one in items if one["text"].endswith("text 0"))
    await restart(served)
    assert (await served.kernel.context("long", is_partial=True)).is_partial
    assert (await served.call("block.read", block_id=path))["content"] == "text 0"


async def test_index_that_is_read_while_the_rest_is_read_is_that_of_the_whole(
    served: ServedKernel, replica: Replica, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = await opened(served)
    old, go_on, read = context.structure, asyncio.Event(), LazyItemIndex.read

    async def slowly(index: LazyItemIndex) -> None:
        if index is old:
            await go_on.wait()
        await read(index)

    monkeypatch.setattr(LazyItemIndex, "read", slowly)
    reading = asyncio.create_task(context.read_structure())
    await asyncio.sleep(0)
    await context.whole()
    go_on.set()
    await reading
    assert replica.omitted
    assert context.structure.ready


async def test_old_draft_that_a_client_sends_again_stays_omitted(
    served: ServedKernel, blocks: list[str]
) -> None:
    raw, doc = await served.raw(), Doc[Any]()
    doc.apply_update((await raw.join()).update)
    context, me = await served.context(), served.me.principal.id
    draft = str(BlockId(context.id, me, DRAFT_SEQ_MIN))
    fields = {"kind": "text", "role": "user", "status": "pending", "author": me, "order": "z"}
    drafts: Map[Any] = doc.get("blocks", type=Map)
    before = doc.get_state()
    drafts[draft] = Map({**fields, "content": Text("sent")})
    drafts[draft]["status"] = "done"
    await raw.send(SyncUpdate(doc.get_update(before)))
    await until(
        lambda: draft in context.document and context.document.header(draft).status == "done"
    )
    new = [await served.block(f"new {number}") for number in range(ALL)]
    while new[-1] not in drafts:
        doc.apply_update((await raw.next(SyncUpdate)).update)
    drafts[new[-1]]["content"].insert(0, "my ")
    others = decode_state_vector(doc.get_state())
    del others[doc.client_id]
    await raw.send(SyncUpdate(doc.get_update(encode_state_vector(others))))
    await until(lambda: context.document.text(new[-1]).startswith("my "))
    await restart(served)
    context = await opened(served)
    assert context.is_partial
    assert list(context.document.block_ids()) == new[-RECENT:]
    assert context.block_count == len([*blocks, draft, *new])


async def test_recent_state_with_other_blocks_than_the_journal_is_left_out(
    served: ServedKernel, blocks: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    read = Records.read

    async def read_another(records: Records, row: ContextRow) -> Snapshot | None:
        found = await read(records, row)
        cut = getattr(found, "cut", None)
        if found is None or cut is None:
            return found
        return replace(found, cut=replace(cut, omitted=cut.omitted + 1))

    await restart(served)
    monkeypatch.setattr(Records, "read", read_another)
    await restart(served)
    assert not (await opened(served)).is_partial
    assert list(await texts(served)) == blocks


@pytest.mark.parametrize("seed", range(ROUNDS))
async def test_replicas_of_partial_and_whole_contexts_converge_over_restarts(
    served: ServedKernel, blocks: list[str], seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(seed)
    replicas = [await served.replica(recent=RECENT) for _ in range(2)]
    typed: dict[str, str] = {}
    await restart(served)
    assert (await opened(served)).is_partial
    for number in range(120):
        replica, event = rng.choice(replicas), rng.random()
        block = rng.choice(replica.document.block_ids())
        text = replica.document.text(block)
        if event < 0.7:
            typed[mark := f"⟨{number}😀⟩"] = block
            starts = [at for at in range(len(text) + 1) if "⟨" not in text[:at].split("⟩")[-1]]
            replica.document.splice(block, rng.choice(starts), 0, mark)
        elif event < 0.8 and "t" in text:
            replica.document.splice(block, text.index("t"), 1, "")
        elif event < 0.86:
            await (restart(served) if rng.random() < 0.5 else kill(served, monkeypatch))
            await opened(served)
        elif event < 0.87:
            await idle(served)
        elif event < 0.88:
            replicas.append(await served.replica(recent=rng.choice((0, 0, RECENT, RECENT + 5))))
        elif event < 0.9:
            await served.call("block.append", block_id=rng.choice(blocks), text="!")
        elif event < 0.92:
            await served.call("block.move", block_id=rng.choice(blocks[:-1]), after=blocks[-1])
        elif event < 0.94:
            blocks.append(await served.block("new"))
        elif event < 0.95:
            await replica.read_earlier(len(replica.document) + rng.randint(0, 5))
        await asyncio.sleep(rng.choice((0, 0.001, 0.01)))
    for replica in replicas:
        await replica.saved()
    found = await texts(served)
    assert set(found) == set(blocks)
    assert {mark: block for mark, block in typed.items() if mark not in found[block]} == {}
    for replica in replicas:
        await matches(served, replica)
