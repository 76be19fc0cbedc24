"""The short check of typed text says what the whole check says, or leaves it to that."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from random import Random

from antiphon_kernel.contexts import Context, apply_update
from antiphon_kernel.limits import Limits
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.records import Actor
from antiphon_kernel.types.roles import AccessRole
from antiphon_kernel.validation import ItemIndex, UpdateScope
from antiphon_kernel.validation.update_validator import UpdateValidator, place_typed_text
from antiphon_kernel.yjs.update import (
    ContentKind,
    DecodedUpdate,
    ItemId,
    Struct,
    decode_update,
)
from antiphon_kernel.yjs.update_writer import encode_update
from tests.kernel.kernel.calls import Make
from tests.kernel.validation.peers import Peer

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
    for _ in range(60):
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
    assert agreed > 50
    rebuilt = Checks(context, bo)
    rebuilt.items = ItemIndex()
    rebuilt.items.follow(context.document.update_since())
    known, end = list(items(context)), checks.items.end(BO)
    for _ in range(2_000):
        origin, right = chance.choice(known), chance.choice(known)
        probe = Struct(BO, end, 1, ContentKind.STRING, origin, right, content="x")
        assert (checks.short(probe) is None) == (rebuilt.short(probe) is None)
    assert str(peer.content(text)) == context.document.text(text)
