"""Three-way merge of edits: what two sides did to one text, exactly, in code points.

The merge is what a CRDT makes of both. Where both changed a word, or put something in at one place,
is a conflict: one for a sentence, in whole lines if it is about more than one line.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from os.path import commonprefix
from typing import Final

from antiphon_kernel.text.merge3 import Conflict, Excerpt, Resolution, check_conflicts
from antiphon_kernel.text.splice_diff import LINE, WORD, apply_script, as_script, plan_difference
from antiphon_kernel.types.records import TextSplice

_SENTENCE: Final = re.compile(r"\S(?:[^\n]*?(?:[.!?…](?=\s)|[。！？])|[^\n]*)")


@dataclass(frozen=True, slots=True)
class MergeSplice(TextSplice):
    """A splice of our text; its offset counts in our text as it is before all of them."""

    source: int | None
    """Where in their text stands what is inserted; None if nowhere."""


@dataclass(frozen=True, slots=True)
class EditConflict(Conflict):
    """A conflict; its places are code points of each text."""

    taking: tuple[MergeSplice, ...]
    """What makes our piece theirs; what both left of the base stays."""
    preceding: int
    """How many of the merge's splices come before it."""

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
        script = as_script(plan_difference(self.ours.text, choice))
        start = self.ours.start
        return [MergeSplice(start + one.offset, one.deleted, one.inserted, None) for one in script]

    def _adding(self) -> list[MergeSplice]:
        """What puts their piece behind ours: on lines of its own, or a blank apart."""
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
        blank = "\n" if "\n" in self.ours.text + new else " "
        if before and not {blank, "\n"} & {before[-1], new[0]}:
            added.insert(0, MergeSplice(at, 0, blank, None))
        if before.endswith("\n") and not new.endswith("\n"):
            added.append(MergeSplice(at, 0, "\n", None))
        return added


@dataclass(frozen=True, slots=True)
class EditMerge:
    """A merge of two scripts: what to do to our text, and what is not clear."""

    text: str
    """What the splices make of our text: it has our pieces where there are conflicts."""
    splices: tuple[MergeSplice, ...]
    conflicts: tuple[EditConflict, ...] = ()


def merge_edits(base: str, ours: Sequence[TextSplice], theirs: Sequence[TextSplice]) -> EditMerge:
    """Merge two scripts of a text: splices in order, whose offsets all count in `base`.

    What both did alike is done once; what a side replaced by the same is no change.
    """
    mine, other = _Side(0, base, ours), _Side(1, base, theirs)
    splices: list[MergeSplice] = []
    conflicts: list[EditConflict] = []
    grown = 0
    for region in _regions(base, mine, other):
        if region.conflict:
            here, there = (side.excerpt(region) for side in (mine, other))
            conflicts.append(
                EditConflict(
                    base=Excerpt(region.start, region.end, base[region.start : region.end]),
                    ours=here,
                    theirs=there,
                    merged=Excerpt(here.start + grown, here.end + grown, here.text),
                    taking=tuple(_taking(region, mine, other)),
                    preceding=len(splices),
                )
            )
            continue
        for index in () if region.alike else other.edits_in(region):
            edit = other.edits[index]
            start, end = mine.place(edit)
            if end > start or edit.inserted:
                source = other.starts[index]
                splices.append(MergeSplice(start, end - start, edit.inserted, source))
                grown += len(edit.inserted) - end + start
    return EditMerge(apply_script(mine.text, splices), tuple(splices), tuple(conflicts))


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


def _taking(region: _Region, ours: _Side, theirs: _Side) -> Iterator[MergeSplice]:
    """What makes our text theirs in a region: ranges that one of them changed."""
    sides = ours, theirs
    changes = sorted(
        (side.offsets[index], side.ends[index], side.number)
        for side in sides
        for index in side.edits_in(region)
    )
    passed = [*region.first]
    while changes:
        start, end, _ = changes[0]
        before = [*passed]
        taken = 0
        for at, finish, number in changes:
            if at > end:
                break
            passed[number] += 1
            end = max(end, finish)
            taken += 1
        del changes[:taken]
        here, there = (
            side.piece(start, end, before[side.number], passed[side.number]) for side in sides
        )
        yield MergeSplice(here.start, here.end - here.start, there.text, there.start)


class _Side:
    """One side: its edits, apart from each other, and its text."""

    def __init__(self, number: int, base: str, script: Iterable[TextSplice]) -> None:
        script = [*script]
        self.number = number
        self.edits: list[TextSplice] = []
        for one in script:
            if one.inserted == base[one.offset : one.offset + one.deleted]:
                continue
            last = self.edits[-1] if self.edits else None
            if last is not None and last.offset + last.deleted == one.offset:
                whole = last.deleted + one.deleted, last.inserted + one.inserted
                self.edits[-1] = TextSplice(last.offset, *whole)
            else:
                self.edits.append(one)
        self.text = apply_script(base, script)
        self.offsets = [one.offset for one in self.edits]
        self.ends = [one.offset + one.deleted for one in self.edits]
        growth = (len(one.inserted) - one.deleted for one in self.edits)
        self.drift = list(accumulate(growth, initial=0))
        self.starts = [at + drift for at, drift in zip(self.offsets, self.drift, strict=False)]
        """Where in the text each edit's is."""

    def place(self, edit: TextSplice) -> tuple[int, int]:
        """The range of the text that another's edit is about."""
        at, end = edit.offset, edit.offset + edit.deleted
        index = bisect_right(self.ends, at)
        inside = index < len(self.offsets) and self.offsets[index] < at
        start = self.starts[index] if inside else at + self.drift[index]
        if not edit.deleted:
            return start, start
        index = bisect_left(self.offsets, end)
        inside = index > 0 and self.ends[index - 1] > end
        return start, self.starts[index - 1] if inside else end + self.drift[index]

    def piece(self, start: int, end: int, first: int, last: int) -> Excerpt:
        """What a range of the base is in the text, with the edits from `first` to `last`."""
        start, end = start + self.drift[first], end + self.drift[last]
        return Excerpt(start, end, self.text[start:end])

    def edits_in(self, region: _Region) -> range:
        """The indices of the edits that are in a region."""
        return range(region.first[self.number], region.last[self.number])

    def excerpt(self, region: _Region) -> Excerpt:
        """What a region is in the text."""
        number = self.number
        return self.piece(region.start, region.end, region.first[number], region.last[number])


@dataclass(slots=True)
class _Hunk:
    """One edit with the words that it touches."""

    start: int
    end: int
    side: int
    edit: TextSplice
    deletes: bool
    """Whether it only deletes, and only whole words."""


@dataclass(slots=True)
class _Region:
    """A range of the base with edits that belong together."""

    start: int
    end: int
    hunks: list[_Hunk]
    first: tuple[int, int] = (0, 0)
    """For each side, the index of its first edit, and in `last` the one behind its last."""
    last: tuple[int, int] = (0, 0)
    conflict: bool = False
    alike: bool = False
    """Whether both made the same of it."""
    lines: bool = False
    """Whether it is a conflict about more than one line, which has whole lines."""
    reach: tuple[int, int] = (0, 0)
    """The range in which other changes belong to it."""

    def widen(self, base: str, sides: Sequence[_Side], sentences: _Sentences) -> None:
        """Make whole lines of a conflict about several; see how far it reaches."""
        self.reach = self.start, self.end
        if not self.conflict:
            return
        pieces = [base[self.start : self.end], *(side.excerpt(self).text for side in sides)]
        self.lines = self.lines or any("\n" in piece for piece in pieces)
        if not self.lines:
            self.reach = sentences.around(
                self.start, self.end, sentences.beside(self.start, self.end)
            )
            return
        self.start = base.rfind("\n", 0, self.start) + 1
        pieces = [base[: self.end], *(side.excerpt(self).text for side in sides)]
        if not all(_begins_line(piece, len(piece)) for piece in pieces):
            self.end = base.find("\n", self.end) + 1 or len(base)
        self.reach = self.start, self.end

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


def _hunks(base: str, side: _Side, sentences: _Sentences) -> Iterator[_Hunk]:
    """The edits of a side; about the whole of a sentence of which it changed more than half."""
    changed: defaultdict[int, float] = defaultdict(float)
    for start, end in zip(side.offsets, side.ends, strict=True):
        for number in sentences.beside(start, end):
            begin, finish = sentences.spans[number]
            changed[number] += (min(end, finish) - max(start, begin)) / (finish - begin)
    for edit in side.edits:
        start, end = _words(base, edit)
        deletes = (start, end, "") == (edit.offset, edit.offset + edit.deleted, edit.inserted)
        rewritten = {one for one in sentences.beside(start, end) if 2 * changed[one] > 1}
        yield _Hunk(*sentences.around(start, end, rewritten), side.number, edit, deletes)


def _words(base: str, edit: TextSplice) -> tuple[int, int]:
    """The range of an edit with the words that it changes, joins or splits."""
    start, end = edit.offset, edit.offset + edit.deleted
    after, before = base[end : end + 1], base[max(start - 1, 0) : start]
    first, last = (edit.inserted + after)[:1], (before + edit.inserted)[-1:]
    if _is_word(before + first) or _is_word(before + base[start : start + 1]):
        start -= 1
        while _is_word(base[max(start - 1, 0) : start + 1]):
            start -= 1
    if _is_word(last + after) or _is_word(base[max(end - 1, 0) : end] + after):
        found = WORD.match(base, end)
        end = found.end() if found is not None else end
    return start, end


def _is_word(pair: str) -> bool:
    """Whether two code points side by side are of one word, or of the blanks between words."""
    return len(pair) == 2 and WORD.fullmatch(pair) is not None


def _regions(base: str, *sides: _Side) -> list[_Region]:
    """The regions of all edits, in order."""
    sentences = _Sentences(base if all(side.edits for side in sides) else "")
    hunks = [hunk for side in sides for hunk in _hunks(base, side, sentences)]
    hunks.sort(key=lambda one: (one.start, one.end, one.edit.offset))
    regions: list[_Region] = []
    for hunk in hunks:
        last = regions[-1] if regions else None
        if last is not None and (hunk.start < last.end or _meets(base, last, hunk)):
            last.end = max(last.end, hunk.end)
            last.hunks.append(hunk)
        else:
            regions.append(_Region(hunk.start, hunk.end, [hunk]))
    counts = (0, 0)
    done: list[_Region] = []
    for region in regions:
        mine = sum(not hunk.side for hunk in region.hunks)
        region.first, counts = counts, (counts[0] + mine, counts[1] + len(region.hunks) - mine)
        region.last = counts
        if 0 < mine < len(region.hunks):
            region.alike = sides[0].excerpt(region).text == sides[1].excerpt(region).text
            region.conflict = not (region.alike or all(one.deletes for one in region.hunks))
        region.widen(base, sides, sentences)
        while done and done[-1].concerns(region):
            last = done.pop()
            region.start, region.end = min(last.start, region.start), max(last.end, region.end)
            region.first, region.conflict = last.first, True
            region.lines |= last.lines
            region.widen(base, sides, sentences)
        done.append(region)
    return done


def _meets(base: str, region: _Region, hunk: _Hunk) -> bool:
    """Whether an edit begins where one of the other side ends, and they are at the same place."""
    beside = next((one.edit for one in reversed(region.hunks) if one.side != hunk.side), None)
    left, right, at = beside, hunk.edit, hunk.edit.offset
    if left is None or left.offset + left.deleted != at:
        return False
    if left.deleted and right.deleted:
        return bool(left.inserted and right.inserted)
    if not left.deleted and not right.deleted:
        return True
    # Lines of their own do not concern the line beside which they are put in.
    if left.deleted:
        below = right.inserted.startswith("\n") and _ends_line(base, at)
        gone = not left.inserted and _begins_line(base, left.offset) and _begins_line(base, at)
        return not (below or (gone and right.inserted.endswith("\n")))
    above = left.inserted.endswith("\n") and _begins_line(base, at)
    end = at + right.deleted
    gone = not right.inserted and _ends_line(base, at) and _ends_line(base, end)
    return not (above or (gone and left.inserted.startswith("\n")))


def _begins_line(text: str, at: int) -> bool:
    return at == 0 or text[at - 1] == "\n"


def _ends_line(text: str, at: int) -> bool:
    return at == len(text) or text[at] == "\n"
