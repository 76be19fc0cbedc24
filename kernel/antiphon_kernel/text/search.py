r"""Searching a text: queries, and one entry per match, with the lines around it.

A match lies within one line, as with grep: `^` and `$` are the ends of a line, and nothing matches
a newline. That way a line number and two columns say where it is, and a pattern such as `\s*def`
does not begin on the blank line above.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from antiphon_kernel.types.errors import invalid_params


class Query(Protocol):
    """Something to look for. A match lies within one line."""

    @property
    def literals(self) -> Sequence[str]:
        """Strings that every matching line contains exactly; empty if none are known."""

    def lines(self, text: str) -> Iterator[tuple[int, int]]:
        """Start and end (without its newline) of each line that may match, in order."""

    def matches(self, line: str) -> Iterator[tuple[int, int]]:
        """Start and end of each match in a line, in order, not overlapping."""


class LiteralQuery:
    """Exactly these characters."""

    def __init__(self, wanted: str) -> None:
        """Raises AntiphonError invalid_params: nothing, or more than one line, is wanted."""
        check_one_line(wanted)
        self._wanted = wanted

    @property
    def literals(self) -> Sequence[str]:
        return (self._wanted,)

    def lines(self, text: str) -> Iterator[tuple[int, int]]:
        found = text.find(self._wanted)
        while found >= 0:
            start, end = text.rfind("\n", 0, found) + 1, line_end(text, found)
            yield start, end
            found = text.find(self._wanted, end)

    def matches(self, line: str) -> Iterator[tuple[int, int]]:
        found = line.find(self._wanted)
        while found >= 0:
            end = found + len(self._wanted)
            yield found, end
            found = line.find(self._wanted, end)


def check_one_line(wanted: str) -> None:
    """Raises AntiphonError invalid_params: nothing, or more than one line, is wanted."""
    if wanted and "\n" not in wanted:
        return
    found = "has a newline" if wanted else "is empty"
    raise invalid_params(
        f"The query {found}: a match lies within one line, so look for a part of one line.",
        field="query",
    )


def line_end(text: str, offset: int) -> int:
    """Return the end of the line of `offset`, without its newline."""
    end = text.find("\n", offset)
    return end if end >= 0 else len(text)


@dataclass(frozen=True, slots=True)
class Match:
    """Location of a match. Lines count from 0, columns are code points of the line."""

    line: int
    """Number of the line, from 0."""
    match_start: int
    """Column where the match starts, in code points from 0."""
    match_end: int
    """Column where it ends, exclusive."""
    content: str
    """The line, without its newline."""
    before: tuple[str, ...]
    """The lines above it."""
    after: tuple[str, ...]
    """The lines below it."""


@dataclass(frozen=True, slots=True)
class Found:
    """The first matches in a text."""

    matches: tuple[Match, ...]
    truncated: bool
    """Whether there are more than these."""
    size: int
    """Code points of all their lines together."""


def search_text(
    text: str, query: Query, *, max_matches: int, context_lines: int, max_size: int
) -> Found:
    """The first matches of `query` in `text`.

    Args:
        context_lines: how many lines to give above and below each match.
        max_size: stop when the lines to give have more code points than this together; the first
            match is always given.

    Raises:
        AntiphonError: regex_timeout.
    """
    matches: list[Match] = []
    size = 0
    for line, start, end, column, column_end in _hits(text, query):
        if len(matches) == max_matches:
            return Found(tuple(matches), True, size)
        before, after = _above(text, start, context_lines), _below(text, end, context_lines)
        match = Match(line, column, column_end, text[start:end], before, after)
        size += end - start + sum(map(len, before)) + sum(map(len, after))
        if size > max_size and matches:
            return Found(tuple(matches), True, size)
        matches.append(match)
    return Found(tuple(matches), False, size)


def _hits(text: str, query: Query) -> Iterator[tuple[int, int, int, int, int]]:
    """Line, its start and end, and the columns of each match."""
    line = counted = 0
    for start, end in query.lines(text):
        for column, column_end in query.matches(text[start:end]):
            line += text.count("\n", counted, start)
            counted = start
            yield line, start, end, column, column_end


def _above(text: str, start: int, count: int) -> tuple[str, ...]:
    """Up to `count` lines that end before `start`, which begins a line."""
    lines: list[str] = []
    while start > 0 and len(lines) < count:
        end = start - 1
        start = text.rfind("\n", 0, end) + 1
        lines.append(text[start:end])
    return tuple(reversed(lines))


def _below(text: str, end: int, count: int) -> tuple[str, ...]:
    """Up to `count` lines that begin after `end`, which ends a line."""
    lines: list[str] = []
    while end + 1 < len(text) and len(lines) < count:
        start = end + 1
        end = line_end(text, start)
        lines.append(text[start:end])
    return tuple(lines)
