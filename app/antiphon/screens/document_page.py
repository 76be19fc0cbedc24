"""The page of a document with its keys: what is done with a cell."""

from __future__ import annotations

import json
from functools import partialmethod

from textual import work

from antiphon.render.cell_renderer import cell_markdown
from antiphon.screens.action_owner import ActionOwner
from antiphon.screens.cell_list import CellList
from antiphon.screens.modals import NO_CELL
from antiphon.screens.reading import ReadingPanel
from antiphon.screens.tour import MEND_AT, TYPO
from antiphon.widgets.block_list import CellModel, DocumentView
from antiphon_kernel.types.enums import ANSWERING_KINDS, BlockKind


class DocumentPage(DocumentView, ActionOwner):
    """Cells, and the editor of one, with the actions on a cell."""

    cells: CellList

    def __init__(self, source: CellModel) -> None:
        super().__init__(source, CellList(source))

    # Editing

    def action_edit(self) -> None:
        block = self.cells.focused_cell
        if block is None:
            self.hint(NO_CELL)
        elif (place := self.parts.file.place_of(block)) is not None:
            self.parts.file.files.open(*place)
        elif self.source.header(block).kind == BlockKind.TOOL_CALL:
            self.parts.submitter.copy_command(self.source.view(block))
        else:
            asked = block == self.parts.tour.tour.typo_block
            at = self.source.text(block).find(TYPO) if asked else -1
            self.edit(block, None if at < 0 else at + MEND_AT)

    def action_back(self) -> None:
        self.leave()

    action_edit_next = partialmethod(DocumentView.edit_neighbour, 1)
    action_edit_previous = partialmethod(DocumentView.edit_neighbour, -1)

    def action_reading(self) -> None:
        block, model, session = self.cells.focused_cell, None, self.parts.scope.session
        if block is not None:
            author = session.document.header(block).author
            member = session.document.member(author)
            if member is not None and member.kind in ANSWERING_KINDS:
                model = author
        self.app.push_screen(ReadingPanel(session, model, self.source.changed))

    # Copying

    @work(exit_on_error=False)
    async def action_copy(self) -> None:
        block = self.cells.focused_cell
        text = None if block is None else self.source.text(block)
        if text:
            await self.parts.scope.copy(text)
        else:
            self.hint("There is nothing to copy in this cell.")

    @work(exit_on_error=False)
    async def action_copy_markdown(self) -> None:
        block = self.parts.scope.cell
        if block is None:
            self.hint("There is no cell to copy.")
        else:
            await self.parts.scope.copy(cell_markdown(self.source.view(block)))

    @work(exit_on_error=False)
    async def action_copy_json(self) -> None:
        block = self.parts.scope.cell_to("copy", finished=False)
        if block is None:
            return
        read = await self.parts.scope.call("block.read", {"block_id": block})
        if read is not None:
            await self.parts.scope.copy(json.dumps(read, ensure_ascii=False, indent=2) + "\n")
