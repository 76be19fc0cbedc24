"""Three-way merge of texts: what two sides made of one text, as one text.

Lines are merged first; where both sides changed the same lines, words are. What is not clear is a
conflict that keeps both pieces: no line that one side wrote is dropped, and a change that both
made is made once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import pairwise
from os.path import commonprefix
from typing import Final, NamedTuple

from antiphon_kernel.text.sequence_diff import Budget, changed_ranges
from antiphon_kernel.text.splice_diff import LINE, WORD
from antiphon_kernel.types.errors import invalid_params
from antiphon_kernel.types.quoting import quote

_WORDS_MERGED: Final = 100_000
"""Code points of a region in which words are still looked at."""

_NEAR: Final = 3
"""Unchanged lines over which a line that both sides wrote is taken for one."""


class Excerpt(NamedTuple):
    """Lines (or code points) `start` to `end` of a text, exclusive, and what they say."""

    start: int
    end: int
    text: str


class Resolution(StrEnum):
    """A side whose text a conflict is given."""

    OURS = "ours"
    THEIRS = "theirs"
    BOTH = "both"


@dataclass(frozen=True, slots=True)
class Conflict:
    """A hunk that both sides changed, each in its own way, in each of the texts."""

    base: Excerpt
    ours: Excerpt
    theirs: Excerpt
    merged: Excerpt

    @property
    def both(self) -> str:
        """Our lines and then theirs; those that they begin or end with in common stand once."""
        ours, theirs, head, tail = self.lines()
        lines = ours[: len(ours) - tail]
        _append(lines, "".join(theirs[head:]))
        return "".join(lines)

    def lines(self) -> tuple[list[str], list[str], int, int]:
        """Return our lines and theirs, and how many they begin and end with in common."""
        ours, theirs = LINE.findall(self.ours.text), LINE.findall(self.theirs.text)
        head = len(commonprefix([ours, theirs]))
        return ours, theirs, head, len(commonprefix([ours[head:][::-1], theirs[head:][::-1]]))

    def resolved(self, resolution: Resolution) -> str:
        """The text of the hunk for a resolution."""
        if resolution is Resolution.BOTH:
            return self.both
        return (self.ours if resolution is Resolution.OURS else self.theirs).text


class Merged(NamedTuple):
    """A merge of two texts: where it has a conflict, the text is ours."""

    text: str
    conflicts: tuple[Conflict, ...] = ()


def merge_texts(base: str, ours: str, theirs: str) -> Merged:
    """Merge the changes that lead from `base` to `ours` and to `theirs`."""
    lines = LINE.findall(base)
    our, their = _ChangedText(lines, ours), _ChangedText(lines, theirs)
    merged: list[str] = []
    conflicts: list[Conflict] = []
    at = 0
    for start, end in _regions(lines, our, their):
        merged += lines[at:start]
        old = Excerpt(start, end, "".join(lines[start:end]))
        mine, other = our.take(start, end), their.take(start, end)
        text = _merged_region(old.text, mine.text, other.text, our.effort, their.effort)
        here = Excerpt(len(merged), len(merged) + mine.end - mine.start, mine.text)
        if text is None:
            conflicts.append(Conflict(old, mine, other, here))
        merged += LINE.findall(mine.text if text is None else text)
        at = end
    return Merged("".join([*merged, *lines[at:]]), tuple(conflicts))


def resolve(merged: Merged, resolutions: Mapping[int, Resolution | str]) -> Merged:
    """Resolve conflicts, by their index, with a side or with a text that somebody edited.

    The others stay, with their place in the new text. A newline is added where a text without one
    would run into the next line.

    Raises:
        AntiphonError: invalid_params if there is no such conflict.
    """
    check_conflicts(resolutions, len(merged.conflicts))
    lines = LINE.findall(merged.text)
    result: list[str] = []
    left: list[Conflict] = []
    at = 0
    for index, conflict in enumerate(merged.conflicts):
        _append(result, "".join(lines[at : conflict.merged.start]))
        resolution = resolutions.get(index, conflict.merged.text)
        if isinstance(resolution, Resolution):
            resolution = conflict.resolved(resolution)
        start = len(result)
        _append(result, resolution)
        if index not in resolutions:
            left.append(replace(conflict, merged=Excerpt(start, len(result), resolution)))
        at = conflict.merged.end
    _append(result, "".join(lines[at:]))
    return Merged("".join(result), tuple(left))


def check_conflicts(indices: Iterable[int], count: int) -> None:
    """Check that a merge with `count` conflicts has these.

    Raises:
        AntiphonError: invalid_params if not.
    """
    for index in indices:
        if not 0 <= index < count:
            raise invalid_params(
                f"There is no conflict {quote(index)}: the merge has {count}, counted from 0;"
                " look at them again.",
                field="conflict",
                found=index,
                limit=count,
            )


def settled_base(theirs: str, conflicts: Sequence[Conflict]) -> str:
    """Return the base against which only these conflicts are left of a merge with `theirs`."""
    lines = LINE.findall(theirs)
    for conflict in reversed(conflicts):
        lines[conflict.theirs.start : conflict.theirs.end] = [conflict.base.text]
    return "".join(lines)


def _append(lines: list[str], text: str) -> None:
    """Append the lines of a text, on lines of their own."""
    if text and lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n"
    lines += LINE.findall(text)


class _ChangedText:
    """One side's changes of the base, taken in order.

    Each side has an effort of its own: what one of them costs does not change what the other gives.
    """

    def __init__(self, base: Sequence[str], text: str) -> None:
        self.effort = Budget()
        self.lines = LINE.findall(text)
        self.changes = changed_ranges(base, self.lines, self.effort)
        self._taken = self._drift = 0

    def take(self, start: int, end: int) -> Excerpt:
        """This side's lines for a region of the base, behind those taken before."""
        begin = start + self._drift
        while self._taken < len(self.changes) and self.changes[self._taken].end <= end:
            change = self.changes[self._taken]
            self._drift = change.new_end - change.end
            self._taken += 1
        finish = end + self._drift
        return Excerpt(begin, finish, "".join(self.lines[begin:finish]))


def _regions(base: Sequence[str], *sides: _ChangedText) -> list[tuple[int, int]]:
    """The ranges of the base that changed, joined where changes of both sides belong together.

    Lines that are changed in place or deleted do not concern their neighbours. Where lines came
    in, both sides may mean the same place, also a little apart: which of several equal lines are
    the new ones is a guess.
    """
    known = set(base)
    regions: list[tuple[int, int, bool]] = []
    written: tuple[dict[str, int], dict[str, int]] = {}, {}
    every = [(change, index) for index, side in enumerate(sides) for change in side.changes]
    for change, index in sorted(every):
        at, end = change.start, change.end
        new = {*sides[index].lines[change.new_start : change.new_end]} - known
        same = [written[1 - index][line] for line in new & written[1 - index].keys()]
        reach = min((place for place in same if at <= place + _NEAR), default=at + 1)
        start, apart = at, at < end and change.new_end - change.new_start <= end - at
        while regions:
            earlier, last, is_apart = regions[-1]
            if last < min(at, reach) or (last == at < reach and apart and is_apart):
                break
            start, end, apart = earlier, max(last, end), apart and is_apart
            regions.pop()
        regions.append((start, end, apart))
        written[index].update(dict.fromkeys(new, change.end))
    return [(start, end) for start, end, _ in regions]


def _merged_region(base: str, ours: str, theirs: str, *efforts: Budget) -> str | None:
    """The merge of one region, by words where both sides changed it; None if it is a conflict."""
    if ours == theirs or theirs == base:
        return ours
    if ours == base:
        return theirs
    if any(one.left <= 0 for one in efforts) or len(base + ours + theirs) > _WORDS_MERGED:
        return None
    words = WORD.findall(base)
    mine = _changed_words(words, ours, efforts[0])
    others = _changed_words(words, theirs, efforts[1])
    if mine is None or others is None:
        return None
    changes = sorted({*mine, *others})
    if any(later[0] <= earlier[1] for earlier, later in pairwise(changes)):
        return None
    merged: list[str] = []
    at = 0
    for start, end, text in changes:
        merged += [*words[at:start], text]
        at = end
    result = "".join([*merged, *words[at:]])
    return None if _doubles(base, ours, theirs, result) else result


def _doubles(base: str, ours: str, theirs: str, merged: str) -> bool:
    """Whether a new line of both sides stands in the merge more often than in either of them."""
    old, *counts = (Counter(LINE.findall(text)) for text in (base, ours, theirs, merged))
    mine, others, found = counts
    return any(found[line] > max(mine[line], others[line]) for line in (mine & others) - old)


def _changed_words(
    words: Sequence[str], text: str, effort: Budget
) -> list[tuple[int, int, str]] | None:
    """The words that a text replaces, with what; None if less than half of them stay.

    What stays of a text that was written anew, blanks and small words, says nothing about where
    another's word belongs.
    """
    new = WORD.findall(text)
    changes = changed_ranges(words, new, effort)
    if 2 * sum(change.end - change.start for change in changes) > len(words):
        return None
    return [(one.start, one.end, "".join(new[one.new_start : one.new_end])) for one in changes]
