"""Raw updates of clients: text and own drafts come in whole, everything else not at all."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from pycrdt import Map

from antiphon_kernel.contexts import Broadcast, Context, apply_update
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.types.enums import BlockKind, Status
from antiphon_kernel.types.errors import ErrorCode
from antiphon_kernel.types.ids import DRAFT_SEQ_MIN
from antiphon_kernel.types.records import Actor
from antiphon_kernel.yjs.update import ContentKind, ItemId, Struct, decode_update
from antiphon_kernel.yjs.update_writer import encode_update
from tests.kernel.kernel.calls import Make
from tests.kernel.validation.peers import Peer, refused


async def test_text_typed_by_a_client_is_journaled_and_told_to_the_others(
    kernel: Kernel, context: Context, bo: Actor, make: Make, open_kernel: Any
) -> None:
    block = await make("hello", status="done")
    client = Peer(context)
    heard: list[Broadcast] = []
    context.committed.listen(heard.append)
    client.content(block).insert(5, " 😀")
    await client.send(bo)
    assert [one.seq for one in heard] == [context.seq, context.seq]
    assert [one.source for one in heard] == [client, None]
    for one in heard:
        client.doc.apply_update(one.update)
    assert client.blocks[block]["edited_after_done"]
    assert context.blocks.version(block) == 2
    await kernel.close()
    again = await (await open_kernel()).context()
    assert again.document.text(block) == "hello 😀"
    assert again.blocks.version(block) == 2
    assert again.document.header(block).edited_after_done


async def test_draft_of_ones_own_comes_in_and_runs_with_its_first_character(
    kernel: Kernel, context: Context, bo: Actor
) -> None:
    client = Peer(context)
    block = client.draft(bo)
    await client.send(bo)
    assert context.document.header(block).status is Status.PENDING
    client.content(block).insert(0, "h")
    await client.send(bo)
    assert context.document.header(block).status is Status.RUNNING
    await kernel.call(bo, "block.status", {"block_id": block, "status": "done"})
    assert context.document.header(block).status is Status.DONE


async def test_draft_header_with_foreign_author_is_corrected(
    context: Context, bo: Actor, amy: Actor
) -> None:
    client, author = Peer(context), amy.principal.id
    block = client.draft(bo, "hi", kind="tool_result", status="done", order="no key", author=author)
    await client.send(bo)
    found = context.document.header(block)
    assert (found.kind, found.author) == (BlockKind.TEXT, bo.principal.id)
    assert found.status is Status.RUNNING


@pytest.mark.parametrize("case", ["itself", "nothing", "too deep"])
async def test_draft_that_cannot_answer_what_it_says_is_refused(
    context: Context, bo: Actor, make: Make, case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = context.limits.model_copy(update={"parent_depth": 5})
    monkeypatch.setattr(context, "limits", limits)
    block = await make("0")
    for _ in range(context.limits.parent_depth - 2 if case == "too deep" else 0):
        block = await make("deeper", parent_id=block)
    fitting = Peer(context)
    block = fitting.draft(bo, parent=block)
    await fitting.send(bo)
    own, nothing = (f"{context.id}.{bo.principal.id}.{DRAFT_SEQ_MIN + n}" for n in (1, 2))
    deeper = Peer(context)
    parents = {"itself": own, "nothing": nothing, "too deep": block}
    assert deeper.draft(bo, number=1, parent=parents[case]) == own
    error = await refused(context, bo, deeper.update())
    assert "parent" in error.message


async def test_draft_that_names_several_parents_at_once_may_answer_each_of_them(
    context: Context, bo: Actor, make: Make
) -> None:
    client = Peer(context)
    both = (await make("0"), client.draft(bo))
    structs = decode_update(client.update()).structs
    end = structs[-1].clock + structs[-1].length
    parents = Struct(77, end, 2, ContentKind.ANY, None, None, ItemId(77, 0), "parent", both)
    error = await refused(context, bo, encode_update([*structs, parents], ()))
    assert "parent" in error.message


@pytest.mark.parametrize("case", ["somebody else's", "small number", "taken", "other context"])
async def test_draft_under_a_wrong_id_is_refused(
    kernel: Kernel, context: Context, bo: Actor, amy: Actor, case: str
) -> None:
    client, rival = Peer(context), Peer(context, 12)
    if case == "other context":
        client.context = await kernel.create_context("other")
    elif case == "taken":
        rival.draft(bo)
        await rival.send(bo)
    number = 5 - DRAFT_SEQ_MIN if case == "small number" else 0
    client.draft(amy if case == "somebody else's" else bo, number=number)
    client.context = context
    await refused(context, bo, client.update(), ErrorCode.PERMISSION_DENIED)


async def test_header_fields_of_a_block_are_refused(
    context: Context, bo: Actor, make: Make
) -> None:
    client, block = Peer(context), await make("hello", status="done")
    client.hear()
    client.blocks[block]["status"] = "error"
    error = await refused(context, bo, client.update(), ErrorCode.PERMISSION_DENIED)
    assert "tools" in error.message


async def test_deleting_what_is_not_text_is_refused(
    context: Context, bo: Actor, make: Make
) -> None:
    block = await make("hello", status="done")
    for case in ("block", "field", "content", "meta", "set and deleted"):
        client = Peer(context)
        with client.doc.transaction():
            match case:
                case "block":
                    del client.blocks[block]
                case "field":
                    del client.blocks[block]["status"]
                case "content":
                    del client.blocks[block]["content"]
                case "meta":
                    del client.doc.get("meta", type=Map)["epoch"]
                case _:
                    client.blocks[block]["status"] = "pending"
                    del client.blocks[block]["status"]
        await refused(context, bo, client.update(), ErrorCode.PERMISSION_DENIED)
    assert context.document.text(block) == "hello"


async def test_other_roots_are_refused(context: Context, bo: Actor) -> None:
    for root in ("meta", "members", "gaps", "something"):
        client = Peer(context)
        client.doc.get(root, type=Map)["epoch"] = "0" * 32
        await refused(context, bo, client.update(), ErrorCode.PERMISSION_DENIED)


async def test_update_with_a_gap_is_not_applied(context: Context, bo: Actor, make: Make) -> None:
    block = await make("hello", status="done")
    client, updates = Peer(context), list[bytes]()
    for offset in range(3):
        before = client.doc.get_state()
        client.content(block).insert(offset, "x")
        updates.append(client.doc.get_update(before))
    await refused(context, bo, updates[-1], ErrorCode.GAP)
    for update in updates:
        await apply_update(context, bo, update, "client")
    assert context.document.text(block) == str(client.content(block))


async def test_client_id_of_somebody_else_is_refused_also_after_a_restart(
    kernel: Kernel, context: Context, bo: Actor, make: Make, open_kernel: Any
) -> None:
    block = await make("hello", status="done")
    client = Peer(context)
    client.content(block).insert(0, "x")
    await client.send(bo)
    await kernel.close()
    again = await open_kernel()
    cleo = again.open_session(await again.principal("cleo"), "test")
    client.context = await again.context()
    client.content(block).insert(0, "y")
    await refused(client.context, cleo, client.update(), ErrorCode.PERMISSION_DENIED)


async def test_bytes_that_are_no_update_are_refused(context: Context, bo: Actor) -> None:
    for update in (b"", b"\x00", b"\xff" * 40, b"\x80\x80\x80\x80\x01", b"\x01\x01\x01\x00"):
        await refused(context, bo, update, ErrorCode.INVALID_PARAMS)


@pytest.mark.sqlite
async def test_everything_a_subscriber_hears_is_on_disk(
    kernel: Kernel, context: Context, bo: Actor, make: Make, data: Path
) -> None:
    import sqlite3

    block = await make("", status="done")
    client = Peer(context)
    heard: list[int] = []

    def check(broadcast: Broadcast) -> None:
        with sqlite3.connect(data / "journal.db") as reader:
            row = reader.execute("SELECT max(seq) FROM ops").fetchone()
        assert row[0] >= broadcast.seq
        heard.append(broadcast.seq)

    context.committed.listen(check)
    waiting, before = [], context.seq
    for number in range(50):
        client.content(block).insert(0, str(number))
        waiting.append(apply_update(context, bo, client.update(), "client"))
    await asyncio.gather(*waiting)
    assert heard == sorted(heard)
    assert set(heard) == set(range(before + 1, context.seq + 1))
