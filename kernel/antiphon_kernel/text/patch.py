r"""Applying a unified diff to a text: exactly where it belongs, or not at all.

A hunk belongs where its header says, if its kept and removed lines are there. If they are not, it
may move, but only to the one place in the text that has them. A hunk that has moved shows that the
line numbers are those of another text; then every hunk must have only one place, because what is
found at a number may be a look-alike.

The ends of a text count as context, as in git and patch: a hunk that stops at its last change goes
to the end of the text; one that says line 0 and has less context above its changes than below goes
to the beginning. Where the lines of such a hunk are at its number and nowhere else, its place is
certain, and it goes there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, islice, pairwise, takewhile
from typing import Any, Final

from antiphon_kernel.text.lines import line_count
from antiphon_kernel.text.splice_diff import Replacement, as_splices
from antiphon_kernel.text.unified_diff import Hunk, HunkLine, MalformedPatch, parse_patch
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.records import TextSplice

_PLACES_NAMED: Final = 8
_LINES_SHOWN: Final = 20
_HUNKS_DETAILED: Final = 100
_SEARCHED: Final = 400_000_000
"""Code points that are looked through for hunks that are not where they say, before giving up."""


@dataclass(frozen=True, slots=True)
class HunkFailure:
    """Why one hunk cannot be applied. Lines count from 0."""

    message: str
    hunk: int | None = None
    """Its number, counted from 0; None where the patch as a whole is at fault."""
    line: int | None = None
    """The line where it should have been."""
    expected: tuple[str, ...] | None = None
    """Its kept and removed lines, the first twenty of them."""
    found: tuple[str, ...] | None = None
    """The lines that the text has at that place instead."""
    places: tuple[int, ...] | None = None
    """The first eight lines where it would fit, if that is more than one place."""

    def as_json(self) -> dict[str, Any]:
        fields = ("message", "hunk", "line", "expected", "found", "places")
        values = {name: getattr(self, name) for name in fields}
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in values.items()
            if value is not None
        }


def plan_patch(text: str, patch: str) -> list[TextSplice]:
    """The splices that carry out `patch`: sorted, disjoint, without common ends.

    Each offset counts in the text as the earlier splices of the list have left it.

    Raises:
        AntiphonError: patch_failed; `errors` has one sentence for each hunk that failed, `hunks`
            the same as machine fields (see `HunkFailure`) for the first hundred.
    """
    try:
        parsed = parse_patch(patch)
    except MalformedPatch as error:
        raise _failed([HunkFailure(error.message, error.hunk)]) from error
    if parsed.creates and text:
        problem = "The patch creates the file, but the block has text: make it a patch of the text."
        raise _failed([HunkFailure(problem)])
    target = _Haystack(text)
    placed = _place(target, parsed.hunks)
    pieces = [piece for hunk, offset in placed for piece in _pieces(hunk, offset)]
    if parsed.deletes and sum(piece.end - piece.start for piece in pieces) != len(text):
        problem = "The patch deletes the file, but the block has more text than it removes."
        raise _failed([HunkFailure(problem)])
    return as_splices(text, pieces)


class _Haystack:
    """A text in which hunks look for their places."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.line_count = line_count(text)
        self._searches = _SEARCHED // (len(text) + 1)

    @cached_property
    def starts(self) -> list[int]:
        """The offset of each line, and the end."""
        lengths = (len(line) + 1 for line in self.text.split("\n"))
        return [*[0, *accumulate(lengths)][: self.line_count], len(self.text)]

    def lines(self, start: int, count: int) -> list[str]:
        """Lines with their newlines, fewer at the end of the text."""
        starts = self.starts[start : start + count + 1]
        return [self.text[one:other] for one, other in pairwise(starts)]

    def may_search(self) -> bool:
        """Count one hunk's search of the whole text; return whether it may run."""
        self._searches -= 1
        return self._searches >= 0

    def places(self, old: str) -> Iterator[int]:
        """The offset of every place whose lines are exactly `old`, which is not empty."""
        text = self.text
        if not old.endswith("\n"):
            offset = len(text) - len(old)
            if self.fits(old, offset):
                yield offset
            return
        if text.startswith(old):
            yield 0
        offset = text.find("\n" + old)
        while offset >= 0:
            yield offset + 1
            offset = text.find("\n" + old, offset + 1)

    def fits(self, old: str, offset: int) -> bool:
        """Return whether the lines from `offset` on are exactly `old`, which is not empty."""
        if offset < 0 or not self.text.startswith(old, offset):
            return False
        begins_line = offset == 0 or self.text[offset - 1] == "\n"
        return begins_line and (old.endswith("\n") or offset + len(old) == len(self.text))


@dataclass(frozen=True, slots=True)
class _HunkMatcher:
    """The lines that a hunk needs at its place, and their number."""

    number: int
    hunk: Hunk
    old: str
    at_start: bool
    at_end: bool
    unfinished: bool
    """Whether one of its lines has no newline, so that it can be nowhere but at the end."""

    @classmethod
    def of(cls, number: int, hunk: Hunk) -> _HunkMatcher:
        before = len(list(takewhile(_is_kept, hunk.lines)))
        after = len(list(takewhile(_is_kept, reversed(hunk.lines))))
        unfinished = not all(line.text.endswith("\n") for line in hunk.lines)
        return cls(
            number,
            hunk,
            "".join(hunk.old),
            at_start=hunk.start <= 0 and (before < after or before == 0),
            at_end=unfinished or after == 0 < before,
            unfinished=unfinished,
        )

    def allows(self, target: _Haystack, offset: int) -> bool:
        """Return whether a matching place is at the start or end of the text if it must be."""
        ends = offset + len(self.old) == len(target.text)
        return (ends or not self.at_end) and (offset == 0 or not self.at_start)


def _is_kept(line: HunkLine) -> bool:
    return line.mark == " "


def _place(target: _Haystack, hunks: Sequence[Hunk]) -> list[tuple[Hunk, int]]:
    """Yield each hunk with the offset where it belongs; raises AntiphonError patch_failed."""
    wanted = [_HunkMatcher.of(number, hunk) for number, hunk in enumerate(hunks)]
    stated = [_stated_place(target, one) for one in wanted]
    offsets = stated
    if None in stated:
        moved = [_only_place(target, one) for one in wanted]
        failures = [found for found in moved if isinstance(found, HunkFailure)]
        if failures:
            raise _failed(failures)
        offsets = [found for found in moved if isinstance(found, int)]
    placed: list[tuple[Hunk, int]] = []
    end = 0
    failures = []
    for one, offset in zip(wanted, offsets, strict=True):
        assert offset is not None
        if placed and offset < end:
            failures.append(_misplaced(target, one, offset))
        end = max(end, offset + len(one.old))
        placed.append((one.hunk, offset))
    if failures:
        raise _failed(failures)
    return placed


def _stated_place(target: _Haystack, wanted: _HunkMatcher) -> int | None:
    """The offset that the header says, if the hunk belongs there."""
    start = wanted.hunk.start
    if not wanted.old:
        return 0 if not target.text else None
    if not 0 <= start < target.line_count:
        return None
    offset = target.starts[start]
    if not target.fits(wanted.old, offset):
        return None
    return offset if wanted.allows(target, offset) or _is_only_place(target, wanted) else None


def _is_only_place(target: _Haystack, wanted: _HunkMatcher) -> bool:
    """Return whether the text has a hunk's lines once, and they may be anywhere."""
    if wanted.unfinished or not target.may_search():
        return False
    return len(list(islice(target.places(wanted.old), 2))) == 1


def _only_place(target: _Haystack, wanted: _HunkMatcher) -> int | HunkFailure:
    """The one offset in the whole text where the hunk belongs, or why there is none."""
    number, start = wanted.number, max(wanted.hunk.start, 0)
    if not wanted.old:
        if not target.text:
            return 0
        return HunkFailure(
            f"Hunk {number} has neither kept nor removed lines, so nothing says where in the text"
            " it belongs: make the patch with lines of context.",
            number,
            start,
            (),
        )
    if not target.may_search():
        return HunkFailure(
            f"Hunk {number} may be elsewhere than at line {start}; the patch has too many hunks for"
            " so long a text to look for each: make the patch of this text.",
            number,
            start,
        )
    places: list[int] = []
    elsewhere = False
    for offset in target.places(wanted.old):
        if wanted.allows(target, offset):
            places.append(offset)
        else:
            elsewhere = True
        if len(places) > _PLACES_NAMED:
            break
    if len(places) == 1:
        return places[0]
    if places:
        return _ambiguous(target, wanted, places)
    return _mismatch(target, wanted, elsewhere)


def _ambiguous(target: _Haystack, wanted: _HunkMatcher, places: Sequence[int]) -> HunkFailure:
    number, start = wanted.number, max(wanted.hunk.start, 0)
    lines = [target.text.count("\n", 0, offset) for offset in places[:_PLACES_NAMED]]
    listed = ", ".join(map(str, lines)) + (" and more" if len(places) > _PLACES_NAMED else "")
    return HunkFailure(
        f"Hunk {number} was made for another text than this and fits in several places (the lines"
        f" {listed}): read the block again and give the hunk more context.",
        number,
        start,
        tuple(_cut(wanted.hunk.old)),
        places=tuple(lines),
    )


def _mismatch(target: _Haystack, wanted: _HunkMatcher, elsewhere: bool) -> HunkFailure:
    number, start, old = wanted.number, max(wanted.hunk.start, 0), wanted.hunk.old
    found = target.lines(start, len(old))
    pairs = zip(old, [*found, *[None] * (len(old) - len(found))], strict=False)
    line = next((i for i, (one, other) in enumerate(pairs) if one != other), None)
    if line is None or elsewhere:
        below = ("below", "end", "last", "next")
        above = ("above", "beginning", "first", "previous")
        side, place, edge, missing = below if wanted.at_end else above
        problem = (
            f"it has no context {side} its changes, which means the {place} of the text, but its"
            f" lines are not the {edge} ones; give it the {missing} line as context"
        )
    elif line < len(found):
        problem = f"line {start + line} should be {_shown(old[line])}, but is {_shown(found[line])}"
    else:
        problem = (
            f"line {start + line} should be {_shown(old[line])}, but the text has only"
            f" {target.line_count} lines"
        )
    where = "" if elsewhere or line is None else ", and its lines are nowhere else"
    return HunkFailure(
        f"Hunk {number}: {problem}{where}. Read the block again and make the patch anew.",
        number,
        start,
        tuple(_cut(old)),
        tuple(_cut(found)),
    )


def _misplaced(target: _Haystack, wanted: _HunkMatcher, offset: int) -> HunkFailure:
    line = target.text.count("\n", 0, offset)
    return HunkFailure(
        f"Hunk {wanted.number} belongs at line {line}, which is above or inside the hunk before"
        " it: put the hunks in the order of the text and join those that share lines.",
        wanted.number,
        line,
        tuple(_cut(wanted.hunk.old)),
    )


def _pieces(hunk: Hunk, offset: int) -> Iterator[Replacement]:
    """Yield the replacements of a hunk, run by run; runs of equal length line by line."""
    at = offset
    removed: list[str] = []
    added: list[str] = []
    for line in (*hunk.lines, HunkLine(" ", "")):
        if line.mark == "-":
            removed.append(line.text)
        elif line.mark == "+":
            added.append(line.text)
        else:
            if len(removed) != len(added):
                removed, added = ["".join(removed)], ["".join(added)]
            for before, after in zip(removed, added, strict=True):
                yield Replacement(at, at + len(before), after)
                at += len(before)
            removed, added = [], []
            at += len(line.text)


def _cut(lines: Sequence[str]) -> Sequence[str]:
    return lines[:_LINES_SHOWN]


def _shown(line: str) -> str:
    """A line as an error quotes it; its end is shown, for that may be the difference."""
    return repr(line if len(line) <= 80 else line[:60] + "..." + line[-17:])


def _failed(failures: Sequence[HunkFailure]) -> AntiphonError:
    rest = f" ({len(failures) - 1} more failed.)" if len(failures) > 1 else ""
    return AntiphonError(
        ErrorCode.PATCH_FAILED,
        f"The patch was not applied. {failures[0].message}{rest}",
        errors=[one.message for one in failures],
        hunks=[one.as_json() for one in failures[:_HUNKS_DETAILED]],
    )
