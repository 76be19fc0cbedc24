"""The one screen in which people live: the document and the lines around it."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.events import Resize
from textual.screen import Screen
from textual.widget import Widget
from textual.worker import Worker, WorkerState

from antiphon.bindings import WRITING, action_for, bound_keys
from antiphon.blame_view import BlameView
from antiphon.blocklist.cell_area import CellArea
from antiphon.blocklist.cells import CellChange, CellSource
from antiphon.composer.composer import Composer, ComposerEditor
from antiphon.composer.own_draft import OwnDraft
from antiphon.composer.sending import Sending
from antiphon.editor.cell_editor import CellEditor
from antiphon.memory import Memory
from antiphon.modes import Mode
from antiphon.render.cell_theme import CellTheme
from antiphon.requests import ContextName, Requests
from antiphon.running_work import RunningWork
from antiphon.screens.acts import Acts, Desk
from antiphon.screens.frame import Frame
from antiphon.screens.help_screen import HelpScreen
from antiphon.screens.outlook import Outlook
from antiphon.screens.own_identity import OwnIdentity
from antiphon.screens.own_presence import OwnPresence
from antiphon.screens.question import QuestionScreen
from antiphon.screens.sidebar_keys import SidebarKeys
from antiphon.screens.surroundings import Surroundings
from antiphon.screens.tour_guide import TourGuide
from antiphon.session import Connection, Session
from antiphon.sidebar.sidebar import Sidebar
from antiphon.situation import Situation
from antiphon.status.unread_mark import UnreadMark
from antiphon.tour import Tour

LOOK_SECONDS: Final = 3.0
"""How often it is noted where the person is, and seen which contexts there are and how they are
called: that is no part of the document that is followed."""


class DocumentScreen(Screen[None]):
    """Composes the parts and keeps them telling the same story."""

    AUTO_FOCUS = "ComposerEditor"

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(key, f"press('{key}')", show=False, priority=priority)
        for key, priority in bound_keys().items()
    ]

    def __init__(
        self,
        session: Session,
        draft: OwnDraft,
        theme: CellTheme,
        *,
        place: str,
        context: str,
        tour: Tour | None,
        open_context: Callable[[str], None],
        memory: Memory,
    ) -> None:
        """`context` is its name until the document says it; `open_context` takes an id."""
        super().__init__()
        self._session = session
        self._open_context = open_context
        self._memory = memory
        self._shows_tour = tour is not None
        self._tour = tour or Tour()
        self._stood = session.standing
        self._stops: tuple[Callable[[], None], ...] = ()
        self._retired = False
        self._came_back = False
        self.source = CellSource(session.document, presence=session.presence)
        self.work = RunningWork(session.document)
        self.composer = Composer(draft, theme)
        self.area = CellArea(self.source, theme)
        self._frame = Frame(self.area, self.composer, theme, place=place)
        self._presence = OwnPresence(session, self.set_timer)
        self._requests = Requests(session, self.hint)
        self._sending = Sending(session, draft, self.hint)
        self._arrivals = session.arrivals(self.hint)
        self._outlook = Outlook(session, self.area, self.composer, self.work, self._selected)
        self._identity = OwnIdentity(
            session,
            self.area,
            self.composer,
            self._outlook,
            role_changed=self._role_changed,
            draft_identified=self._draft_identified,
        )
        self._guide = TourGuide(self._tour, session, self.source)
        self._surroundings = Surroundings(
            session,
            self.source,
            self._frame,
            self._requests,
            self._presence,
            self._outlook,
            asked_for=context,
        )
        self._sidebar_keys = SidebarKeys(
            self._frame,
            hint=self.hint,
            changed=self._sidebar_changed,
            open_context=self.open_context,
        )
        self._acts = Acts(self._desk())

    def _desk(self) -> Desk:
        return Desk(
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
            ask=self._ask,
            toggle_help=self._open_help,
            sidebar=self._sidebar_keys,
            open_palette=self._open_palette,
            quit=self._quit,
        )

    def compose(self) -> ComposeResult:
        yield self._frame

    def on_mount(self) -> None:
        cells = self.area.cells
        for name in ("focused_cell", "following", "unread_lines"):
            self.watch(cells, name, self._view_changed, init=False)
        self.source.watch(self._cells_changed)
        self.work.watch(self._work_changed)
        self._stops = (
            self._session.watch(self._connection_changed),
            self._session.replica.watch_presence(self._presence_changed),
        )
        self.set_interval(LOOK_SECONDS, self._look_around)
        self._tell_people()
        if self._stood.connection is Connection.LIVE:
            self._came_live()
        self._update()

    def on_unmount(self) -> None:
        self.retire()

    def retire(self) -> None:
        """Follow nothing any more: another screen shows the context from now on."""
        if self._retired:
            return
        self._retired = True
        self._keep_place()
        for stop in self._stops:
            stop()
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
    def situation(self) -> Situation:
        """What could be done now."""
        return self._outlook.situation()

    def hint(self, text: str) -> None:
        """Say one sentence above the composer."""
        self._frame.notice.give_hint(text)

    def perform(self, name: str) -> None:
        """Do what the action of this name does."""
        if self._identity.refusal is not None and name in WRITING:
            self.hint(self._identity.refusal)
            return
        doing = self._acts.perform(name)
        if isinstance(doing, Coroutine):
            self.run_worker(doing, name=name, exit_on_error=False)

    def set_cell_theme(self, theme: CellTheme) -> None:
        """Other colours from now on."""
        self._frame.set_cell_theme(theme)

    # Keys

    def action_press(self, key: str) -> None:
        """A key that means something in the present mode."""
        action = action_for(self._outlook.mode, key)
        if action is not None:
            self.perform(action.name)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "press":
            return action_for(self._outlook.mode, str(parameters[0])) is not None
        return super().check_action(action, parameters)

    @on(CellEditor.UndoRequested)
    def _undo_requested(self) -> None:
        self.perform("undo")

    @on(CellEditor.RedoRequested)
    def _redo_requested(self) -> None:
        self.perform("redo")

    @on(ComposerEditor.SendRequested)
    def _send_requested(self) -> None:
        self.perform("send")

    @on(ComposerEditor.NavigateRequested)
    def _navigate_requested(self) -> None:
        self.perform("navigate")

    @on(CellEditor.Left)
    def _editor_left(self, message: CellEditor.Left) -> None:
        editor = message.editor
        if editor is not self.composer.editor:
            return
        if not editor.selection.is_empty:
            editor.move_cursor(editor.selection.end)
        else:
            self.hint("You are in the composer: ↑ in an empty message goes to the cells.")

    @on(CellArea.Refused)
    @on(CellEditor.Refused)
    def _edit_refused(self, message: CellArea.Refused | CellEditor.Refused) -> None:
        self.hint(message.reason)

    @on(UnreadMark.Clicked)
    def _mark_clicked(self) -> None:
        self.perform("tail")

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
        if self.focused is not before:
            self._focus_moved()

    def _focus_moved(self) -> None:
        if self.focused is self.composer.editor:
            mode = Mode.WRITE
        elif isinstance(self.focused, CellEditor):
            mode = Mode.EDIT
            self._tour.editing()
        elif self.focused is self._frame.sidebar:
            mode = Mode.CONTEXTS
            self._list_contexts()
        else:
            mode = Mode.NAVIGATE
        self._outlook.mode = mode
        self._say_where()
        self._update()

    @on(CellEditor.CursorMoved)
    def _cursor_moved(self, message: CellEditor.CursorMoved) -> None:
        if message.editor is self.composer.editor:
            self._presence.at(self.composer.draft.block, message.offset, message.anchor)
        else:
            self._presence.at(message.block, message.offset, message.anchor)
        self._update()

    @on(CellEditor.Edited)
    def _edited(self, message: CellEditor.Edited) -> None:
        self._presence.typed()
        if message.editor is not self.composer.editor:
            self._tour.typed(message.inserted)
            self._suggest()

    @on(Composer.Changed)
    def _message_changed(self) -> None:
        self._update()

    def _view_changed(self) -> None:
        if self._outlook.mode is Mode.NAVIGATE:
            self._say_where()
        self._frame.unread.show(self.area.cells.unread_lines)
        self._update()

    def _say_where(self) -> None:
        """Tell the others, and the sidebar, in which cell the person is."""
        editor = self.area.editor
        if self._outlook.mode is Mode.WRITE:
            draft = self.composer.draft
            cursor = self.composer.editor.cursor_offset if draft.block else None
            self._presence.at(draft.block, cursor)
        elif self._outlook.mode is Mode.EDIT and editor is not None:
            self._presence.at(editor.block, editor.cursor_offset, editor.anchor_offset)
        else:
            self._presence.at(self.area.cells.focused_cell)
        self._tell_people()

    # What the kernel says

    def _connection_changed(self) -> None:
        """Also called when the number of unsaved changes does, which is with every key."""
        standing = self._session.standing
        self._tell_people()
        if standing == self._stood:
            return
        before, self._stood = self._stood, standing
        if standing.connection is Connection.LIVE and before.connection is not Connection.LIVE:
            self._came_live()
        if standing.reason is not None and standing.reason != before.reason:
            self.hint(standing.reason)
        self._update()

    def _came_live(self) -> None:
        self._identity.heard()
        self._follow_arrivals()
        self._send_what_waits()
        self._list_contexts()
        self._return_to_place()

    def _follow_arrivals(self) -> None:
        """The owner is told who joins."""
        if self._identity.is_owner and self._session.is_live:
            self.run_worker(
                self._arrivals.follow(), group="arrivals", exclusive=True, exit_on_error=False
            )

    def _role_changed(self, told: str | None) -> None:
        if told is not None:
            self.hint(told)
            self._update()
        self._follow_arrivals()

    def _draft_identified(self) -> None:
        self._frame.drafts.show(self.source.drafts())
        self._send_what_waits()

    def _send_what_waits(self) -> None:
        self.run_worker(self._sending.connection_changed(), exit_on_error=False)

    def _presence_changed(self) -> None:
        self.source.presence_changed()
        if self._session.is_live:
            self._identity.heard()
        self._guide.presence_changed()
        self._tell_people()
        self._suggest()

    def _cells_changed(self, change: CellChange) -> None:
        if change.drafts:
            self._frame.drafts.show(self.source.drafts())
        if self._guide.cells_changed(change):
            self._suggest()

    def _work_changed(self) -> None:
        self._update()

    def _return_to_place(self) -> None:
        """Once the document is there: to where the person was when they left."""
        context = self._session.document.context
        if context is not None and not self._came_back:
            self._came_back = True
            self._memory.go_back(context, self.area.cells)

    def _look_around(self) -> None:
        self._keep_place()
        self._tell_people()
        if self._frame.has_sidebar:
            self._list_contexts()

    def _keep_place(self) -> None:
        context = self._session.document.context
        if context is not None and self._came_back:
            self._memory.keep(context, self.area.cells)

    # Telling it all

    def _tell_people(self) -> None:
        self._surroundings.show_people()

    def _update(self) -> None:
        """The keys that work now."""
        self._frame.footer.show(self.situation)
        self._suggest()

    def _suggest(self) -> None:
        self._frame.notice.suggest(self._tour.words if self._shows_tour else None)

    # The frame

    def on_resize(self, event: Resize) -> None:
        if self._frame.fit(event.size):
            self._sidebar_changed()

    def _sidebar_changed(self) -> None:
        if self._frame.has_sidebar:
            self._surroundings.show_contexts()
            self._list_contexts()
        elif self.focused is self._frame.sidebar:
            self.composer.editor.focus()
        self._tell_people()

    def _list_contexts(self) -> None:
        if self._session.is_live:
            self.run_worker(
                self._surroundings.list_contexts(),
                group="contexts",
                exclusive=True,
                exit_on_error=False,
            )

    @property
    def contexts(self) -> Sequence[ContextName]:
        """The other contexts of the kernel."""
        here = self._session.document.context
        return [one for one in self._surroundings.contexts if one.id != here]

    def open_context(self, context: str) -> None:
        """Show another context of the kernel."""
        if context == self._session.document.context:
            self._sidebar_keys.leave()
        elif not self._session.is_live:
            self.hint("Offline: another context needs the kernel; try again when it is back.")
        else:
            self._open_context(context)

    @on(Sidebar.ContextClicked)
    def _context_clicked(self, message: Sidebar.ContextClicked) -> None:
        self.open_context(message.context)

    def _open_help(self) -> None:
        if self._tour.words is not None:
            self._tour.hide()
            self._suggest()
        self.app.push_screen(HelpScreen(self._frame.header.theme))

    async def _ask(self, question: str) -> bool:
        screen = QuestionScreen(self._frame.header.theme, question)
        return await self.app.push_screen_wait(screen)

    def _open_palette(self) -> None:
        self.app.action_command_palette()

    async def _quit(self) -> None:
        await self.app.action_quit()

    def _selected(self) -> str:
        return self.get_selected_text() or ""

    def _to_terminal_clipboard(self, text: str) -> None:
        self.app.copy_to_clipboard(text)

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """A failure in the background is said, not swallowed."""
        if event.state is WorkerState.ERROR and event.worker.error is not None:
            self.log.error(event.worker.error)
            self.hint(f"Something went wrong: {event.worker.error!r}")
