"""Raw updates of clients: text and own drafts come in whole, everything else not at all."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from pycrdt import Doc, Map, merge_updates

from antiphon_kernel.contexts import Broadcast, Context, apply_update
from antiphon_kernel.document.document import Document
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.types.enums import BlockKind, Role, Status
from antiphon_kernel.types.errors import ErrorCode
from antiphon_kernel.types.ids import DRAFT_SEQ_MIN, BlockId
from antiphon_kernel.types.records import Actor, BlockHeader
from antiphon_kernel.yjs.update import ContentKind, ItemId, Struct, decode_update
from antiphon_kernel.yjs.update_writer import encode_update
from tests.kernel.kernel.calls import Make
from tests.kernel.validation.peers import refused


class Client:
    """A replica outside the kernel, and the updates it has made."""

    def __init__(self, context: Context, client_id: int = 4711) -> None:
        self.document = Document(client_id)
        self.document.apply_update(context.document.update_since())
        self.updates: list[bytes] = []
        self.document.watch_updates(
            lambda update, origin: self.updates.append(update) if origin is None else None
        )

    def take(self) -> bytes:
        update = merge_updates(*self.updates) if len(self.updates) > 1 else self.updates[0]
        self.updates.clear()
        return update


def draft_header(context: Context, actor: Actor, number: int = DRAFT_SEQ_MIN + 7) -> BlockHeader:
    return BlockHeader(
        id=f"{context.id}.{actor.principal.id}.{number}",
        kind=BlockKind.TEXT,
        role=Role.USER,
        status=Status.PENDING,
        order="a5",
        created="2026-01-01T00:00:00.000Z",
        author=actor.principal.id,
    )


async def test_text_typed_by_a_client_is_journaled_and_told_to_the_others(
    kernel: Kernel, context: Context, bo: Actor, make: Make, open_kernel: Any
) -> None:
    block = await make("hello", status="done")
    client = Client(context)
    heard: list[Broadcast] = []
    context.committed.listen(heard.append)
    client.document.splice(block, 5, 0, " 😀")
    await apply_update(context, bo, client.take(), "client")
    assert [one.seq for one in heard] == [context.seq, context.seq]
    assert [one.source for one in heard] == ["client", None]
    for one in heard:
        client.document.apply_update(one.update)
    assert client.document.header(block).edited_after_done
    assert context.blocks.version(block) == 2
    await kernel.close()
    again = await (await open_kernel()).context()
    assert again.document.text(block) == "hello 😀"
    assert again.blocks.version(block) == 2
    assert again.document.header(block).edited_after_done


async def test_draft_of_ones_own_comes_in_and_runs_with_its_first_character(
    kernel: Kernel, context: Context, bo: Actor
) -> None:
    client = Client(context)
    header = draft_header(context, bo)
    client.document.create_block(header)
    await apply_update(context, bo, client.take(), "client")
    assert context.document.header(header.id).status is Status.PENDING
    client.document.splice(header.id, 0, 0, "h")
    await apply_update(context, bo, client.take(), "client")
    assert context.document.header(header.id).status is Status.RUNNING
    await kernel.call(bo, "block.status", {"block_id": header.id, "status": "done"})
    assert context.document.header(header.id).status is Status.DONE


async def test_draft_header_with_foreign_author_is_corrected(
    context: Context, bo: Actor, amy: Actor
) -> None:
    client = Client(context)
    header = draft_header(context, bo)._replace(
        kind=BlockKind.TOOL_RESULT,
        status=Status.DONE,
        author=amy.principal.id,
        order="not an order key",
    )
    client.document.create_block(header, "hi")
    await apply_update(context, bo, client.take(), "client")
    found = context.document.header(header.id)
    assert (found.kind, found.author) == (BlockKind.TEXT, bo.principal.id)
    assert found.status is Status.RUNNING


@pytest.mark.parametrize("case", ["itself", "nothing", "too deep"])
async def test_draft_that_cannot_answer_what_it_says_is_refused(
    context: Context, bo: Actor, make: Make, case: str
) -> None:
    header = draft_header(context, bo)
    block = await make("0")
    for _ in range(context.limits.parent_depth - 2 if case == "too deep" else 0):
        block = await make("deeper", parent_id=block)
    fitting = Client(context)
    fitting.document.create_block(header._replace(parent=block))
    await apply_update(context, bo, fitting.take(), "client")
    parents = {"itself": header.id, "nothing": header.id[:-1] + "9"}
    deeper = Client(context)
    number = BlockId.parse(header.id).seq + 1
    lower = draft_header(context, bo, number=number)._replace(parent=header.id)
    if case != "too deep":
        lower = lower._replace(parent=lower.id if case == "itself" else parents[case])
    deeper.document.create_block(lower)
    error = await refused(context, bo, deeper.take())
    assert "parent" in error.message


async def test_draft_that_names_several_parents_at_once_may_answer_each_of_them(
    context: Context, bo: Actor, make: Make
) -> None:
    header, client = draft_header(context, bo), Client(context)
    client.document.create_block(header)
    structs = decode_update(client.take()).structs
    end = structs[-1].clock + structs[-1].length
    both = (await make("0"), header.id)
    parents = Struct(4711, end, 2, ContentKind.ANY, None, None, ItemId(4711, 0), "parent", both)
    error = await refused(context, bo, encode_update([*structs, parents], ()))
    assert "parent" in error.message


@pytest.mark.parametrize("case", ["somebody else's", "small number", "taken", "other context"])
async def test_draft_under_a_wrong_id_is_refused(
    kernel: Kernel, context: Context, bo: Actor, amy: Actor, case: str
) -> None:
    client = Client(context)
    header = draft_header(context, bo)
    match case:
        case "somebody else's":
            header = draft_header(context, amy)
        case "small number":
            header = draft_header(context, bo, number=5)
        case "other context":
            other = await kernel.create_context("other")
            header = header._replace(id=draft_header(other, bo).id)
        case _:
            Client(context, 12).document.create_block(header)
            rival = Client(context, 12)
            rival.document.create_block(header)
            await apply_update(context, bo, rival.take(), "rival")
    client.document.create_block(header)
    error = await refused(context, bo, client.take())
    assert error.code is ErrorCode.PERMISSION_DENIED


async def test_header_fields_of_a_block_are_refused(
    context: Context, bo: Actor, make: Make
) -> None:
    block = await make("hello", status="done")
    client = Client(context)
    client.document.set_fields(block, status="error")
    error = await refused(context, bo, client.take())
    assert error.code is ErrorCode.PERMISSION_DENIED
    assert "tools" in error.message


@pytest.mark.parametrize("case", ["block", "field", "content", "meta", "set and deleted"])
async def test_deleting_what_is_not_text_is_refused(
    context: Context, bo: Actor, make: Make, case: str
) -> None:
    block = await make("hello", status="done")
    doc: Doc[Any] = Doc(client_id=99)
    doc.apply_update(context.document.update_since())
    before, blocks = doc.get_state(), doc.get("blocks", type=Map)
    with doc.transaction():
        match case:
            case "block":
                del blocks[block]
            case "field":
                del blocks[block]["status"]
            case "content":
                del blocks[block]["content"]
            case "meta":
                del doc.get("meta", type=Map)["epoch"]
            case _:
                blocks[block]["status"] = "pending"
                del blocks[block]["status"]
    error = await refused(context, bo, doc.get_update(before))
    assert error.code is ErrorCode.PERMISSION_DENIED
    assert context.document.text(block) == "hello"


@pytest.mark.parametrize("root", ["meta", "members", "gaps", "something"])
async def test_other_roots_are_refused(context: Context, bo: Actor, root: str) -> None:
    doc: Doc[Any] = Doc(client_id=99)
    doc.apply_update(context.document.update_since())
    before = doc.get_state()
    doc.get(root, type=Map)["epoch"] = "0" * 32
    error = await refused(context, bo, doc.get_update(before))
    assert error.code is ErrorCode.PERMISSION_DENIED


async def test_update_with_a_gap_is_not_applied(context: Context, bo: Actor, make: Make) -> None:
    block = await make("hello", status="done")
    client = Client(context)
    for offset in range(3):
        client.document.splice(block, offset, 0, "x")
    first, second, third = client.updates
    error = await refused(context, bo, third)
    assert error.code is ErrorCode.GAP
    for update in (first, second, third):
        await apply_update(context, bo, update, "client")
    assert context.document.text(block) == client.document.text(block)


async def test_client_id_of_somebody_else_is_refused_also_after_a_restart(
    kernel: Kernel, context: Context, bo: Actor, make: Make, open_kernel: Any
) -> None:
    block = await make("hello", status="done")
    client = Client(context)
    client.document.splice(block, 0, 0, "x")
    await apply_update(context, bo, client.take(), "client")
    await kernel.close()
    again = await open_kernel()
    cleo = again.open_session(await again.principal("cleo"), "test")
    client.document.splice(block, 0, 0, "y")
    error = await refused(await again.context(), cleo, client.take())
    assert error.code is ErrorCode.PERMISSION_DENIED


@pytest.mark.parametrize(
    "update", [b"", b"\x00", b"\xff" * 40, b"\x80\x80\x80\x80\x01", b"\x01\x01\x01\x00"]
)
async def test_bytes_that_are_no_update_are_refused(
    context: Context, bo: Actor, update: bytes
) -> None:
    error = await refused(context, bo, update)
    assert error.code is ErrorCode.INVALID_PARAMS


async def test_everything_a_subscriber_hears_is_on_disk(
    kernel: Kernel, context: Context, bo: Actor, make: Make, data: Path
) -> None:
    import sqlite3

    block = await make("", status="done")
    client = Client(context)
    heard: list[int] = []

    def check(broadcast: Broadcast) -> None:
        with sqlite3.connect(data / "journal.db") as reader:
            row = reader.execute("SELECT max(seq) FROM ops").fetchone()
        assert row[0] >= broadcast.seq
        heard.append(broadcast.seq)

    context.committed.listen(check)
    waiting, before = [], context.seq
    for number in range(50):
        client.document.append(block, str(number))
        waiting.append(apply_update(context, bo, client.take(), "client"))
    await asyncio.gather(*waiting)
    assert heard == sorted(heard)
    assert set(heard) == set(range(before + 1, context.seq + 1))
