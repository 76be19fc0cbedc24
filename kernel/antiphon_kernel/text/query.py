"""Interface of search queries: the lines that may match, and the matches in them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
