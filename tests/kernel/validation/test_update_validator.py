"""Touched containers, characters and deletions of a raw update, known before it is applied."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pycrdt
import pytest

from antiphon_kernel.contexts import Context, apply_update
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.types.errors import ErrorCode
from antiphon_kernel.types.records import Actor
from antiphon_kernel.types.roles import AccessRole
from antiphon_kernel.yjs.id_set import IdRange
from antiphon_kernel.yjs.update import ContentKind, ItemId, Struct, decode_update
from antiphon_kernel.yjs.update_writer import encode_update
from tests.errors import raises
from tests.kernel.kernel.calls import Make, OpenKernel
from tests.kernel.validation.peers import Peer, refused, value

# Texts


@pytest.mark.parametrize("path", ["state/title", "notes"])
async def test_text_of_a_part_that_is_not_read_only_is_written(
    context: Context, bo: Actor, block: str, path: str
) -> None:
    peer, before = Peer(context), value(context, block, path)
    for number in range(2):
        peer.text(block, path).insert(number, str(number))
        await apply_update(context, bo, peer.update(), "client")
    assert value(context, block, path) == f"01{before}"


@pytest.mark.parametrize(
    ("path", "code"),
    [("state/stamp", ErrorCode.READ_ONLY_FIELD), ("sealed", ErrorCode.READ_ONLY_SECTION)],
)
async def test_text_of_a_read_only_part_is_refused(
    context: Context, bo: Actor, block: str, path: str, code: ErrorCode
) -> None:
    inserting, deleting = Peer(context, 77), Peer(context, 78)
    inserting.text(block, path).insert(0, "x")
    del deleting.text(block, path)[0:1]
    for peer in (inserting, deleting):
        await refused(context, bo, peer.update(), code)


async def test_text_that_would_become_too_long_is_refused(
    context: Context, bo: Actor, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = context.limits.model_copy(update={"block_code_points": 5})
    monkeypatch.setattr(context, "limits", limits)
    block = await make("漢字a")
    too_much, fitting = Peer(context, 77), Peer(context, 78)
    too_much.content(block).insert(0, "xxx")
    fitting.content(block).insert(0, "xx")
    await refused(context, bo, too_much.update(), ErrorCode.TOO_LARGE)
    await apply_update(context, bo, fitting.update(), "client")
    replacing = Peer(context, 79)
    with replacing.doc.transaction():
        del replacing.content(block)[0:2]
        replacing.content(block).insert(0, "yy")
    await apply_update(context, bo, replacing.update(), "client")
    assert context.document.text(block) == "yy漢字a"


# Characters


def place_of(context: Context, text: str) -> ItemId:
    """The id of the first unit of a text."""
    for one in decode_update(context.document.update_since()).structs:
        content = one.content
        if one.kind is ContentKind.STRING and isinstance(content, str) and text in content:
            units = len(content[: content.index(text)].encode("utf-16-le")) // 2
            return ItemId(one.client, one.clock + units)
    raise AssertionError(text)


@pytest.mark.parametrize("how", ["origin", "right origin", "delete from", "delete to"])
async def test_update_that_splits_surrogate_pair_is_rejected(
    context: Context, bo: Actor, make: Make, how: str
) -> None:
    block = await make("a😀b")
    first = place_of(context, "😀")
    half = ItemId(first.client, first.clock + 1)
    struct: Struct | None = None
    deletions: tuple[IdRange, ...] = ()
    match how:
        case "origin":
            struct = Struct(5, 0, 1, ContentKind.STRING, first, content="x")
        case "right origin":
            struct = Struct(5, 0, 1, ContentKind.STRING, None, half, content="x")
        case "delete from":
            deletions = (IdRange(half.client, half.clock, half.clock + 2),)
        case _:
            deletions = (IdRange(first.client, first.clock - 1, first.clock + 1),)
    update = encode_update([struct] if struct else [], deletions)
    with raises(ErrorCode.INVALID_PARAMS):
        await apply_update(context, bo, update, "client")
    assert context.document.text(block) == "a😀b"


@pytest.mark.parametrize("begin", [-1, 1])
@pytest.mark.parametrize("restarts", [False, True])
async def test_deletion_that_splits_removed_surrogate_pair_is_rejected(
    kernel: Kernel,
    context: Context,
    amy: Actor,
    bo: Actor,
    make: Make,
    open_kernel: OpenKernel,
    restarts: bool,
    begin: int,
) -> None:
    block = await make("a😀b")
    first = place_of(context, "😀")
    splice = {"block_id": block, "offset": 1, "delete_count": 1}
    await kernel.call(amy, "block.splice", splice)
    if restarts:
        await kernel.close()
        kernel = await open_kernel()
        context = await kernel.context()
    deleted = IdRange(first.client, first.clock + begin, first.clock + begin + 2)
    with raises(ErrorCode.INVALID_PARAMS):
        await apply_update(context, bo, encode_update([], (deleted,)), "client")
    await kernel.call(amy, "block.undo", {"block_id": block})
    assert context.document.text(block) == "a😀b"


async def test_items_that_wait_for_each_other_are_a_gap(
    context: Context, bo: Actor, make: Make
) -> None:
    await make("text")
    update = encode_update(
        [
            Struct(5, 0, 1, ContentKind.STRING, ItemId(6, 0), content="x"),
            Struct(6, 0, 1, ContentKind.STRING, ItemId(5, 0), content="y"),
        ],
        (),
    )
    with raises(ErrorCode.GAP):
        await apply_update(context, bo, update, "client")


# Readers


async def test_viewer_writes_nothing_and_may_repeat_what_is_known(
    kernel: Kernel, context: Context, bo: Actor, make: Make
) -> None:
    block = await make("x" * 40_000)
    peer = Peer(context)
    del peer.content(block)[0:3]
    await apply_update(context, bo, peer.update(), "client")
    viewer = replace(bo, role=AccessRole.VIEWER)
    version = context.blocks.version(block)
    await apply_update(context, viewer, context.document.update_since(), "viewer")
    marks = [
        IdRange(one.client, one.clock, one.clock + 1)
        for one in decode_update(context.document.update_since()).structs
        if one.kind is ContentKind.FORMAT
    ]
    assert marks
    await apply_update(context, viewer, encode_update([], tuple(marks[:1])), "viewer")
    assert context.blocks.version(block) == version
    reading = Peer(context, 80)
    del reading.content(block)[0:1]
    with raises(ErrorCode.PERMISSION_DENIED):
        await apply_update(context, viewer, reading.update(), "viewer")


async def test_reading_the_places_off_a_document_gives_others_their_turn(
    context: Context, amy: Actor, bo: Actor, make: Make
) -> None:
    block = await make("first")
    for number in range(30):
        await make(f"block {number}")
    reading = asyncio.create_task(context.structure.read())
    await asyncio.sleep(0)
    document = context.document
    await context.write(
        amy, "splice", lambda: document.append(block, " and more"), blocks=[block]
    ).saved()
    await reading
    peer = Peer(context)
    peer.content(block).insert(0, "> ")
    await apply_update(context, bo, peer.update(), "client")
    assert document.text(block) == "> first and more"


async def test_typing_in_crumbs_is_applied_and_kept_as_one_item(
    context: Context, bo: Actor, make: Make
) -> None:
    block = await make("")
    peer = Peer(context)
    updates: list[bytes] = []
    subscription = peer.doc.observe(lambda event: updates.append(event.update))
    for number in range(3_000):
        peer.content(block).insert(number, "x")
    peer.doc.unobserve(subscription)
    merged = updates[0]
    for at in range(1, len(updates), 100):
        merged = pycrdt.merge_updates(merged, *updates[at : at + 100])
    assert len(decode_update(merged).structs) == 3_000
    heard: list[bytes] = []
    context.committed.listen(lambda one: heard.append(one.update))
    await apply_update(context, bo, merged, "client")
    assert context.document.text(block) == "x" * 3_000
    assert len(decode_update(heard[0]).structs) < 20


async def test_status_that_was_written_over_is_known_to_be_gone(
    kernel: Kernel, context: Context, bo: Actor
) -> None:
    """The kernel calls a draft running while its author calls it done."""
    peer = Peer(context)
    block = peer.draft(bo, "mine")
    await peer.send(bo)
    peer.blocks[block]["status"] = "done"
    await peer.send(bo)
    await kernel.members.give_role(bo.principal, AccessRole.VIEWER)
    viewer = kernel.open_session(bo.principal, "test")
    before = context.document.state_vector()
    for reader in (Peer(context, 79), Peer(context, 80, keeps=True)):
        await apply_update(context, viewer, reader.doc.get_update(), "client")
    assert context.document.state_vector() == before
