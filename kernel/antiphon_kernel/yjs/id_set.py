"""Sets of CRDT item ids: clock ranges per client, and state vectors, as Yjs encodes them.

A state vector says for each CRDT client id the clock after the last item that is known.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Final, NamedTuple

from antiphon_kernel.yjs.primitives import Reader, write_var_uint


class IdRange(NamedTuple):
    """The items `start <= clock < end` of one client. Clocks count UTF-16 units."""

    client: int
    start: int
    end: int


IdSet = tuple[IdRange, ...]
"""Normalised: sorted by client and start, no two ranges touch."""

_NOTHING: Final = b"\x00"
"""The empty set, which most transactions remove."""

NO_STATE: Final = b"\x00"
"""The state vector of an empty document."""


def normalise(ranges: Iterable[IdRange]) -> IdSet:
    """The same ids in as few ranges as possible."""
    return tuple(sorted(IdIntervals(ranges)))


def encode_id_set(ranges: IdSet) -> bytes:
    """The ids as Yjs writes a delete set (clients from the highest down)."""
    by_client: dict[int, list[IdRange]] = {}
    for item in ranges:
        by_client.setdefault(item.client, []).append(item)
    numbers = [len(by_client)]
    for client in sorted(by_client, reverse=True):
        numbers += (client, len(by_client[client]))
        for item in by_client[client]:
            numbers += (item.start, item.end - item.start)
    return b"".join(map(write_var_uint, numbers))


def decode_id_set(data: bytes) -> IdSet:
    """The inverse of `encode_id_set`.

    Raises:
        ValueError: if the bytes are not an id set.
    """
    if data == _NOTHING:
        return ()
    reader, ranges = Reader(data), list[IdRange]()
    for _ in range(reader.count()):
        client = reader.uint()
        for _ in range(reader.count()):
            start, length = reader.uint(), reader.uint()
            ranges.append(IdRange(client, start, start + length))
    return normalise(ranges)


class IdIntervals:
    """A growing set that is cheap to ask and to add to: disjoint, non-touching clock ranges."""

    __slots__ = ("_ends", "_starts")

    def __init__(self, ranges: Iterable[IdRange] = ()) -> None:
        self._starts: dict[int, list[int]] = {}
        self._ends: dict[int, list[int]] = {}
        for ids in ranges:
            self.add(ids)

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


class ItemRuns:
    """Numbers of items, 0 where none is known; a run of items with one number takes some bytes."""

    def __init__(self) -> None:
        self._runs: dict[int, tuple[array[int], array[int]]] = {}
        """By client the first clock of each run, with the end of the last, and their numbers."""

    def add(self, ids: IdRange, number: int) -> None:
        """Give a number to what is new in a range, each client's in the order of its clocks."""
        client, start, end = ids
        if client not in self._runs:
            self._runs[client] = array("I", [0]), array("I")
        starts, numbers = self._runs[client]
        if start > starts[-1]:
            starts.append(start)
            numbers.append(0)
        if end > starts[-1]:
            if numbers and numbers[-1] == number:
                starts[-1] = end
            else:
                starts.append(end)
                numbers.append(number)

    def within(self, ids: IdRange) -> Iterator[tuple[IdRange, int]]:
        """Cut a range where the numbers of its items change."""
        client, start, end = ids
        starts, numbers = self._runs.get(client, ((0,), ()))
        at = bisect_right(starts, start) - 1
        while start < end:
            is_known = at < len(numbers)
            upto = min(starts[at + 1], end) if is_known else end
            yield IdRange(client, start, upto), numbers[at] if is_known else 0
            start, at = upto, at + 1


def decode_state_vector(data: bytes) -> dict[int, int]:
    """Client id to next clock.

    Raises:
        ValueError: if the bytes are not a state vector.
    """
    reader = Reader(data)
    return {reader.uint(): reader.uint() for _ in range(reader.count())}


def encode_state_vector(clocks: Mapping[int, int]) -> bytes:
    """The inverse of `decode_state_vector`."""
    return b"".join(map(write_var_uint, (len(clocks), *chain.from_iterable(clocks.items()))))
