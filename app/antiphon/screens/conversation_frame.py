"""The widgets of the conversation screen in their places, with the actions that work anywhere."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Protocol

from textual import on, work
from textual.binding import BindingType
from textual.geometry import Size
from textual.message import Message
from textual.widget import Widget

from antiphon.actions import Mode, Owner
from antiphon.keymap import KeyMap, bindings
from antiphon.local_user import LocalUser, requires_write
from antiphon.locations import config_folder, under_home
from antiphon.screens.background_tasks import ReportsFailedTasks
from antiphon.screens.cell_list import CellList
from antiphon.screens.context_search import choose_found
from antiphon.screens.document_page import DocumentPage
from antiphon.screens.earlier_cells import EarlierCells
from antiphon.screens.find_view import FindView
from antiphon.screens.following import Following
from antiphon.screens.input_focus import InputFocus
from antiphon.screens.kernel_calls import KernelCalls
from antiphon.screens.known_contexts import KnownContexts
from antiphon.screens.known_models import KnownModels
from antiphon.screens.layout import OUTLINE_FROM, DocumentLayout
from antiphon.screens.live_writers import LiveWriters
from antiphon.screens.message_composer import MessageComposer
from antiphon.screens.modals import TextModal, help_rows, hint_rows, rejected_rows
from antiphon.screens.model_turns import ModelTurns
from antiphon.screens.outline_view import OutlineView
from antiphon.screens.panels import ContextsPanel, PeoplePanel
from antiphon.screens.people_here import PeopleHere
from antiphon.screens.visitors import Visitors
from antiphon.session import Session
from antiphon.settings import SETTINGS_FILE
from antiphon.widgets.editor import CellEditor
from antiphon.widgets.outline import Outline
from antiphon.widgets.sidebar import WIDE, Sidebar
from antiphon.widgets.status import DraftPreview, FindBar, HintBar, HintLog, LiveStrip
from antiphon_kernel.types.errors import AntiphonError


class OpenContext(Protocol):
    """The way to another context, and there to a cell, or to a text that is found in it."""

    def __call__(self, context: str, block: str | None, query: str = "") -> None: ...


@dataclass(frozen=True, slots=True)
class FrameControllers:
    """Objects that the actions of the frame work with."""

    kernel: KernelCalls
    keymap: KeyMap
    focus: InputFocus
    cells: CellList
    turns: ModelTurns
    following: Following
    live: LiveWriters
    search: FindView
    earlier: EarlierCells
    outline: OutlineView
    contexts: KnownContexts
    models: KnownModels
    people: PeopleHere
    visitors: Visitors
    hints: HintLog
    switch_context: OpenContext
    follow: Callable[[str], None]
    """Follows somebody on the screen that is shown then."""
    seen: Callable[[], dict[str, int]]
    """Returns the version of each context that the person has seen."""


class ConversationFrame(DocumentLayout, ReportsFailedTasks):
    """Layout that opens pages over the document, and moves and finds in it."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings(Owner.FRAME)]

    parts: FrameControllers
    """Set by the screen before the frame is mounted."""

    area: DocumentPage
    composer: MessageComposer

    focused_before: Widget | None = None
    """Widget that had the focus before the sidebar."""

    @property
    def user(self) -> LocalUser:
        return self.area.source.user

    @property
    def _session(self) -> Session:
        return self.parts.kernel.session

    def hint(self, text: str) -> None:
        self.parts.kernel.hint(text)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return self.parts.focus.allows(action) and super().check_action(action, parameters)

    @dataclass
    class SettingChosen(Message):
        """The person has chosen something that the next start is to find as it is."""

        name: str
        value: object

    def action_write(self) -> None:
        if self.user.refusal is not None and not self.composer.draft.text:
            self.hint(self.user.refusal)
        else:
            self.composer.editor.focus()

    def action_open_paste(self) -> None:
        editor = self.parts.focus.editor
        if editor is None or not editor.document.labels:
            self.hint("No label stands for a pasted text here.")
        else:
            editor.unfold_at_cursor()

    @on(CellEditor.UndoRequested)
    @requires_write
    def action_undo_edit(self) -> None:
        self.area.action_undo()

    @on(CellEditor.RedoRequested)
    @requires_write
    def action_redo(self) -> None:
        self.area.redo()

    @work(exit_on_error=False)
    async def action_interrupt(self) -> None:
        if selected := self.parts.focus.selection:
            await self.area.copy(selected)
        else:
            await self.parts.turns.interrupt()

    @requires_write
    def action_bring_back(self) -> None:
        self.area.bring_back()

    def action_page_history(self) -> None:
        self.area.show_page_history()

    # Moving

    def action_page_down(self) -> None:
        self.parts.cells.move_page(1)

    def action_page_up(self) -> None:
        self.parts.cells.move_page(-1)

    @on(HintBar.CountClicked)
    def action_tail(self) -> None:
        editor = self.area.editor
        if editor is None:
            self.parts.cells.move_to_tail()
            return
        before = editor.cursor_offset
        editor.action_text_end()
        if editor.cursor_offset == before:
            self.hint("This is the end of the cell.")

    @on(LiveStrip.StripClicked)
    def action_to_writer(self) -> None:
        before = self.parts.cells.position()
        if not self.parts.following.come():
            self.parts.live.go()
        if self.parts.cells.position() == before:
            self.hint("Nobody writes out of sight.")

    def action_gather(self) -> None:
        self.parts.following.gather()

    @on(DraftPreview.DraftClicked)
    def _draft_clicked(self, message: DraftPreview.DraftClicked) -> None:
        reason = self.area.source.edit_denied_reason(message.block)
        if reason is not None:
            self.hint(reason)

    # Finding

    def action_find(self) -> None:
        if self.parts.focus.mode is Mode.FIND:
            self.parts.search.step(1)
            return
        if self.parts.focus.mode in (Mode.WRITE, Mode.NAVIGATE):
            self.parts.search.focused_before = self.screen.focused
        self.parts.search.open()
        if self.area.editor is None:
            self.parts.earlier.read_all()

    action_find_text = action_find

    @on(FindBar.QueryChanged)
    def _query_changed(self, message: FindBar.QueryChanged) -> None:
        self.parts.search.look_for(message.query)

    @work(exit_on_error=False)
    async def action_search(self) -> None:
        if not self._session.is_live:
            self.hint("Offline: a search in all contexts needs the kernel; / finds in this one.")
            return
        found = await choose_found(self.app, self.parts.kernel)
        if found is None:
            return
        block, query = found
        context = block.partition(".")[0]
        is_here = context == self._session.document.context
        if not is_here or (self._session.omitted and block not in self._session.document):
            self.parts.switch_context(context, block, query=query)
        elif self.parts.cells.has_cell(block):
            self.area.leave()
            self.parts.search.find_from(block, query)

    # Sidebar and outline

    def fit_terminal(self, size: Size) -> None:
        """Lay out for a terminal of this size."""
        if self.fit(size):
            self.update_sidebar()

    def action_sidebar(self) -> None:
        """Into the sidebar, which comes if it is not there; from inside, put it away."""
        is_inside = self.has_sidebar and self.sidebar.has_focus
        if is_inside:
            self.action_leave_contexts()
        if (is_inside or not self.has_sidebar) and self.toggle_sidebar(self.screen.size):
            self.update_sidebar()
            if self.screen.size.width >= WIDE:
                # In a narrow terminal it comes for a moment, to choose a context.
                self.post_message(self.SettingChosen("sidebar", self.has_sidebar))
        if is_inside:
            return
        if self.has_sidebar:
            self.sidebar.focus()
        else:
            self.hint("There is no room for the sidebar in a terminal this narrow.")

    def update_sidebar(self) -> None:
        """The sidebar may have come or gone, or may be out of date."""
        if self.has_sidebar:
            self._show_contexts()
            self.list_contexts()
        elif self.screen.focused is self.sidebar:
            self.action_leave_contexts()
        self.parts.people.show()

    def action_leave_contexts(self) -> None:
        before = self.focused_before
        if before is None or not before.is_attached:
            before = self.composer.editor
        before.focus(scroll_visible=False)

    def look_at_contexts(self) -> None:
        if self.has_sidebar:
            self.run_one_of("contexts", self.parts.contexts.fetch)

    def list_contexts(self) -> None:
        if self._session.is_live:
            self.run_one_of("contexts", self.parts.contexts.fetch_branches)

    def contexts_changed(self) -> None:
        self._show_contexts()
        self.parts.people.show()

    def _show_contexts(self) -> None:
        self.sidebar.show_contexts(self.parts.contexts.all, self._session.document.context or "")

    @on(Sidebar.ContextChosen)
    def _context_chosen(self, message: Sidebar.ContextChosen) -> None:
        self.open_context(message.context)

    @on(Sidebar.PersonClicked)
    def _person_clicked(self, message: Sidebar.PersonClicked) -> None:
        self.action_leave_contexts()
        self.parts.following.follow(message.principal)

    def action_outline(self) -> None:
        if self.toggle_outline(self.screen.size):
            self.parts.outline.request()
            self.post_message(self.SettingChosen("outline", self.has_outline))
        else:
            self.hint(f"The outline needs a terminal of {OUTLINE_FROM} columns or more.")

    @on(Outline.EntryClicked)
    def _outline_clicked(self, message: Outline.EntryClicked) -> None:
        self.parts.outline.go(message.entry)

    # Choices

    def open_context(self, context: str) -> None:
        """Show a context, which needs the kernel; the one that is shown is gone back to."""
        if context == self._session.document.context:
            self.action_leave_contexts()
        elif not self._session.is_live:
            self.hint("Offline: another context needs the kernel; try again when it is back.")
        else:
            self.parts.switch_context(context, None)

    def choose_theme(self, name: str) -> None:
        """Show a theme, now and in later runs."""
        self.post_message(self.SettingChosen("theme", name))

    def choose_model(self, name: str) -> None:
        """Let a model answer the messages in this context that name none."""
        self.run_in_background(partial(self.parts.models.choose, name))

    # Pages over the document

    def action_contexts(self) -> None:
        here = self._session.document.context or ""
        self.app.push_screen(
            ContextsPanel(
                partial(KernelCalls, self._session),
                self.parts.seen,
                here,
                lambda context: self.open_context(context) if context != here else None,
            )
        )

    def action_people(self) -> None:
        def copy(text: str) -> None:
            self.run_in_background(partial(self.area.copy, text))

        def colour(principal: str) -> int:
            return self.area.source.name(principal)[1]

        def follow_if_here(principal: str) -> bool:
            is_here = any(one.principal == principal for one in self.parts.following.others())
            if is_here:
                self.parts.follow(principal)
            return is_here

        kernel = partial(KernelCalls, self._session)
        self.app.push_screen(PeoplePanel(kernel, self.area.source.me, colour, follow_if_here, copy))

    def action_settings(self) -> None:
        chosen = "Theme, sidebar and outline are chosen in the palette."
        if self._session.is_guest:
            self.hint(f"{chosen} Over SSH there are no other settings.")
            return
        file = under_home(config_folder() / SETTINGS_FILE)
        self.hint(f"{chosen} Keys and the rest: {file}, read at the start. See `antiphon keys`.")

    @work(exit_on_error=False)
    async def action_decide_key(self) -> None:
        await self.parts.visitors.decide(self.app)

    @work(exit_on_error=False)
    async def action_join_again(self) -> None:
        """Show this context anew, over another connection; what is shown stays if that fails."""
        try:
            await self._session.check_access()
        except AntiphonError as error:
            self.hint(error.message)
            return
        self.parts.switch_context(self._session.document.context or self.header.context, None)

    def action_help(self) -> None:
        self.app.push_screen(TextModal(partial(help_rows, self.parts.keymap)))

    action_show_help = action_help

    def action_hints(self) -> None:
        self.app.push_screen(TextModal(partial(hint_rows, self.parts.hints)))

    def action_refused(self) -> None:
        refused = self._session.status.refused
        if refused is not None:
            self.parts.people.looked_at = refused
            self.app.push_screen(TextModal(partial(rejected_rows, refused)))

    def action_palette(self) -> None:
        self.app.action_command_palette()

    @work(exit_on_error=False)
    async def action_quit(self) -> None:
        await self.app.action_quit()
