"""No raw client splits a surrogate pair, however it addresses the halves of a character."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from antiphon_kernel.contexts import apply_update
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.validation import ItemIndex
from antiphon_kernel.yjs.id_set import IdRange, normalise
from antiphon_kernel.yjs.update import ContentKind, ItemId, Struct, utf16_length
from antiphon_kernel.yjs.update_writer import encode_update
from tests.kernel.invariants.alphabet import Alphabet
from tests.kernel.invariants.cases import cases
from tests.kernel.invariants.oracle import Item, Violation
from tests.kernel.invariants.world import World, open_world

CLIENT = 77


def insertion(clock: int, left: ItemId | None, right: ItemId | None, text: str) -> bytes:
    """An update that puts text between two units, as a JavaScript client could write it."""
    length = utf16_length(text)
    item = Struct(CLIENT, clock, length, ContentKind.STRING, left, right, content=text)
    return encode_update([item], ())


def deletion(items: Sequence[Item], *, piecewise: bool) -> bytes:
    """An update that deletes units, each by itself or as few ranges."""
    ranges = tuple(sorted(IdRange(i.id.client, i.id.clock, i.id.clock + 1) for i in items))
    return encode_update((), ranges if piecewise else normalise(ranges))


def units(world: World, block: str) -> list[Item]:
    """The UTF-16 units that are in the text, in order; format marks are not among them."""
    found: list[Item] = []
    for item in world.oracle.model.texts[block].items():
        second_half = bool(found) and ord(found[-1].value or " ") > 0xFFFF
        if (item.value or second_half) and not item.deleted:
            found.append(item)
    return found


def beside(world: World, block: str, left: Item | None) -> tuple[ItemId | None, ItemId | None]:
    """Return the ids of an item (None is the beginning) and of the one right of it, gone or not."""
    every = [item.id for item in world.oracle.model.texts[block].items()]
    at = every.index(left.id) + 1 if left is not None else 0
    return left.id if left is not None else None, every[at] if at < len(every) else None


def is_inside(found: Sequence[Item], at: int) -> bool:
    """Whether a character goes on at unit `at`."""
    return at < len(found) and not found[at].value


async def tear_everywhere(rng: random.Random) -> None:
    async with open_world(rng) as world:
        text = "".join(Alphabet(one).some(rng, 6) for one in range(4))
        block = (await world.call("amy", "block.create", kind="file", content=text))["block_id"]
        for _ in range(10):
            await tear(world, block, rng)


@cases(0.15)
async def test_update_that_splits_a_character_is_rejected_and_any_other_accepted(
    rng: random.Random,
) -> None:
    await tear_everywhere(rng)


async def test_kernel_that_knows_no_halves_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: a validation for which every border is the border of a character."""
    monkeypatch.setattr(ItemIndex, "splits_surrogates", lambda *_: False)
    with pytest.raises(Violation):
        await tear_everywhere(random.Random(0))


async def tear(world: World, block: str, rng: random.Random) -> None:
    """One update somewhere, on the border of a character or inside one."""
    found = units(world, block)
    start = rng.randint(0, len(found))
    if rng.random() < 0.5 or start == len(found):
        left, right = beside(world, block, found[start - 1] if start else None)
        if left is None and right is None:
            return
        clock = world.oracle.model.state.get(CLIENT, 0)
        update = insertion(clock, left, right, rng.choice("x漢😀"))
        tears = is_inside(found, start)
    else:
        end = rng.randint(start + 1, min(start + 3, len(found)))
        piecewise = rng.random() < 0.3
        update = deletion(found[start:end], piecewise=piecewise)
        borders = range(start, end + 1) if piecewise else (start, end)
        tears = any(is_inside(found, border) for border in borders)
    before = world.context.document.state_vector()
    try:
        await apply_update(world.context, world.actors["bo"], update, "client")
    except AntiphonError as error:
        if not tears:
            raise Violation(f"an update that tears nothing was refused: {error}") from error
        if error.code not in (ErrorCode.PERMISSION_DENIED, ErrorCode.INVALID_PARAMS):
            raise Violation(f"a torn character is called {error.code}: {error}") from error
        if world.context.document.state_vector() != before:
            raise Violation("a refused update has left something") from error
        return
    if tears:
        raise Violation("a character was torn")
    await world.settle()
