"""The rows of the editor that are seen, and which of them look different than before."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from rich.segment import Segment
from rich.style import Style
from textual.document._document import Location
from textual.geometry import Offset
from textual.strip import Strip

from antiphon.render.cell_theme import CellTheme
from antiphon.render.markdown_source import MarkdownSource, SourceSpan
from antiphon.widgets.editor.cell_document import FOLDED
from antiphon.widgets.editor.overlays import (
    CursorLabel,
    InkRange,
    LabelledLine,
    RemoteCursor,
    StyleSpan,
    flagged,
    ink_style,
    labelled,
    styled,
)
from antiphon.widgets.editor.wrapped_document import CellWrappedDocument

if TYPE_CHECKING:
    from textual.widgets import TextArea

_REMEMBERED = 512

_SELECTED_CURSOR = Style(underline=True)
"""Tells the cursor on a selected character from one without a selection."""


class RowCache:
    """Draws rows, and keeps those drawn to know what changed."""

    _theme: CellTheme
    _ground: Style

    def __init__(self) -> None:
        self._drawn: dict[tuple[object, ...], LabelledLine] = {}
        self._strips: list[Strip] = []
        self._changed: list[int] = []
        self.top = 0
        self.flags_above: tuple[CursorLabel, ...] = ()
        """Names that have no room in the first row and stand in the one above the editor."""

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
        hits: Sequence[tuple[int, int]] = (),
        ink: Sequence[InkRange] = (),
        *,
        source: MarkdownSource | None = None,
        ground: Style,
        has_row_above: bool,
    ) -> bool:
        """Show the rows from `top` on; True if one looks different.

        Args:
            hits: ranges to mark, in order, in code points.
            source: tells the styles of the lines; without one they have none.
            has_row_above: whether somebody else shows `flags_above`.
        """
        wrap = area.wrapped_document
        assert isinstance(wrap, CellWrappedDocument)
        if self._drawn and theme is not self._theme:
            self._drawn.clear()
        self._theme, self._ground = theme, ground
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
        fresh = [
            (
                wrap.document.location_of(one.start),
                wrap.document.location_of(one.end),
                ink_style(one, theme),
            )
            for one in (ink if theme.ink else ())
        ]
        lines: list[LabelledLine] = []
        own_place = None
        for row in range(top, min(top + count, wrap.height)):
            line, section = wrap.section_at(row)
            span = _CachedSpan(wrap, line, section)
            marks = [mark for new in fresh for mark in span.marks(*new)]
            selected, tags = self._others(span, places, width)
            marks = [*marks, *self._hits(span, wrap, hits), *selected]
            marks += span.marks(low, high, self._theme.own_selection)
            least = 0
            if span.holds_line_end(low, high):
                least = min(span.column(span.ends[1]), width - 1) + 1
                marks.append(StyleSpan(least - 1, least, self._theme.own_selection))
            own = None
            if cursor is not None and span.holds(cursor):
                own = min(span.column(cursor), width - 1)
                own_place = Offset(own, row - top)
                least = max(least, own + 1)
                if cursor == low < high:
                    marks.append(StyleSpan(own, own + 1, _SELECTED_CURSOR))
            folds = FOLDED.finditer(wrap.document[line]) if wrap.document.labels else ()
            styles = tuple(SourceSpan(*fold.span(), theme.fold) for fold in folds)
            if not styles and source is not None:
                styles = source.spans(line, theme)
            shown = _shown(span.text, least, theme.text, span.styles(styles))
            lines.append(self._row(shown, tuple(marks), tuple(tags), own, width))
        self.flags_above = lines[0].flags if lines and has_row_above else ()
        strips = self._with_flags(lines, width, own_place)
        before, self._strips = self._strips, strips
        for y in range(max(len(before), len(strips))):
            drawn = before[y] if y < len(before) else None
            if y >= len(strips) or (drawn is not strips[y] and drawn != strips[y]):
                self._changed.append(y)
        return bool(self._changed)

    def _hits(
        self, span: _CachedSpan, wrap: CellWrappedDocument, hits: Sequence[tuple[int, int]]
    ) -> Iterator[StyleSpan]:
        """Yield the parts of ranges that are in a row."""
        if not hits:
            return
        low, high = (wrap.document.offset_of(place) for place in span.ends)
        for at in range(bisect_right(hits, low, key=lambda hit: hit[1]), len(hits)):
            start, end = hits[at]
            if start >= high:
                return
            low_place, high_place = wrap.document.location_of(start), wrap.document.location_of(end)
            yield from span.marks(low_place, high_place, self._theme.hit)

    def _others(
        self,
        span: _CachedSpan,
        places: Sequence[tuple[RemoteCursor, Location, Location | None]],
        width: int,
    ) -> tuple[list[StyleSpan], list[CursorLabel]]:
        """Return what others have selected in a row, and their cursors in it."""
        marks: list[StyleSpan] = []
        tags: list[CursorLabel] = []
        for other, place, anchor in places:
            if anchor is not None:
                style = self._theme.selections[other.colour % len(self._theme.selections)]
                marks += span.marks(min(place, anchor), max(place, anchor), style)
            if span.holds(place):
                column = min(span.column(place), width - 1)
                tags.append(CursorLabel.of(other, column, self._theme))
        return marks, tags

    def _row(
        self,
        line: Strip,
        marks: tuple[StyleSpan, ...],
        tags: tuple[CursorLabel, ...],
        own: int | None,
        width: int,
    ) -> LabelledLine:
        key = (tuple(line), marks, tags, own, width)
        drawn = self._drawn.get(key)
        if drawn is None:
            if len(self._drawn) >= _REMEMBERED:
                self._drawn.clear()
            taken = 0 if own is None else own + 1
            strip, flags = labelled(styled(line, marks), tags, width, taken=taken)
            if own is not None:
                strip = styled(strip, [StyleSpan(own, own + 1, self._theme.own_cursor)])
            strip = strip.adjust_cell_length(width).apply_style(self._ground)
            drawn = self._drawn[key] = LabelledLine(strip, flags)
        return drawn

    def _with_flags(
        self, lines: Sequence[LabelledLine], width: int, own: Offset | None
    ) -> list[Strip]:
        """Write flags over the rows above theirs, else below.

        They go over the row of the person's `own` cursor, or over their own, only if there is no
        other, and never over that cursor. Those of the first row are somebody else's to show, if
        `flags_above` has them.
        """
        strips = [line.strip for line in lines]
        flags: dict[int, tuple[CursorLabel, ...]] = {}
        for y, line in enumerate(lines):
            if not line.flags or (not y and self.flags_above):
                continue
            last = len(lines) - 1
            is_above = y and (own is None or y - 1 != own.y or y == last)
            row = y - 1 if is_above else min(y + 1, last)
            flags[row] = (*flags.get(row, ()), *line.flags)
        for row, names in flags.items():
            drawn = flagged(strips[row], names, width)
            if own is None or row != own.y or _is_same(drawn, strips[row], own.x):
                strips[row] = drawn
        return strips


def _is_same(strip: Strip, other: Strip, column: int) -> bool:
    return strip.crop(column, column + 1) == other.crop(column, column + 1)


def _shown(text: str, least: int, style: Style, parts: Iterable[tuple[int, int, Style]]) -> Strip:
    """Return a row of `least` columns or more; `parts` have a style on top of `style`."""
    segments: list[Segment] = []
    at = 0
    for start, end, own_style in parts:
        segments += [Segment(text[at:start], style), Segment(text[start:end], style + own_style)]
        at = end
    segments.append(Segment(text[at:], style))
    strip = Strip([one for one in segments if one.text])
    return strip.extend_cell_length(least) if least else strip


class _CachedSpan:
    """The part of a line that one row shows."""

    def __init__(self, wrap: CellWrappedDocument, line: int, section: int) -> None:
        self._line = line
        self._start, self._end = wrap.section_span(line, section)
        self._is_last = self._end == len(wrap.document[line])
        self._cells = wrap.cells(line, section)
        self.text = self._cells.shown

    @property
    def ends(self) -> tuple[Location, Location]:
        """The first place of the row and the one behind its last."""
        return (self._line, self._start), (self._line, self._end)

    def holds(self, place: Location) -> bool:
        line, column = place
        if line != self._line or column < self._start:
            return False
        return column < self._end or (self._is_last and column == self._end)

    def holds_line_end(self, low: Location, high: Location) -> bool:
        """Return whether a range has the end of the line in it, and this row too."""
        return self._is_last and low <= self.ends[1] < high

    def column(self, place: Location) -> int:
        return self._cells.left(place[1] - self._start)

    def styles(self, spans: Sequence[SourceSpan]) -> Iterator[tuple[int, int, Style]]:
        """Yield the parts of the row's text that have a style of their own."""
        for at in range(bisect_right(spans, self._start, key=lambda one: one.end), len(spans)):
            start, end, style = spans[at]
            if start >= self._end:
                return
            low = self._cells.start(max(start, self._start) - self._start)
            high = self._cells.start(min(end, self._end) - self._start)
            yield low, high, style

    def marks(self, low: Location, high: Location, style: Style) -> Iterator[StyleSpan]:
        """The part of a selection that is in this row."""
        start = max(low, (self._line, self._start))
        end = min(high, (self._line, self._end))
        if start < end:
            yield StyleSpan(self.column(start), self.column(end), style)
