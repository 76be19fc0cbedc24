"""The place of the person: the mode, the cell and editor that keys go to, and how cells are named.

Everything that the actions of a conversation have in common is here.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Final

from textual.screen import Screen

from antiphon.actions import ActionContext, Mode
from antiphon.clipboard import copy_text
from antiphon.keymap import KeyMap
from antiphon.project_files import KernelFile, ProjectFiles
from antiphon.screens.background_tasks import ReportsFailedTasks
from antiphon.screens.cell_list import CellList
from antiphon.screens.known_models import KnownModels
from antiphon.screens.layout import DocumentLayout
from antiphon.screens.view_state import ViewStateStore
from antiphon.session import KernelCalls, Session
from antiphon.widgets.editor import CellEditor
from antiphon_kernel.types.clock import Clock
from antiphon_kernel.types.enums import Status

READING = "READ"
"""In the place of a mode in which others write."""

PRIVATE = "PRIVATE"
"""In the place of WRITE when nobody else sees what is written."""

BEGINNING: Final = 60
"""Characters of a cell by which it is told from others."""


class ConversationHost(Screen[None], ReportsFailedTasks):
    """Screen that the controllers are for."""

    @property
    @abstractmethod
    def situation(self) -> ActionContext:
        """State from which it follows what can be done now."""

    def hint(self, text: str, *, weighty: bool = False) -> None:
        """Say one sentence above the composer; no hint takes the place of a weighty one."""

    def tell(self, text: str) -> None:
        """Tell a person who looks elsewhere."""

    def update(self) -> None:
        """Show who is here, what they do, what can be done now, and what could be tried next."""

    def call_action(self, name: str) -> None:
        """Do an action of the list, on the widget that has it, in any mode."""

    def follow(self, principal: str) -> None:
        """Keep the view at what somebody sees or writes, until the first key."""


@dataclass(eq=False)
class ActionScope(KernelCalls):
    """Finds the cell that the person means, and says why nothing can be done with it."""

    host: ConversationHost
    session: Session
    frame: DocumentLayout
    cells: CellList
    files: ProjectFiles
    file: KernelFile | None
    """The file that fills the page; None if a conversation is shown."""
    keymap: KeyMap
    memory: ViewStateStore
    clock: Clock

    def __post_init__(self) -> None:
        super().__init__(self.session, self.host.hint)
        self.area = self.frame.area
        self.source = self.cells.source
        self.composer = self.frame.composer
        self.open_context = self.files.pages.open
        self.models = KnownModels(self)
        self.mode = Mode.WRITE if self.file is None else Mode.NAVIGATE

    @property
    def mode_word(self) -> str:
        """The mode as a person is told it: who may not write is never in a mode for it."""
        writing = self.mode in (Mode.WRITE, Mode.EDIT)
        if writing and self.source.user.refusal is not None:
            return READING
        is_private = self.mode is Mode.WRITE and self.composer.draft.is_private
        return PRIVATE if is_private else self.mode.value

    @property
    def editor(self) -> CellEditor | None:
        """The composer's editor, or that of a cell, if it has the focus."""
        if self.mode is Mode.WRITE:
            return self.composer.editor
        return self.area.editor if self.mode is Mode.EDIT else None

    @property
    def block(self) -> str | None:
        """The block that is written or chosen; the draft in the composer."""
        if self.mode is Mode.WRITE:
            return self.composer.draft.block
        editor = self.editor
        return self.cells.focused_cell if editor is None else editor.block

    @property
    def cell(self) -> str | None:
        """The cell that is edited or was chosen last."""
        editor = self.area.editor
        return editor.block if editor is not None else self.cells.focused_cell

    @property
    def selection(self) -> str:
        """The text that is selected where keys go, or on the screen."""
        editor = self.editor
        if editor is not None:
            return editor.selected_text
        return self.area.screen.get_selected_text() or "" if self.area.is_attached else ""

    def cell_to(self, verb: str, *, finished: bool = True) -> str | None:
        """Return the cell to do something with; say why not if that is not possible now.

        A cell that is still being written is none, unless it need not be `finished`.
        """
        hint, block = self.hint, self.cell
        if block is None or block not in self.session.document:
            hint(f"There is no cell to {verb}.")
        elif not self.session.is_live:
            hint(f"Offline: to {verb} a cell needs the kernel; try again when it is back.")
        elif self.source.deliveries.label(block) == "sending":
            hint(f"This message is on its way: {verb} it when it has arrived.")
        elif finished and self.source.header(block).status in (Status.RUNNING, Status.PENDING):
            name = self.source.view(block).author
            hint(f"{name} is not done with this cell: stop it with Ctrl+C, then {verb} it.")
        else:
            return block
        return None

    async def copy(self, text: str) -> None:
        """Put a text into the clipboard, and say which one."""
        self.hint(await copy_text(text, self.host.app.copy_to_clipboard))

    # How cells are named to people

    def number(self, block: str) -> int:
        """Return the place of a block among all, counted from 1."""
        return self.session.replica.omitted + self.source.document.order.index(block) + 1

    def name(self, block: str) -> str:
        """Return a cell's number as people are told it: ¶8."""
        return f"¶{self.number(block)}"

    def place(self, block: str) -> str:
        """Return ` in ¶8`; nothing for a draft."""
        return "" if self.source.is_hidden(block) else f" in {self.name(block)}"

    def beginning(self, block: str) -> str:
        return " ".join(self.source.text(block)[: 4 * BEGINNING].split())[:BEGINNING]

    def author(self, block: str) -> str:
        return self.source.shown_name(self.session.document.header(block).author)[0]


class Controller:
    """Part of the conversation that acts in a scope."""

    def __init__(self, scope: ActionScope) -> None:
        self._scope = scope
        self._session = scope.session
        self._source = scope.source
        self._cells = scope.cells
        self._hint = scope.hint
