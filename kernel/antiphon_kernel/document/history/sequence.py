"""The items of one CRDT text in document order, removed ones included.

The CRDT engine does not say which item a character is. This is the same list, kept beside it: items
are placed by the rule of Yjs (an item goes right of its origin; concurrent ones are ordered by
their origins, then by client id), so that the list is the engine's own whatever order updates come
in. Nothing is ever taken out of it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import Final

from antiphon_kernel.wire.update import ItemId

ALIVE: Final = -1
"""`Segment.died` of characters that are in the text."""


class Segment:
    """Characters in a row that one client wrote at once and that share their fate.

    `length` counts ids, which are UTF-16 units; `text` is empty for format marks and for what its
    author removed before anybody saw it. `born` and `died` are positions in a list of changes that
    the sequence does not know.
    """

    __slots__ = (
        "again",
        "author",
        "born",
        "client",
        "clock",
        "died",
        "left",
        "length",
        "origin",
        "removers",
        "right",
        "right_origin",
        "source",
        "text",
        "unmade",
    )

    def __init__(
        self,
        item: ItemId,
        length: int,
        text: str,
        origin: ItemId | None,
        right_origin: ItemId | None,
        born: int,
    ) -> None:
        self.client, self.clock = item
        self.length = length
        self.text = text
        self.origin = origin
        self.right_origin = right_origin
        self.born = born
        self.died = ALIVE
        self.left: Segment | None = None
        self.right: Segment | None = None
        self.source: ItemId | None = None
        """The first of the characters that these are, if they are others come back."""
        self.again: ItemId | None = None
        """The first of these characters as they came back last, if they did."""
        self.author: int | None = None
        """Who is named for these characters instead of who wrote them here: see `born`."""
        self.removers: frozenset[int] = frozenset()
        """Of characters that are no others come back: the units that hold them removed."""
        self.unmade = False
        """Of characters that are no others come back: whether what wrote them is undone."""

    def beginning_at(self, clock: int) -> Segment:
        """The part from a clock on, as a segment that has not been placed."""
        units = clock - self.clock
        rest = Segment(
            ItemId(self.client, clock),
            self.length - units,
            self.text[cut(self.text, units) :] if self.text else "",
            ItemId(self.client, clock - 1),
            self.right_origin,
            self.born,
        )
        rest.died, rest.unmade, rest.removers = self.died, self.unmade, self.removers
        rest.source, rest.again = _later(self.source, units), _later(self.again, units)
        rest.author = self.author
        return rest

    def cut_off(self, clock: int) -> Segment:
        """End this segment before a clock; the rest, which has not been placed."""
        rest = self.beginning_at(clock)
        self.length -= rest.length
        self.text = self.text[: len(self.text) - len(rest.text)]
        return rest

    @property
    def end(self) -> int:
        """The clock after the last one."""
        return self.clock + self.length

    @property
    def first(self) -> ItemId:
        return ItemId(self.client, self.clock)

    @property
    def last(self) -> ItemId:
        return ItemId(self.client, self.end - 1)

    @property
    def alive(self) -> bool:
        return self.died == ALIVE

    @property
    def code_points(self) -> int:
        return len(self.text)


def _later(item: ItemId | None, units: int) -> ItemId | None:
    return ItemId(item.client, item.clock + units) if item is not None else None


def utf16_length(text: str) -> int:
    """UTF-16 units of a text."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le")) // 2


def cut(text: str, units: int) -> int:
    """The code points that the first `units` UTF-16 units of a text are.

    Raises:
        ValueError: if that is inside a surrogate pair.
    """
    if text.isascii():
        return units
    try:
        return len(text.encode("utf-16-le")[: 2 * units].decode("utf-16-le"))
    except UnicodeDecodeError as error:
        raise ValueError(f"an item border falls inside a surrogate pair of {text!r}") from error


class Sequence:
    """The list, and the way from an id to its segment."""

    def __init__(self) -> None:
        self._head: Segment | None = None
        self._clocks: dict[int, list[int]] = {}
        self._segments: dict[int, list[Segment]] = {}

    def __iter__(self) -> Iterator[Segment]:
        at = self._head
        while at is not None:
            yield at
            at = at.right

    @property
    def head(self) -> Segment | None:
        """The first segment."""
        return self._head

    def find(self, item: ItemId) -> Segment | None:
        """The segment that holds an id; None if the id is not of this text."""
        clocks = self._clocks.get(item.client)
        if not clocks:
            return None
        at = bisect_right(clocks, item.clock) - 1
        if at < 0:
            return None
        segment = self._segments[item.client][at]
        return segment if item.clock < segment.end else None

    def next_clock(self, client: int, clock: int) -> int | None:
        """The first clock from `clock` on that this text holds; None if there is none."""
        clocks = self._clocks.get(client)
        if not clocks:
            return None
        at = bisect_right(clocks, clock) - 1
        if at >= 0 and clock < self._segments[client][at].end:
            return clock
        return clocks[at + 1] if at + 1 < len(clocks) else None

    def within(self, client: int, start: int, end: int) -> Iterator[Segment]:
        """The segments of the ids from `start` to `end`, cut so that they are all inside."""
        clock = self.next_clock(client, start)
        while clock is not None and clock < end:
            segment = self.begin(ItemId(client, clock))
            assert segment is not None
            if segment.end > end:
                self.split(segment, end - segment.clock)
            yield segment
            clock = self.next_clock(client, segment.end)

    def begin(self, item: ItemId) -> Segment | None:
        """The segment that begins with an id, cut if need be; None if it is not of this text."""
        segment = self.find(item)
        if segment is not None and segment.clock < item.clock:
            segment = self.split(segment, item.clock - segment.clock)
        return segment

    def end(self, item: ItemId) -> Segment | None:
        """The segment that ends with an id, cut if need be; None if it is not of this text."""
        segment = self.find(item)
        if segment is not None and segment.end > item.clock + 1:
            self.split(segment, item.clock + 1 - segment.clock)
        return segment

    def split(self, segment: Segment, units: int) -> Segment:
        """Cut a segment after so many ids; returns the second half."""
        rest = segment.cut_off(segment.clock + units)
        self._link(rest, segment)
        self._register(rest)
        return rest

    def originals(self, segment: Segment) -> Iterator[Segment]:
        """What these characters are: themselves, or those that they are come back."""
        source = segment.source
        if source is None:
            yield segment
        else:
            yield from self.within(source.client, source.clock, source.clock + segment.length)

    def newest(self, original: Segment) -> Iterator[Segment]:
        """These characters as they came back last; themselves if they never did."""
        again = original.again
        if again is None:
            yield original
        else:
            yield from self.within(again.client, again.clock, again.clock + original.length)

    def as_now(self, segment: Segment) -> Iterator[Segment]:
        """Characters as they are now: themselves, or as they came back last if they have gone."""
        if segment.alive:
            yield segment
            return
        for original in self.originals(segment):
            yield from self.newest(original)

    def place(self, new: Segment) -> None:
        """Put a new segment where Yjs puts it; what it builds on must be here."""
        left = self.end(new.origin) if new.origin is not None else None
        right = self.begin(new.right_origin) if new.right_origin is not None else None
        following = left.right if left is not None else self._head
        if following is not right:
            left = self._after_conflicts(new, left, following, right)
        self._link(new, left)
        self._register(new)

    def _after_conflicts(
        self, new: Segment, left: Segment | None, at: Segment | None, right: Segment | None
    ) -> Segment | None:
        """Among what others wrote at the same place, the segment that `new` stands right of."""
        passed: set[int] = set()
        since_left: set[int] = set()
        while at is not None and at is not right:
            passed.add(id(at))
            since_left.add(id(at))
            if at.origin == new.origin:
                if at.client < new.client:
                    left = at
                    since_left.clear()
                elif at.right_origin == new.right_origin:
                    break
            else:
                origin = self.find(at.origin) if at.origin is not None else None
                if origin is None or id(origin) not in passed:
                    break
                if id(origin) not in since_left:
                    left = at
                    since_left.clear()
            at = at.right
        return left

    def _link(self, new: Segment, left: Segment | None) -> None:
        new.left = left
        if left is not None:
            new.right, left.right = left.right, new
        else:
            new.right, self._head = self._head, new
        if new.right is not None:
            new.right.left = new

    def _register(self, segment: Segment) -> None:
        clocks = self._clocks.setdefault(segment.client, [])
        segments = self._segments.setdefault(segment.client, [])
        if not clocks or clocks[-1] < segment.clock:
            clocks.append(segment.clock)
            segments.append(segment)
            return
        at = bisect_left(clocks, segment.clock)
        clocks.insert(at, segment.clock)
        segments.insert(at, segment)
