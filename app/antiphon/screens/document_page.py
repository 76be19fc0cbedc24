"""The page of a document with its keys: what is done with a cell."""

from __future__ import annotations

import json
from functools import partial
from typing import ClassVar

from textual import work
from textual.binding import BindingType

from antiphon.actions import Owner
from antiphon.clipboard import copy_text
from antiphon.keymap import bindings
from antiphon.render.cell_renderer import cell_markdown
from antiphon.screens.action_owner import ActionOwner
from antiphon.screens.cell_list import CellList
from antiphon.screens.message_composer import MessageComposer
from antiphon.screens.modals import NO_CELL
from antiphon.screens.reading import ReadingPanel
from antiphon.screens.tour import MEND_AT, TYPO
from antiphon.widgets.block_list import CellModel, DocumentView
from antiphon_kernel.types.enums import ANSWERING_KINDS, BlockKind


class DocumentPage(DocumentView, ActionOwner):
    """Cells, and the editor of one, with the actions on a cell."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings(Owner.PAGE)]

    cells: CellList

    def __init__(self, source: CellModel, composer: MessageComposer) -> None:
        super().__init__(source, CellList(source))
        self._composer = composer

    # Editing

    def action_edit(self) -> None:
        block = self.cells.focused_cell
        if block is None:
            self.hint(NO_CELL)
        elif (place := self.parts.file.place_of(block)) is not None:
            self.parts.file.files.open(*place)
        elif self.source.header(block).kind == BlockKind.TOOL_CALL:
            self._composer.write_command(self.source.view(block))
        else:
            asked = block == self.parts.tour.tour.typo_block
            at = self.source.text(block).find(TYPO) if asked else -1
            self.edit(block, None if at < 0 else at + MEND_AT)

    def action_back(self) -> None:
        self.leave()

    def action_edit_next(self) -> None:
        if self.editor is not None:
            self.editor.action_neighbour(1)

    def action_edit_previous(self) -> None:
        if self.editor is not None:
            self.editor.action_neighbour(-1)

    def action_blame(self) -> None:
        if not any(self.cells.viewport.places):
            self.hint(NO_CELL)
        self.run_in_background(self.parts.blame.toggle)

    # Messages and models

    def action_send_again(self) -> None:
        block = self.cells.focused_cell
        if block is None or not self.parts.scope.host.situation.own_message:
            self.hint("Only a message of your own can be edited and sent again.")
        else:
            self._composer.revise(block, self.source.text(block))

    def action_answer_again(self) -> None:
        block = self.cells.focused_cell
        if block is None or not self.parts.scope.host.situation.answered:
            self.hint("Only what a model has answered can be answered again.")
        else:
            self.run_in_background(partial(self.parts.submitter.answer_again, block))

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
            await self.copy_text(text)
        else:
            self.hint("There is nothing to copy in this cell.")

    @work(exit_on_error=False)
    async def action_copy_markdown(self) -> None:
        block = self.parts.scope.cell
        if block is None:
            self.hint("There is no cell to copy.")
        else:
            await self.copy_text(cell_markdown(self.source.view(block)))

    @work(exit_on_error=False)
    async def action_copy_json(self) -> None:
        block = self.parts.scope.cell_to("copy", finished=False)
        if block is None:
            return
        read = await self.parts.scope.call("block.read", {"block_id": block})
        if read is not None:
            await self.copy_text(json.dumps(read, ensure_ascii=False, indent=2) + "\n")

    async def copy_text(self, text: str) -> None:
        """Put a text into the clipboard, and say which one."""
        self.hint(await copy_text(text, self.app.copy_to_clipboard))
