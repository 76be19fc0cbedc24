"""The one screen in which people live: the document and the lines around it."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import partial
from typing import ClassVar, Final

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widget import Widget

from antiphon.action_context import ActionContext
from antiphon.keymap import WRITING, action_for, bound_keys
from antiphon.modes import Mode
from antiphon.render.cell_theme import CellTheme
from antiphon.running_blocks import RunningBlocks
from antiphon.screens.background_tasks import BackgroundTaskScreen
from antiphon.screens.blame_view import BlameView
from antiphon.screens.dialogs import Dialogs
from antiphon.screens.document_actions import ActionTargets, DocumentActions
from antiphon.screens.header_presenter import HeaderPresenter
from antiphon.screens.kernel_calls import KernelActions
from antiphon.screens.layout import DocumentLayout
from antiphon.screens.own_location import LocalLocation
from antiphon.screens.presence_publisher import PresencePublisher
from antiphon.screens.reconnection import ScreenResumption
from antiphon.screens.session_events import SessionEventHandlers, SessionEvents, SessionEventTargets
from antiphon.screens.sidebar_controller import SidebarController
from antiphon.screens.submitter import MessageSubmitter
from antiphon.screens.tour_observer import TourObserver
from antiphon.screens.ui_state import UIState
from antiphon.screens.view_restore import ViewRestore
from antiphon.screens.view_state import ViewStateController
from antiphon.session import Session
from antiphon.tour import Tour
from antiphon.widgets.block_list import CellModel, DocumentView
from antiphon.widgets.composer import Composer, ComposerEditor, DraftSync
from antiphon.widgets.editor import CellEditor
from antiphon.widgets.sidebar import ContextName, Sidebar
from antiphon.widgets.status import DraftPreview, UnreadBadge

LOOK_SECONDS: Final = 3.0
"""How often it is noted where the person is, and seen which contexts there are and how they are
called: that is no part of the document that is followed."""

_REQUESTED: Final[Mapping[type[Message], str]] = {
    CellEditor.UndoRequested: "undo",
    CellEditor.RedoRequested: "redo",
    ComposerEditor.SendRequested: "send",
    ComposerEditor.NavigateRequested: "navigate",
    UnreadBadge.Clicked: "tail",
}
"""Actions that a part of the screen asks for."""


class DocumentScreen(BackgroundTaskScreen):
    """Composes the parts and hands keys and messages on to them."""

    AUTO_FOCUS = "ComposerEditor"

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(key, f"press('{key}')", show=False, priority=priority)
        for key, priority in bound_keys().items()
    ]

    def __init__(
        self,
        session: Session,
        draft: DraftSync,
        theme: CellTheme,
        *,
        place: str,
        context: str,
        tour: Tour | None,
        open_context: Callable[[str], None],
        memory: ViewStateController,
    ) -> None:
        """`context` is its name until the document says it; `open_context` takes an id."""
        super().__init__()
        self._session = session
        self._shows_tour = tour is not None
        self._tour = tour or Tour()
        self._retired = False
        self.source = CellModel(session.document, presence=session.presence)
        self.work = RunningBlocks(session.document)
        self.composer = Composer(draft, theme)
        self.area = DocumentView(self.source, theme)
        self._frame = DocumentLayout(self.area, self.composer, theme, place=place)
        self._requests = KernelActions(session, self.hint)
        self._dialogs = Dialogs(self, self._frame, self._tour, self._suggest)
        self._sending = MessageSubmitter(
            session,
            draft,
            self.hint,
            shows_all=lambda: self.composer.shows_all and not self._frame.is_covered,
            ask=self._dialogs.ask_to_run,
        )
        self._outlook = UIState(
            session, self.area, self.composer, self.work, lambda: self.get_selected_text() or ""
        )
        presence = PresencePublisher(session, self.set_timer)
        self._location = LocalLocation(self._frame, presence, self._outlook)
        self._bookmark = ViewRestore(session, memory, self.area.cells)
        self._surroundings = HeaderPresenter(
            self._outlook, self.source, self._frame, self._requests, presence, asked_for=context
        )
        self._events = self._listening()
        self.resumption = ScreenResumption(self._outlook, self._events.identity, self._bookmark)
        self._sidebar_keys = SidebarController(
            self._frame,
            session,
            hint=self.hint,
            changed=self._show_header,
            open_context=open_context,
        )
        self._acts = DocumentActions(self._desk())

    def _listening(self) -> SessionEvents:
        """What the session tells, to the parts of the screen that it concerns."""
        return SessionEvents(
            self._session,
            SessionEventTargets(
                self._frame,
                self.source,
                self.work,
                self._sending,
                self._surroundings,
                self._outlook,
                TourObserver(self._tour, self._session, self.source),
                self._bookmark,
            ),
            SessionEventHandlers(
                hint=self.hint,
                must_hear=partial(self.hint, weighty=True),
                update=self._update,
                suggest=self._suggest,
                read_along=self._read_along,
                run=self.run_in_background,
            ),
        )

    def _desk(self) -> ActionTargets:
        """What the keys of the person act on."""
        return ActionTargets(
            area=self.area,
            source=self.source,
            composer=self.composer,
            sending=self._sending,
            requests=self._requests,
            tour=self._tour,
            blame=BlameView(self.area.cells, self.source, self._requests.authors),
            hint=self.hint,
            outlook=self._outlook,
            osc_52=self._to_terminal_clipboard,
            dialogs=self._dialogs,
            sidebar=self._sidebar_keys,
            quit=self._quit,
        )

    def compose(self) -> ComposeResult:
        yield self._frame

    def on_mount(self) -> None:
        cells = self.area.cells
        for name in ("focused_cell", "following", "unread_lines"):
            self.watch(cells, name, self._view_changed, init=False)
        self.set_interval(LOOK_SECONDS, self._update_surroundings)
        self._events.start()
        self._update()

    def on_unmount(self) -> None:
        self.retire()

    def retire(self) -> None:
        """Follow nothing any more: another screen shows the context from now on."""
        if self._retired:
            return
        self._retired = True
        self._bookmark.keep()
        self._events.stop()
        self.composer.draft.close()
        self.work.close()
        self.source.close()

    # For the palette, the app and tests

    @property
    def mode(self) -> Mode:
        return self._outlook.mode

    @property
    def hint_shown(self) -> str | None:
        return self._frame.notice.hint

    @property
    def situation(self) -> ActionContext:
        """Actions that are available now."""
        return self._outlook.situation()

    @property
    def contexts(self) -> Sequence[ContextName]:
        """The other contexts of the kernel."""
        return self._surroundings.other_contexts

    def hint(self, text: str, *, weighty: bool = False) -> None:
        """Say one sentence above the composer; no hint takes the place of a weighty one."""
        self._frame.notice.show_hint(text, weighty=weighty)

    def perform(self, name: str) -> None:
        """Do what the action of this name does."""
        refusal = self._outlook.refusal
        if refusal is not None and name in WRITING:
            self.hint(refusal)
            return
        if isinstance(doing := self._acts.perform(name), Coroutine):
            self.run_in_background(doing)

    def label_of(self, context: str) -> str | None:
        """Return the label of a context of the kernel, as far as it is known."""
        return self._surroundings.label_of(context)

    def open_context(self, context: str) -> None:
        """Show another context of the kernel."""
        self._sidebar_keys.open(context)

    def set_cell_theme(self, theme: CellTheme) -> None:
        """Other colours from now on."""
        self._frame.set_cell_theme(theme)

    # Keys

    def action_press(self, key: str) -> None:
        if (action := action_for(self._outlook.mode, key)) is not None:
            self.perform(action.name)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "press":
            return action_for(self._outlook.mode, str(parameters[0])) is not None
        return super().check_action(action, parameters)

    @on(events.Paste)
    @on(events.Key)
    def _typed_nowhere(self, event: events.Key | events.Paste) -> None:
        """Who types where nothing can be typed is told why, if their role is the reason."""
        refusal = self._outlook.refusal
        if refusal is not None and (isinstance(event, events.Paste) or event.is_printable):
            self.hint(refusal)

    @on(CellEditor.UndoRequested)
    @on(CellEditor.RedoRequested)
    @on(ComposerEditor.SendRequested)
    @on(ComposerEditor.NavigateRequested)
    @on(UnreadBadge.Clicked)
    def _action_requested(self, message: Message) -> None:
        self.perform(_REQUESTED[type(message)])

    @on(CellEditor.Left)
    def _editor_left(self, message: CellEditor.Left) -> None:
        editor = message.editor
        if editor is not self.composer.editor:
            return
        if not editor.selection.is_empty:
            editor.move_cursor(editor.selection.end)
        elif self._outlook.refusal is not None:
            self.perform("navigate")
        else:
            self.hint("You are in the composer: ↑ in an empty message goes to the cells.")

    @on(DocumentView.Refused)
    @on(CellEditor.Refused)
    def _edit_refused(self, message: DocumentView.Refused | CellEditor.Refused) -> None:
        self.hint(message.reason)

    @on(DraftPreview.Clicked)
    def _draft_clicked(self, message: DraftPreview.Clicked) -> None:
        """Say why what somebody else is writing cannot be edited."""
        reason = self.source.edit_denied_reason(message.block)
        if reason is not None:
            self.hint(reason)

    @on(Sidebar.ContextClicked)
    def _context_clicked(self, message: Sidebar.ContextClicked) -> None:
        self.open_context(message.context)

    # What the person does

    def set_focus(
        self,
        widget: Widget | None,
        scroll_visible: bool = True,
        from_app_focus: bool = False,
    ) -> None:
        """The mode is another one from this moment on, for the very next key."""
        before = self.focused
        super().set_focus(widget, scroll_visible, from_app_focus)
        if self.focused is before:
            return
        mode = self._location.focus_moved(self.focused)
        if mode is Mode.EDIT:
            self._tour.editing()
        elif mode is Mode.CONTEXTS:
            self._events.list_contexts()
        self._surroundings.update_participants()
        self._update()

    @on(CellEditor.CursorMoved)
    def _cursor_moved(self, message: CellEditor.CursorMoved) -> None:
        self._location.cursor_moved(message)
        self._update()

    @on(CellEditor.Edited)
    def _edited(self, message: CellEditor.Edited) -> None:
        self._location.typed()
        if message.editor is not self.composer.editor:
            self._tour.typed(message.inserted)
            self._suggest()

    def _view_changed(self) -> None:
        self._location.view_moved()
        self._surroundings.update_participants()
        self._frame.unread.show(self.area.cells.unread_lines)
        self._update()

    def _read_along(self) -> None:
        """The composer is of no use, unless there is something in it to be copied."""
        if self._outlook.mode is Mode.WRITE and not self.composer.draft.text:
            self.perform("navigate")

    # Telling it all

    @on(Composer.Changed)
    def _update(self) -> None:
        """The keys that work now."""
        self._frame.footer.show(self.situation)
        self._suggest()

    def _suggest(self) -> None:
        self._frame.notice.suggest(self._tour.hint_text if self._shows_tour else None)

    def _update_surroundings(self) -> None:
        self._bookmark.keep()
        self._show_header()

    def on_resize(self, event: events.Resize) -> None:
        if self._frame.fit(event.size):
            self._show_header()

    def _show_header(self) -> None:
        if self._frame.has_sidebar:
            self._surroundings.show_contexts()
            self._events.list_contexts()
        elif self.focused is self._frame.sidebar:
            self._sidebar_keys.leave()
        self._surroundings.update_participants()

    # What only a screen can do

    async def _quit(self) -> None:
        await self.app.action_quit()

    def _to_terminal_clipboard(self, text: str) -> None:
        self.app.copy_to_clipboard(text)
