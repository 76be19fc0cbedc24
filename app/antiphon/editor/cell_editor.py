"""A text area over one cell, bound to a block of a document."""

from __future__ import annotations

from collections.abc import Sequence

from textual.message import Message
from textual.widgets import TextArea

from antiphon.editor.marks import RemoteCursor
from antiphon.render.cell_theme import CellTheme
from antiphon_kernel.document.document import Document


class CellEditor(TextArea):
    """Edits `document.text(block)`; `text` equals it after every event."""

    class Left(Message):
        """Esc: the person is done here."""

    class UndoRequested(Message):
        """Ctrl+Z."""

    class RedoRequested(Message):
        """Ctrl+Y."""

    class NeighbourRequested(Message):
        """Ctrl+Up (-1) or Ctrl+Down (1)."""

        def __init__(self, direction: int) -> None:
            super().__init__()
            self.direction = direction

    class CursorMoved(Message):
        """Own cursor and other end of the selection, in code points; also moved by others' text."""

        def __init__(self, block: str, offset: int, anchor: int | None) -> None:
            super().__init__()
            self.block = block
            self.offset = offset
            self.anchor = anchor

    class Edited(Message):
        """The person changed the text: `inserted` code points came, `deleted` went."""

        def __init__(self, block: str, deleted: int, inserted: int) -> None:
            super().__init__()
            self.block = block
            self.deleted = deleted
            self.inserted = inserted

    def __init__(
        self, document: Document, block: str, theme: CellTheme, *, offset: int = 0
    ) -> None:
        raise NotImplementedError

    block: str

    def set_cursors(self, cursors: Sequence[RemoteCursor]) -> None:
        """Cursors of others in this block."""
        raise NotImplementedError

    @property
    def cursor_offset(self) -> int:
        """Own cursor in code points."""
        raise NotImplementedError
