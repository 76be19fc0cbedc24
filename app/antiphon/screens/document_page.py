"""The page of a document with its keys: what is done with a cell."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from textual import work
from textual.binding import BindingType

from antiphon.actions import Owner
from antiphon.clipboard import copy_text
from antiphon.keymap import bindings
from antiphon.local_user import LocalUser, requires_write
from antiphon.locations import state_folder
from antiphon.render.cell_export import cell_markdown
from antiphon.screens.background_tasks import ReportsFailedTasks
from antiphon.screens.blame_view import BlameView
from antiphon.screens.cell_arranger import CellArranger
from antiphon.screens.cell_versions import CellVersions
from antiphon.screens.chosen_cell import ChosenCell
from antiphon.screens.edit_undo import EditUndo
from antiphon.screens.find_view import FindView
from antiphon.screens.following import Following
from antiphon.screens.input_focus import InputFocus
from antiphon.screens.kernel_calls import KernelCalls
from antiphon.screens.message_branches import MessageBranches
from antiphon.screens.message_composer import MessageComposer
from antiphon.screens.modals import NO_CELL
from antiphon.screens.outside_editor import OutsideEditor
from antiphon.screens.questions import Questions
from antiphon.screens.reading import ReadingPanel
from antiphon.tour import MEND_AT, TYPO, Tour
from antiphon.widgets.block_list import DocumentView
from antiphon_kernel.types.enums import BlockKind, PrincipalKind


@dataclass(frozen=True, slots=True)
class PageControllers:
    """Objects that the actions of a page work with."""

    kernel: KernelCalls
    focus: InputFocus
    chosen: ChosenCell
    arranger: CellArranger
    versions: CellVersions
    branches: MessageBranches
    questions: Questions
    undo: EditUndo
    outside: OutsideEditor
    following: Following
    blame: BlameView
    find: FindView
    composer: MessageComposer
    tour: Tour


class DocumentPage(DocumentView, ReportsFailedTasks):
    """Cells, and the editor of one, with the actions on a cell."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings(Owner.PAGE)]

    parts: PageControllers
    """Set by the screen before the page is mounted."""

    @property
    def user(self) -> LocalUser:
        return self.source.user

    def hint(self, text: str) -> None:
        self.parts.kernel.hint(text)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return self.parts.focus.allows(action) and super().check_action(action, parameters)

    # Editing

    @requires_write
    def action_edit(self) -> None:
        block = self.cells.focused_cell
        if block is None:
            self.hint(NO_CELL)
        elif self.source.header(block).kind == BlockKind.TOOL_CALL:
            self.parts.composer.write_command(self.source.view(block))
        else:
            self.edit(block, self._typo_in(block))

    def _typo_in(self, block: str) -> int | None:
        """Return where the tour asks to write in a block, if it is this one."""
        if block != self.parts.tour.typo_block:
            return None
        at = self.source.text(block).find(TYPO)
        return None if at < 0 else at + MEND_AT

    def action_back(self) -> None:
        self.leave()

    def action_edit_next(self) -> None:
        if self.editor is not None:
            self.editor.action_neighbour(1)

    def action_edit_previous(self) -> None:
        if self.editor is not None:
            self.editor.action_neighbour(-1)

    @requires_write
    @work(exit_on_error=False)
    async def action_edit_outside(self) -> None:
        await self.parts.outside.edit()

    @requires_write
    @work(exit_on_error=False)
    async def action_undo(self) -> None:
        await self.parts.undo.undo()

    @work(exit_on_error=False)
    async def redo(self) -> None:
        """Do again what was undone last, here or in the message."""
        await self.parts.undo.redo()

    @requires_write
    @work(exit_on_error=False)
    async def action_undo_theirs(self) -> None:
        await self.parts.undo.undo_theirs()

    # Whole cells

    @requires_write
    @work(exit_on_error=False)
    async def action_cut_out(self) -> None:
        await self.parts.arranger.cut_out()

    @work(exit_on_error=False)
    async def bring_back(self) -> None:
        """Let the person choose a cell that is cut out."""
        await self.parts.arranger.bring_back()

    @requires_write
    @work(exit_on_error=False)
    async def action_exclude(self) -> None:
        await self.parts.arranger.exclude()

    @requires_write
    def action_move(self) -> None:
        self.parts.arranger.move()

    @requires_write
    @work(exit_on_error=False)
    async def action_put(self) -> None:
        await self.parts.arranger.put()

    def action_leave_move(self) -> None:
        self.parts.arranger.leave_move()

    @requires_write
    @work(exit_on_error=False)
    async def action_split(self) -> None:
        await self.parts.arranger.split()

    # Versions

    @work(exit_on_error=False)
    async def action_time(self) -> None:
        await self.parts.versions.tell_time()

    @work(exit_on_error=False)
    async def action_history(self) -> None:
        await self.parts.versions.show_history(self.cells.focused_cell)

    @work(exit_on_error=False)
    async def show_page_history(self) -> None:
        await self.parts.versions.show_history(None)

    @requires_write
    @work(exit_on_error=False)
    async def action_restore(self) -> None:
        await self.parts.versions.restore()

    @requires_write
    @work(exit_on_error=False)
    async def action_fork_here(self) -> None:
        await self.parts.versions.fork_here()

    @work(exit_on_error=False)
    async def action_blame(self) -> None:
        if not any(self.cells.viewport.places):
            self.hint(NO_CELL)
        await self.parts.blame.toggle()

    # Messages and models

    def action_next_sibling(self) -> None:
        self.parts.branches.go_to_sibling(1)

    def action_previous_sibling(self) -> None:
        self.parts.branches.go_to_sibling(-1)

    @requires_write
    def action_send_again(self) -> None:
        block = self.cells.focused_cell
        if block is None or not self.parts.focus.situation.own_message:
            self.hint("Only a message of your own can be edited and sent again.")
        else:
            self.parts.composer.revise(block, self.source.text(block))

    @requires_write
    @work(exit_on_error=False)
    async def action_answer_again(self) -> None:
        block = self.cells.focused_cell
        if block is None or not self.parts.focus.situation.answered:
            self.hint("Only what a model has answered can be answered again.")
        else:
            await self.parts.branches.answer_again(block)

    def action_reading(self) -> None:
        block, model, session = self.cells.focused_cell, None, self.parts.kernel.session
        if block is not None:
            author = session.document.header(block).author
            member = session.document.member(author)
            if member is not None and member.kind == PrincipalKind.MODEL:
                model = author
        kernel = partial(KernelCalls, session)
        self.app.push_screen(ReadingPanel(kernel, model, self.source.changed))

    @requires_write
    @work(exit_on_error=False)
    async def action_allow_once(self) -> None:
        await self.parts.questions.decide("once")

    @requires_write
    @work(exit_on_error=False)
    async def action_allow_always(self) -> None:
        await self.parts.questions.decide("always")

    @requires_write
    @work(exit_on_error=False)
    async def action_deny(self) -> None:
        await self.parts.questions.decide("no")

    # People

    def action_follow(self) -> None:
        self.parts.following.follow_who_is_in(self.cells.focused_cell)

    def action_point(self) -> None:
        self.parts.following.point()

    # Finding

    def action_next_hit(self) -> None:
        self.parts.find.step(1)

    def action_previous_hit(self) -> None:
        self.parts.find.step(-1)

    def action_end_find(self) -> None:
        self.parts.find.end()

    # Copying

    @work(exit_on_error=False)
    async def action_copy(self) -> None:
        block = self.cells.focused_cell
        text = None if block is None else self.source.text(block)
        if text:
            await self.copy(text)
        else:
            self.hint("There is nothing to copy in this cell.")

    @work(exit_on_error=False)
    async def action_copy_markdown(self) -> None:
        block = self.parts.focus.cell
        if block is None:
            self.hint("There is no cell to copy.")
        else:
            await self.copy(cell_markdown(self.source.view(block)))

    @work(exit_on_error=False)
    async def action_copy_json(self) -> None:
        block = self.parts.chosen.to("copy", finished=False)
        if block is None:
            return
        read = await self.parts.kernel.call("block.read", {"block_id": block})
        if read is not None:
            await self.copy(json.dumps(read, ensure_ascii=False, indent=2) + "\n")

    async def copy(self, text: str) -> None:
        """Put a text into the clipboard, and say which one."""
        self.hint(await copy_text(text, osc_52=self.app.copy_to_clipboard, folder=state_folder()))
