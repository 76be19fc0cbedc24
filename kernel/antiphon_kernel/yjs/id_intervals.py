"""A growing set of CRDT item ids that is cheap to ask and to add to."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator

from antiphon_kernel.yjs.id_set import IdRange


class IdIntervals:
    """Ids as disjoint, non-touching clock ranges per client."""

    __slots__ = ("_ends", "_starts")

    def __init__(self) -> None:
        self._starts: dict[int, list[int]] = {}
        self._ends: dict[int, list[int]] = {}

    def add(self, ids: IdRange) -> None:
        """Add the ids of one range."""
        client, start, end = ids
        if start >= end:
            return
        starts = self._starts.setdefault(client, [])
        ends = self._ends.setdefault(client, [])
        first = bisect_left(ends, start)
        last = bisect_right(starts, end)
        if first < last:
            start = min(start, starts[first])
            end = max(end, ends[last - 1])
        starts[first:last] = [start]
        ends[first:last] = [end]

    def __iter__(self) -> Iterator[IdRange]:
        for client, starts in self._starts.items():
            for start, end in zip(starts, self._ends[client], strict=True):
                yield IdRange(client, start, end)

    def lacks(self, ids: IdRange) -> Iterable[IdRange]:
        """Yield the parts of `ids` not in the set, in order."""
        client, start, end = ids
        starts = self._starts.get(client)
        if starts is None:
            if start < end:
                yield ids
            return
        ends = self._ends[client]
        at = bisect_right(ends, start)
        while start < end and at < len(starts) and starts[at] < end:
            if start < starts[at]:
                yield IdRange(client, start, starts[at])
            start = ends[at]
            at += 1
        if start < end:
            yield IdRange(client, start, end)
