"""The rows of the editor that are seen, and which of them look different than before."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.segment import Segment
from rich.style import Style
from textual.document._document import Location
from textual.strip import Strip

from antiphon.render.cell_theme import CellTheme
from antiphon.widgets.editor.overlays import (
    CursorLabel,
    RemoteCursor,
    StyleSpan,
    first_overflowing,
    styled,
    tagged,
)
from antiphon.widgets.editor.wrapped_document import CellWrappedDocument

if TYPE_CHECKING:
    from textual.widgets import TextArea

_REMEMBERED = 512


class RowCache:
    """Draws rows, and keeps those drawn to know what changed."""

    _theme: CellTheme

    def __init__(self) -> None:
        self._drawn: dict[tuple[object, ...], Strip] = {}
        self._strips: list[Strip] = []
        self._changed: list[int] = []
        self.top = 0
        self.beside: tuple[tuple[int, CursorLabel], ...] = ()
        """Rows whose text leaves no room for a name, and the cursor there; from the top down."""

    @property
    def count(self) -> int:
        return len(self._strips)

    def strip(self, y: int) -> Strip | None:
        return self._strips[y] if 0 <= y < len(self._strips) else None

    def pop_changed(self) -> list[int]:
        """Rows on screen that `layout` drew differently since this was asked last."""
        changed, self._changed = self._changed, []
        return changed

    def layout(
        self,
        area: TextArea,
        theme: CellTheme,
        top: int,
        count: int,
        width: int,
        others: Sequence[RemoteCursor],
        names_beside_from: int,
    ) -> bool:
        """Show the rows from `top` on; True if one looks different.

        From row `names_beside_from` on, a name for which there is no room stands in `beside`.
        """
        wrap = area.wrapped_document
        assert isinstance(wrap, CellWrappedDocument)
        if self._drawn and theme is not self._theme:
            self._drawn.clear()
        self._theme = theme
        self.top = top
        low, high = sorted(area.selection)
        cursor = area.selection.end if area.has_focus else None
        places = [
            (
                other,
                wrap.document.location_of(other.offset),
                None if other.anchor is None else wrap.document.location_of(other.anchor),
            )
            for other in others
        ]
        strips: list[Strip] = []
        beside: list[tuple[int, CursorLabel]] = []
        for row in range(top, min(top + count, wrap.height)):
            line, section = wrap.section_at(row)
            span = _CachedSpan(wrap, line, section)
            marks, tags = self._others(span, places, width)
            marks += span.marks(low, high, self._theme.own_selection)
            own = None
            if cursor is not None and span.holds(cursor):
                own = min(span.column(cursor), width - 1)
            shown, elsewhere = _shown(span.text, own, self._theme.text), None
            if tags and row >= names_beside_from:
                elsewhere = first_overflowing(shown, tags, width)
            if elsewhere is not None:
                beside.append((row, elsewhere))
            strips.append(self._row(shown, tuple(marks), tuple(tags), own, width, elsewhere))
        self.beside = tuple(beside)
        before, self._strips = self._strips, strips
        for y in range(max(len(before), len(strips))):
            if y >= len(before) or y >= len(strips) or before[y] is not strips[y]:
                self._changed.append(y)
        return bool(self._changed)

    def _others(
        self,
        span: _CachedSpan,
        places: Sequence[tuple[RemoteCursor, Location, Location | None]],
        width: int,
    ) -> tuple[list[StyleSpan], list[CursorLabel]]:
        """What others have selected in a row, and their cursors in it.

        Args:
            places: of each cursor, and of the other end of what it has selected.
        """
        marks: list[StyleSpan] = []
        tags: list[CursorLabel] = []
        for other, place, anchor in places:
            if anchor is not None:
                style = self._theme.selections[other.colour % len(self._theme.selections)]
                marks += span.marks(min(place, anchor), max(place, anchor), style)
            if span.holds(place):
                slot = other.colour % len(self._theme.cursors)
                tags.append(
                    CursorLabel(
                        min(span.column(place), width - 1),
                        other.username,
                        self._theme.cursors[slot],
                        self._theme.authors[slot],
                    )
                )
        return marks, tags

    def _row(
        self,
        line: Strip,
        marks: tuple[StyleSpan, ...],
        tags: tuple[CursorLabel, ...],
        own: int | None,
        width: int,
        elsewhere: CursorLabel | None,
    ) -> Strip:
        key = (line.text, marks, tags, own, width, elsewhere)
        drawn = self._drawn.get(key)
        if drawn is None:
            if len(self._drawn) >= _REMEMBERED:
                self._drawn.clear()
            strip = tagged(styled(line, marks), tags, width, named_elsewhere=elsewhere)
            if own is not None:
                strip = styled(strip, [StyleSpan(own, own + 1, self._theme.own_cursor)])
            strip = strip.adjust_cell_length(width).apply_style(self._theme.background)
            drawn = self._drawn[key] = strip
        return drawn


def _shown(text: str, own: int | None, style: Style) -> Strip:
    """The text of a row, as long as one's own cursor needs it."""
    strip = Strip([Segment(text, style)]) if text else Strip([])
    if own is not None and own >= strip.cell_length:
        strip = strip.extend_cell_length(own + 1)
    return strip


class _CachedSpan:
    """The part of a line that one row shows."""

    def __init__(self, wrap: CellWrappedDocument, line: int, section: int) -> None:
        self._line = line
        self._start, self._end = wrap.section_span(line, section)
        self._is_last = self._end == len(wrap.document[line])
        self._cells = wrap.cells(line, section)
        self.text = self._cells.shown

    def holds(self, place: Location) -> bool:
        line, column = place
        if line != self._line or column < self._start:
            return False
        return column < self._end or (self._is_last and column == self._end)

    def column(self, place: Location) -> int:
        """Screen column of a place in this row."""
        return self._cells.left(place[1] - self._start)

    def marks(self, low: Location, high: Location, style: Style) -> Iterator[StyleSpan]:
        """The part of a selection that is in this row."""
        start = max(low, (self._line, self._start))
        end = min(high, (self._line, self._end))
        if start < end:
            yield StyleSpan(self.column(start), self.column(end), style)
