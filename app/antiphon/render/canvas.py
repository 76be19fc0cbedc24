"""Canvas for block Markdown: rows prefixed by the bullets and bars of the enclosing blocks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from rich.style import Style

from antiphon.render.lines import RenderedLine
from antiphon.render.wrap import WrapPiece, compose, wrap


@dataclass(slots=True)
class _Prefix:
    """The pieces before each row: `first` once, then `rest`, of one width."""

    first: Sequence[WrapPiece]
    rest: Sequence[WrapPiece]
    width: int
    used: bool = False


_NARROWEST: Final = 8
"""Columns that are left for text, however deep it is nested: further prefixes are left out."""


class Canvas:
    """Collects lines of at most `width` columns; code and tables may be up to `wide`."""

    def __init__(self, width: int, wide: int | None = None) -> None:
        self.lines: list[RenderedLine] = []
        self._width = width
        self._wide = width if wide is None else wide
        self._prefixes: list[_Prefix] = []

    @property
    def room(self) -> int:
        """Columns left for a row's own text."""
        return self._width - sum(prefix.width for prefix in self._prefixes)

    @property
    def wide_room(self) -> int:
        """Columns left for a row of code or of a table."""
        return self._wide - sum(prefix.width for prefix in self._prefixes)

    @contextmanager
    def behind(
        self, first: Sequence[WrapPiece], rest: Sequence[WrapPiece], width: int
    ) -> Iterator[None]:
        """Rows drawn inside stand behind `first` (the first of them) or `rest`."""
        prefix = _Prefix(first, rest, width)
        if self.room - width < _NARROWEST:
            prefix = _Prefix((), (), 0)
        self._prefixes.append(prefix)
        yield
        if not prefix.used:
            self.row([])
        self._prefixes.pop()

    def row(self, pieces: Sequence[WrapPiece], fill: Style | None = None) -> None:
        """One row that fits; `fill` colours it up to the right edge."""
        before: list[WrapPiece] = []
        for prefix in self._prefixes:
            before.extend(prefix.rest if prefix.used else prefix.first)
            prefix.used = True
        line = compose([*before, *pieces])
        if fill is not None and (missing := self._wide - line.strip.cell_length) > 0:
            line = compose([*before, *pieces, WrapPiece(" " * missing, fill)])
        self.lines.append(line)

    def text(self, pieces: Sequence[WrapPiece]) -> None:
        """Rows of wrapped text."""
        for row in wrap(pieces, self.room):
            self.row(row)
