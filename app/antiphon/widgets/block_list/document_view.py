"""The block list with the editor laid over the cell that is being edited."""

from __future__ import annotations

from dataclasses import dataclass

from textual import events, on
from textual.app import ComposeResult
from textual.message import Message
from textual.widget import Widget

from antiphon.render.text_lines import language_of
from antiphon.widgets.block_list.block_list import BlockList
from antiphon.widgets.block_list.cell_model import CellChange, CellModel
from antiphon.widgets.editor import CellEditor
from antiphon_kernel.text.lines import line_start
from antiphon_kernel.text.transform import shift_through
from antiphon_kernel.types.enums import BlockKind, Status


class DocumentView(Widget):
    """Widget that the app mounts: `cells`, and `editor` while a cell is edited.

    The editor's messages bubble out of here: `CellEditor.Left` (the editor is closed already and
    the list has the focus), `CursorMoved`, `Edited`.
    """

    DEFAULT_CSS = """
    DocumentView {
        layers: cells editor;
        width: 1fr;
        height: 1fr;
        overflow: hidden;
    }
    DocumentView > BlockList { layer: cells; }
    DocumentView > CellEditor {
        layer: editor;
        position: absolute;
        min-width: 1;
        min-height: 1;
    }
    """

    @dataclass
    class EditRefused(Message):
        """A cell cannot be edited; `reason` is a sentence."""

        reason: str

    def __init__(self, source: CellModel, cells: BlockList | None = None) -> None:
        super().__init__()
        self.source = source
        self.cells = cells or BlockList(source)
        self.editor: CellEditor | None = None
        self._last_places: dict[str, tuple[int, int | None]] = {}
        self.cells.looks.last_places = self._last_places
        self._stop_watching = source.changed.listen(self._carry_last_places)

    def compose(self) -> ComposeResult:
        yield self.cells

    def on_unmount(self) -> None:
        self._stop_watching()

    # Editing

    def edit(
        self, block: str | None = None, offset: int | None = None, *, to_read: bool = False
    ) -> bool:
        """Open the editor on a cell (the focused one); False, and `EditRefused`, if it cannot be.

        The cursor is at `offset`, else where it was last, else at the start of the first visible
        finished line; its line stays on its row of the screen. With `to_read` it is opened also
        for somebody who may not write in it.
        """
        block = block or self.cells.focused_cell
        if block is None:
            return False
        reason = self.source.edit_denied_reason(block, to_read=to_read)
        if reason is not None:
            self.post_message(self.EditRefused(reason))
            return False
        self._close()
        self.cells.focus_cell(block, reveal=False)
        anchor = None
        if offset is None:
            offset, anchor = self._last_places.get(block, (None, None))
            # In a file one goes on where one looks.
            if offset is not None and self.source.is_file:
                offset = offset if self.cells.shown.is_shown(block, offset) else None
        if offset is None:
            offset = self._first_finished_line(block)
        offset = min(offset, len(self.source.document.text(block)))
        row, header = self._row_for(block, offset), self.source.header(block)
        is_file = header.kind == BlockKind.FILE
        editor = CellEditor(
            self.source.document,
            block,
            offset=offset,
            anchor=anchor,
            host=self.cells.editor_changed,
            user=self.source.user,
            is_markdown=header.kind in (BlockKind.TEXT, BlockKind.DRIFT),
            language=language_of(header.path or "", header.language) if is_file else "",
        )
        editor.is_page = self.source.is_file
        self.editor = editor
        self.cells.looks.attach(editor)
        self.cells.pin(block, offset, row)
        self._show_cursors()
        self.mount(editor)
        editor.focus(scroll_visible=False)
        self.call_after_refresh(self.cells.clock.request)
        return True

    def cursor_in(self, block: str) -> int | None:
        """Return where the cursor is in a cell, or was last."""
        if (editor := self.cells.looks.editor_over(block)) is not None:
            return editor.cursor_offset
        return self._last_places.get(block, (None,))[0]

    def go_to_line(self, block: str, line: int) -> None:
        """Show a line of a cell, counted from 0, in which editing it then begins."""
        self.leave()
        text = self.source.text(block)
        offset = line_start(text, min(line, text.count("\n")))
        self._last_places[block] = offset, None
        self.cells.focus_cell(block, reveal=False)
        self.cells.viewport.height = self.cells.size.height
        self.cells.pin(block, offset, self.cells.size.height // 3)

    @on(CellEditor.Left)
    def leave(self) -> None:
        """Close the editor, if there is one, and give the focus to the list."""
        if self.editor is not None:
            self._close()
            self.cells.focus(scroll_visible=False)

    def _close(self) -> None:
        editor = self.editor
        if editor is None:
            return
        row = self.cells.viewport.row_of(editor.block, editor.cursor_row)
        self._last_places[editor.block] = (editor.cursor_offset, editor.anchor_offset)
        self.editor = None
        self.cells.looks.attach(None)
        if row is not None:
            self.cells.pin(editor.block, editor.cursor_offset, row)
        self.cells.draw()
        editor.remove()

    def _row_for(self, block: str, offset: int) -> int:
        """The screen row that shows a place now, else the one nearest to where it is."""
        cells = self.cells
        line = cells.shown.line_of(block, offset)
        if cells.viewport.row_of(block, line) is None:
            cells.reveal(block, offset)
        return cells.viewport.row_of(block, line) or 0

    def _first_finished_line(self, block: str) -> int:
        """Start of the first line on screen that nobody is writing on."""
        text = self.source.document.text(block)
        header = self.source.header(block)
        end = text.rfind("\n") + 1 if header.status == Status.RUNNING else len(text)
        if header.kind == BlockKind.THINKING and self.source.is_folded(block):
            return 0
        picture = self.cells.shown.rendering(block)
        first = None
        for place in self.cells.shown.lines(block):
            offset = picture.offset_at(place.line, 0)
            if offset is None or offset >= max(end, 1):
                break
            start = text.rfind("\n", 0, offset) + 1
            if picture.place_of(start)[0] == place.line:
                return start
            first = offset if first is None else first
        return first or 0

    def _show_cursors(self) -> None:
        if self.editor is not None:
            self.editor.others = self.source.cursors.of(self.editor.block)

    def _carry_last_places(self, change: CellChange) -> None:
        """Cursors that were left behind stay between the same characters."""
        for text in change.texts:
            if text.block in self._last_places:
                offset, anchor = self._last_places[text.block]
                offset = shift_through(offset, text.splices, stick="left")
                anchor = anchor and shift_through(anchor, text.splices, stick="left")
                self._last_places[text.block] = (offset, anchor)
        if self.editor is not None and self.editor.block in change.changed:
            self._show_cursors()

    def on_click(self, event: events.Click) -> None:
        """Leave the editor for the cells; edit the cell that is clicked twice."""
        if event.widget is self.cells:
            self.leave()
            if event.chain == 2 and (clicked := self.cells.clicked) is not None:
                self.edit(clicked.block, self.cells.offset_at(clicked, event.x))

    def edit_neighbour(self, direction: int) -> None:
        """Edit the cell below (1) or above (-1) the one that is edited."""
        block = None if self.editor is None else self.editor.block
        if block is not None:
            block = self.cells.order.neighbour(block, direction)
        while block is not None and self.source.edit_denied_reason(block) is not None:
            block = self.cells.order.neighbour(block, direction)
        if block is not None:
            self.cells.reveal(block)
            self.edit(block)
        else:
            where = "below" if direction > 0 else "above"
            self.post_message(self.EditRefused(f"There is no cell to edit {where}."))

    @on(events.MouseScrollDown)
    @on(events.MouseScrollUp)
    def _scroll_cells(self, event: events.MouseScrollDown | events.MouseScrollUp) -> None:
        event.stop()
        self.cells.scroll_by_wheel(event)
