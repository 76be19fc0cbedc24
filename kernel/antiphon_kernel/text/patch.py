r"""Unified diffs of one text: written, read, and applied exactly where they belong or not at all.

A parser of our own, because the libraries there are lose what has to be exact: whatthepatch splits
lines at U+2028 and form feeds and drops ``\r``; unidiff skips whatever it does not recognise, a
hunk with a damaged header included, and so half a patch would be applied.

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

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import accumulate, islice, pairwise
from typing import Any, Final, NamedTuple

from antiphon_kernel.text.lines import line_count, split_lines
from antiphon_kernel.text.sequence_diff import changed_ranges
from antiphon_kernel.text.splice_diff import LINE, Replacement, as_splices
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.quoting import quote
from antiphon_kernel.types.records import TextSplice

_HUNK: Final = re.compile(
    r"@@ -([0-9]{1,10})(?:,([0-9]{1,10}))? \+([0-9]{1,10})(?:,([0-9]{1,10}))? @@(?: .*)?\r?"
)
_SHAPE: Final = "@@ -START,COUNT +START,COUNT @@"
_NOTHING: Final = "/dev/null"
_BINARY: Final = ("GIT binary patch", "Binary files ")
_SIGNATURE: Final = "-- "
"""The line that mail puts between the patch and the version of git."""

_AROUND: Final = 3
"""Unchanged lines that a written diff has above and below each change."""

_PLACES_NAMED: Final = 8
_LINES_SHOWN: Final = 20
_HUNKS_DETAILED: Final = 100
_SEARCHED: Final = 400_000_000
"""Code points that are looked through for hunks that are not where they say, before giving up."""


class HunkLine(NamedTuple):
    r"""One line of a hunk: kept (" "), removed ("-") or added ("+").

    `text` ends in ``\n``, unless the patch says that there is no newline at the end of the file.
    """

    mark: str
    text: str


class Hunk(NamedTuple):
    """One hunk. `start` is the line, counted from 0, where it says that its old lines are."""

    start: int
    lines: tuple[HunkLine, ...]

    @property
    def old(self) -> list[str]:
        """The kept and removed lines, which must be in the text."""
        return [line.text for line in self.lines if line.mark != "+"]


class FilePatch(NamedTuple):
    """The part of a patch that is about one text."""

    line: int
    """The line of the patch where it begins."""
    old: str
    """The name that it gives the text before; empty without a header."""
    path: str
    """The name that it gives the text."""
    hunks: tuple[Hunk, ...]
    is_of_git: bool
    """It has a header of git, which may stand alone."""
    creates: bool
    """Its header says that there was nothing before."""
    deletes: bool
    """Its header says that nothing is left."""


def read_patch(patch: str) -> FilePatch:
    """Read a patch of one text, with or without file headers.

    Raises:
        AntiphonError: patch_failed, with what was expected and what was found.
    """
    part, *others = _PatchReader(patch).parts()
    if others:
        raise _malformed(
            "The patch is of more than one file (the next one begins in its line"
            f" {others[0].line}): a block is one text, so apply the part of each file to its block."
        )
    if not part.is_of_git and not part.hunks:
        raise _malformed(f"The patch has no hunk: expected a unified diff with {_SHAPE}.")
    return part


def split_patch(patch: str) -> list[FilePatch]:
    """Return the parts of a patch, each with the file that its header names.

    Raises:
        AntiphonError: patch_failed, if one cannot be read, names no file, deletes or renames one,
            or if two are about the same.
    """
    read = _PatchReader(patch).parts()
    if not any(one.path or one.is_of_git for one in read):
        raise _malformed(
            "It names no file: the part of each file begins with a line --- and one +++."
        )
    parts = [_checked(one) for one in read]
    paths = [one.path for one in parts]
    if twice := next((one for one in paths if paths.count(one) > 1), None):
        raise _malformed(f"Two of its parts are about {quote(twice)}: join them.")
    return parts


def _checked(part: FilePatch) -> FilePatch:
    """Return a part with the path that is meant, which it changes or makes."""
    before, after = part.old, part.path
    if after.startswith("b/") and (before == _NOTHING or before.startswith("a/")):
        before, after = before.removeprefix("a/"), after.removeprefix("b/")
    if not after:
        problem = f"The part from its line {part.line} on has no lines --- and +++ with text."
    elif after == _NOTHING:
        problem = f"It deletes {quote(before)}: take that part out, a patch only changes and makes."
    elif before not in (after, _NOTHING):
        problem = f"It renames {quote(before)}: take that part out, a patch only changes and makes."
    else:
        return part._replace(path=after)
    raise _malformed(problem)


class _PatchReader:
    r"""Reads a patch part by part.

    Text before a header (a commit message) and mail's signature after the last hunk are skipped;
    anything else that is not understood is an error. ``\r`` before a newline belongs to the line.
    """

    def __init__(self, patch: str) -> None:
        self._lines = split_lines(patch)
        self._at = 0

    def parts(self) -> list[FilePatch]:
        """Return all parts; there is always one."""
        parts = [self._part()]
        while self._at < len(self._lines):
            parts.append(self._part())
        return parts

    def _part(self) -> FilePatch:
        begin, old, path, hunks = self._at, "", "", list[Hunk]()
        is_of_git = creates = deletes = False
        while self._at < len(self._lines):
            line = self._lines[self._at].rstrip("\r")
            if line.startswith("@@"):
                hunks.append(self._hunk(len(hunks)))
                continue
            if self._begins_file(self._at):
                is_git = line.startswith("diff --git ")
                if hunks or path or (is_git and is_of_git):
                    break
                begin = begin if is_of_git else self._at
                is_of_git = is_of_git or is_git
                if not is_git:
                    old, path = map(_name, self._lines[self._at : self._at + 2])
                    self._at += 1
            elif hunks and line in ("--", _SIGNATURE):
                while self._at + 1 < len(self._lines) and not self._begins_file(self._at + 1):
                    self._at += 1
            elif hunks and line.strip():
                raise _malformed(
                    f"Line {self._at} of the patch, {quote(line)}, is neither part of a hunk nor"
                    f" the header of one: expected {_SHAPE}."
                )
            elif line.startswith(_BINARY):
                raise _malformed(
                    "The patch is of a binary file: only patches of text can be applied."
                )
            creates = creates or (is_of_git and line.startswith("new file mode "))
            deletes = deletes or (is_of_git and line.startswith("deleted file mode "))
            self._at += 1
        creates, deletes = creates or old == _NOTHING, deletes or path == _NOTHING
        return FilePatch(begin, old, path, tuple(hunks), is_of_git, creates, deletes)

    def _begins_file(self, at: int) -> bool:
        return self._lines[at].startswith("diff --git ") or _names_files(self._lines, at)

    def _hunk(self, number: int) -> Hunk:
        header = self._lines[self._at]
        found = _HUNK.fullmatch(header)
        if found is None:
            raise _malformed(
                f"Hunk {number} (line {self._at} of the patch) begins with {quote(header)}:"
                f" expected {_SHAPE}, with the numbers of lines.",
                number,
            )
        start, removed, _, added = (int(one) if one is not None else 1 for one in found.groups())
        self._at += 1
        first = self._at
        lines: list[HunkLine] = []
        old = new = 0
        while old < removed or new < added:
            line = self._lines[self._at] if self._at < len(self._lines) else None
            # Some tools strip the blank that marks an empty line as kept.
            mark = (line[:1] or " ") if line is not None else ""
            old += mark in (" ", "-")
            new += mark in (" ", "+")
            if line is None or mark not in (" ", "-", "+") or old > removed or new > added:
                raise self._miscounted(number, first, removed, added)
            self._at += 1
            lines.append(HunkLine(mark, line[1:] + "\n"))
            if self._at < len(self._lines) and self._lines[self._at].startswith("\\ "):
                lines[-1] = HunkLine(mark, line[1:])
                self._at += 1
        if self._goes_on(self._at):
            raise self._miscounted(number, first, removed, added)
        for side in "-+":  # nothing comes after the end of the file, on either side
            own = [line for line in lines if line.mark in (" ", side)]
            if any(not line.text.endswith("\n") for line in own[:-1]):
                raise _malformed(
                    f"Hunk {number} has {'old' if side == '-' else 'new'} lines behind the one"
                    " that it says has no newline at the end of the file.",
                    number,
                )
        # Without old lines the number is that of the line before, which comes to the same here.
        return Hunk(start - 1 if removed else start, tuple(lines))

    def _goes_on(self, at: int) -> bool:
        """Whether this line, after the end of a hunk by its counts, is more of it."""
        if at >= len(self._lines):
            return False
        line = self._lines[at]
        return (
            line.startswith((" ", "+", "-", "\\"))
            and line.rstrip("\r") not in ("--", _SIGNATURE)
            and not _names_files(self._lines, at)
        )

    def _miscounted(self, number: int, first: int, removed: int, added: int) -> AntiphonError:
        at = first
        old = new = 0
        lines = self._lines
        while self._goes_on(at) or (at < len(lines) and not lines[at] and self._goes_on(at + 1)):
            mark = self._lines[at][:1] or " "
            old += mark in (" ", "-")
            new += mark in (" ", "+")
            at += 1
        return _malformed(
            f"Hunk {number} (line {first - 1} of the patch) says that it has {removed} old and"
            f" {added} new lines, but it has {old} and {new}: correct the numbers after the"
            " commas, or the lines.",
            number,
        )


def _names_files(lines: Sequence[str], at: int) -> bool:
    return [line[:4] for line in lines[at : at + 2]] == ["--- ", "+++ "]


def _name(header: str) -> str:
    return header[4:].split("\t", 1)[0].strip()


class HunkFailure(NamedTuple):
    """Why one hunk cannot be applied. Lines count from 0."""

    message: str
    hunk: int | None = None
    """Its number, counted from 0; None where the patch as a whole is at fault."""
    line: int | None = None
    """The line where it should have been."""
    expected: list[str] | None = None
    """Its kept and removed lines, the first twenty of them."""
    found: list[str] | None = None
    """The lines that the text has at that place instead."""
    places: list[int] | None = None
    """The first eight lines where it would fit, if that is more than one place."""

    def as_json(self) -> dict[str, Any]:
        return {name: value for name, value in self._asdict().items() if value is not None}


def plan_patch(text: str, patch: FilePatch) -> list[TextSplice]:
    """The splices that carry out `patch`: sorted, disjoint, without common ends.

    Each offset counts in the text as the earlier splices of the list have left it.

    Raises:
        AntiphonError: patch_failed; `errors` has one sentence for each hunk that failed, `hunks`
            the same as machine fields (see `HunkFailure`) for the first hundred.
    """
    if patch.creates and text:
        raise _malformed(
            "The patch creates the file, but the block has text: make it a patch of the text."
        )
    target = _Haystack(text)
    placed = _place(target, patch.hunks)
    pieces = [piece for hunk, offset in placed for piece in _pieces(hunk, offset)]
    if patch.deletes and sum(piece.end - piece.start for piece in pieces) != len(text):
        raise _malformed("The patch deletes the file, but the block has more text than it removes.")
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
        if not old.endswith("\n"):
            offset = len(self.text) - len(old)
            if self.fits(old, offset):
                yield offset
            return
        text = "\n" + self.text  # every line is behind a newline, and one further on
        offset = text.find("\n" + old)
        while offset >= 0:
            yield offset
            offset = text.find("\n" + old, offset + 1)

    def fits(self, old: str, offset: int) -> bool:
        """Return whether the lines from `offset` on are exactly `old`, which is not empty."""
        if offset < 0 or not self.text.startswith(old, offset):
            return False
        begins_line = offset == 0 or self.text[offset - 1] == "\n"
        return begins_line and (old.endswith("\n") or offset + len(old) == len(self.text))


class _HunkMatcher:
    """The lines that a hunk needs at its place, and their number."""

    def __init__(self, number: int, hunk: Hunk) -> None:
        marks = "".join(line.mark for line in hunk.lines)
        before, after = len(marks) - len(marks.lstrip(" ")), len(marks) - len(marks.rstrip(" "))
        self.number = number
        self.hunk = hunk
        self.start = max(hunk.start, 0)
        """The line where it says that it is, or the first one."""
        self.old = "".join(hunk.old)
        self.unfinished = not all(line.text.endswith("\n") for line in hunk.lines)
        """Whether one of its lines has no newline, so that it can be nowhere but at the end."""
        self.at_start = hunk.start <= 0 and (before < after or before == 0)
        self.at_end = self.unfinished or after == 0 < before

    def allows(self, target: _Haystack, offset: int) -> bool:
        """Return whether a matching place is at the start or end of the text if it must be."""
        ends = offset + len(self.old) == len(target.text)
        return (ends or not self.at_end) and (offset == 0 or not self.at_start)

    def failure(self, why: str, line: int | None = None, **fields: Any) -> HunkFailure:
        """Return why it cannot be applied; `line`: where it should have been, if not at `start`."""
        at = self.start if line is None else line
        expected = self.hunk.old[:_LINES_SHOWN]
        return HunkFailure(f"Hunk {self.number}{why}", self.number, at, expected, **fields)


def _place(target: _Haystack, hunks: Sequence[Hunk]) -> list[tuple[Hunk, int]]:
    """Yield each hunk with the offset where it belongs; raises AntiphonError patch_failed."""
    wanted = [_HunkMatcher(number, hunk) for number, hunk in enumerate(hunks)]
    places: list[int | None] | list[int | HunkFailure] = [_stated_place(target, o) for o in wanted]
    if None in places:
        places = [_only_place(target, one) for one in wanted]
    failures = [found for found in places if isinstance(found, HunkFailure)]
    if failures:
        raise _failed(failures)
    placed: list[tuple[Hunk, int]] = []
    end = 0
    for one, offset in zip(wanted, places, strict=True):
        assert isinstance(offset, int)
        if placed and offset < end:
            line = target.text.count("\n", 0, offset)
            why = (
                f" belongs at line {line}, which is above or inside the hunk before it: put the"
                " hunks in the order of the text and join those that share lines."
            )
            failures.append(one.failure(why, line))
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
    if wanted.allows(target, offset):
        return offset
    if wanted.unfinished or not target.may_search():
        return None
    return offset if len(list(islice(target.places(wanted.old), 2))) == 1 else None


def _only_place(target: _Haystack, wanted: _HunkMatcher) -> int | HunkFailure:
    """The one offset in the whole text where the hunk belongs, or why there is none."""
    if not wanted.old:
        if not target.text:
            return 0
        return wanted.failure(
            " has neither kept nor removed lines, so nothing says where in the text it belongs:"
            " make the patch with lines of context."
        )
    if not target.may_search():
        return HunkFailure(
            f"Hunk {wanted.number} may be elsewhere than at line {wanted.start}; the patch has too"
            " many hunks for so long a text to look for each: make the patch of this text.",
            wanted.number,
            wanted.start,
        )
    allowed = (one for one in target.places(wanted.old) if wanted.allows(target, one))
    places = list(islice(allowed, _PLACES_NAMED + 1))
    if len(places) == 1:
        return places[0]
    if not places:
        may_be_elsewhere = wanted.at_start or wanted.at_end
        elsewhere = may_be_elsewhere and next(target.places(wanted.old), None) is not None
        return _mismatch(target, wanted, elsewhere)
    lines = [target.text.count("\n", 0, offset) for offset in places[:_PLACES_NAMED]]
    listed = ", ".join(map(str, lines)) + (" and more" if len(places) > _PLACES_NAMED else "")
    return wanted.failure(
        f" was made for another text than this and fits in several places (the lines {listed}):"
        " read the block again and give the hunk more context.",
        places=lines,
    )


def _mismatch(target: _Haystack, wanted: _HunkMatcher, elsewhere: bool) -> HunkFailure:
    start, old = wanted.start, wanted.hunk.old
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
    why = f": {problem}{where}. Read the block again and make the patch anew."
    return wanted.failure(why, found=found[:_LINES_SHOWN])


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


def _shown(line: str) -> str:
    """A line as an error quotes it; its end is shown, for that may be the difference."""
    return repr(line if len(line) <= 80 else line[:60] + "..." + line[-17:])


def _malformed(message: str, hunk: int | None = None) -> AntiphonError:
    return _failed([HunkFailure(message, hunk)])


def _failed(failures: Sequence[HunkFailure]) -> AntiphonError:
    rest = f" ({len(failures) - 1} more failed.)" if len(failures) > 1 else ""
    return AntiphonError(
        ErrorCode.PATCH_FAILED,
        f"The patch was not applied. {failures[0].message}{rest}",
        errors=[one.message for one in failures],
        hunks=[one.as_json() for one in failures[:_HUNKS_DETAILED]],
    )


def unified_diff(before: str, after: str, path: str) -> str:
    """Return the difference between two texts, with three lines around each change."""
    old, new = LINE.findall(before), LINE.findall(after)
    changes = changed_ranges(old, new)
    if not changes:
        return ""
    shown = [f"--- a/{path}\n", f"+++ b/{path}\n"]
    while changes:
        group = [changes.pop(0)]
        while changes and changes[0].start - group[-1].end <= 2 * _AROUND:
            group.append(changes.pop(0))
        above = min(_AROUND, group[0].start)
        start, new_start = group[0].start - above, group[0].new_start - above
        below = min(_AROUND, len(old) - group[-1].end)
        count, new_count = group[-1].end + below - start, group[-1].new_end + below - new_start
        shown.append(f"@@ -{_span(start, count)} +{_span(new_start, new_count)} @@\n")
        at = start
        for one in group:
            shown += [f" {line}" for line in old[at : one.start]]
            shown += [f"-{line}" for line in old[one.start : one.end]]
            shown += [f"+{line}" for line in new[one.new_start : one.new_end]]
            at = one.end
        shown += [f" {line}" for line in old[at : at + below]]
    return "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in shown
    )


def _span(start: int, count: int) -> str:
    """The lines of a hunk as its header says them: counted from 1, from 0 if there are none."""
    return f"{start + (count > 0)},{count}"
