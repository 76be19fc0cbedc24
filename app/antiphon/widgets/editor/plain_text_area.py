"""A text area that keeps a text exact and costs what is seen of it, not how long it is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.document._document import Location, Selection
from textual.geometry import Offset, Region
from textual.reactive import Reactive, reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widgets import TextArea

from antiphon.render.code_source import CodeSource
from antiphon.render.lines import StyleSpan, overlapping
from antiphon.render.markdown_source import MarkdownSource
from antiphon.textual_patches.screens import remove_watchers
from antiphon.widgets.editor.cell_document import (
    FOLDED,
    CellDocument,
    CellWrappedDocument,
    Replaced,
    WrappedNavigator,
)
from antiphon.widgets.editor.overlays import (
    CursorLabel,
    InkRange,
    LabelledLine,
    RemoteCursor,
    flagged,
    ink_style,
    labelled,
    styled,
)
from antiphon.widgets.themed import ThemedWidget
from antiphon_kernel.types.records import TextSplice


class PlainTextArea(TextArea, ThemedWidget):
    """Shows rows of its text, wrapped at a width that it is told; does not scroll by itself.

    Subclasses say with `_changed` what follows from a change of the text, its rows or the cursor.
    """

    DEFAULT_CSS = """
    PlainTextArea {
        border: none;
        padding: 0;
        background: transparent;
        overflow: hidden hidden;
        scrollbar-size: 0 0;
        &:focus { border: none; }
    }
    """

    selection: Reactive[Selection] = reactive(Selection(), init=False, repaint=False)
    """Cursor and other end; what they change on screen is drawn row by row."""

    document: CellDocument
    wrapped_document: CellWrappedDocument

    def __init__(self, text: str, *, is_markdown: bool = False, language: str = "") -> None:
        """With `is_markdown`, what is written looks like what it means; code has a `language`."""
        self.is_markdown = is_markdown
        self._code_language = language
        self.source: MarkdownSource | CodeSource | None = None
        """Tells the styles of the lines."""
        self.is_page = False
        """It fills the page, and stands on its ground."""
        self._text_columns = 0
        self.others: Sequence[RemoteCursor] = ()
        """Cursors of others in this block; whoever sets them carries them along."""
        self.hits: Callable[[], Sequence[tuple[int, int]]] = tuple
        """Returns the ranges to mark, in order, whenever rows are drawn."""
        self.ink: Sequence[InkRange] = ()
        """Text that others have just written in this block."""
        self.row_cache = RowCache(self)
        # Textual would wrap the text it is made with, in its own way.
        super().__init__("", tab_behavior="indent", highlight_cursor_line=False)
        self._set_document(text, None)
        self.set_reactive(TextArea.cursor_blink, False)
        self.set_reactive(TextArea.match_cursor_bracket, False)

    def on_unmount(self) -> None:
        remove_watchers(self.app, self)

    def _changed(self, *, by_person: bool) -> None:
        """The text, its rows or the cursor changed; `by_person`: it is to be seen at once."""
        raise NotImplementedError

    # What is asked and said

    @property
    def cursor_offset(self) -> int:
        """Own cursor in code points."""
        return self.document.offset_of(self.selection.end)

    @property
    def anchor_offset(self) -> int | None:
        """The other end of the selection, if there is one."""
        return None if self.selection.is_empty else self.document.offset_of(self.selection.start)

    @property
    def row_count(self) -> int:
        """Screen rows that the whole text takes."""
        return self.wrapped_document.height

    @property
    def cursor_row(self) -> int:
        """Row of the own cursor, counted from the first row of the text."""
        return self.wrapped_document.row_of(self.selection.end)

    def row_of(self, offset: int) -> int:
        return self.wrapped_document.row_of(self.document.location_of(offset))

    def offset_at_row(self, row: int) -> int:
        """First place of the text that a row shows."""
        return self.document.offset_of(self.wrapped_document.offset_to_location(Offset(0, row)))

    def set_text_width(self, width: int) -> None:
        """Wrap at so many columns; one more is needed for a cursor behind a full row."""
        if width != self._text_columns:
            self._text_columns = width
            self.wrapped_document.wrap(width, self.indent_width)
            if self.is_mounted:
                self._changed(by_person=False)

    def theme_changed(self) -> None:
        self._changed(by_person=True)

    def select(self, start: int, end: int) -> None:
        """Select a range of the text, and show it."""
        self.unfold(start, end)
        self._select([start, end])
        self._changed(by_person=True)

    # Folded ranges

    def fold(self, start: int, end: int, label: str) -> None:
        """Show a range of the text as a label, which the cursor passes like one character."""
        self._refold(self.document.fold(*folded, label) for folded in [(start, end)])

    def unfold(self, start: int, end: int) -> bool:
        """Show the folded ranges between two places, and at them; whether there are any."""
        folds = [one for one in self.document.folds if one.offset <= end and start <= one.end]
        if folds:
            # The last one first: those before it stay where they are.
            self._refold(self.document.unfold(one) for one in reversed(folds))
        return bool(folds)

    def _refold(self, changes: Iterator[Replaced]) -> None:
        """Change which parts of the text are shown, and leave the cursor where it is in it."""
        offsets = self._offsets()
        for done in changes:
            self._replaced(done)
        self._select(offsets)
        self._changed(by_person=True)

    async def _on_click(self, event: events.Click) -> None:
        """Show the folded range whose label is clicked."""
        line, column = place = self.get_target_document_location(event)
        if FOLDED.match(self.document[line], column):
            offset = self.document.offset_of(place)
            self.unfold(offset + 1, offset + 1)

    def show_rows(
        self, top: int, count: int, *, width: int = 0, has_row_above: bool = False
    ) -> None:
        """Show `count` rows from `top` on, and redraw those that look different than before.

        Args:
            width: columns of a row, if there are more than the text takes.
            has_row_above: whether somebody else shows `row_cache.flags_above`.
        """
        width = max(width, self._text_columns + 1)
        changed = self.row_cache.layout(top, count, width, has_row_above=has_row_above)
        if changed:
            self.refresh(*(Region(0, y, self.size.width or width, 1) for y in changed))

    def on_focus(self) -> None:
        # Only from now on there is a cursor to be drawn.
        self._changed(by_person=False)

    # The text, exactly

    def _set_document(self, text: str, language: str | None) -> None:
        self.document = CellDocument(text)
        if self.is_markdown:
            self.source = MarkdownSource(self.document.lines)
        elif self._code_language:
            self.source = CodeSource(self.document.lines, self._code_language)
        else:
            self.source = None
        self.wrapped_document = CellWrappedDocument(
            self.document, self._text_columns, self.indent_width
        )
        self.navigator = WrappedNavigator(self.wrapped_document)
        self.set_reactive(TextArea.selection, Selection())

    @property
    def wrap_width(self) -> int:
        return self._text_columns

    def _apply(self, splice: TextSplice) -> Replaced:
        done = self.document.splice(splice)
        self._replaced(done)
        return done

    def _replaced(self, done: Replaced) -> None:
        self.wrapped_document.wrap_range(*done)
        if self.source is not None:
            self.source.replaced(done.start[0], done.old_end[0], done.new_end[0])

    def _offsets(self) -> list[int]:
        return [self.document.offset_of(end) for end in self.selection]

    def _select(self, offsets: list[int]) -> None:
        start, end = (self.document.location_of(offset) for offset in offsets)
        self.selection = Selection(start, end)

    def scroll_cursor_visible(self, center: bool = False, animate: bool = False) -> Offset:
        return Offset()

    def _refresh_size(self) -> None:
        """The host gives the size."""

    def render_lines(self, crop: Region) -> list[Strip]:
        if self.has_focus:
            # The terminal's own cursor, where an input method opens its window, is over ours. A
            # layout that only moves the editor is no event for it, but draws it.
            self.app.cursor_position = self.cursor_screen_offset
        return ScrollView.render_lines(self, crop)

    def render_line(self, y: int) -> Strip:
        strips = self.row_cache.strips[y : y + 1]
        return strips[0] if strips else Strip.blank(self.size.width, self.ground_below)

    @property
    def ground_below(self) -> Style:
        """Foreground and background of what is below the last row."""
        return self.ground

    @property
    def ground(self) -> Style:
        """Foreground and background of the rows."""
        page = self.cell_theme.background
        return page if self.is_page else page + self.cell_theme.edit_surface

    @property
    def cursor_screen_offset(self) -> Offset:
        column, row = self.wrapped_document.location_to_offset(self.selection.end)
        left, top, _, _ = self.content_region
        return Offset(left + min(column, self._text_columns), top + row - self.row_cache.top)

    def get_target_document_location(self, event: events.MouseEvent) -> Location:
        return self.wrapped_document.offset_to_location(
            Offset(max(event.x, 0), max(event.y + self.row_cache.top, 0))
        )

    # Keys

    def _tab(self, *, backwards: bool) -> None:
        """Indent: the selected lines, or from the cursor to the next stop.

        By a tab where the first indented line begins with one, else by spaces.
        """
        starts = (one[0] for one in self.document.lines if one.startswith(("\t", "  ")))
        unit = "\t" if next(starts, " ") == "\t" else " " * self.indent_width
        (first, _), (last, last_column) = sorted(self.selection)
        if not backwards and first == last:
            left, _ = self.wrapped_document.location_to_offset(self.cursor_location)
            spaces = self.indent_width - left % self.indent_width
            self._replace_via_keyboard("\t" if unit == "\t" else " " * spaces, *self.selection)
            return
        if last > first and last_column == 0:
            last -= 1
        for line in range(first, last + 1):
            text = self.document[line]
            if backwards:
                spaces = min(len(text) - len(text.lstrip(" ")), self.indent_width)
                self.delete((line, 0), (line, 1 if text.startswith("\t") else spaces))
            elif text:
                self.insert(unit, (line, 0))

    def action_text_start(self) -> None:
        self._go(self.document.start)

    def action_text_end(self) -> None:
        self._go(self.document.end)

    def _go(self, place: Location) -> None:
        """Put the cursor there, and show it even if it is there already."""
        self.move_cursor(place)
        self._changed(by_person=True)

    def action_cursor_page_up(self) -> None:
        self._page(-1)

    def action_cursor_page_down(self) -> None:
        self._page(1)

    def _page(self, direction: int) -> None:
        rows = max(len(self.row_cache.strips) - 1, 1) * direction
        self.move_cursor(self.navigator.get_location_at_y_offset(self.cursor_location, rows))


_REMEMBERED = 512

_SELECTED_CURSOR = Style(underline=True)
"""Tells the cursor on a selected character from one without a selection."""


class RowCache:
    """Draws rows, and keeps those drawn to know what changed."""

    def __init__(self, area: PlainTextArea) -> None:
        self._area = area
        self.strips: list[Strip] = []
        self.top = 0
        self.sections: list[tuple[int, int]] = []
        """The line of each row, and which part of it the row shows."""
        self.flags_above: tuple[CursorLabel, ...] = ()
        """Names that have no room in the first row and stand in the one above the editor."""

    def layout(self, top: int, count: int, width: int, *, has_row_above: bool) -> list[int]:
        """Show the rows from `top` on; return those that look different on the screen."""
        area, theme = self._area, self._area.cell_theme
        wrap, self.top = area.wrapped_document, top
        low, high = sorted(area.selection)
        cursor = area.selection.end if area.has_focus else None
        at = wrap.document.location_of
        cursors = [(one, at(one.offset)) for one in area.others]
        fresh = [
            (at(one.start), at(one.end), ink_style(one, theme))
            for one in (area.ink if theme.ink else ())
        ]
        selections: list[tuple[Location, Location, Style]] = []
        for one, place in cursors:
            if one.anchor is not None:
                other, style = at(one.anchor), theme.selections[one.colour % len(theme.selections)]
                selections.append((min(place, other), max(place, other), style))
        selections.append((low, high, theme.own_selection))
        source = area.source
        lines: list[LabelledLine] = []
        own_place = None
        self.sections = [wrap.section_at(row) for row in range(top, min(top + count, wrap.height))]
        for row, (line, section) in enumerate(self.sections, top):
            span = _CachedSpan(wrap, line, section)
            marks = [mark for new in fresh for mark in span.marks(*new)]
            marks += self._hits(span, wrap.document)
            marks += [mark for one in selections for mark in span.marks(*one)]
            tags = [
                CursorLabel.of(one, min(span.column(place), width - 1), theme)
                for one, place in cursors
                if span.holds(place)
            ]
            least = 0
            if span.is_last and low <= span.ends[1] < high:
                least = min(span.column(span.ends[1]), width - 1) + 1
                marks.append(StyleSpan(least - 1, least, theme.own_selection))
            own = None
            if cursor is not None and span.holds(cursor):
                own = min(span.column(cursor), width - 1)
                own_place = Offset(own, row - top)
                least = max(least, own + 1)
                if cursor == low < high:
                    marks.append(StyleSpan(own, own + 1, _SELECTED_CURSOR))
            folds = FOLDED.finditer(wrap.document[line]) if wrap.document.labels else ()
            styles = tuple(StyleSpan(*fold.span(), theme.dim) for fold in folds)
            if not styles and source is not None:
                styles = source.spans(line, theme)
            shown = _shown(span.text, least, theme.text, span.styles(styles))
            made_of = tuple(shown), tuple(marks), tuple(tags)
            lines.append(_painted(*made_of, own, theme.own_cursor, width, area.ground))
        self.flags_above = lines[0].flags if lines and has_row_above else ()
        strips = self._with_flags(lines, width, own_place)
        before, self.strips = self.strips, strips
        return [
            y
            for y in range(max(len(before), len(strips)))
            if before[y : y + 1] != strips[y : y + 1]
        ]

    def _hits(self, span: _CachedSpan, document: CellDocument) -> Iterator[StyleSpan]:
        """Yield the parts of the ranges to mark that are in a row."""
        if not (hits := self._area.hits()):
            return
        for hit in overlapping(hits, *map(document.offset_of, span.ends)):
            start, end = map(document.location_of, hit)
            yield from span.marks(start, end, self._area.cell_theme.hit)

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
            at = own.x if own is not None and own.y == row else None
            if at is None or drawn.crop(at, at + 1) == strips[row].crop(at, at + 1):
                strips[row] = drawn
        return strips


@lru_cache(_REMEMBERED)
def _painted(
    content: tuple[Segment, ...],
    marks: tuple[StyleSpan, ...],
    labels: tuple[CursorLabel, ...],
    own: int | None,
    own_cursor: Style,
    width: int,
    ground: Style,
) -> LabelledLine:
    """Draw a row, with the person's cursor at the column `own`."""
    taken = 0 if own is None else own + 1
    strip, flags = labelled(styled(Strip(content), marks), labels, width, taken=taken)
    if own is not None:
        strip = styled(strip, [StyleSpan(own, own + 1, own_cursor)])
    return LabelledLine(strip.adjust_cell_length(width).apply_style(ground), flags)


def _shown(text: str, least: int, style: Style, parts: Iterable[StyleSpan]) -> Strip:
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
        self.is_last = self._end == len(wrap.document[line])
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
        return column < self._end or (self.is_last and column == self._end)

    def column(self, place: Location) -> int:
        return self._cells.lefts[place[1] - self._start]

    def styles(self, spans: Sequence[StyleSpan]) -> Iterator[StyleSpan]:
        """Yield the parts of the row's text that have a style of their own."""
        for start, end, style in overlapping(spans, self._start, self._end):
            low = self._cells.starts[max(start, self._start) - self._start]
            high = self._cells.starts[min(end, self._end) - self._start]
            yield StyleSpan(low, high, style)

    def marks(self, low: Location, high: Location, style: Style) -> Iterator[StyleSpan]:
        """The part of a selection that is in this row."""
        start = max(low, (self._line, self._start))
        end = min(high, (self._line, self._end))
        if start < end:
            yield StyleSpan(self.column(start), self.column(end), style)
