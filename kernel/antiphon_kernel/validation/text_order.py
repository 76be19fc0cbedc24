"""Order of the items of all texts of a document, and the check that a new item fits into it.

A client inserts between two items that stand beside each other in what it has read: its origin and
its right origin. The engine takes in items that name any two, and their order then depends on the
order in which a document has read them. So an item is accepted only if its origin stands before its
right origin, and nothing between them is known to have been read by its client: no item that its
two neighbours, or the client's item before it in this text, build on. What is between them was
written at the same time.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import inf
from typing import Final, cast

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

_NOBODY: Final[_Named] = {}
"""One for all texts that one client has written, never changed: each would take 64 bytes."""


@dataclass(eq=False, slots=True)
class _Text(ItemList):
    """The items of one text in document order, with the items of others that each client named."""

    named: _Named = field(default_factory=lambda: _NOBODY)
    """Client to other client to (own clock, clock of the other) in rising order."""

    def record(self, client: int, clock: int, neighbours: Iterable[ItemId | None]) -> None:
        """Record that a client has read its item's neighbours."""
        for other in neighbours:
            if other is not None and other.client != client:
                if self.named is _NOBODY:
                    self.named = {}
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


class _UnsharedTexts:
    """The texts that one client has made and written in one go: nobody has inserted into them.

    Most texts of a long document are such ones. Each takes 24 bytes, as items of their own 400.
    """

    __slots__ = ("ends", "made", "starts")

    def __init__(self) -> None:
        self.made = array("Q")
        """Clocks of the items that made them, rising."""
        self.starts = array("Q")
        """First clock in each, rising."""
        self.ends = array("Q")
        """Clock after the last one of each; the first of those that are here no more."""

    def __iter__(self) -> Iterator[tuple[int, int, int]]:
        """Return for each the clock that made it, its first one, and its length."""
        rows = zip(self.made, self.starts, self.ends, strict=True)
        return ((made, start, end - start) for made, start, end in rows if start < end)

    def add(self, made: int, start: int, end: int) -> bool:
        """Add a text; return False if it does not come after all others."""
        if self.made and (made < self.made[-1] or start < self.starts[-1]):
            return False
        self.made.append(made)
        self.starts.append(start)
        self.ends.append(end)
        return True

    def extend(self, item: Struct, start: int) -> bool:
        """Add what is new of an item if it goes on with the last text; return whether it does."""
        if start != self.ends[-1] or item.right_origin is not None:
            return False
        origin = _origin(item, start)
        is_next = origin is not None and origin.client == item.client and origin.clock == start - 1
        if is_next:
            self.ends[-1] = item.clock + item.length
        return is_next


class TextOrder:
    """The items of all texts of a document in document order, removed ones included."""

    def __init__(self) -> None:
        self._items = ItemTable()
        self._texts: dict[ItemId, _Text] = {}
        self._unshared: dict[int, _UnsharedTexts] = {}
        """By CRDT client; what anybody asks for becomes one of `_texts`."""
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
        rows = [(client, *one) for client, texts in self._unshared.items() for one in texts]
        numbers.append(len(self._texts) + len(rows))
        for client, made_at, start, length in rows:
            numbers += (client, made_at, 1, client, start, length, 0, 0, 0, 0)
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
            if len(own) == 1 and self._add_unshared(own[0]):
                yield
                continue
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
        unshared = self._unshared.get(item.client)
        if unshared is not None and unshared.extend(item, start):
            return
        neighbour = self._neighbour(item)
        text = self._text_of(item, neighbour)
        if text is not None:
            if self._on_trial and self._end(item.client) > start:
                self._withdraw(item.client)
                neighbour = self._neighbour(item)
            if text.head is None and start == item.clock and neighbour is None:
                only = Segment(text, item.client, start, item.length)
                if self._add_unshared(only):
                    del self._texts[text.container]
                    return
            self._place(text, item, start, neighbour)

    def _add_unshared(self, only: Segment) -> bool:
        """Add the only segment that a text has, if it can be kept as one of an unshared text."""
        made = only.sequence.container
        if made.client != only.client or only.origin is not None or only.right_origin is not None:
            return False
        texts = self._unshared.get(only.client)
        if texts is None:
            texts = self._unshared[only.client] = _UnsharedTexts()
        return texts.add(made.clock, only.clock, only.end)

    def _share(self, client: int, at: int) -> Segment:
        """Make items of the unshared text of an index."""
        unshared = self._unshared[client]
        start, end = unshared.starts[at], unshared.ends[at]
        unshared.ends[at] = start
        text = _Text(ItemKind.TEXT, ItemId(client, unshared.made[at]))
        self._texts[text.container] = text
        only = Segment(text, client, start, end - start)
        self._items.add(only, None)
        return only

    def _find(self, item: ItemId) -> Segment | None:
        """Return the segment that holds an id; None if the id is in no text."""
        found = self._items.find(item)
        if found is None and (unshared := self._unshared.get(item.client)) is not None:
            at = bisect_right(unshared.starts, item.clock) - 1
            if at >= 0 and item.clock < unshared.ends[at]:
                return self._share(item.client, at)
        return found

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
        return self._find(neighbour) if neighbour is not None else None

    def _text_of(self, item: Struct, neighbour: Segment | None) -> _Text | None:
        if neighbour is not None:
            return cast("_Text", neighbour.sequence)
        if item.origin is not None or item.right_origin is not None:
            return None
        made = item.parent
        if not isinstance(made, ItemId) or item.key is not None:
            return None
        if (unshared := self._unshared.get(made.client)) is not None:
            at = bisect_right(unshared.made, made.clock) - 1
            if at >= 0 and unshared.made[at] == made.clock:
                if unshared.starts[at] < unshared.ends[at]:
                    self._share(made.client, at)
        return self._texts.get(made)

    def _end(self, client: int) -> int:
        last, unshared = self._items.last(client), self._unshared.get(client)
        end = last.end if last is not None else 0
        return max(end, unshared.ends[-1]) if unshared is not None else end

    def _fits(self, text: _Text, item: Struct, start: int, neighbour: Segment | None) -> bool:
        """Return whether nothing that its client has read is between an item's neighbours."""
        origin, right = _origin(item, start), item.right_origin
        clock = 0
        if origin is None:
            at = text.head
        else:
            at = neighbour if origin is item.origin else self._find(origin)
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
            before = neighbour if origin is item.origin else self._find(origin)
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
            if segment.left is not None and _is_cut(segment.left):
                self._items.join(segment.left)


def _stored_id(item: ItemId | None) -> tuple[int, int]:
    return (item.client + 1, item.clock) if item is not None else (0, 0)


def _read_id(numbers: Iterator[int]) -> ItemId | None:
    client, clock = next(numbers), next(numbers)
    return ItemId(client - 1, clock) if client else None


def _read_segment(text: _Text, numbers: Iterator[int], clients: Mapping[int, int]) -> Segment:
    client, clock, length = (next(numbers) for _ in range(3))
    neighbours = _read_id(numbers), _read_id(numbers)
    return Segment(text, clients.get(client, client), clock, length, "", *neighbours)


def _is_cut(left: Segment) -> bool:
    """Return whether a segment goes on, as it was written, in the one right of it."""
    right = left.right
    return (
        right is not None
        and right.client == left.client
        and right.clock == left.end
        and right.origin == left.last
        and right.right_origin == left.right_origin
    )


def _origin(item: Struct, start: int) -> ItemId | None:
    """Return what the part of an item from the clock `start` on is right of."""
    return item.origin if start == item.clock else ItemId(item.client, start - 1)
