"""The scroll bar as a map: who wrote what, what is new, what was found, and where everybody is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from rich.console import Console, ConsoleOptions, RenderResult
from rich.segment import Segment, Segments
from rich.style import Style
from textual.scrollbar import ScrollBarRender

from antiphon.render.cell_theme import CellTheme
from antiphon.widgets.block_list.cell_model import CellModel
from antiphon.widgets.block_list.height_index import (
    HeightIndex,
)
from antiphon.widgets.block_list.text_finder import Hit
from antiphon.widgets.block_list.viewport import LineRef

MAP_SECONDS: Final = 0.25
"""The map follows what changes no more often than this."""

AUTHOR: Final = "▏"
UNREAD: Final = "▪"
HIT: Final = "━"
PERSON: Final = "●"

_DIGITS: Final = 3

_MOST_UNREAD: Final = 500
"""Cells with something new that are marked at most."""


class ScrollMap:
    """Marks for each row of a scroll bar; computing them costs its rows, not the document's."""

    def __init__(self, source: CellModel, heights: HeightIndex) -> None:
        self._source = source
        self._heights = heights
        self._hits: tuple[tuple[object, ...], frozenset[int]] = ((), frozenset())
        """Rows with hits, and what they were computed from."""
        self.marks: Mapping[int, Segment] = {}
        """The sign in each row of the bar that has one."""

    def update(
        self,
        rows: int,
        theme: CellTheme,
        *,
        unread: Sequence[str],
        start: LineRef | None,
        hits: Iterable[tuple[str, Sequence[Hit]]],
    ) -> bool:
        """Compute the marks of a bar of so many rows; whether they are others than before.

        New text below the view begins at `start`.
        """
        before, self.marks = self.marks, {}
        if rows and self._heights.total > rows:
            marks = self._authors(rows, theme)
            new = Style(color=theme.map_unread.color)
            marks |= {row: Segment(UNREAD, new) for row in self._unread(rows, unread, start)}
            found = Style(color=theme.map_hit.color)
            marks |= {row: Segment(HIT, found) for row in self._found(rows, list(hits))}
            self.marks = marks | self._people(rows, theme)
        return self.marks != before

    def _row(self, block: str, share: float, rows: int) -> int | None:
        if block not in self._heights or self._source.is_hidden(block):
            return None
        line = self._heights.prefix(block) + share * self._heights[block]
        return min(int(line * rows / self._heights.total), rows - 1)

    def _authors(self, rows: int, theme: CellTheme) -> dict[int, Segment]:
        marks = {}
        for row in range(rows):
            found = self._heights.find(int((row + 0.5) * self._heights.total / rows))
            if found is not None:
                _, colour = self._source.name(self._source.header(found[0]).author)
                marks[row] = Segment(AUTHOR, Style(color=theme.author(colour).color))
        return marks

    def _unread(self, rows: int, unread: Sequence[str], start: LineRef | None) -> Iterator[int]:
        places = [(block, 0.0) for block in unread[:_MOST_UNREAD]]
        if start is not None and start.block in self._heights:
            places.append((start.block, start.line / max(1, self._heights[start.block])))
        for block, share in places:
            row = self._row(block, min(share, 1.0), rows)
            if row is not None:
                yield row

    def _found(self, rows: int, hits: Sequence[tuple[str, Sequence[Hit]]]) -> frozenset[int]:
        # The rows of many hits are the same as long as the document has not grown by much.
        key = (rows, self._heights.total // rows, sum(len(in_cell) for _, in_cell in hits))
        if self._hits[0] != key:
            found: set[int | None] = set()
            for block, in_cell in hits:
                length = max(1, self._source.document.length(block))
                # How far down in the cell they are, as exactly as a bar can show.
                shares = {min(1.0, round(hit.start / length, _DIGITS)) for hit in in_cell}
                found.update(self._row(block, share, rows) for share in shares)
            self._hits = (key, frozenset(row for row in found if row is not None))
        return self._hits[1]

    def _people(self, rows: int, theme: CellTheme) -> dict[int, Segment]:
        marks = {}
        for block, offset, colour in self._source.cursors.places():
            length = self._source.document.length(block) if block in self._source.document else 0
            row = self._row(block, min(1.0, offset / length) if length else 0.0, rows)
            if row is not None:
                marks[row] = Segment(PERSON, Style(color=theme.author(colour).color))
        return marks


class MapRender(ScrollBarRender):
    """A scroll bar with the marks of a map on it."""

    def __init__(self, scroll_map: ScrollMap, **options: Any) -> None:
        super().__init__(**options)
        self._map = scroll_map

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for bar in super().__rich_console__(console, options):
            if isinstance(bar, Segments):
                yield Segments(list(self._marked(bar.segments)), new_lines=bar.new_lines)

    def _marked(self, segments: Iterable[Segment]) -> Iterator[Segment]:
        for row, segment in enumerate(segments):
            mark, own = self._map.marks.get(row), segment.style
            if mark is None or mark.style is None or own is None:
                yield segment
            else:
                ground = own.color if own.reverse else own.bgcolor
                style = Style(color=mark.style.color, bgcolor=ground, meta=own.meta)
                yield Segment(mark.text, style)
