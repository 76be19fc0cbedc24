"""Index from the items of an update to the sequences of a block's content."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from antiphon_kernel.document.header import CONTENT
from antiphon_kernel.document.history.item_index import ItemKind, ItemList, ItemTable
from antiphon_kernel.yjs.update import ItemId, SharedType, Struct

_ROOT: Final = "blocks"

Names = tuple[str, ...]
"""The way from a block's content to a part of it: names of sections, then of a field."""


class ContainerIndex:
    """The shared types of one block's content, as far as updates have shown them."""

    def __init__(self, block: str, items: ItemTable, counters: Collection[Names]) -> None:
        self._block = block
        self._items = items
        self._counters = frozenset(counters)
        self._frame: ItemId | None = None
        self.names: dict[ItemId, Names] = {}
        """The place of each map and counter."""
        self._maps: dict[tuple[ItemId, str], ItemList] = {}
        self.texts: dict[Names, ItemList] = {}
        """The text (or list) in each place."""
        self._sequences: dict[ItemId, ItemList] = {}

    def counter(self, container: ItemId, client: int) -> ItemList | None:
        """Return a client's partial sums in a counter; None if it has not counted yet."""
        return self._maps.get((container, str(client)))

    def sequence(self, names: Names) -> ItemList | None:
        """The text, the list or the values of the field in a place; None if there is none."""
        found = self.texts.get(names)
        if found is None and names:
            above = self.counter_at(names[:-1])
            found = self._maps.get((above, names[-1])) if above is not None else None
        return found

    def counter_at(self, names: Names) -> ItemId | None:
        """The counter, or other map, in a place; None if there is none."""
        return next((item for item, one in self.names.items() if one == names), None)

    def sums(self, counter: ItemId) -> list[ItemList]:
        """The partial sums of every client in a counter."""
        return [one for (container, _), one in self._maps.items() if container == counter]

    def names_of(self, sequence: ItemList) -> Names:
        """Return the path names of a sequence of this block."""
        if sequence.kind in (ItemKind.TEXT, ItemKind.LIST):
            return next(names for names, one in self.texts.items() if one is sequence)
        above = self.names[sequence.container]
        return (*above, sequence.key) if sequence.key is not None else above

    def record(self, struct: Struct) -> None:
        """Remember a shared type if it is part of the block."""
        item = ItemId(struct.client, struct.clock)
        if struct.parent == _ROOT:
            if struct.key == self._block:
                self._frame = item
            return
        if not isinstance(struct.parent, ItemId) or struct.key is None:
            return
        if struct.parent == self._frame:
            if struct.key == CONTENT:
                self._open(item, (), struct.content)
        elif struct.parent in self.names:
            self._open(item, (*self.names[struct.parent], struct.key), struct.content)

    def _open(self, item: ItemId, names: Names, shared: object) -> None:
        if item in self.names or item in self._sequences:
            return
        if shared is SharedType.MAP:
            self.names[item] = names
        elif shared in (SharedType.TEXT, SharedType.ARRAY):
            kind = ItemKind.TEXT if shared is SharedType.TEXT else ItemKind.LIST
            self.texts[names] = self._sequences[item] = ItemList(kind, item)

    def sequence_of(self, struct: Struct) -> ItemList | None:
        """Return the sequence of an item; None if it is not part of the block's content."""
        if struct.parent is None:
            beside = struct.origin if struct.origin is not None else struct.right_origin
            neighbour = self._items.find(beside) if beside is not None else None
            return neighbour.sequence if neighbour is not None else None
        if not isinstance(struct.parent, ItemId):
            return None
        if struct.key is None:
            return self._sequences.get(struct.parent)
        names = self.names.get(struct.parent)
        if names is None:
            return None
        place = (struct.parent, struct.key)
        if place not in self._maps:
            kind = ItemKind.COUNTER if names in self._counters else ItemKind.ENTRY
            self._maps[place] = ItemList(kind, *place)
        return self._maps[place]
