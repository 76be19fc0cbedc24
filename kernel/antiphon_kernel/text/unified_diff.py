r"""Reading a unified diff of one text, git's or anybody's: `parse_patch`.

A parser of our own, because the libraries there are lose what has to be exact: whatthepatch splits
lines at U+2028 and form feeds and drops ``\r``; unidiff skips whatever it does not recognise, a
hunk with a damaged header included, and so half a patch would be applied.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from antiphon_kernel.text.lines import split_lines
from antiphon_kernel.types.quoting import quote

_HUNK: Final = re.compile(
    r"@@ -([0-9]{1,10})(?:,([0-9]{1,10}))? \+([0-9]{1,10})(?:,([0-9]{1,10}))? @@(?: .*)?\r?"
)
_SHAPE: Final = "@@ -START,COUNT +START,COUNT @@"
_BINARY: Final = ("GIT binary patch", "Binary files ")
_SIGNATURE: Final = "-- "
"""The line that mail puts between the patch and the version of git."""


class MalformedPatch(Exception):
    """The patch cannot be read. `hunk` counts from 0; None where it is not about one hunk."""

    def __init__(self, hunk: int | None, message: str) -> None:
        super().__init__(message)
        self.hunk = hunk
        self.message = message


@dataclass(frozen=True, slots=True)
class HunkLine:
    r"""One line of a hunk: kept (" "), removed ("-") or added ("+").

    `text` ends in ``\n``, unless the patch says that there is no newline at the end of the file.
    """

    mark: str
    text: str


@dataclass(frozen=True, slots=True)
class Hunk:
    """One hunk. `start` is the line, counted from 0, where it says that its old lines are."""

    start: int
    lines: tuple[HunkLine, ...]

    @property
    def old(self) -> list[str]:
        """The kept and removed lines, which must be in the text."""
        return [line.text for line in self.lines if line.mark != "+"]


@dataclass(frozen=True, slots=True)
class Patch:
    """Changes of a patch to one text."""

    hunks: tuple[Hunk, ...]
    creates: bool = False
    """Its header says that there was nothing before."""
    deletes: bool = False
    """Its header says that nothing is left."""


def parse_patch(patch: str) -> Patch:
    r"""Read a patch of one text, with or without file headers.

    Text before the first header (a commit message) and mail's signature after the last hunk are
    skipped; anything else that is not understood is an error. ``\r`` before a newline belongs to
    the line.

    Raises:
        MalformedPatch: with what was expected and what was found.
    """
    return _Parser(patch).parse()


class _Parser:
    def __init__(self, patch: str) -> None:
        self._lines = split_lines(patch)
        self._at = 0
        self._hunks: list[Hunk] = []
        self._creates = False
        self._deletes = False

    def parse(self) -> Patch:
        recognised = self._header()
        while self._at < len(self._lines):
            line = self._lines[self._at]
            if line.startswith("@@"):
                self._hunks.append(self._hunk())
            elif line.rstrip("\r") in ("--", _SIGNATURE):
                self._refuse_another_file(self._at + 1)
                break
            elif not line.strip():
                self._at += 1
            else:
                self._refuse_another_file(self._at)
                raise MalformedPatch(
                    None,
                    f"Line {self._at} of the patch, {quote(line)}, is neither part of a hunk nor"
                    f" the header of one: expected {_SHAPE}.",
                )
        if not recognised and not self._hunks:
            raise MalformedPatch(
                None, f"The patch has no hunk: expected a unified diff with {_SHAPE}."
            )
        return Patch(tuple(self._hunks), self._creates, self._deletes)

    def _header(self) -> bool:
        """Read up to the first hunk; whether there was a git header, which may stand alone."""
        git = False
        names = 0
        while self._at < len(self._lines) and not self._lines[self._at].startswith("@@"):
            line = self._lines[self._at].rstrip("\r")
            if line.startswith("diff --git "):
                if git or names:
                    raise _several_files(self._at)
                git = True
            elif git and line.startswith("new file mode "):
                self._creates = True
            elif git and line.startswith("deleted file mode "):
                self._deletes = True
            elif line.startswith(_BINARY):
                raise MalformedPatch(
                    None, "The patch is of a binary file: only patches of text can be applied."
                )
            elif self._names_files(self._at):
                names += 1
                if names > 1:
                    raise _several_files(self._at)
                self._creates = self._creates or _is_nothing(line)
                self._at += 1
                self._deletes = self._deletes or _is_nothing(self._lines[self._at])
            self._at += 1
        return git

    def _names_files(self, at: int) -> bool:
        following = self._lines[at : at + 2]
        return (
            len(following) == 2
            and following[0].startswith("--- ")
            and following[1].startswith("+++ ")
        )

    def _refuse_another_file(self, start: int) -> None:
        for at in range(start, len(self._lines)):
            if self._lines[at].startswith("diff --git ") or self._names_files(at):
                raise _several_files(at)

    def _hunk(self) -> Hunk:
        number, header = len(self._hunks), self._lines[self._at]
        found = _HUNK.fullmatch(header)
        if found is None:
            raise MalformedPatch(
                number,
                f"Hunk {number} (line {self._at} of the patch) begins with {quote(header)}:"
                f" expected {_SHAPE}, with the numbers of lines.",
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
            old += mark in (" ", "-") and mark != ""
            new += mark in (" ", "+") and mark != ""
            if line is None or mark not in (" ", "-", "+") or old > removed or new > added:
                raise self._miscounted(number, first, removed, added)
            self._at += 1
            lines.append(HunkLine(mark, line[1:] + "\n"))
            if self._at < len(self._lines) and self._lines[self._at].startswith("\\ "):
                lines[-1] = HunkLine(mark, line[1:])
                self._at += 1
        if self._goes_on(self._at):
            raise self._miscounted(number, first, removed, added)
        self._check_ends(number, lines)
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
            and not self._names_files(at)
        )

    def _miscounted(self, number: int, first: int, removed: int, added: int) -> MalformedPatch:
        at = first
        old = new = 0
        while self._goes_on(at) or (at < len(self._lines) and self._is_blank_within(at)):
            mark = self._lines[at][:1] or " "
            old += mark in (" ", "-")
            new += mark in (" ", "+")
            at += 1
        return MalformedPatch(
            number,
            f"Hunk {number} (line {first - 1} of the patch) says that it has {removed} old and"
            f" {added} new lines, but it has {old} and {new}: correct the numbers after the"
            " commas, or the lines.",
        )

    def _is_blank_within(self, at: int) -> bool:
        return not self._lines[at] and self._goes_on(at + 1)

    def _check_ends(self, number: int, lines: Sequence[HunkLine]) -> None:
        """Nothing comes after the end of the file, on either side."""
        for side in "-+":
            own = [line for line in lines if line.mark in (" ", side)]
            if any(not line.text.endswith("\n") for line in own[:-1]):
                raise MalformedPatch(
                    number,
                    f"Hunk {number} has {'old' if side == '-' else 'new'} lines behind the one"
                    " that it says has no newline at the end of the file.",
                )


def _several_files(at: int) -> MalformedPatch:
    return MalformedPatch(
        None,
        f"The patch is of more than one file (the next one begins in its line {at}): a block is"
        " one text, so apply the part of each file to its block.",
    )


def _is_nothing(header: str) -> bool:
    return header[4:].split("\t", 1)[0].strip() == "/dev/null"
