"""The CRDT items of one block, the ways to them, and where a new one goes.

The CRDT engine does not say which item a character is. What it keeps is kept here a second time,
nothing is ever taken out.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from antiphon_kernel.document.header import CONTENT
from antiphon_kernel.yjs.update import ItemId, SharedType, Struct

ALIVE: Final = -1
"""`Segment.deleted_at` of what is in the document."""

_NO_UNITS: Final = frozenset[int]()
"""One for all that nothing holds removed: each would take 216 bytes."""

_ROOT: Final = "blocks"

ItemContent = str | tuple[Any, ...]
"""Characters of a text, or values of a list or a map."""

Names = tuple[str, ...]
"""The way from a block's content to a part of it: names of sections, then of a field."""


class ItemKind(Enum):
    """Kind of the items of a sequence."""

    TEXT = "text"
    LIST = "list"
    ENTRY = "entry"
    """The values that one key of a map has had; the last one is its value."""
    COUNTER = "counter"
    """The sums that one client has counted to, in a counter."""


@dataclass(eq=False, slots=True)
class ItemList:
    """The items of one text, list or key of a map in document order, removed ones included."""

    kind: ItemKind
    container: ItemId
    """The item that made the shared type."""
    key: str | None = None
    names: Names = ()
    """Place in the block's content."""
    head: Segment | None = None
    tail: Segment | None = None
    length: int = 0
    """Code points or values that are alive."""

    def __iter__(self) -> Iterator[Segment]:
        at = self.head
        while at is not None:
            yield at
            at = at.right

    def link(self, left: Segment | None, right: Segment | None) -> None:
        """Make two segments neighbours; None is the beginning or the end."""
        if left is not None:
            left.right = right
        else:
            self.head = right
        if right is not None:
            right.left = left
        else:
            self.tail = left


@dataclass(eq=False, slots=True)
class Segment:
    """Characters or values in a row that one client wrote at once and that share their fate.

    `length` counts ids, which are UTF-16 units of a text; the content is empty for format marks,
    shared types and what its author removed before anybody saw it. `inserted_at` and `deleted_at`
    are positions in a list of changes that is kept elsewhere.
    """

    sequence: ItemList
    client: int
    clock: int
    length: int
    content: ItemContent = ""
    origin: ItemId | None = None
    right_origin: ItemId | None = None
    inserted_at: int = 0
    deleted_at: int = ALIVE
    left: Segment | None = None
    right: Segment | None = None
    source: ItemId | None = None
    """The first of the characters that these are, if they are others come back."""
    revived_as: ItemId | None = None
    """The first of these characters as they came back last, if they did."""
    author: int | None = None
    """The author named for these characters if it is not their writer: see `inserted_at`."""
    deleted_by: frozenset[int] = _NO_UNITS
    """Of characters that are no others come back: the units that hold them removed."""
    undone: bool = False
    """Of characters that are no others come back: whether what wrote them is undone."""

    def beginning_at(self, clock: int) -> Segment:
        """The part from a clock on, as a segment that has not been placed."""
        units = clock - self.clock
        return Segment(
            self.sequence,
            self.client,
            clock,
            self.length - units,
            self.content[cut(self.content, units) :],
            ItemId(self.client, clock - 1),
            self.right_origin,
            self.inserted_at,
            self.deleted_at,
            source=_later(self.source, units),
            revived_as=_later(self.revived_as, units),
            author=self.author,
            deleted_by=self.deleted_by,
            undone=self.undone,
        )

    def cut_off(self, clock: int) -> Segment:
        """End this segment before a clock; the rest, which has not been placed."""
        rest = self.beginning_at(clock)
        self.length -= rest.length
        self.content = self.content[: len(self.content) - len(rest.content)]
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
        return self.deleted_at == ALIVE

    @property
    def size(self) -> int:
        """Code points, or values."""
        return len(self.content)


def _later(item: ItemId | None, units: int) -> ItemId | None:
    return ItemId(item.client, item.clock + units) if item is not None else None


def cut(content: ItemContent, units: int) -> int:
    """The code points (or values) that the first `units` ids of a content are.

    Raises:
        ValueError: if that is inside a surrogate pair.
    """
    if not isinstance(content, str) or content.isascii():
        return min(units, len(content))
    try:
        return len(content.encode("utf-16-le")[: 2 * units].decode("utf-16-le"))
    except UnicodeDecodeError as error:
        raise ValueError(f"an item border falls inside a surrogate pair of {content!r}") from error


class ItemTable:
    """Every item of a block, by id."""

    def __init__(self) -> None:
        self._clocks: dict[int, list[int]] = {}
        self._segments: dict[int, list[Segment]] = {}

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

    def last(self, client: int) -> Segment | None:
        """Return the segment with a client's last items; None if it has none."""
        segments = self._segments.get(client)
        return segments[-1] if segments else None

    def cut_off(self, client: int, clock: int) -> list[Segment]:
        """Remove a client's items from `clock` on; returns their segments, still linked."""
        clocks, segments = self._clocks.get(client, []), self._segments.get(client, [])
        self.begin(ItemId(client, clock))
        at = bisect_left(clocks, clock)
        gone = segments[at:]
        del clocks[at:], segments[at:]
        return gone

    def within(self, client: int, start: int, end: int) -> Iterator[Segment]:
        """The segments of the ids from `start` to `end`, cut so that they are all inside."""
        clocks, clock = self._clocks.get(client, ()), start
        while clock < end:
            segment = self.begin(ItemId(client, clock))
            if segment is None:
                at = bisect_right(clocks, clock)
                clock = clocks[at] if at < len(clocks) else end
                continue
            if segment.end > end:
                self.split(segment, end - segment.clock)
            yield segment
            clock = segment.end

    def begin(self, item: ItemId) -> Segment | None:
        """The segment that begins with an id, cut if need be; None if it is not of this text."""
        segment = self.find(item)
        if segment is not None and segment.clock < item.clock:
            segment = self.split(segment, item.clock - segment.clock)
        return segment

    def end(self, item: ItemId, found: Segment | None = None) -> Segment | None:
        """The segment that ends with an id, cut if need be; None if it is not of this text.

        `found`: the one that holds the id, if that is known.
        """
        segment = found or self.find(item)
        if segment is not None and segment.end > item.clock + 1:
            self.split(segment, item.clock + 1 - segment.clock)
        return segment

    def split(self, segment: Segment, units: int) -> Segment:
        """Cut a segment after so many ids; returns the second half."""
        rest = segment.cut_off(segment.clock + units)
        self.add(rest, segment)
        return rest

    def originals(self, segment: Segment) -> Iterator[Segment]:
        """Yield the characters that these restore; these themselves if they restore none."""
        source = segment.source
        if source is None:
            yield segment
        else:
            yield from self.within(source.client, source.clock, source.clock + segment.length)

    def newest(self, original: Segment) -> Iterator[Segment]:
        """These characters as they came back last; themselves if they never did."""
        again = original.revived_as
        if again is None:
            yield original
        else:
            yield from self.within(again.client, again.clock, again.clock + original.length)

    def current(self, segment: Segment) -> Iterator[Segment]:
        """Characters as they are now: themselves, or as they came back last if they have gone."""
        if segment.alive:
            yield segment
            return
        for original in self.originals(segment):
            yield from self.newest(original)

    def release(self) -> None:
        """Break the links between items, so that their memory is free at once."""
        for segments in self._segments.values():
            for segment in segments:
                segment.left = segment.right = None
                segment.sequence.head = segment.sequence.tail = None

    def fill(self, segments: Iterable[Segment]) -> None:
        """Add segments that are linked already, each client's in any order."""
        for segment in segments:
            self._segments.setdefault(segment.client, []).append(segment)
        for client, own in self._segments.items():
            own.sort(key=lambda one: one.clock)
            self._clocks[client] = [one.clock for one in own]

    def add(self, new: Segment, left: Segment | None) -> None:
        """Put a new segment behind `left`, at the beginning of its sequence if that is None."""
        sequence = new.sequence
        right = left.right if left is not None else sequence.head
        sequence.link(left, new)
        sequence.link(new, right)
        clocks = self._clocks.setdefault(new.client, [])
        segments = self._segments.setdefault(new.client, [])
        if not clocks or clocks[-1] < new.clock:
            clocks.append(new.clock)
            segments.append(new)
            return
        at = bisect_left(clocks, new.clock)
        clocks.insert(at, new.clock)
        segments.insert(at, new)


def integrate(items: ItemTable, new: Segment, beside: Segment | None = None) -> None:
    """Put a new segment into its sequence by the rule of Yjs; what it builds on must be there.

    An item goes right of its origin; concurrent ones are ordered by their origins, then by client
    id. So the order is the engine's own whatever order updates come in.

    Args:
        beside: the segment that holds its origin, if that is known.
    """
    left = items.end(new.origin, beside) if new.origin is not None else None
    following, right = left.right if left is not None else new.sequence.head, new.right_origin
    if following is None or right is None:
        is_between = following is None and right is None
    else:
        is_between = following.clock == right.clock and following.client == right.client
    items.add(new, left if is_between else _after_conflicts(items, new, left))


def _after_conflicts(items: ItemTable, new: Segment, left: Segment | None) -> Segment | None:
    """Among what others wrote at the same place, the segment that `new` stands right of."""
    right = items.begin(new.right_origin) if new.right_origin is not None else None
    at = left.right if left is not None else new.sequence.head
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
            origin = items.find(at.origin) if at.origin is not None else None
            if origin is None or id(origin) not in passed:
                break
            if id(origin) not in since_left:
                left = at
                since_left.clear()
        at = at.right
    return left


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
            self.texts[names] = self._sequences[item] = ItemList(kind, item, names=names)

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
            self._maps[place] = ItemList(kind, *place, (*names, struct.key))
        return self._maps[place]
