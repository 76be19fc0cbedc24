"""A replica keeps in step with its kernel through whatever happens to the connection."""

from __future__ import annotations

import asyncio
import itertools
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon_kernel.client.awareness import SEND_INTERVAL
from antiphon_kernel.client.local_replica import Outbox, ReplicaState
from antiphon_kernel.client.replica import Replica
from antiphon_kernel.document.changes import DocumentChange
from antiphon_kernel.document.content import read_content
from antiphon_kernel.server.limits import ServerLimits
from antiphon_kernel.types.enums import Activity
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.ids import DRAFT_SEQ_MIN
from antiphon_kernel.types.records import TextSplice
from antiphon_kernel.yjs.frames import SyncUpdate
from tests.kernel.client.typists import through
from tests.kernel.served import CuttableProxy, ServedKernel, served_kernel
from tests.waiting import PATIENCE, until

LOG = {"type": "log"}


async def test_long_document_comes_in_parts_and_is_told_at_once(tmp_path: Path) -> None:
    async with served_kernel(tmp_path, ServerLimits(state_part=1_000)) as served:
        blocks = [await served.block(f"text {number} " * 20) for number in range(20)]
        raw = await served.joined()
        assert sum(isinstance(one, SyncUpdate) for one in raw.received) > 3
        replica, told = Replica(served.locate), list[DocumentChange]()
        replica.document.watch(told.append)
        running = asyncio.create_task(replica.run())
        await until(lambda: replica.state is ReplicaState.LIVE)
        assert [sorted(one.added) for one in told] == [sorted(blocks)]
        await served.call("block.append", block_id=blocks[0], text="!")
        await until(lambda: replica.document.text(blocks[0]).endswith("!"))
        await replica.close()
        await running


async def test_replica_state_goes_from_connecting_to_live(served: ServedKernel) -> None:
    replica = Replica(served.locate)
    states = [replica.state]
    replica.state_changed.listen(lambda: states.append(replica.state))
    running = asyncio.create_task(replica.run())
    await until(lambda: replica.state is ReplicaState.LIVE)
    await replica.close()
    await running
    # Listeners are also told when only the number of unsaved changes is news.
    assert [state for state, _ in itertools.groupby(states)] == [
        ReplicaState.CONNECTING,
        ReplicaState.CATCHING_UP,
        ReplicaState.LIVE,
        ReplicaState.OFFLINE,
    ]


async def test_burst_of_keystrokes_is_one_commit(served: ServedKernel) -> None:
    block = await served.block("hello")
    replica = await served.replica()
    await until(lambda: replica.awareness.me is not None)
    context = await served.context()
    before = context.seq
    for _ in range(50):
        replica.document.append(block, "x")
    await replica.saved()
    assert context.seq == before + 1


async def test_presence_of_others_and_oneself(served: ServedKernel) -> None:
    block = await served.block("hello")
    amy, ben = await served.replica(), await served.replica("ben")
    heard = []
    ben.presence_changed.listen(lambda: heard.append(True))
    amy.awareness.publish(block, 3, 1, Activity.TYPING)
    await until(lambda: any(one.cursor == 3 for one in ben.awareness.others.values()))
    (state,) = ben.awareness.others.values()
    assert (state.username, state.block, state.anchor) == ("amy", block, 1)
    assert state.activity == Activity.TYPING
    assert heard
    await until(lambda: amy.awareness.me is not None and ben.awareness.me is not None)
    assert amy.awareness.me is not None and ben.awareness.me is not None
    assert (amy.awareness.me.username, ben.awareness.me.username) == ("amy", "ben")
    assert amy.awareness.me.colour != ben.awareness.me.colour
    await amy.close()
    await until(lambda: not ben.awareness.others)


async def test_fast_moving_cursor_is_sent_now_and_then_and_its_last_place_always(
    served: ServedKernel,
) -> None:
    block = await served.block("x" * 1000)
    amy, ben = await served.replica(), await served.replica("ben")
    places: list[int | None] = []
    ben.presence_changed.listen(
        lambda: places.extend(one.cursor for one in ben.awareness.others.values())
    )
    began = time.monotonic()
    for place in range(1, 301):
        amy.awareness.publish(block, place, None, Activity.TYPING)
        if place % 10 == 0:
            await asyncio.sleep(0.005)
    await until(lambda: bool(places) and places[-1] == 300)
    assert len(places) < 20 + 2 * (time.monotonic() - began) / SEND_INTERVAL


async def test_presence_is_forgotten_offline_and_comes_back(served: ServedKernel) -> None:
    amy, ben = await served.replica(), await served.replica("ben")
    await until(lambda: amy.awareness.others and ben.awareness.others)
    await served.stop()
    await until(lambda: not amy.awareness.others and not ben.awareness.others)
    await served.start()
    await until(lambda: amy.awareness.others and ben.awareness.others)


@pytest.mark.parametrize("offline", [False, True])
async def test_replica_that_does_what_it_may_not_is_refused_and_says_why(
    served: ServedKernel, offline: bool
) -> None:
    block = await served.block("hello")
    replica = await served.replica("ben")
    if offline:
        await served.stop()
        await until(lambda: replica.state is ReplicaState.OFFLINE)
    replica.document.set_fields(block, status="error")
    if offline:
        await served.start()
    await until(lambda: replica.state is ReplicaState.REFUSED)
    assert replica.rejection is not None and replica.rejection.startswith("permission_denied")
    assert replica.outbox.unsaved == 1
    with pytest.raises(AntiphonError):
        await replica.saved()


async def test_replica_writes_into_blocks_and_drafts_are_accepted(served: ServedKernel) -> None:
    sections = [{"name": "notes", "schema": {"type": "text"}}, {"name": "log", "schema": LOG}]
    content = {"notes": "a note", "log": ["entry"]}
    schema = {"type": "composite", "sections": sections}
    block = await served.block(schema=schema, content=content)
    replica = await served.replica("ben")
    await until(lambda: replica.awareness.me is not None)
    document, me = replica.document, replica.awareness.me
    assert me is not None
    document.splice(block, 0, 1, "A", "notes")
    document.append(block, "!", "notes")
    document.splice_all(block, [TextSplice(0, 0, "1 "), TextSplice(8, 0, "2 ")], "notes")
    draft = f"{document.context}.{me.principal}.{DRAFT_SEQ_MIN}"
    document.create_block(document.header(block)._replace(id=draft, author=me.principal), "mine")
    document.set_fields(draft, status="done")
    await replica.saved()
    kernels = (await served.context()).document
    assert read_content(kernels, block).value == {"notes": "1 A note2 !", "log": ["entry"]}
    assert kernels.text(draft) == "mine"
    assert replica.rejection is None


async def test_unknown_context_is_a_refusal(served: ServedKernel) -> None:
    replica = served.start_replica(context="nowhere")
    await until(lambda: replica.state is ReplicaState.REFUSED)
    assert replica.rejection is not None and "context_not_found" in replica.rejection


async def test_wrong_token_is_a_refusal_unless_a_new_one_is_found(served: ServedKernel) -> None:
    right = served.locate_tcp()
    addresses = [right.model_copy(update={"token": "stale"}), right]
    replica = served.start_replica(
        locate=lambda: addresses.pop(0) if len(addresses) > 1 else addresses[0],
        retry=lambda _: 0.001,
    )
    await until(lambda: replica.state is ReplicaState.LIVE)
    wrong = right.model_copy(update={"token": "stale"})
    refused = served.start_replica(locate=lambda: wrong, retry=lambda _: 0.001)
    await until(lambda: refused.state is ReplicaState.REFUSED)
    assert refused.rejection is not None and "token" in refused.rejection


async def test_replica_without_kernel_is_offline_and_retries_with_growing_delay() -> None:
    attempts: list[int] = []

    def nowhere() -> None:
        raise AntiphonError(ErrorCode.NO_KERNEL, "nowhere")

    def retry(attempt: int) -> float:
        attempts.append(attempt)
        return 0.001

    replica = Replica(nowhere, retry=retry)  # type: ignore[arg-type]
    running = asyncio.create_task(replica.run())
    await until(lambda: len(attempts) > 5)
    assert replica.state is ReplicaState.OFFLINE
    assert attempts == list(range(len(attempts)))
    await replica.close()
    await running


async def test_replica_close_sends_last_edits(served: ServedKernel) -> None:
    block = await served.block("hello")
    replica = await served.replica()
    replica.document.append(block, "!")
    await replica.close()
    context = await served.context()
    await until(lambda: context.document.text(block) == "hello!")


@pytest.mark.parametrize("last", [ReplicaState.LIVE, ReplicaState.CATCHING_UP])
async def test_replica_closed_while_kernel_is_silent_writes_down_unsaved_edits(
    served: ServedKernel, last: ReplicaState, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("antiphon_kernel.client.replica.LAST_SECONDS", 0.1)
    monkeypatch.setattr("antiphon_kernel.client.connecting.CLOSE_SECONDS", 0.1)
    block = await served.block("hello")
    proxy = CuttableProxy(served.doors.port)
    await proxy.start()
    written: list[str] = []

    def keep(report: str) -> Path:
        written.append(report)
        return Path("report")

    replica = await served.replica(locate=lambda: through(served, proxy), keep=keep)
    if last is ReplicaState.LIVE:
        proxy.stop()
    else:
        replica.state_changed.listen(lambda: proxy.stop() if replica.state is last else None)
        proxy.cut()
        await until(lambda: replica.state is last, "connected again, to a kernel that is silent")
    replica.document.append(block, " and more")
    await replica.close()
    (report,) = written
    assert " and more" in report
    await proxy.close()


async def test_replica_ends_whenever_it_is_closed(served: ServedKernel) -> None:
    """Also in the moment in which its socket has opened and it does not know it yet."""

    async def passes(replica: Replica, limit: int) -> int:
        for number in range(limit):
            if replica.state is not ReplicaState.CONNECTING:
                return number
            await asyncio.sleep(0)
        return limit

    usual = 0
    for attempt in range(40):
        replica = Replica(served.locate)
        running = asyncio.create_task(replica.run())
        if attempt % 10 == 0:
            usual = await passes(replica, 1_000_000)
        else:
            await passes(replica, usual - 5 + attempt % 10)
        await replica.close()
        await asyncio.wait({running}, timeout=PATIENCE)
        assert running.done()
        await running


async def test_saved_fails_when_the_replica_is_closed(served: ServedKernel) -> None:
    block = await served.block("hello")
    replica = await served.replica()
    await served.stop()
    replica.document.append(block, "!")
    waiting = asyncio.create_task(replica.saved())
    await asyncio.sleep(0)
    await replica.close()
    with pytest.raises(AntiphonError):
        await waiting
    await served.start()


async def test_renamed_context_is_known_by_its_new_label_and_found_again(
    served: ServedKernel,
) -> None:
    await served.kernel.create_context("notes")
    replica = await served.replica("bo", context="notes")
    await served.call("context.rename", context="notes", label="ideas")
    await until(lambda: replica.document.label == "ideas", "the new label has come")
    await served.stop()
    await until(lambda: replica.state is not ReplicaState.LIVE, "the replica has noticed")
    await served.start()
    await until(lambda: replica.state is ReplicaState.LIVE, "the replica is live again")
    assert replica.document.label == "ideas"


steps = st.lists(st.sampled_from(["write", "send", "ack", "drop", "connect"]), max_size=60)


@given(steps)
def test_outbox_counts_edit_as_saved_once_its_frame_is_acknowledged(steps: list[str]) -> None:
    outbox = Outbox()
    written = 0
    frames: list[int] = []
    acknowledged = saved = 0
    connected = False
    for step in steps:
        if step == "write":
            outbox.add(b"\x00\x00")
            written += 1
        elif step == "connect" and not connected:
            outbox.start_connection()
            outbox.everything_sent()
            connected, frames, acknowledged = True, [written], 0
        elif step == "drop":
            outbox.start_connection()
            connected, frames = False, []
        elif step == "send" and outbox.take() is not None:
            frames.append(written)
        elif step == "ack" and acknowledged < len(frames):
            acknowledged += 1
            outbox.acknowledged(acknowledged)
            saved = max(saved, frames[acknowledged - 1])
        assert outbox.unsaved == written - saved


async def test_outbox_saved_returns_once_earlier_edits_are_saved() -> None:
    outbox = Outbox()
    outbox.start_connection()
    outbox.everything_sent()
    outbox.add(b"\x00\x00")
    outbox.take()
    waiting = asyncio.create_task(outbox.saved())
    await asyncio.sleep(0)
    outbox.add(b"\x00\x00")
    outbox.take()
    outbox.acknowledged(1)
    await asyncio.sleep(0)
    assert not waiting.done()
    outbox.acknowledged(2)
    await asyncio.wait_for(waiting, PATIENCE)
    assert outbox.unsaved == 1
