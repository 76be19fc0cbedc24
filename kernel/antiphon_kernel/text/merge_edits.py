"""Three-way merge of edits: what two sides did to one text, exactly, in code points.

The merge is what a CRDT makes of both. Where both changed a word, or put something in at one place,
is a conflict: one for a sentence, in whole lines if it is about more than one line, or if that is
asked for. It keeps both pieces.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import accumulate
from os.path import commonprefix
from typing import Final, NamedTuple

from antiphon_kernel.text.splice_diff import LINE, WORD, apply_script, as_script, plan_difference
from antiphon_kernel.types.errors import invalid_params
from antiphon_kernel.types.quoting import quote
from antiphon_kernel.types.records import TextSplice

_SENTENCE: Final = re.compile(r"\S(?:[^\n]*?(?:[.!?…](?=\s)|[。！？])|[^\n]*)")

_BREAK: Final = ("", "\n")
"""Neighbours of a place at which a line begins or ends."""


class Excerpt(NamedTuple):
    """Code points `start` to `end` of a text, exclusive, and what they say."""

    start: int
    end: int
    text: str


class Resolution(StrEnum):
    """A side whose text a conflict is given."""

    OURS = "ours"
    THEIRS = "theirs"
    BOTH = "both"


@dataclass(frozen=True, slots=True)
class MergeSplice(TextSplice):
    """A splice of our text; its offset counts in our text as it is before all of them."""

    source: int | None
    """Place in their text of what is inserted; None if it has none."""


@dataclass(frozen=True, slots=True)
class EditConflict:
    """A piece that both sides changed, each in its own way, in each of the texts."""

    base: Excerpt
    ours: Excerpt
    theirs: Excerpt
    merged: Excerpt
    taking: tuple[MergeSplice, ...]
    """Splices that make our piece theirs; the base that both left stays."""
    preceding: int
    """How many of the merge's splices come before it."""
    whole_lines: bool = False
    """Whether what is chosen stands on lines of its own."""

    @property
    def both(self) -> str:
        """Our piece and then theirs; lines that they begin or end with in common stand once."""
        start = self.ours.start
        added = (TextSplice(s.offset - start, 0, s.inserted) for s in self._adding())
        return apply_script(self.ours.text, added)

    def splices(self, choice: Resolution | str) -> Sequence[MergeSplice]:
        """The splices of our text that resolve it."""
        if choice is Resolution.OURS:
            return ()
        if choice is Resolution.THEIRS:
            return self.taking
        if choice is Resolution.BOTH:
            return self._adding()
        pieces = self.base.text, self.ours.text, self.theirs.text
        if self.whole_lines and choice[-1:] not in _BREAK and any(p.endswith("\n") for p in pieces):
            choice += "\n"
        script = as_script(plan_difference(self.ours.text, choice))
        start = self.ours.start
        return [MergeSplice(start + one.offset, one.deleted, one.inserted, None) for one in script]

    def _adding(self) -> list[MergeSplice]:
        """Return what puts their piece behind ours: on lines of its own, or a blank apart."""
        ours, theirs = LINE.findall(self.ours.text), LINE.findall(self.theirs.text)
        head = len(commonprefix([ours, theirs]))
        tail = len(commonprefix([ours[head:][::-1], theirs[head:][::-1]]))
        before = "".join(ours[: len(ours) - tail])
        new = "".join(theirs[head : len(theirs) - tail])
        if not new:
            return []
        at = self.ours.start + len(before)
        source = self.theirs.start + sum(map(len, theirs[:head]))
        added = [MergeSplice(at, 0, new, source)]
        blank = "\n" if self.whole_lines or "\n" in self.ours.text + new else " "
        if before and not {blank, "\n"} & {before[-1], new[0]}:
            added.insert(0, MergeSplice(at, 0, blank, None))
        if before.endswith("\n") and not new.endswith("\n"):
            added.append(MergeSplice(at, 0, "\n", None))
        return added


class EditMerge(NamedTuple):
    """A merge of two scripts: what to do to our text, and what is not clear."""

    text: str
    """Our text after the splices: it has our pieces where there are conflicts."""
    splices: tuple[MergeSplice, ...]
    conflicts: tuple[EditConflict, ...] = ()


def merge_texts(base: str, ours: str, theirs: str) -> EditMerge:
    """Merge the changes that lead from `base` to two texts; conflicts are of whole lines."""
    mine, other = (as_script(plan_difference(base, text)) for text in (ours, theirs))
    return merge_edits(base, mine, other, whole_lines=True)


def merge_edits(
    base: str,
    ours: Sequence[TextSplice],
    theirs: Sequence[TextSplice],
    *,
    whole_lines: bool = False,
) -> EditMerge:
    """Merge two scripts of a text: splices in order, whose offsets all count in `base`.

    What both did alike is done once; what a side replaced by the same is no change.

    Args:
        whole_lines: whether every conflict is of whole lines.
    """
    sides = _EditedText(base, ours), _EditedText(base, theirs)
    splices: list[MergeSplice] = []
    conflicts: list[EditConflict] = []
    grown = 0
    for region in _regions(base, sides, whole_lines):
        taking = _taking(region, sides) if not region.done else ()
        if region.conflict:
            old = Excerpt(region.start, region.end, base[region.start : region.end])
            mine, other = region.excerpts(sides)
            here = Excerpt(mine.start + grown, mine.end + grown, mine.text)
            what = old, mine, other, here, taking, len(splices)
            conflicts.append(EditConflict(*what, whole_lines))
        elif region.first[0] == region.last[0]:
            splices += taking
            grown += sum(len(one.inserted) - one.deleted for one in taking)
        else:  # both deleted words, not all of them the same
            splices += (replace(one, inserted="") for one in taking if one.deleted)
            grown -= sum(one.deleted for one in taking)
    return EditMerge(apply_script(sides[0].text, splices), tuple(splices), tuple(conflicts))


def resolved(merge: EditMerge, choices: Mapping[int, Resolution | str]) -> tuple[MergeSplice, ...]:
    """Return the splices of a merge with its conflicts resolved, by their index; ours if not named.

    Raises:
        AntiphonError: invalid_params if there is no such conflict.
    """
    check_conflicts(choices, len(merge.conflicts))
    splices: list[MergeSplice] = []
    at = 0
    for index, choice in sorted(choices.items()):
        conflict = merge.conflicts[index]
        splices += merge.splices[at : conflict.preceding]
        splices += conflict.splices(choice)
        at = conflict.preceding
    return (*splices, *merge.splices[at:])


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


class _EditedText:
    """The edits of one side, apart from each other, and its text."""

    def __init__(self, base: str, script: Sequence[TextSplice]) -> None:
        self.edits: list[TextSplice] = []
        end = -1
        for one in script:
            if one.inserted == base[one.offset : one.offset + one.deleted]:
                continue
            if one.offset == end:
                last = self.edits.pop()
                whole = last.deleted + one.deleted, last.inserted + one.inserted
                one = TextSplice(last.offset, *whole)
            self.edits.append(one)
            end = one.offset + one.deleted
        growth = (len(one.inserted) - one.deleted for one in self.edits)
        self.drift = list(accumulate(growth, initial=0))
        self.text = apply_script(base, self.edits)

    def excerpt(self, start: int, end: int, first: int, last: int) -> Excerpt:
        """Return a range of the base as it is in the text, with the edits `first` to `last`."""
        start, end = start + self.drift[first], end + self.drift[last]
        return Excerpt(start, end, self.text[start:end])


class _TouchedWords(NamedTuple):
    """One edit with the words that it touches."""

    start: int
    end: int
    edit: TextSplice
    side: int
    deletes: bool
    """Whether it only deletes, and only whole words."""


@dataclass(slots=True)
class _Region:
    """A range of the base with edits that belong together."""

    start: int
    end: int
    hunks: list[_TouchedWords]
    first: tuple[int, int] = (0, 0)
    """For each side, the index of its first edit, and in `last` the one behind its last."""
    last: tuple[int, int] = (0, 0)
    conflict: bool = False
    done: bool = False
    """Whether we have made the same of it as they, or they nothing."""
    reach: tuple[int, int] = (0, 0)
    """The range in which other changes belong to it."""

    def excerpts(self, sides: Sequence[_EditedText]) -> list[Excerpt]:
        """Return it as it is in the text of each side."""
        ranges = zip(sides, self.first, self.last, strict=True)
        return [side.excerpt(self.start, self.end, *indices) for side, *indices in ranges]

    def widen(
        self, base: str, sides: Sequence[_EditedText], sentences: _Sentences, whole_lines: bool
    ) -> None:
        """Make whole lines of a conflict about several; see how far it reaches."""
        is_of_lines = whole_lines or any("\n" in piece for piece in self._pieces(base, sides))
        if self.conflict and is_of_lines:
            self.start = base.rfind("\n", 0, self.start) + 1
            if not all(piece[-1:] in _BREAK for piece in self._pieces(base, sides)):
                self.end = base.find("\n", self.end) + 1 or len(base)
        self.reach = self.start, self.end
        if self.conflict:
            self.reach = sentences.around(*self.reach, sentences.beside(*self.reach))

    def _pieces(self, base: str, sides: Sequence[_EditedText]) -> list[str]:
        return [base[self.start : self.end], *(one.text for one in self.excerpts(sides))]

    def concerns(self, later: _Region) -> bool:
        """Whether a conflict, this one or the later one, is about the other as well."""
        return (self.start < later.reach[1] and later.reach[0] < self.end) or (
            later.start < self.reach[1] and self.reach[0] < later.end
        )


class _Sentences:
    """The sentences of a text, none of which is longer than a line."""

    def __init__(self, text: str) -> None:
        self.spans = [match.span() for match in _SENTENCE.finditer(text)]
        self._starts = [start for start, _ in self.spans]

    def beside(self, start: int, end: int) -> set[int]:
        """The sentences that a range begins and ends in."""
        found = {bisect_right(self._starts, at) - 1 for at in (start, max(start, end - 1))}
        return {one for one in found if one >= 0 and self.spans[one][1] >= start}

    def around(self, start: int, end: int, numbers: Iterable[int]) -> tuple[int, int]:
        """A range with these sentences."""
        spans = [(start, end), *(self.spans[number] for number in numbers)]
        return min(one for one, _ in spans), max(one for _, one in spans)


def _hunks(
    base: str, edits: Sequence[TextSplice], side: int, sentences: _Sentences
) -> Iterator[_TouchedWords]:
    """The edits of a side; about the whole of a sentence of which it changed more than half."""
    changed: defaultdict[int, float] = defaultdict(float)
    for edit in edits:
        start, end = edit.offset, edit.offset + edit.deleted
        for number in sentences.beside(start, end):
            begin, finish = sentences.spans[number]
            changed[number] += (min(end, finish) - max(start, begin)) / (finish - begin)
    reached = 0
    for edit in edits:
        start, end = _words(base, edit, reached)
        reached = end
        deletes = (start, end, "") == (edit.offset, edit.offset + edit.deleted, edit.inserted)
        rewritten = {one for one in sentences.beside(start, end) if 2 * changed[one] > 1}
        yield _TouchedWords(*sentences.around(start, end, rewritten), edit, side, deletes)


def _words(base: str, edit: TextSplice, reached: int) -> tuple[int, int]:
    """The range of an edit with the words that it changes, joins or splits.

    Args:
        reached: the end of the last one that an earlier edit has changed.
    """
    start, end = edit.offset, edit.offset + edit.deleted
    if end < reached:
        return start, reached
    after, before = base[end : end + 1], base[max(start - 1, 0) : start]
    first, last = (edit.inserted + after)[:1], (before + edit.inserted)[-1:]
    if _is_word(before + first) or _is_word(before + base[start : start + 1]):
        start -= 1
        while start > reached and _is_word(base[start - 1 : start + 1]):
            start -= 1
    if _is_word(last + after) or _is_word(base[max(end - 1, 0) : end] + after):
        found = WORD.match(base, end)
        end = found.end() if found is not None else end
    return start, end


def _is_word(pair: str) -> bool:
    """Whether two code points side by side are of one word, or of the blanks between words."""
    return len(pair) == 2 and WORD.fullmatch(pair) is not None


def _regions(base: str, sides: Sequence[_EditedText], whole_lines: bool) -> list[_Region]:
    """The regions of all edits, in order."""
    sentences = _Sentences(base if all(side.edits for side in sides) else "")
    hunks = [h for n, side in enumerate(sides) for h in _hunks(base, side.edits, n, sentences)]
    regions: list[_Region] = []
    for hunk in sorted(hunks, key=lambda one: (one.start, one.end, one.edit.offset)):
        last = regions[-1] if regions else None
        if last is not None and (hunk.start < last.end or _meets(base, last, hunk)):
            last.end = max(last.end, hunk.end)
            last.hunks.append(hunk)
        else:
            regions.append(_Region(hunk.start, hunk.end, [hunk]))
    counts = (0, 0)
    done: list[_Region] = []
    for region in regions:
        theirs = sum(hunk.side for hunk in region.hunks)
        ours = len(region.hunks) - theirs
        region.first, counts = counts, (counts[0] + ours, counts[1] + theirs)
        region.last = counts
        mine, other = region.excerpts(sides)
        region.done = not theirs or (ours > 0 and mine.text == other.text)
        is_deleted = all(hunk.deletes for hunk in region.hunks)
        region.conflict = ours > 0 and not region.done and not is_deleted
        region.widen(base, sides, sentences, whole_lines)
        while done and done[-1].concerns(region):
            last = done.pop()
            start, end = min(last.start, region.start), max(last.end, region.end)
            last.hunks += region.hunks
            region = _Region(start, end, last.hunks, last.first, region.last, conflict=True)
            region.widen(base, sides, sentences, whole_lines)
        done.append(region)
    return done


def _meets(base: str, region: _Region, hunk: _TouchedWords) -> bool:
    """Whether an edit of the other side ends where this one begins, and both mean that place."""
    left = next((one.edit for one in reversed(region.hunks) if one.side != hunk.side), None)
    right, at = hunk.edit, hunk.edit.offset
    if left is None or left.offset + left.deleted != at:
        return False
    if left.deleted and right.deleted:
        return bool(left.inserted and right.inserted)
    if not left.deleted and not right.deleted:
        return True
    # A line that is put in does not concern the line beside it, unless that runs into the next.
    new, old = (right.inserted, left) if left.deleted else (left.inserted, right)
    far = 2 * old.offset + old.deleted - at
    if new.endswith("\n") and base[at - 1 : at] in _BREAK:
        return old is left and (old.inserted != "" or base[far - 1 : far] not in _BREAK)
    if new.startswith("\n") and base[at : at + 1] in _BREAK:
        return old is right and (old.inserted != "" or base[far : far + 1] not in _BREAK)
    return True


def _taking(region: _Region, sides: Sequence[_EditedText]) -> tuple[MergeSplice, ...]:
    """Return the splices that make our text theirs in a region: ranges that either changed."""
    groups: list[list[int]] = []
    for hunk in sorted(region.hunks, key=lambda one: one.edit.offset):
        at, end = hunk.edit.offset, hunk.edit.offset + hunk.edit.deleted
        if not groups or at > groups[-1][1]:
            groups.append([at, end, 0, 0])
        groups[-1][1] = max(groups[-1][1], end)
        groups[-1][2 + hunk.side] += 1
    taking = []
    ours, theirs = region.first
    for start, end, mine, others in groups:
        here = sides[0].excerpt(start, end, ours, ours + mine)
        there = sides[1].excerpt(start, end, theirs, theirs + others)
        taking.append(MergeSplice(here.start, len(here.text), there.text, there.start))
        ours, theirs = ours + mine, theirs + others
    return tuple(taking)
