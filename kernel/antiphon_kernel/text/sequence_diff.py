"""Diff of two sequences, fast however long and however different they are.

The shortest edit script is searched for (Myers' algorithm) some changes at a time, and what has
been found so far is kept if most of it is equal. Where that leads nowhere, elements that occur
once on both sides are taken as fixed points, and the ranges between them are compared in the same
way. What is left when the effort is spent is reported as replaced.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Final, NamedTuple, TypeAlias

_CHANGES: Final = 100
"""Insertions and deletions that are looked for at a time; the effort grows with their square."""

_EQUALS_A_STEP: Final = 8
"""Elements found equal, or counted, in the time of one step."""


class ChangedRange(NamedTuple):
    """Elements `start` to `end` of the old sequence became `new_start` to `new_end` of the new."""

    start: int
    end: int
    new_start: int
    new_end: int


_EqualRun: TypeAlias = "tuple[int, int, int, _EqualRun] | None"
"""Elements equal on both sides: old and new index behind the last, number, the run before."""


@dataclass(slots=True)
class Budget:
    """Number of steps that may still be made; several calls can share one.

    All steps take a quarter of a second, whatever is compared: others wait meanwhile.
    """

    left: int = 300_000


def changed_ranges(
    old: Sequence[Hashable], new: Sequence[Hashable], effort: Budget | None = None
) -> list[ChangedRange]:
    """Return the changes from `old` to `new`: sorted, disjoint, with equal parts in between."""
    joined: list[ChangedRange] = []
    for one in _Comparison(old, new, effort or Budget()).run():
        last = joined[-1] if joined else None
        if last is not None and (last.end, last.new_end) == (one.start, one.new_start):
            joined[-1] = ChangedRange(last.start, one.end, last.new_start, one.new_end)
        else:
            joined.append(one)
    return joined


@dataclass(slots=True)
class _Comparison:
    old: Sequence[Hashable]
    new: Sequence[Hashable]
    effort: Budget

    def run(self) -> Iterable[ChangedRange]:
        ranges = [ChangedRange(0, len(self.old), 0, len(self.new))]
        while ranges:
            one = self._trimmed(ranges.pop())
            if one.start == one.end or one.new_start == one.new_end:
                if one.start < one.end or one.new_start < one.new_end:
                    yield one
                continue
            kept, reached = self._shortest_way(one) if self.effort.left > 0 else ([], None)
            if reached is not None:
                ranges.append(ChangedRange(reached[0], one.end, reached[1], one.new_end))
                yield from _between(kept, one._replace(end=reached[0], new_end=reached[1]))
            elif self.effort.left > 0 and (fixed := self._fixed_points(one)):
                ranges += reversed(_between(fixed, one))
            else:
                yield one

    def _trimmed(self, one: ChangedRange) -> ChangedRange:
        old, new = self.old, self.new
        start, end, new_start, new_end = one
        while start < end and new_start < new_end and old[start] == new[new_start]:
            start += 1
            new_start += 1
        while start < end and new_start < new_end and old[end - 1] == new[new_end - 1]:
            end -= 1
            new_end -= 1
        return ChangedRange(start, end, new_start, new_end)

    def _shortest_way(
        self, one: ChangedRange
    ) -> tuple[list[tuple[int, int]], tuple[int, int] | None]:
        """The pairs that stay, and up to where they are known; None if nothing good is found."""
        old, new = self.old, self.new
        start, end, new_start, new_end = one
        length, new_length = end - start, new_end - new_start
        furthest: dict[int, tuple[int, _EqualRun]] = {1: (0, None)}
        steps = rounds = 0
        while rounds <= _CHANGES and steps <= self.effort.left:
            for diagonal in range(-rounds, rounds + 1, 2):
                # Entered by an insertion or by a deletion.
                before = diagonal - 1
                if diagonal == -rounds or (
                    diagonal != rounds and furthest[before][0] < furthest[diagonal + 1][0]
                ):
                    before = diagonal + 1
                x, run = furthest[before]
                x = begun = x + (before < diagonal)
                y = x - diagonal
                while x < length and 0 <= y < new_length and old[start + x] == new[new_start + y]:
                    x += 1
                    y += 1
                if x > begun:
                    run = start + x, new_start + y, x - begun, run
                furthest[diagonal] = x, run
                steps += 1 + (x - begun) // _EQUALS_A_STEP
                if x >= length and y >= new_length:
                    self.effort.left -= steps
                    return _pairs(run), (end, new_end)
            rounds += 1
        self.effort.left -= steps
        inside = [
            (2 * x - diagonal, run)
            for diagonal, (x, run) in furthest.items()
            if x <= length and 0 <= x - diagonal <= new_length
        ]
        kept = _pairs(max(inside, key=itemgetter(0))[1])
        if not kept or 2 * len(kept) < rounds:
            return [], None
        # What follows the last pair is looked at anew: this way need not be the best from there.
        index, new_index = kept[-1]
        return kept, (index + 1, new_index + 1)

    def _fixed_points(self, one: ChangedRange) -> list[tuple[int, int]]:
        """Elements that occur once on both sides, as many as are in the same order."""
        old = self.old[one.start : one.end]
        new = self.new[one.new_start : one.new_end]
        self.effort.left -= (len(old) + len(new)) // _EQUALS_A_STEP
        counts, new_counts = Counter(old), Counter(new)
        where = {element: index for index, element in enumerate(new, one.new_start)}
        pairs = [
            (index, where[element])
            for index, element in enumerate(old, one.start)
            if counts[element] == 1 == new_counts[element]
        ]
        return _longest_increasing(pairs)


def _pairs(run: _EqualRun) -> list[tuple[int, int]]:
    """Return the pairs of equal elements in a run and those before it."""
    pairs = []
    while run is not None:
        end, new_end, length, run = run
        pairs += [(end - n, new_end - n) for n in range(1, length + 1)]
    return pairs[::-1]


def _between(kept: Sequence[tuple[int, int]], one: ChangedRange) -> list[ChangedRange]:
    """The ranges between pairs of equal elements."""
    ranges = []
    at, new_at = one.start, one.new_start
    for index, new_index in (*kept, (one.end, one.new_end)):
        if at < index or new_at < new_index:
            ranges.append(ChangedRange(at, index, new_at, new_index))
        at, new_at = index + 1, new_index + 1
    return ranges


def _longest_increasing(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The longest choice of pairs that rise on both sides; `pairs` rise on the first."""
    ends: list[int] = []
    at: list[int] = []
    before: list[int | None] = []
    for index, (_, value) in enumerate(pairs):
        place = bisect_left(ends, value)
        before.append(at[place - 1] if place else None)
        ends[place : place + 1] = [value]
        at[place : place + 1] = [index]
    chosen = []
    here = at[-1] if at else None
    while here is not None:
        chosen.append(pairs[here])
        here = before[here]
    return chosen[::-1]
