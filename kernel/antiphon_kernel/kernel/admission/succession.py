"""Which of the values that were written under one key of a map stands.

Each value is written over another one, or as the first. Of several that were written over the same
one, at the same time, that of the greatest client id stands, and what is written over it; the
others never stand again. So it is enough to know the line of those that stand or stood.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterator

from antiphon_kernel.wire.update import ItemId, Struct

_FIRST = -1
"""The position before all values."""


def written_over(item: Struct, begin: int) -> Iterator[tuple[ItemId, ItemId | None]]:
    """The values of an item from clock `begin` on, each with the one that it is written over."""
    client = item.client
    over = item.origin if begin == item.clock else ItemId(client, begin - 1)
    for clock in range(begin, item.clock + item.length):
        value = ItemId(client, clock)
        yield value, over
        over = value


class Succession:
    """The line of values of one key: some 24 bytes each."""

    def __init__(self) -> None:
        self._clients = array("Q")
        self._clocks: dict[int, array[int]] = {}
        """Of each client the clocks of its values, and in `_positions` where they are."""
        self._positions: dict[int, array[int]] = {}

    def __len__(self) -> int:
        return len(self._clients)

    def position(self, item: ItemId) -> int | None:
        """Where a value is in the line; None if it is not."""
        clocks = self._clocks.get(item.client)
        if clocks is None:
            return None
        at = bisect_left(clocks, item.clock)
        if at == len(clocks) or clocks[at] != item.clock:
            return None
        return self._positions[item.client][at]

    def client(self, position: int) -> int:
        """Who has written a value of the line."""
        return self._clients[position]

    def value(self, position: int) -> ItemId:
        """A value of the line."""
        client = self._clients[position]
        return ItemId(client, self._clocks[client][bisect_left(self._positions[client], position)])

    @property
    def last(self) -> ItemId | None:
        """The value that stands, or the last that stood; None if there never was one."""
        return self.value(len(self) - 1) if len(self) else None

    def add(self, item: ItemId, over: ItemId | None) -> None:
        """A value has been written over another one."""
        position = _FIRST if over is None else self.position(over)
        if position is None or not _wins(item, position, self):
            return
        while len(self._clients) > position + 1:
            client = self._clients.pop()
            self._clocks[client].pop()
            self._positions[client].pop()
        self._clocks.setdefault(item.client, array("Q")).append(item.clock)
        self._positions.setdefault(item.client, array("Q")).append(len(self._clients))
        self._clients.append(item.client)


class Supposed:
    """What the line would be if more were written; the line itself stays as it is."""

    def __init__(self, line: Succession) -> None:
        self._line = line
        self._kept = len(line)
        self._added: list[ItemId] = []
        self._positions: dict[ItemId, int] = {}

    def __len__(self) -> int:
        return self._kept + len(self._added)

    def client(self, position: int) -> int:
        """Who has written a value of the line."""
        if position < self._kept:
            return self._line.client(position)
        return self._added[position - self._kept].client

    @property
    def last(self) -> ItemId | None:
        """The value that would stand; None if there would be none."""
        if self._added:
            return self._added[-1]
        return self._line.value(self._kept - 1) if self._kept else None

    def add(self, item: ItemId, over: ItemId | None) -> None:
        """Suppose that a value is written over another one."""
        position = _FIRST if over is None else self._position(over)
        if position is None or not _wins(item, position, self):
            return
        for gone in self._added[max(0, position + 1 - self._kept) :]:
            del self._positions[gone]
        del self._added[max(0, position + 1 - self._kept) :]
        self._kept = min(self._kept, position + 1)
        self._positions[item] = len(self)
        self._added.append(item)

    def _position(self, item: ItemId) -> int | None:
        position = self._positions.get(item)
        if position is not None:
            return position
        position = self._line.position(item)
        return position if position is not None and position < self._kept else None


def _wins(item: ItemId, position: int, line: Succession | Supposed) -> bool:
    """Whether a value written over the one at `position` stands before what is there."""
    return position + 1 == len(line) or item.client > line.client(position + 1)
