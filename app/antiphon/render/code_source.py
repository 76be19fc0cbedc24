"""Code that fills a page: drawn on the ground of the page, and its lines while they are edited.

Pygments reads a part of the code at a time, from a line at which reading can begin: only what is
looked at is coloured, whatever the length of the file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Final

from rich.style import Style

from antiphon.render.cell_theme import CellTheme
from antiphon.render.display import SourceLines
from antiphon.render.lines import SEGMENT, RenderedCell, SegmentStart, StyleSpan
from antiphon.render.text_lines import (
    PlainCutter,
    PlainLook,
    code_pieces,
    highlighted_lines,
    on_ground,
)
from antiphon.render.wrap import compose, wrap

_BEGINNING: Final = re.compile(r"\n\n(?=\S)")
"""The end of a part of code, before a line at which reading can begin."""

_BACK: Final = 100
"""Lines above one in which such a line is looked for."""

_AHEAD: Final = 40
"""Lines that are read together with one."""

_REMEMBERED: Final = 2_000
"""Lines whose styles are kept."""

_LONGEST: Final = 2_000
"""Code points of a line beyond which nothing around it is coloured."""


class CodeCutter(PlainCutter):
    """Cuts code where it can be read afresh, if there is such a place soon."""

    def __init__(
        self,
        width: int,
        theme: CellTheme,
        language: str,
        draw: Callable[[str, str, int, CellTheme], RenderedCell],
        *,
        size: int = SEGMENT,
    ) -> None:
        """`draw` is given code, its language, the width and the theme."""
        look = PlainLook(width, theme.text)
        super().__init__(look, draw=lambda text: draw(text, language, width, theme), size=size)

    def next_start(self, text: str, start: SegmentStart) -> SegmentStart | None:
        least, most = start.offset + self._size, start.offset + 2 * self._size
        if found := _BEGINNING.search(text, least, most):
            return SegmentStart(found.end(), found.end() + 1, None)
        cut = super().next_start(text, start) if len(text) >= most else None
        return cut and cut._replace(witness=max(cut.witness, most))


def coloured(
    lines: Sequence[str], language: str, theme: CellTheme
) -> list[list[tuple[str, Style]]]:
    """Return lines of code in styled parts, for any ground; an empty last one is left out."""
    is_long = any(len(line) > _LONGEST for line in lines)
    found = highlighted_lines("\n".join(lines), "" if is_long else language, theme.code)
    return [[(text, on_ground(style)) for text, style in parts] for parts in found]


def part_spans(parts: Sequence[tuple[str, Style]]) -> tuple[StyleSpan, ...]:
    """Return the parts of a line by their columns."""
    ends = list(accumulate(len(text) for text, _ in parts))
    return tuple(
        StyleSpan(end - len(text), end, style)
        for end, (text, style) in zip(ends, parts, strict=True)
    )


def page_of_code(text: str, language: str, width: int, theme: CellTheme) -> RenderedCell:
    """Draw code in the rows in which an editor shows it."""
    source = SourceLines(text)
    rows = []
    lines = coloured(source.lines, language, theme)
    for parts, start in zip(lines, source.starts, strict=False):
        rows += wrap(code_pieces(parts, start, theme.text), width)
    return RenderedCell.of_lines(list(map(compose, rows)))


class CodeSource:
    """Styles of the lines of code that is edited."""

    def __init__(self, lines: Sequence[str], language: str) -> None:
        """`lines` may change; `replaced` has to be told of that."""
        self._lines = lines
        self.language = language
        self._styled: dict[int, tuple[StyleSpan, ...]] = {}
        self._theme: CellTheme | None = None

    def replaced(self, first: int, old_last: int, new_last: int) -> None:
        """Follow an edit of the lines `first` to `old_last`, which are up to `new_last` now."""
        self._styled = {at: spans for at, spans in self._styled.items() if at < first}

    def spans(self, line: int, theme: CellTheme) -> tuple[StyleSpan, ...]:
        """The styled parts of a line, in order and apart."""
        if theme is not self._theme or len(self._styled) > _REMEMBERED:
            self._theme = theme
            self._styled.clear()
        if line not in self._styled:
            first = self._beginning(line)
            lines = self._lines[first : line + _AHEAD]
            for at, parts in enumerate(coloured(lines, self.language, theme), first):
                self._styled[at] = part_spans(parts)
        return self._styled.get(line, ())

    def _beginning(self, line: int) -> int:
        """Return a line from which the code can be read, at or above one."""
        farthest = max(line - _BACK, 0)
        for at in range(line, farthest, -1):
            if not self._lines[at - 1] and self._lines[at][:1].strip():
                return at
        return farthest
