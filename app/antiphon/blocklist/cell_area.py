"""The block list with the editor laid over the cell that is being edited."""

from __future__ import annotations

from textual.message import Message
from textual.widget import Widget

from antiphon.blocklist.block_list import BlockList
from antiphon.blocklist.cells import CellSource
from antiphon.editor.cell_editor import CellEditor
from antiphon.render.cell_theme import CellTheme


class CellArea(Widget):
    """What the app mounts. `cells` scrolls, `editor` is there while a cell is edited."""

    class Refused(Message):
        """A cell cannot be edited; `reason` is a sentence."""

        def __init__(self, block: str, reason: str) -> None:
            super().__init__()
            self.block = block
            self.reason = reason

    def __init__(self, source: CellSource, theme: CellTheme, *, id: str | None = None) -> None:
        super().__init__(id=id)
        raise NotImplementedError

    cells: BlockList
    editor: CellEditor | None

    def set_cell_theme(self, theme: CellTheme) -> None: ...
    def edit(self, block: str | None = None, offset: int | None = None) -> bool:
        """Open the editor on a cell (the focused one), cursor where it was last; False if refused.

        The editor's messages bubble: `CellEditor.Left` (this area has closed it already and the
        list has the focus), `CellEditor.NeighbourRequested` (handled here), `UndoRequested`,
        `RedoRequested`, `CursorMoved`, `Edited`.
        """
        raise NotImplementedError

    def leave(self) -> None:
        """Close the editor, if there is one, and give the focus to the list."""
