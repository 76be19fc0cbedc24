"""Implementation of the actions of `antiphon.actions`; one method per name."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from antiphon.clipboard import copy_text
from antiphon.locations import state_folder
from antiphon.modes import Mode
from antiphon.render.tool_call import arguments_of
from antiphon.screens.blame_view import BlameView
from antiphon.screens.dialogs import Dialogs
from antiphon.screens.kernel_calls import KernelActions
from antiphon.screens.sidebar_controller import SidebarController
from antiphon.screens.submitter import MessageSubmitter
from antiphon.screens.ui_state import UIState
from antiphon.tour import Tour
from antiphon.widgets.block_list import CellModel, DocumentView
from antiphon.widgets.composer import SHELL_MARK, Composer
from antiphon_kernel.types.enums import BlockKind


@dataclass(frozen=True, slots=True)
class ActionTargets:
    """The parts of the screen that actions work on, and what they may ask of it."""

    area: DocumentView
    source: CellModel
    composer: Composer
    sending: MessageSubmitter
    requests: KernelActions
    tour: Tour
    blame: BlameView
    hint: Callable[[str], None]
    outlook: UIState
    osc_52: Callable[[str], None]
    dialogs: Dialogs
    sidebar: SidebarController
    quit: Callable[[], Awaitable[None]]


class DocumentActions:
    """Performs actions; `perform` takes the name that the bindings use."""

    def __init__(self, desk: ActionTargets) -> None:
        self._desk = desk
        self._cells = desk.area.cells
        self._moves = desk.area.moves

    def perform(self, name: str) -> Awaitable[None] | None:
        """Do it; what is returned, if anything, is still to be awaited."""
        act: Callable[[], Awaitable[None] | None] = getattr(self, name)
        return act()

    # Writing

    def write(self) -> None:
        refusal = self._desk.outlook.refusal
        if refusal is not None and not self._desk.composer.draft.text:
            self._desk.hint(refusal)
        else:
            self._desk.composer.editor.focus()

    def send(self) -> Awaitable[None] | None:
        submitting = self._desk.sending.send()
        if submitting is not None:
            self._cells.to_tail()
            self._desk.tour.sent()
        return submitting

    def newline(self) -> None:
        self._desk.composer.editor.new_line()

    # Between modes

    def navigate(self) -> None:
        if self._cells.focused_cell is None or self._cells.following:
            self._moves.last()
        self._cells.focus()

    def edit(self) -> None:
        block = self._cells.focused_cell
        if block is None:
            self._desk.hint("There is no cell yet.")
        elif self._desk.source.view(block).kind == BlockKind.TOOL_CALL:
            self._compose_command(block)
        else:
            self._desk.area.edit(block)

    def back(self) -> None:
        self._desk.area.leave()

    def edit_next(self) -> None:
        self._edit_neighbour(1)

    def edit_previous(self) -> None:
        self._edit_neighbour(-1)

    def _edit_neighbour(self, direction: int) -> None:
        if self._desk.area.editor is not None:
            self._desk.area.editor.action_neighbour(direction)

    def _compose_command(self, block: str) -> None:
        """A call has happened; its command can be changed and run again."""
        view, draft = self._desk.source.view(block), self._desk.composer.draft
        command = view.text or command_in(view.input)
        if not command:
            self._desk.hint("This call has no command that could be run again.")
        elif draft.text.strip():
            self._desk.hint("The composer is not empty: send or clear it, then copy the command.")
        else:
            draft.write(SHELL_MARK + command)
            editor = self._desk.composer.editor
            editor.move_cursor(editor.document.end)
            editor.focus()
            self._desk.hint(
                "The call has run already: edit its command here, or press Enter to be asked."
            )

    # Cells

    def next_cell(self) -> None:
        self._moves.next()

    def previous_cell(self) -> None:
        self._moves.previous()

    def first_cell(self) -> None:
        self._moves.first()

    def last_cell(self) -> None:
        self._moves.last()

    def half_page_down(self) -> None:
        self._cells.half_page(1)

    def half_page_up(self) -> None:
        self._cells.half_page(-1)

    def page_down(self) -> None:
        self._cells.page(1)

    def page_up(self) -> None:
        self._cells.page(-1)

    def tail(self) -> None:
        if self._desk.area.editor is not None:
            self._desk.area.editor.action_text_end()
        else:
            self._cells.to_tail()

    def fold(self) -> None:
        self._moves.toggle_fold()

    def fold_thinking(self) -> None:
        self._moves.fold_all_thinking()

    def next_unread(self) -> None:
        if not self._moves.next_unread():
            self._desk.hint("Nothing unread below.")

    def previous_unread(self) -> None:
        if not self._moves.previous_unread():
            self._desk.hint("Nothing unread above.")

    async def copy(self) -> None:
        text = self._moves.copy_source()
        if not text:
            self._desk.hint("There is nothing to copy in this cell.")
            return
        await self._copy(text)

    async def _copy(self, text: str) -> None:
        told = await copy_text(text, osc_52=self._desk.osc_52, folder=state_folder())
        self._desk.hint(told)

    # The kernel

    async def undo(self) -> None:
        block = self._desk.outlook.current_block()
        if block is None:
            self._desk.hint("There is nothing to undo here.")
        elif await self._desk.requests.undo(block) and self._desk.outlook.mode is not Mode.WRITE:
            self._desk.tour.undone()

    async def undo_theirs(self) -> None:
        block = self._cells.focused_cell
        if block is None:
            return
        author = self._desk.source.header(block).author
        name, _ = self._desk.source.name(author)
        if author == self._desk.source.me:
            self._desk.hint("This cell is yours: u takes back your own edit.")
        elif await self._desk.dialogs.ask(f"Undo the last edit of {name} in this cell?"):
            await self._desk.requests.undo(block, author)

    async def blame(self) -> None:
        await self._desk.blame.toggle()

    async def redo(self) -> None:
        block = self._desk.outlook.current_block()
        if block is None:
            self._desk.hint("There is nothing to redo here.")
        else:
            await self._desk.requests.redo(block)

    async def interrupt(self) -> None:
        selected = self._desk.outlook.selected_text()
        if selected:
            await self._copy(selected)
            return
        target = self._desk.outlook.target()
        refusal = self._desk.outlook.refusal
        if target is None:
            self._desk.hint("Nothing is running. Ctrl+Q quits.")
        elif refusal is not None:
            self._desk.hint(refusal)
        else:
            await self._desk.requests.interrupt(target)

    # The program

    def help(self) -> None:
        self._desk.dialogs.help()

    def refused(self) -> None:
        refused = self._desk.outlook.session.status.refused
        if refused is not None:
            self._desk.outlook.looked_at = refused
            self._desk.dialogs.refused(refused)

    async def join_again(self) -> None:
        await self._desk.sidebar.open_again()

    def palette(self) -> None:
        self._desk.dialogs.palette()

    def sidebar(self) -> None:
        self._desk.sidebar.toggle()

    def next_context(self) -> None:
        self._desk.sidebar.choose(1)

    def previous_context(self) -> None:
        self._desk.sidebar.choose(-1)

    def open_context(self) -> None:
        self._desk.sidebar.open_chosen()

    def leave_contexts(self) -> None:
        self._desk.sidebar.leave()

    async def quit(self) -> None:
        await self._desk.quit()


def command_in(stored: str | None) -> str | None:
    """The command in a tool call's stored input, if it is one of a shell."""
    command = (arguments_of(stored) or {}).get("command")
    return command if isinstance(command, str) else None
