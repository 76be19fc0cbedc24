"""Actions on a cell that need more than one controller: edit, ask again, copy."""

from __future__ import annotations

import json

from antiphon.clipboard import copy_text
from antiphon.locations import state_folder
from antiphon.render.cell_export import cell_markdown
from antiphon.screens.conversation_controllers import ConversationControllers
from antiphon.screens.message_actions import MessageActions
from antiphon.screens.modals import NO_CELL
from antiphon.screens.reading import ReadingPanel
from antiphon.tour import MEND_AT, TYPO
from antiphon_kernel.types.enums import BlockKind, PrincipalKind


class CellActions:
    """Does what the keys do that work on the cell with the focus."""

    def __init__(self, parts: ConversationControllers, messages: MessageActions) -> None:
        self._parts = parts
        self._scope = parts.scope
        self._hint = parts.scope.hint
        self._cells = parts.cells
        self._source = parts.source
        self._messages = messages

    def edit(self) -> None:
        block = self._cells.focused_cell
        if block is None:
            self._hint(NO_CELL)
        elif self._source.header(block).kind == BlockKind.TOOL_CALL:
            self._messages.write_command(self._source.view(block))
        else:
            self._parts.area.edit(block, self._typo_in(block))

    def _typo_in(self, block: str) -> int | None:
        """Return where the tour asks to write in a block, if it is this one."""
        if block != self._parts.tour.tour.typo_block:
            return None
        at = self._source.text(block).find(TYPO)
        return None if at < 0 else at + MEND_AT

    def edit_neighbour(self, direction: int) -> None:
        editor = self._parts.area.editor
        if editor is not None:
            editor.action_neighbour(direction)

    async def show_history(self) -> None:
        await self._parts.versions.show_history(self._cells.focused_cell)

    async def toggle_blame(self) -> None:
        if not any(self._cells.viewport.places):
            self._hint(NO_CELL)
        await self._parts.blame.toggle()

    # Messages and models

    def send_again(self) -> None:
        block = self._cells.focused_cell
        if block is None or not self._scope.host.situation.own_message:
            self._hint("Only a message of your own can be edited and sent again.")
        else:
            self._messages.revise(block, self._source.text(block))

    async def answer_again(self) -> None:
        block = self._cells.focused_cell
        if block is None or not self._scope.host.situation.answered:
            self._hint("Only what a model has answered can be answered again.")
        else:
            await self._parts.branches.answer_again(block)

    def show_reading(self) -> None:
        block, model, session = self._cells.focused_cell, None, self._scope.session
        if block is not None:
            author = session.document.header(block).author
            member = session.document.member(author)
            if member is not None and member.kind == PrincipalKind.MODEL:
                model = author
        self._scope.host.app.push_screen(ReadingPanel(session, model, self._source.changed))

    # Copying

    async def copy(self) -> None:
        block = self._cells.focused_cell
        text = None if block is None else self._source.text(block)
        if text:
            await self.copy_text(text)
        else:
            self._hint("There is nothing to copy in this cell.")

    async def copy_markdown(self) -> None:
        block = self._scope.cell
        if block is None:
            self._hint("There is no cell to copy.")
        else:
            await self.copy_text(cell_markdown(self._source.view(block)))

    async def copy_json(self) -> None:
        block = self._scope.cell_to("copy", finished=False)
        if block is None:
            return
        read = await self._scope.call("block.read", {"block_id": block})
        if read is not None:
            await self.copy_text(json.dumps(read, ensure_ascii=False, indent=2) + "\n")

    async def copy_text(self, text: str) -> None:
        """Put a text into the clipboard, and say which one."""
        to_terminal = self._scope.host.app.copy_to_clipboard
        self._hint(await copy_text(text, osc_52=to_terminal, folder=state_folder()))
