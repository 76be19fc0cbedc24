"""Touched containers, characters and deletions of a raw update, known before it is applied."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator
from dataclasses import replace
from random import Random

import pycrdt
import pytest

from antiphon_kernel.contexts import Context, apply_update
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.limits import Limits
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.records import Actor
from antiphon_kernel.types.roles import AccessRole
from antiphon_kernel.validation import ItemIndex, UpdateScope
from antiphon_kernel.validation.update_validator import UpdateValidator, place_typed_text
from antiphon_kernel.yjs.id_set import IdRange
from antiphon_kernel.yjs.update import (
    ContentKind,
    DecodedUpdate,
    ItemId,
    Struct,
    decode_update,
)
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
    for number in range(1_000):
        peer.content(block).insert(number, "x")
    peer.doc.unobserve(subscription)
    merged = updates[0]
    for at in range(1, len(updates), 100):
        merged = pycrdt.merge_updates(merged, *updates[at : at + 100])
    assert len(decode_update(merged).structs) == 1_000
    heard: list[bytes] = []
    context.committed.listen(lambda one: heard.append(one.update))
    await apply_update(context, bo, merged, "client")
    assert context.document.text(block) == "x" * 1_000
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


BO, AMY, UNKNOWN = 77, 78, 79


class Checks:
    """Both checks of the same items, beside each other."""

    def __init__(self, context: Context, actor: Actor, limits: Limits | None = None) -> None:
        owners = {BO: actor.principal.id, AMY: "somebody else"}
        self.items = context.structure.item_index
        limits = limits or context.limits
        self.scope = UpdateScope(context.document, actor, owners, self.items, limits)

    def short(self, *items: Struct) -> ItemIndex | str | None:
        try:
            return place_typed_text(self.scope, DecodedUpdate(items, ()))
        except AntiphonError as error:
            return error.code

    def whole(self, *items: Struct) -> ItemIndex | str | None:
        update = encode_update(items, ())
        try:
            validated = UpdateValidator(self.scope).validate(decode_update(update), update)
        except AntiphonError as error:
            return error.code
        if not validated.is_text or validated.clients or validated.drafts or validated.submitted:
            return None
        return validated.placed

    def agree(self, *items: Struct) -> bool:
        """Return whether the short check decides about items; if so, as the whole one does."""
        short, whole = self.short(*items), self.whole(*items)
        if isinstance(short, str):
            assert short == whole
        elif short is not None:
            assert isinstance(whole, ItemIndex), (items, whole)
            for item in items:
                last = ItemId(item.client, item.clock + item.length - 1)
                assert short.place(last) is whole.place(last)
            assert short.end(items[0].client) == whole.end(items[0].client)
            assert short.staged == whole.staged
        return short is not None


async def write(context: Context, actor: Actor, client: int, block: str) -> None:
    """Write at two places as a client, and take something away."""
    peer = Peer(context, client, keeps=True)
    for at, text in ((0, "one😀"), (3, "two")):
        peer.content(block).insert(at, text)
        await apply_update(context, actor, peer.update(), "client")
    del peer.content(block)[1:3]
    await apply_update(context, actor, peer.update(), "client")


def items(context: Context) -> Iterator[ItemId | None]:
    """Every unit of the document, and one behind what each client has written."""
    yield None
    for one in decode_update(context.document.update_since()).structs:
        for clock in range(one.clock, one.clock + one.length + 1):
            yield ItemId(one.client, clock)


async def test_short_check_of_items_anywhere_decides_as_the_whole_check(
    context: Context, bo: Actor, amy: Actor, make: Make, block: str
) -> None:
    text = await make("a漢😀b")
    await write(context, bo, BO, text)
    await write(context, amy, AMY, text)
    checks = Checks(context, bo)
    known = list(dict.fromkeys(items(context)))
    end = checks.items.end(BO)
    decided = sum(
        checks.agree(Struct(BO, end, 1, ContentKind.STRING, origin, right, content="x"))
        for origin, right in itertools.product(known, known)
        if origin is not None or right is not None
    )
    assert 0 < decided < len(known) ** 2


async def test_short_check_leaves_what_is_not_the_next_text_of_the_actor(
    context: Context, bo: Actor, amy: Actor, make: Make
) -> None:
    text = await make("abc")
    await write(context, bo, BO, text)
    await write(context, amy, AMY, text)
    checks = Checks(context, bo)
    end, last = checks.items.end(BO), ItemId(BO, checks.items.end(BO) - 1)
    typed = Struct(BO, end, 1, ContentKind.STRING, last, ItemId(BO, 3), content="x")
    assert checks.agree(typed)
    others = [
        typed._replace(client=AMY, clock=checks.items.end(AMY)),
        typed._replace(client=UNKNOWN, clock=0),
        typed._replace(clock=end + 1),
        typed._replace(clock=end - 1),
        typed._replace(clock=end - 1, length=2, content="xy"),
        typed._replace(kind=ContentKind.FORMAT, content=("b", "true")),
        typed._replace(kind=ContentKind.DELETED, content=None),
    ]
    assert [checks.agree(other) for other in others] == [False] * len(others)


async def test_short_check_refuses_viewers_and_long_texts_as_the_whole_check(
    context: Context, bo: Actor, make: Make
) -> None:
    text = await make("abc")
    await write(context, bo, BO, text)
    checks = Checks(context, bo)
    end, last = checks.items.end(BO), ItemId(BO, checks.items.end(BO) - 1)
    typed = Struct(BO, end, 1, ContentKind.STRING, last, ItemId(BO, 3), content="x")
    viewer = Checks(context, replace(bo, role=AccessRole.VIEWER))
    assert viewer.agree(typed) and viewer.short(typed) is ErrorCode.PERMISSION_DENIED
    short = Checks(context, bo, context.limits.model_copy(update={"block_code_points": 3}))
    assert short.agree(typed) and short.short(typed) is ErrorCode.TOO_LARGE


async def test_short_check_of_many_items_decides_as_the_whole_check(
    context: Context, bo: Actor, amy: Actor, make: Make
) -> None:
    text = await make("a漢😀b" * 5)
    await write(context, bo, BO, text)
    await write(context, amy, AMY, text)
    checks, chance = Checks(context, bo), Random(4711)
    peer = Peer(context, BO, keeps=True)
    agreed = 0
    for _ in range(25):
        for _ in range(chance.randrange(1, 8)):
            before = str(peer.content(text))
            at = len(before[: chance.randrange(len(before) + 1)].encode())
            peer.content(text).insert(at, chance.choice(("x", "漢", "😀", "yz")))
        update = peer.update()
        structs = decode_update(update).structs
        agreed += checks.agree(*structs)
        spoilt = [*structs]
        at = chance.randrange(len(spoilt))
        other = chance.choice([one for one in items(context) if one is not None])
        spoilt[at] = spoilt[at]._replace(right_origin=other)
        checks.agree(*spoilt)
        await apply_update(context, bo, update, "client")
    assert agreed > 20
    rebuilt = Checks(context, bo)
    rebuilt.items = ItemIndex()
    rebuilt.items.follow(context.document.update_since())
    known, end = list(items(context)), checks.items.end(BO)
    for _ in range(500):
        origin, right = chance.choice(known), chance.choice(known)
        probe = Struct(BO, end, 1, ContentKind.STRING, origin, right, content="x")
        assert (checks.short(probe) is None) == (rebuilt.short(probe) is None)
    assert str(peer.content(text)) == context.document.text(text)
