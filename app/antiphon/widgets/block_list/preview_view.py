"""The block list of a preview: to be read and scrolled, not edited."""

from __future__ import annotations

from typing import Final

from antiphon.widgets.block_list.block_list import BlockList
from antiphon.widgets.block_list.cell_model import CellModel
from antiphon.widgets.block_list.document_view import DocumentView

NOT_YET: Final = "This context is still being read: its cells can be edited in a moment."


class PreviewView(DocumentView):
    """Shows a preview until the document is here, which then goes on in the same place."""

    def __init__(self, source: CellModel) -> None:
        super().__init__(source)
        self.cells.can_focus = False

    def on_unmount(self) -> None:
        self.source.close()

    def edit(
        self, block: str | None = None, offset: int | None = None, *, to_read: bool = False
    ) -> bool:
        del block, offset, to_read
        self.post_message(self.EditRefused(NOT_YET))
        return False

    def hand_over(self, cells: BlockList) -> None:
        """Let another list show what is seen here now."""
        focused, anchor = self.cells.focused_cell, self.cells.view_state()
        if focused is not None and cells.has_cell(focused):
            cells.focus_cell(focused, reveal=False)
        if anchor is not None:
            cells.restore_view(anchor)
