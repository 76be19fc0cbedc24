"""A text area that keeps a text exact and costs what is seen of it, not how long it is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from rich.style import Style
from textual import events
from textual.document._document import Location, Selection
from textual.geometry import Offset, Region
from textual.reactive import Reactive, reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widgets import TextArea

from antiphon.render.markdown_source import MarkdownSource
from antiphon.textual_patches.screens import remove_watchers
from antiphon.textual_patches.text_area import HostedTextArea
from antiphon.widgets.editor.cell_document import FOLDED, CellDocument, Replaced
from antiphon.widgets.editor.overlays import CursorLabel, InkRange, RemoteCursor
from antiphon.widgets.editor.row_cache import RowCache
from antiphon.widgets.editor.wrapped_document import CellWrappedDocument, WrappedNavigator
from antiphon.widgets.themed import ThemedWidget
from antiphon_kernel.types.records import TextSplice


class PlainTextArea(HostedTextArea, ThemedWidget):
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

    def __init__(self, text: str, *, is_markdown: bool = False) -> None:
        """With `is_markdown`, what is written looks like what it means."""
        self.is_markdown = is_markdown
        self._source: MarkdownSource | None = None
        self._text_columns = 0
        self.others: Sequence[RemoteCursor] = ()
        """Cursors of others in this block; whoever sets them carries them along."""
        self._hits: Callable[[], Sequence[tuple[int, int]]] = tuple
        self.ink: Sequence[InkRange] = ()
        """Text that others have just written in this block."""
        self._rows = RowCache()
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
                self._changed(by_person=True)

    def theme_changed(self) -> None:
        self._changed(by_person=True)

    def mark(self, hits: Callable[[], Sequence[tuple[int, int]]]) -> None:
        """Mark ranges of the text, in order, which are asked for whenever rows are drawn."""
        self._hits = hits

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

    @property
    def flags_above(self) -> tuple[CursorLabel, ...]:
        """Names of cursors in the first row shown that stand in the row above it."""
        return self._rows.flags_above

    def show_rows(
        self, top: int, count: int, *, width: int = 0, has_row_above: bool = False
    ) -> None:
        """Show `count` rows from `top` on, and redraw those that look different than before.

        Args:
            width: columns of a row, if there are more than the text takes.
            has_row_above: whether somebody else shows `flags_above`.
        """
        width = max(width, self._text_columns + 1)
        if self._rows.layout(
            self,
            self.cell_theme,
            top,
            count,
            width,
            self.others,
            self._hits(),
            self.ink,
            source=self._source,
            ground=self.ground,
            has_row_above=has_row_above,
        ):
            regions = [Region(0, y, self.size.width or width, 1) for y in self._rows.pop_changed()]
            self.refresh(*regions)
        self.place_terminal_cursor()

    def on_focus(self) -> None:
        # Only from now on there is a cursor to be drawn.
        self._changed(by_person=False)
        self.place_terminal_cursor()

    def on_resize(self) -> None:
        # The first layout comes after the focus.
        self.place_terminal_cursor()

    def place_terminal_cursor(self) -> None:
        """Put the terminal's own cursor, where an input method opens its window, over ours."""
        if self.has_focus:
            self.app.cursor_position = self.cursor_screen_offset

    # The text, exactly

    def _set_document(self, text: str, language: str | None) -> None:
        self.document = CellDocument(text)
        self._source = MarkdownSource(self.document.lines) if self.is_markdown else None
        self.wrapped_document = CellWrappedDocument(
            self.document, self._text_columns, self.indent_width
        )
        self.navigator = WrappedNavigator(self.wrapped_document)
        self.set_reactive(TextArea.selection, Selection())

    @property
    def wrap_width(self) -> int:
        return self._text_columns

    @property
    def text(self) -> str:
        return self.document.text

    @text.setter
    def text(self, value: str) -> None:
        self.replace(value, self.document.start, self.document.end)

    def load_text(self, text: str) -> None:
        self.text = text

    def _apply(self, splice: TextSplice) -> Replaced:
        done = self.document.splice(splice)
        self._replaced(done)
        return done

    def _replaced(self, done: Replaced) -> None:
        self.wrapped_document.wrap_range(*done)
        if self._source is not None:
            self._source.replaced(done.start[0], done.old_end[0], done.new_end[0])

    def _offsets(self) -> list[int]:
        return [self.document.offset_of(end) for end in self.selection]

    def _select(self, offsets: list[int]) -> None:
        start, end = (self.document.location_of(offset) for offset in offsets)
        self.selection = Selection(start, end)

    def _rewrap_and_refresh_virtual_size(self) -> None:
        self.wrapped_document.wrap(self._text_columns, self.indent_width)

    def render_lines(self, crop: Region) -> list[Strip]:
        return ScrollView.render_lines(self, crop)

    def render_line(self, y: int) -> Strip:
        return self._rows.strip(y) or Strip.blank(self.size.width, self.ground_below)

    @property
    def ground_below(self) -> Style:
        """Foreground and background of what is below the last row."""
        return self.ground

    @property
    def ground(self) -> Style:
        """Foreground and background of the rows."""
        return self.cell_theme.background + self.cell_theme.edit_surface

    @property
    def cursor_screen_offset(self) -> Offset:
        column, row = self.wrapped_document.location_to_offset(self.selection.end)
        left, top, _, _ = self.content_region
        return Offset(left + min(column, self._text_columns), top + row - self._rows.top)

    def get_target_document_location(self, event: events.MouseEvent) -> Location:
        return self.wrapped_document.offset_to_location(
            Offset(max(event.x, 0), max(event.y + self._rows.top, 0))
        )

    # Keys

    def _tab(self, *, backwards: bool) -> None:
        """Indent: the selected lines, or from the cursor to the next stop."""
        unit = _indent_unit(self.document.lines, self.indent_width)
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
                self.delete((line, 0), (line, len(text) - len(_dedented(text, self.indent_width))))
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
        rows = max(self._rows.count - 1, 1) * direction
        self.move_cursor(self.navigator.get_location_at_y_offset(self.cursor_location, rows))


def _indent_unit(lines: Iterable[str], width: int) -> str:
    """A tab where the first indented line begins with one, else `width` spaces."""
    for line in lines:
        if line.startswith("\t"):
            return "\t"
        if line.startswith("  "):
            break
    return " " * width


def _dedented(line: str, width: int) -> str:
    """The line with one step of indentation less."""
    if line.startswith("\t"):
        return line[1:]
    spaces = len(line) - len(line.lstrip(" "))
    return line[min(spaces, width) :]
