"""The Yjs text algorithm in the plainest Python: what a document must be, unit by unit.

It reads the same updates as the kernel and shares nothing with the engine. One item is one UTF-16
unit; deleted items stay, so that the place of every character that ever was is known.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from antiphon_kernel.yjs.update import (
    ContentKind,
    ItemId,
    SharedType,
    Struct,
    decode_update,
)


@dataclass(eq=False, slots=True)
class Item:
    """One UTF-16 unit of a text, or one thing that is no character."""

    id: ItemId
    origin: ItemId | None
    right_origin: ItemId | None
    text: Sequence | None
    """The text it stands in; None for what is no part of a text."""
    value: str
    """The character; empty for the second half of one, and for what is no character."""
    deleted: bool = False
    left: Item | None = None
    right: Item | None = None


class Sequence:
    """The items of one text, in order."""

    def __init__(self, block: str) -> None:
        self.block = block
        self.first: Item | None = None

    def items(self) -> Iterator[Item]:
        at = self.first
        while at is not None:
            yield at
            at = at.right

    def visible(self) -> list[Item]:
        return [item for item in self.items() if item.value and not item.deleted]

    def text(self) -> str:
        return "".join(item.value for item in self.visible())


@dataclass(frozen=True, slots=True)
class Effect:
    """Characters that one update made and removed."""

    inserted: list[Item] = field(default_factory=list)
    deleted: list[Item] = field(default_factory=list)


class Model:
    """The texts of one document."""

    def __init__(self) -> None:
        self.texts: dict[str, Sequence] = {}
        self._items: dict[ItemId, Item] = {}
        self._state: dict[int, int] = {}
        self._blocks: dict[ItemId, str] = {}
        self._sequences: dict[ItemId, Sequence] = {}

    @property
    def state(self) -> dict[int, int]:
        """Client id to next clock."""
        return dict(self._state)

    def apply(self, update: bytes) -> Effect:
        """Follow an update; everything it builds on must be known.

        Raises:
            ValueError: if something it builds on is missing.
        """
        decoded = decode_update(update)
        effect = Effect()
        waiting = [one for one in decoded.structs if one.kind is not ContentKind.SKIP]
        while waiting:
            left = [one for one in waiting if not self._integrate(one, effect)]
            if len(left) == len(waiting):
                raise ValueError(f"an update with a gap: {left[0]}")
            waiting = left
        for client, start, end in decoded.deletions:
            for clock in range(start, end):
                item = self._items.get(ItemId(client, clock))
                if item is None:
                    raise ValueError(f"an update deletes the unknown item {client}:{clock}")
                if not item.deleted:
                    item.deleted = True
                    if item.value:
                        effect.deleted.append(item)
        new = set(map(id, effect.inserted))
        return Effect(
            [one for one in effect.inserted if not one.deleted],
            [one for one in effect.deleted if id(one) not in new],
        )

    def _integrate(self, struct: Struct, effect: Effect) -> bool:
        """Take one struct in; False if something it builds on has not come yet."""
        known = self._state.get(struct.client, 0)
        if struct.clock > known:
            return False
        if struct.clock + struct.length <= known:
            return True
        for one in (struct.origin, struct.right_origin, struct.parent):
            if isinstance(one, ItemId) and one not in self._items:
                return False
        text = self._text_of(struct)
        for at, value in enumerate(_units(struct)):
            here = ItemId(struct.client, struct.clock + at)
            if here in self._items:
                continue
            origin = ItemId(struct.client, here.clock - 1) if at else struct.origin
            item = Item(here, origin, struct.right_origin, text, value)
            item.deleted = struct.kind is ContentKind.DELETED
            self._items[here] = item
            if text is not None:
                self._place(item, text)
                if item.value:
                    effect.inserted.append(item)
        self._state[struct.client] = struct.clock + struct.length
        return True

    def _text_of(self, struct: Struct) -> Sequence | None:
        own = ItemId(struct.client, struct.clock)
        if struct.parent == "blocks" and struct.key is not None:
            self._blocks[own] = struct.key
            return None
        if isinstance(struct.parent, ItemId):
            block = self._blocks.get(struct.parent)
            if block is not None and struct.content is SharedType.TEXT:
                self._sequences[own] = self.texts[block] = Sequence(block)
                return None
            return self._sequences.get(struct.parent) if struct.key is None else None
        for beside in (struct.origin, struct.right_origin):
            if beside is not None:
                return self._items[beside].text
        return None

    def _place(self, item: Item, text: Sequence) -> None:
        """Yjs' rule for items that were written at one place at the same time."""
        left = self._items[item.origin] if item.origin is not None else None
        stop = self._items[item.right_origin] if item.right_origin is not None else None
        at = left.right if left is not None else text.first
        passed: set[ItemId] = set()
        rivals: set[ItemId] = set()
        while at is not None and at is not stop:
            passed.add(at.id)
            rivals.add(at.id)
            if at.origin == item.origin:
                if at.id.client < item.id.client:
                    left = at
                    rivals.clear()
                elif at.right_origin == item.right_origin:
                    break
            elif at.origin is not None and at.origin in passed:
                if at.origin not in rivals:
                    left = at
                    rivals.clear()
            else:
                break
            at = at.right
        item.left = left
        if left is None:
            item.right, text.first = text.first, item
        else:
            item.right, left.right = left.right, item
        if item.right is not None:
            item.right.left = item


def _units(struct: Struct) -> list[str]:
    if struct.kind is not ContentKind.STRING:
        return [""] * struct.length
    units: list[str] = []
    for char in str(struct.content):
        units.append(char)
        if ord(char) > 0xFFFF:
            units.append("")
    return units
