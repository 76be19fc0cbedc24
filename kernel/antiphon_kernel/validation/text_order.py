"""Order of the items of all texts of a document, and the check that a new item fits into it.

A client inserts between two items that stand beside each other in what it has read: its origin and
its right origin. The engine takes in items that name any two, and their order then depends on the
order in which a document has read them. So an item is accepted only if its origin stands before its
right origin, and nothing between them is known to have been read by its client: no item that its
two neighbours, or the client's item before it in this text, build on. What is between them was
written at the same time.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import inf
from typing import cast

from antiphon_kernel.document.history.item_index import (
    ItemKind,
    ItemList,
    ItemTable,
    Segment,
    integrate,
)
from antiphon_kernel.validation.errors import made_up_neighbours, overtaken
from antiphon_kernel.yjs.update import ContentKind, ItemId, SharedType, Struct

_Named = dict[int, dict[int, list[tuple[int, int]]]]


@dataclass(eq=False, slots=True)
class _Text(ItemList):
    """The items of one text in document order, with the items of others that each client named."""

    named: _Named = field(default_factory=dict)
    """Client to other client to (own clock, clock of the other) in rising order."""

    def record(self, client: int, clock: int, neighbours: Iterable[ItemId | None]) -> None:
        """Record that a client has read its item's neighbours."""
        for other in neighbours:
            if other is not None and other.client != client:
                named = self.named.setdefault(client, {}).setdefault(other.client, [])
                if not named or named[-1][1] < other.clock:
                    named.append((clock, other.clock))

    def closure(self, start: Iterable[ItemId]) -> dict[int, int]:
        """Return the last clock of each client that these items build on, themselves included."""
        reached: dict[int, int] = {}
        work = list(start)
        while work:
            client, clock = work.pop()
            if reached.get(client, -1) >= clock:
                continue
            reached[client] = clock
            for other, named in self.named.get(client, {}).items():
                at = bisect_right(named, (clock, inf))
                if at:
                    work.append(ItemId(other, named[at - 1][1]))
        return reached

    def forget(self, client: int, clock: int) -> None:
        """Drop what a client named from a clock on."""
        for named in self.named.get(client, {}).values():
            while named and named[-1][0] >= clock:
                named.pop()


class TextOrder:
    """The items of all texts of a document in document order, removed ones included."""

    def __init__(self) -> None:
        self._items = ItemTable()
        self._texts: dict[ItemId, _Text] = {}
        self._on_trial: dict[int, int] = {}
        """CRDT client to the first of its items that are here to be checked."""
        self._fitting: Sequence[tuple[Struct, int]] = ()
        """Items of the last check, which are here but for the last, and may be adopted."""

    @property
    def is_settled(self) -> bool:
        """Whether nothing is in it only to be checked."""
        return not self._on_trial

    def release(self) -> None:
        """Break the links between items, so that their memory is free at once."""
        self._items.release()

    def write(self, numbers: list[int]) -> None:
        """Append what is in it to columns of numbers."""
        numbers.append(len(self._texts))
        for made, text in self._texts.items():
            segments = list(text)
            numbers += (*made, len(segments))
            for one in segments:
                numbers += (one.client, one.clock, one.length)
                numbers += _stored_id(one.origin)
                numbers += _stored_id(one.right_origin)

    def read(self, numbers: Iterator[int], clients: Mapping[int, int]) -> Iterator[None]:
        """Take over what `write` has written, in an order that is empty; pauses after a text.

        Args:
            clients: those of the items, which are used instead of equal numbers.
        """
        found: list[Segment] = []
        for _ in range(next(numbers)):
            container = ItemId(next(numbers), next(numbers))
            text = _Text(ItemKind.TEXT, container)
            own = [_read_segment(text, numbers, clients) for _ in range(next(numbers))]
            self._texts[container] = text
            for left, right in pairwise(own):
                left.right, right.left = right, left
            if own:
                text.head, text.tail = own[0], own[-1]
            found += own
            if len(own) > 1:
                own.sort(key=lambda one: (one.client, one.clock))
            for one in own:
                text.record(one.client, one.clock, (one.origin, one.right_origin))
            yield
        self._items.fill(found)

    def add(self, item: Struct, start: int) -> None:
        """Add what is new of an item of the document, from the clock `start` on.

        Nothing if it is in no text.
        """
        self._make(item)
        neighbour = self._neighbour(item)
        text = self._text_of(item, neighbour)
        if text is not None:
            if self._on_trial and self._end(item.client) > start:
                self._withdraw(item.client)
                neighbour = self._neighbour(item)
            self._place(text, item, start, neighbour)

    def adopt(self, items: Sequence[tuple[Struct, int]]) -> None:
        """Add what has been checked; after `fit` most of it is here already."""
        if items is self._fitting:
            del self._on_trial[items[0][0].client]
            self._fitting = ()
            items = items[-1:]
        for item, start in items:
            self.add(item, start)

    def fit(self, items: Sequence[tuple[Struct, int]]) -> bool:
        """Return whether the next items of one client are known to be in texts and to fit there.

        They stay part of the order until the next check; `adopt` keeps them.
        """
        self._drop_fitting()
        (first, begin), last = items[0], items[-1][0]
        client = first.client
        if client in self._on_trial or self._end(client) > begin:
            return False
        for item, start in items:
            neighbour = self._neighbour(item)
            if neighbour is None:
                break
            text = cast("_Text", neighbour.sequence)
            if not self._fits(text, item, start, neighbour):
                break
            if item is last:
                self._fitting = items if item is not first else ()
                return True
            self._on_trial[client] = begin
            self._place(text, item, start, neighbour)
        self._withdraw(client)
        return False

    def _drop_fitting(self) -> None:
        if self._fitting:
            self._withdraw(self._fitting[0][0].client)
            self._fitting = ()

    def check(self, items: Sequence[tuple[Struct, int]]) -> Iterator[None]:
        """Check new items, each with the clock from which on it is new, in causal order.

        They are part of the order until this ends, so that each is checked against those before it.

        Raises:
            AntiphonError: invalid_params, if one names neighbours that its client cannot have seen
                beside each other; gap, if it has come through another connection meanwhile.
        """
        self._drop_fitting()
        clients: list[int] = []
        made: list[_Text] = []
        last = len(items)
        try:
            for count, (item, start) in enumerate(items, 1):
                if (new := self._make(item)) is not None:
                    made.append(new)
                neighbour = self._neighbour(item)
                text = self._text_of(item, neighbour)
                if text is not None:
                    if self._end(item.client) > start:
                        raise overtaken(ItemId(item.client, start))
                    if not self._fits(text, item, start, neighbour):
                        raise made_up_neighbours(item)
                    if count < last:
                        if item.client not in self._on_trial:
                            self._on_trial[item.client] = start
                            clients.append(item.client)
                        self._place(text, item, start, neighbour)
                yield
        finally:
            for client in clients:
                self._withdraw(client)
            for one in made:
                if self._texts.get(one.container) is one:
                    del self._texts[one.container]

    def _make(self, item: Struct) -> _Text | None:
        if item.kind is not ContentKind.TYPE or item.content is not SharedType.TEXT:
            return None
        made = ItemId(item.client, item.clock)
        text = self._texts[made] = _Text(ItemKind.TEXT, made)
        return text

    def _neighbour(self, item: Struct) -> Segment | None:
        """Return the segment of an item's origin or, without one, of its right origin."""
        neighbour = item.origin or item.right_origin
        return self._items.find(neighbour) if neighbour is not None else None

    def _text_of(self, item: Struct, neighbour: Segment | None) -> _Text | None:
        if neighbour is not None:
            return cast("_Text", neighbour.sequence)
        if item.origin is not None or item.right_origin is not None:
            return None
        made = item.parent
        if not isinstance(made, ItemId) or item.key is not None:
            return None
        return self._texts.get(made)

    def _end(self, client: int) -> int:
        last = self._items.last(client)
        return last.end if last is not None else 0

    def _fits(self, text: _Text, item: Struct, start: int, neighbour: Segment | None) -> bool:
        """Return whether nothing that its client has read is between an item's neighbours."""
        origin, right = _origin(item, start), item.right_origin
        clock = 0
        if origin is None:
            at = text.head
        else:
            at = neighbour if origin is item.origin else self._items.find(origin)
            if at is None:
                return False
            if origin.client == item.client and at.end == start and at.right_origin == right:
                return True
            clock = origin.clock + 1
            if clock == at.end:
                at = at.right
                clock = 0
        read: dict[int, int] | None = None
        while at is not None:
            clock = max(clock, at.clock)
            if right is not None and clock == right.clock and at.client == right.client:
                return True
            if read is None:
                own = ItemId(item.client, start - 1)
                read = text.closure(one for one in (origin, right, own) if one is not None)
            if clock <= read.get(at.client, -1):
                return False
            at, clock = at.right, 0
        return right is None

    def _place(self, text: _Text, item: Struct, start: int, neighbour: Segment | None) -> None:
        origin, right = _origin(item, start), item.right_origin
        length = item.clock + item.length - start
        before = None
        if origin is not None:
            before = neighbour if origin is item.origin else self._items.find(origin)
            is_next = origin.clock == start - 1 and origin.client == item.client
            if is_next and before is not None and before.end == start:
                following = before.right
                is_free = following is None or following.origin != origin
                if is_free and before.right_origin == right:
                    before.length += length
                    return
        text.record(item.client, start, (origin, right))
        new = Segment(text, item.client, start, length, "", origin, right)
        integrate(self._items, new, before)

    def _withdraw(self, client: int) -> None:
        """Take out what is here of a client only to be checked."""
        start = self._on_trial.pop(client, None)
        if start is None:
            return
        for segment in self._items.cut_off(client, start):
            text = cast(_Text, segment.sequence)
            text.forget(client, start)
            text.link(segment.left, segment.right)


def _stored_id(item: ItemId | None) -> tuple[int, int]:
    return (item.client + 1, item.clock) if item is not None else (0, 0)


def _read_id(numbers: Iterator[int]) -> ItemId | None:
    client, clock = next(numbers), next(numbers)
    return ItemId(client - 1, clock) if client else None


def _read_segment(text: _Text, numbers: Iterator[int], clients: Mapping[int, int]) -> Segment:
    client, clock, length = (next(numbers) for _ in range(3))
    neighbours = _read_id(numbers), _read_id(numbers)
    return Segment(text, clients.get(client, client), clock, length, "", *neighbours)


def _origin(item: Struct, start: int) -> ItemId | None:
    """Return what the part of an item from the clock `start` on is right of."""
    return item.origin if start == item.clock else ItemId(item.client, start - 1)
