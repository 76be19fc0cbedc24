"""A text area over one cell, bound to a block of a document."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import ClassVar, Literal, Protocol

from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.document._document import EditResult, Location, Selection
from textual.document._edit import Edit
from textual.geometry import Offset, Region, Size
from textual.message import Message
from textual.reactive import Reactive, reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widgets import TextArea

from antiphon.editor.cell_document import CellDocument, Replaced
from antiphon.editor.cell_wrap import CellNavigator, CellWrap
from antiphon.editor.editor_rows import EditorRows
from antiphon.editor.indent import dedented, indent_unit
from antiphon.editor.marks import RemoteCursor
from antiphon.render.cell_theme import CellTheme
from antiphon_kernel.document.changes import DocumentChange
from antiphon_kernel.document.document import Document
from antiphon_kernel.text.transform import shift_offset
from antiphon_kernel.types.records import TextSplice

ORIGIN = "editor"
"""The origin of every transaction that this editor makes."""


def is_text(typed: str) -> bool:
    """Whether what a key sends is text: all but C0, DEL and C1.

    `str.isprintable` is narrower: it leaves out spaces such as U+3000 and joiners such as U+200D.
    """
    return bool(typed) and all(unicodedata.category(character) != "Cc" for character in typed)


class EditorHost(Protocol):
    """Whoever places the editor and decides which of its rows are seen."""

    def editor_changed(self, editor: CellEditor, *, by_person: bool) -> None:
        """Its text, its rows or a cursor changed; `by_person`: draw it at once."""


class CellEditor(TextArea):
    """Edits `document.text(block)`; `text` equals it after every event.

    Does not scroll by itself: its host shows rows of it with `show_rows`. Without a host it shows
    the rows around the cursor, as many as its size allows.
    """

    DEFAULT_CSS = """
    CellEditor {
        border: none;
        padding: 0;
        background: transparent;
        overflow: hidden hidden;
        scrollbar-size: 0 0;
        &:focus { border: none; }
    }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+up", "neighbour(-1)", "Edit the cell above", show=False),
        Binding("ctrl+down", "neighbour(1)", "Edit the cell below", show=False),
        Binding("ctrl+home", "text_start", "To the start of the text", show=False),
    ]

    class EditorMessage(Message):
        """Something that an editor says about its block."""

        def __init__(self, editor: CellEditor) -> None:
            super().__init__()
            self.editor = editor
            self.block = editor.block

        @property
        def control(self) -> CellEditor:
            return self.editor

    class Left(EditorMessage):
        """Esc: the person is done here."""

    class UndoRequested(EditorMessage):
        """Ctrl+Z."""

    class RedoRequested(EditorMessage):
        """Ctrl+Y."""

    class NeighbourRequested(EditorMessage):
        """Ctrl+Up (-1) or Ctrl+Down (1)."""

        def __init__(self, editor: CellEditor, direction: int) -> None:
            super().__init__(editor)
            self.direction = direction

    class Refused(EditorMessage):
        """The person tried to write and may not; `reason` is a sentence."""

        def __init__(self, editor: CellEditor, reason: str) -> None:
            super().__init__(editor)
            self.reason = reason

    class CursorMoved(EditorMessage):
        """Own cursor and other end of the selection, in code points; also moved by others' text.

        `anchor` is None without a selection.
        """

        def __init__(self, editor: CellEditor, offset: int, anchor: int | None) -> None:
            super().__init__(editor)
            self.offset = offset
            self.anchor = anchor

    class Edited(EditorMessage):
        """The person changed the text: `deleted` code points went, `inserted` came."""

        def __init__(self, editor: CellEditor, deleted: int, inserted: int) -> None:
            super().__init__(editor)
            self.deleted = deleted
            self.inserted = inserted

    STICK: ClassVar[Literal["left", "right"]] = "left"
    """On which side of the own cursor text appears that was not typed here: "left" is after it."""

    selection: Reactive[Selection] = reactive(Selection(), init=False, repaint=False)
    """Cursor and other end; what they change on screen is drawn row by row."""

    document: CellDocument
    wrapped_document: CellWrap

    def __init__(
        self,
        document: Document,
        block: str,
        theme: CellTheme,
        *,
        offset: int = 0,
        anchor: int | None = None,
        host: EditorHost | None = None,
    ) -> None:
        """`offset` and `anchor` are the cursor and the other end of the selection.

        Raises:
            KeyError: if there is no such block.
        """
        self.block = block
        self.refusal: str | None = None
        """Why the person may not write, if they may not."""
        self._shared = document
        self._host = host
        self._cell_theme = theme
        self._text_columns = 0
        self._writing = False
        self._following = False
        self._told: tuple[int, int | None] | None = None
        self._others: tuple[RemoteCursor, ...] = ()
        self._flush_pending = False
        self._rows = EditorRows(theme)
        super().__init__(document.text(block), tab_behavior="indent", highlight_cursor_line=False)
        self.set_reactive(TextArea.cursor_blink, False)
        self.set_reactive(TextArea.match_cursor_bracket, False)
        end = self.document.location_of(offset)
        start = end if anchor is None else self.document.location_of(anchor)
        self.set_reactive(TextArea.selection, Selection(start, end))
        self._stop_watching = document.watch(self._document_changed)

    def on_mount(self) -> None:
        self._tell_cursor()

    def on_unmount(self) -> None:
        self._stop_watching()

    # What the host asks and says

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
        """Row of a place in the text."""
        return self.wrapped_document.row_of(self.document.location_of(offset))

    def offset_at_row(self, row: int) -> int:
        """First place of the text that a row shows."""
        return self.document.offset_of(self.wrapped_document.offset_to_location(Offset(0, row)))

    def set_text_width(self, width: int) -> None:
        """Wrap at so many columns; one more is needed for a cursor behind a full row."""
        if width != self._text_columns:
            self._text_columns = width
            self.wrapped_document.wrap(width, self.indent_width)
            self._cursor_column_changed()

    def set_cell_theme(self, theme: CellTheme) -> None:
        self._cell_theme = theme
        self._rows = EditorRows(theme)
        self._changed(by_person=True)

    def set_cursors(self, cursors: Sequence[RemoteCursor]) -> None:
        """Cursors of others in this block; whoever sets them carries them along."""
        self._others = tuple(cursors)

    def show_rows(self, top: int, count: int) -> None:
        """Show `count` rows from `top` on, and redraw those that look different than before."""
        if self._rows.lay(self, top, count, self._text_columns + 1, self._others):
            regions = [
                Region(0, y, self.size.width or self._text_columns + 1, 1)
                for y in self._rows.take_changed()
            ]
            self.refresh(*regions)
        self.app.cursor_position = self.cursor_screen_offset

    # The text area, made exact

    def _set_document(self, text: str, language: str | None) -> None:
        self.document = CellDocument(text)
        self.wrapped_document = CellWrap(self.document, self._text_columns, self.indent_width)
        self.navigator = CellNavigator(self.wrapped_document)
        self.set_reactive(TextArea.selection, Selection())

    @property
    def wrap_width(self) -> int:
        return self._text_columns

    @property
    def text(self) -> str:
        """The exact text of the block."""
        return self.document.text

    @text.setter
    def text(self, value: str) -> None:
        self.replace(value, self.document.start, self.document.end)

    def load_text(self, text: str) -> None:
        self.text = text

    def edit(self, edit: Edit) -> EditResult:
        """An edit of the person at this keyboard: into the document first, then on screen."""
        if self.refusal is not None:
            self.post_message(self.Refused(self, self.refusal))
            return EditResult(edit.top, "")
        document = self.document
        start, end = document.offset_of(edit.top), document.offset_of(edit.bottom)
        inserted = edit.text.encode("utf-8", "replace").decode()
        replaced = document.get_text_range(edit.top, edit.bottom)
        splice = TextSplice(start, end - start, inserted)
        if not splice.deleted and not inserted:
            return EditResult(edit.top, "")
        kept = self._offsets() if edit.maintain_selection_offset else None
        self._writing = True
        try:
            with self._shared.transaction(ORIGIN):
                self._shared.splice(self.block, start, splice.deleted, inserted)
        finally:
            self._writing = False
        done = self._apply(splice)
        if kept is None:
            self.selection = Selection.cursor(done.new_end)
        else:
            self._select([shift_offset(at, splice, stick="right") for at in kept])
        self.record_cursor_width()
        self.post_message(self.Edited(self, splice.deleted, len(inserted)))
        self._changed(by_person=True)
        return EditResult(done.new_end, replaced)

    def _document_changed(self, change: DocumentChange) -> None:
        """Others wrote: follow, and leave the person's cursor between the same characters."""
        if self._writing:
            return
        for text in change.texts:
            if text.block != self.block:
                continue
            offsets = self._offsets()
            for splice in text.splices:
                self._apply(splice)
                offsets = [shift_offset(at, splice, stick=self.STICK) for at in offsets]
            self._following = True
            try:
                self._select(offsets)
            finally:
                self._following = False
            self._changed(by_person=False)

    def _apply(self, splice: TextSplice) -> Replaced:
        done = self.document.splice(splice)
        self.wrapped_document.wrap_range(*done)
        return done

    def _offsets(self) -> list[int]:
        return [self.document.offset_of(end) for end in self.selection]

    def _select(self, offsets: list[int]) -> None:
        start, end = (self.document.location_of(offset) for offset in offsets)
        self.selection = Selection(start, end)

    def _changed(self, *, by_person: bool) -> None:
        self._cursor_offset = self.wrapped_document.location_to_offset(self.selection.end)
        if self._host is not None:
            self._host.editor_changed(self, by_person=by_person)
        elif not self._flush_pending and self.is_mounted:
            self._flush_pending = True
            self.call_next(self._flush)

    @property
    def _height_to_fill(self) -> int:
        return max(self.size.height, 1)

    def _flush(self) -> None:
        """Show the rows around the cursor, for want of a host."""
        self._flush_pending = False
        if self.virtual_size.height != self.row_count:
            self.virtual_size = Size(0, self.row_count)
        height = self._height_to_fill
        row = self.cursor_row
        top = max(row - height + 1, min(self._rows.top, row, max(self.row_count - height, 0)))
        self.show_rows(top, height)

    # Replaced parts of the text area that cost the length of the text, or scroll

    def _watch_selection(self, previous_selection: Selection, selection: Selection) -> None:
        if not self.is_mounted:
            return
        if previous_selection != selection:
            self.app.clear_selection()
        if self._tell_cursor() and not self._following:
            self._changed(by_person=True)

    def _tell_cursor(self) -> bool:
        """Say where the cursor is, if that is news."""
        place = (self.cursor_offset, self.anchor_offset)
        if place == self._told:
            return False
        self._told = place
        self.post_message(self.CursorMoved(self, *place))
        return True

    def _cursor_column_changed(self) -> None:
        """The wrapping changed under the cursor."""
        if self.is_mounted:
            self._changed(by_person=True)

    def find_matching_bracket(self, bracket: str, search_from: Location) -> Location | None:
        """None: looking for it may cost the whole text at every key."""
        return None

    def scroll_cursor_visible(self, center: bool = False, animate: bool = False) -> Offset:
        return Offset()

    def _rewrap_and_refresh_virtual_size(self) -> None:
        self.wrapped_document.wrap(self._text_columns, self.indent_width)

    def _refresh_size(self) -> None:
        """The host gives the size."""

    def _build_highlight_map(self) -> None:
        """Nothing is highlighted while it is edited."""

    def _on_resize(self) -> None:
        if self._host is None:
            self.set_text_width(max(self.size.width - 1, 1))
            self._changed(by_person=True)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        if self._host is None:
            self.set_text_width(max(width - 1, 1))
        return self.row_count

    def render_lines(self, crop: Region) -> list[Strip]:
        return ScrollView.render_lines(self, crop)

    def render_line(self, y: int) -> Strip:
        return self._rows.strip(y) or Strip.blank(self.size.width, self._blank)

    @property
    def _blank(self) -> Style:
        return self._cell_theme.background

    def notify_style_update(self) -> None:
        """Styles come from the cell theme."""
        super(TextArea, self).notify_style_update()

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

    async def _on_key(self, event: events.Key) -> None:
        if event.key == "escape":
            event.stop()
            event.prevent_default()
            self.post_message(self.Left(self))
        elif event.key in ("tab", "shift+tab"):
            event.stop()
            event.prevent_default()
            self._tab(backwards=event.key == "shift+tab")
        elif event.character is not None and is_text(event.character):
            event.stop()
            event.prevent_default()
            self._replace_via_keyboard(event.character, *self.selection)

    def check_consume_key(self, key: str, character: str | None = None) -> bool:
        return key == "tab" or (character is not None and is_text(character))

    def _tab(self, *, backwards: bool) -> None:
        """Indent: the selected lines, or from the cursor to the next stop."""
        unit = indent_unit(self.document.lines, self.indent_width)
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
                self.delete((line, 0), (line, len(text) - len(dedented(text, self.indent_width))))
            elif text:
                self.insert(unit, (line, 0))

    async def _on_paste(self, event: events.Paste) -> None:
        event.stop()
        event.prevent_default()
        text = event.text.replace("\r\n", "\n").replace("\r", "\n")
        self._replace_via_keyboard(text, *self.selection)

    def action_undo(self) -> None:
        self.post_message(self.UndoRequested(self))

    def action_redo(self) -> None:
        self.post_message(self.RedoRequested(self))

    def undo(self) -> None:
        """Undo is the document's, by author: the text area's would take back others' text."""
        self.action_undo()

    def redo(self) -> None:
        self.action_redo()

    def action_text_start(self) -> None:
        self._go(self.document.start)

    def action_text_end(self) -> None:
        self._go(self.document.end)

    def _go(self, place: Location) -> None:
        """Put the cursor there, and show it even if it is there already."""
        self.move_cursor(place)
        self._changed(by_person=True)

    def action_neighbour(self, direction: int) -> None:
        self.post_message(self.NeighbourRequested(self, direction))

    def action_cursor_page_up(self) -> None:
        self._page(-1)

    def action_cursor_page_down(self) -> None:
        self._page(1)

    def _page(self, direction: int) -> None:
        rows = max(self._rows.count - 1, 1) * direction
        self.move_cursor(self.navigator.get_location_at_y_offset(self.cursor_location, rows))
