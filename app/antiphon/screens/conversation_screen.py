"""The one screen in which people live: a conversation and the lines around it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Final, Protocol

from textual import events, on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.message import Message
from textual.theme import BUILTIN_THEMES
from textual.widget import Widget

from antiphon.actions import ACTIONS, ActionContext, Mode, Owner, shown_key
from antiphon.input_queue import InputQueue
from antiphon.keymap import KeyMap, bindings
from antiphon.local_user import requires_write
from antiphon.locations import config_folder, under_home
from antiphon.message_history import MessageHistory
from antiphon.render.display import displayable_in_a_row
from antiphon.screens.background_tasks import BackgroundTaskMixin
from antiphon.screens.blame_view import BlameView
from antiphon.screens.cell_arranger import CellArranger
from antiphon.screens.cell_list import CellList
from antiphon.screens.cell_versions import CellVersions
from antiphon.screens.chosen_cell import ChosenCell
from antiphon.screens.connection_watch import ConnectionWatch
from antiphon.screens.context_search import choose_found
from antiphon.screens.document_page import DocumentPage, PageControllers
from antiphon.screens.earlier_cells import EarlierCells
from antiphon.screens.edit_undo import EditUndo
from antiphon.screens.find_view import FindView
from antiphon.screens.first_page_text import first_page_content, is_empty, placeholder
from antiphon.screens.following import Following
from antiphon.screens.input_focus import InputFocus
from antiphon.screens.kernel_calls import KernelCalls
from antiphon.screens.known_contexts import KnownContexts
from antiphon.screens.known_models import KnownModels
from antiphon.screens.layout import OUTLINE_FROM, DocumentLayout
from antiphon.screens.live_writers import LiveWriters
from antiphon.screens.message_branches import MessageBranches
from antiphon.screens.message_composer import ComposerControllers, MessageComposer
from antiphon.screens.modals import CommandModal, TextModal, help_rows, hint_rows, rejected_rows
from antiphon.screens.model_turns import ModelTurns
from antiphon.screens.outline_view import OutlineView
from antiphon.screens.outside_editor import OutsideEditor
from antiphon.screens.own_presence import OwnPresence
from antiphon.screens.panels import ContextsPanel, PeoplePanel
from antiphon.screens.people_here import PeopleHere
from antiphon.screens.questions import Questions
from antiphon.screens.screen_state import ScreenState
from antiphon.screens.situation import situation_of
from antiphon.screens.slash_commands import CommandTargets, SlashCommands
from antiphon.screens.submitter import MessageSubmitter
from antiphon.screens.tour_view import TourView
from antiphon.screens.view_restorer import ViewRestorer
from antiphon.screens.view_state import ViewStateController
from antiphon.screens.visitors import WATCHES, Visitors
from antiphon.session import Session
from antiphon.settings import SETTINGS_FILE, Settings
from antiphon.tour import Tour
from antiphon.widgets.block_list import CellChange, CellModel, DocumentView
from antiphon.widgets.composer import Composer, DraftSync
from antiphon.widgets.editor import CellEditor
from antiphon.widgets.outline import Outline
from antiphon.widgets.sidebar import WIDE, Sidebar
from antiphon.widgets.status import DraftPreview, FindBar, HintBar, HintLog, LiveStrip
from antiphon_kernel.text.splice_diff import plan_difference
from antiphon_kernel.text.transform import shift_through
from antiphon_kernel.types.clock import Clock
from antiphon_kernel.types.errors import AntiphonError
from antiphon_kernel.types.quoting import join_names

CONTEXTS_LOOK_SECONDS: Final = 5.0
"""How long the list of contexts at the side may show what is no longer so."""

LOOK_SECONDS: Final = 3.0
"""How often it is noted where the person is, and seen which contexts there are and how they are
called: that is no part of the document that is followed."""


class OpenContext(Protocol):
    """The way to another context, and there to a cell, or to a text that is found in it."""

    def __call__(self, context: str, block: str | None, query: str = "") -> None: ...


class ConversationScreen(BackgroundTaskMixin[None]):
    """Composes the widgets and their controllers, and passes messages between them."""

    AUTO_FOCUS = "ComposerEditor"

    BINDINGS: ClassVar[list[BindingType]] = [*bindings(Owner.SCREEN)]

    @dataclass
    class Happened(Message):
        """Something that a person who looks elsewhere is told of."""

        text: str

    @dataclass
    class SettingChosen(Message):
        """The person has chosen something that the next start is to find as it is."""

        name: str
        value: object

    def __init__(
        self,
        session: Session,
        draft: DraftSync,
        *,
        place: str,
        context: str,
        tour: Tour | None,
        open_context: OpenContext,
        keys: InputQueue,
        memory: ViewStateController,
        hints: HintLog,
        history: MessageHistory,
        settings: Settings | None = None,
        clock: Clock | None = None,
    ) -> None:
        """`context` is its name until the document says it."""
        super().__init__()
        settings = settings or Settings()
        self.keymap = KeyMap(settings.keys)
        self.user = session.user
        self._session = session
        self._switch_context = open_context
        self._memory = memory
        self._hints = hints
        self._retired = False
        self._focused_before: Widget | None = None
        """Widget that had the focus before the sidebar."""
        self._stops: tuple[Callable[[], None], ...] = ()
        kernel = self._kernel = KernelCalls(session, self.hint)
        source = self.source = CellModel(
            session.document, presence=session.presence, user=session.user, clock=clock
        )
        source.ink.is_shown = settings.ink
        source.gutter = settings.gutter
        source.name_keys = self.keymap.name_keys
        cells = self.cells = CellList(source, self.hint)
        page = self.area = DocumentPage(source, cells)
        composer = self.composer = MessageComposer(draft, session.user)
        frame = self._frame = DocumentLayout(
            page, composer, hints, self.keymap, place=place, settings=settings
        )
        focus = self._focus = InputFocus(composer, page, lambda: self.situation)
        self.models = KnownModels(kernel)
        self.contexts = KnownContexts(kernel, memory, source, context)
        chosen = ChosenCell(kernel, focus, source)
        self._earlier = cells.earlier = EarlierCells(session, cells, self.run_one_of)
        self._find = FindView(page, cells, frame.find, self.hint, self.run_last_of)
        self._view = ViewRestorer(
            session, cells, self._find, self.contexts, memory, frame.cover_page
        )
        self._questions = Questions(kernel, focus, cells, self._tell, clock)
        source.before_answer = self._questions.words_before_keys
        self._turns = ModelTurns(kernel, focus)
        self.own_presence = OwnPresence(session, focus, cells, composer)
        self.following = Following(
            session,
            page,
            self.hint,
            self.own_presence,
            read_all=self._earlier.read_all,
            clock=clock,
        )
        self._live = LiveWriters(source, cells, frame.live, frame.notice, clock)
        self.outline = OutlineView(source, page, frame.outline)
        self._blame = BlameView(cells, source, kernel)
        self._tour = TourView(tour, session, page)
        self._arranger = CellArranger(kernel, focus, chosen, page, self._earlier)
        self._undo = EditUndo(
            kernel, focus, chosen, self._arranger, self._turns, cells, composer, self._tour.tour
        )
        branches = MessageBranches(kernel, cells, self.models, open_context)
        self._versions = CellVersions(kernel, chosen, cells, open_context)
        self._submitter = MessageSubmitter(
            session,
            draft,
            self.hint,
            shows_all=lambda: composer.shows_all and not frame.is_covered,
            ask=self._ask_to_run,
            cells=source,
            kernel=kernel,
            models=self.models,
            follow=branches.follow_answer,
        )
        self.commands = SlashCommands(
            kernel,
            self.keymap,
            self.models,
            self.contexts,
            composer,
            keys,
            CommandTargets(
                lambda: self.situation,
                self.perform,
                lambda: sorted(self.app.available_themes.keys() - BUILTIN_THEMES.keys()),
                self.choose_theme,
                self.open_context,
                open_context,
            ),
        )
        self.people = PeopleHere(
            session,
            frame,
            source,
            focus,
            chosen,
            self._questions,
            self.contexts,
            self.models,
            self.keymap,
        )
        self._connection = ConnectionWatch(session, source, composer, self.hint)
        self._visitors = Visitors(kernel, self.hint, frame.notice)
        page.parts = PageControllers(
            kernel,
            focus,
            chosen,
            self._arranger,
            self._versions,
            branches,
            self._questions,
            self._undo,
            OutsideEditor(kernel, chosen, page),
            self.following,
            self._blame,
            self._find,
            composer,
            self._tour.tour,
        )
        composer.parts = ComposerControllers(
            kernel,
            self._submitter,
            self.commands,
            history,
            self._questions,
            cells,
            self._find,
            self._live,
            self._tour.tour,
        )

    def compose(self) -> ComposeResult:
        yield self._frame

    def on_mount(self) -> None:
        self.composer.editor.completer = self.commands.complete
        for name in ("focused_cell", "following", "unread_lines"):
            self.watch(self.cells, name, self._view_changed, init=False)
        session, source, drawn = self._session, self.source, self.cells.drawn
        source.changed.listen(self._cells_changed)
        self._turns.running.changed.listen(self._update)
        for changed in (
            self.following.changed,
            self._find.changed,
            self._arranger.changed,
            self._live.changed,
            self._connection.changed,
        ):
            changed.listen(self._update)
        self._connection.came_live.listen(self._came_live)
        self._connection.role_changed.listen(self._role_changed)
        self._connection.identified.listen(self._identified)
        self._stops = (
            self.set_interval(LOOK_SECONDS, self._look).stop,
            self.set_interval(CONTEXTS_LOOK_SECONDS, self._look_at_contexts).stop,
            *self._live.start(),
            *self.outline.start(),
            drawn.listen(self.own_presence.publish),
            drawn.listen(self._earlier.look),
            drawn.listen(self._questions.note_seen),
            source.changed.listen(self.following.text_changed),
            self._questions.changed.listen(self._show_people_and_update),
            self._blame.changed.listen(self._suggest),
            self.models.changed.listen(self._show_people_and_update),
            self.contexts.changed.listen(self._contexts_changed),
            session.changed.listen(self._status_changed),
            session.replica.watch_presence(self._presence_changed),
            session.previewed.listen(self._view.show_preview),
        )
        self._show_people()
        self._connection.start()
        self._status_changed()
        self._update()

    def on_unmount(self) -> None:
        self.retire()

    def retire(self) -> None:
        """Follow nothing any more: another screen shows the context from now on."""
        if self._retired:
            return
        self._retired = True
        self._view.keep()
        for stop in self._stops:
            stop()
        for group in WATCHES:
            self.workers.cancel_group(self, group)
        self._blame.close()
        self.composer.draft.close()
        self._find.close()
        self._turns.running.close()
        self.source.close()

    # One screen after the other

    def state(self) -> ScreenState:
        mode, editor = self.mode, self.area.editor
        block, cursor, text = self._focus.block if mode is not Mode.WRITE else None, None, ""
        if mode is Mode.EDIT and editor is not None:
            cursor, text = editor.cursor_offset, editor.text
        return ScreenState(
            mode,
            block,
            cursor,
            text,
            dict(self.source.folds),
            self._arranger.state(),
            message_cursor=self.composer.editor.cursor_offset,
            query=self._frame.find.input.value if self._find.is_open and not editor else None,
            hit=self._find.place,
            finds_from_message=self._find.focused_before is self.composer.editor,
            goes_first=self._earlier.goes_first and self.cells.order.is_first(block),
            followed=self.following.followed,
            pending=self._submitter.hand_over(),
        )

    def resume(self, state: ScreenState) -> None:
        """Go to where the person was on the screen before this one."""
        self.source.take_folds(state.folds)
        self._view.restore()
        cursor = min(state.message_cursor, len(self.composer.editor.text))
        self.composer.editor.select(cursor, cursor)
        if state.query is not None:
            before = self.composer.editor if state.finds_from_message else self.cells
            self._find.focused_before = before
            self._find.go_on(state.query, state.hit)
        if state.block is not None and state.block in self._session.document:
            self.cells.focus_cell(state.block, reveal=False)
            if state.mode is Mode.EDIT:
                self.area.edit(state.block, self._cursor_here(state), to_read=True)
            elif state.mode is Mode.NAVIGATE:
                self.cells.focus()
                if state.goes_first:
                    self.cells.first_cell()
        elif state.mode is Mode.WRITE:
            self.composer.editor.focus()
        self._arranger.resume(state.arranger)
        if state.followed is not None:
            self.following.follow(state.followed)
        self.following.presence_changed()
        if state.pending is not None:
            self._submitter.take_over(state.pending)
            self._submit_pending()
        if state.arranger.brings_back:
            self.action_bring_back()

    def _cursor_here(self, state: ScreenState) -> int | None:
        """Return the place in the block's text here that the cursor had in its text before."""
        if state.block is None or state.cursor is None:
            return None
        changes = plan_difference(state.text, self._session.document.text(state.block))
        return shift_through(state.cursor, changes, stick="left")

    def arrive_at(self, block: str, query: str = "") -> None:
        self._view.arrive_at(block, query)

    def keep_view(self, *, is_left: bool = True) -> None:
        self._view.keep(is_left=is_left)

    @property
    def shown_now(self) -> ConversationScreen:
        """This screen, or the one that has taken its place below a page that was opened here."""
        first = self.app.screen_stack[0] if self._retired else self
        return first if isinstance(first, ConversationScreen) else self

    # What can be done now, and what is said

    @property
    def mode(self) -> Mode:
        return self._focus.mode

    @property
    def situation(self) -> ActionContext:
        target = self._turns.target()
        may_stop = target is not None and self._session.is_live and self.user.refusal is None
        return situation_of(
            self._session,
            self._focus,
            self.source,
            self.cells,
            self.composer.draft,
            stoppable=target.words if target is not None and may_stop else None,
            selecting=bool(self._selection()),
            writer=self.following.waits_for_me or self._live.shown_name,
            finding=self._find.is_open,
            moving=self._arranger.moving is not None,
            waiting=self._questions.first is not None,
            revising=self._submitter.is_revising,
            key_waits=self._visitors.wait,
        )

    def _selection(self) -> str:
        editor = self._focus.editor
        return self.get_selected_text() or "" if editor is None else editor.selected_text

    def hint(self, text: str, *, weighty: bool = False) -> None:
        """Say one sentence above the composer; no hint takes the place of a weighty one."""
        if (shown := self.shown_now) is not self:
            shown.hint(text, weighty=weighty)
        else:
            self._frame.notice.show_hint(self.keymap.name_keys(text), weighty=weighty)

    @property
    def hint_shown(self) -> str | None:
        return self._frame.notice.hint

    def _tell(self, text: str) -> None:
        """Tell a person who looks elsewhere."""
        self.post_message(self.Happened(f"{text} · {self.contexts.label}"))

    async def _ask_to_run(self, command: str, reason: str) -> bool:
        """Show a command and why it is asked about; return whether the person has it run."""
        return await self.app.push_screen_wait(CommandModal(command, reason))

    def _update(self) -> None:
        situation = self.situation
        self._frame.footer.situation = situation
        self._frame.notice.mode = situation.mode_word
        self.composer.editor.says = placeholder(
            self.keymap,
            self.user,
            self.mode,
            is_private=self.composer.draft.is_private,
            finds=self._find.is_open,
        )
        self._suggest()
        is_first = self._view.is_restored and not self.composer.draft.text
        is_first = is_first and not self._tour.is_shown and is_empty(self.source)
        self._frame.first_page.content = (
            first_page_content(self.keymap, self.models, self.user, self.contexts.others)
            if is_first
            else None
        )

    def _suggest(self) -> None:
        notice, name = self._frame.notice, self.following.name
        if name is not None:
            notice.suggest(f"{name} · any key stops", label="FOLLOWING")
        elif legend := self._blame.legend():
            notice.suggest(legend, label="BLAME")
        else:
            notice.suggest(self.keymap.name_keys(self._tour.hint or "") or None)

    def _show_people(self) -> None:
        title = self.people.show()
        if not self._retired:
            self.app.title = title

    def _show_people_and_update(self) -> None:
        if not self._retired:
            self._show_people()
            self._update()

    # Focus and keys

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return self._focus.allows(action) and super().check_action(action, parameters)

    def perform(self, action: str) -> None:
        """Do what an action does, on the widget that has it."""
        owner = next(one.owner for one in ACTIONS if one.name == action)
        owners = (self, self.area, self.cells, self.composer, self._frame.find, self._frame.sidebar)
        widget = next(one for one in owners if type(one).__name__ == owner)
        getattr(widget, f"action_{action}")()

    def set_focus(
        self,
        widget: Widget | None,
        scroll_visible: bool = True,
        from_app_focus: bool = False,
    ) -> None:
        """The mode is another one from this moment on, for the very next key."""
        before = self.focused
        super().set_focus(widget, scroll_visible, from_app_focus)
        focused = self.focused
        if focused is before:
            return
        if focused is self.composer.editor:
            self._focus.mode = Mode.WRITE
        elif isinstance(focused, CellEditor):
            self._focus.mode = Mode.EDIT
            self._tour.tour.editing()
        elif focused is self._frame.sidebar:
            self._focused_before = before if before is not None else self._focused_before
            self._focus.mode = Mode.CONTEXTS
            self._list_contexts()
        elif focused is self._frame.find.input:
            self._focus.mode = Mode.FIND
        else:
            self._focus.mode = Mode.NAVIGATE
        if self.mode is not Mode.NAVIGATE:
            self._arranger.moving = None
        self.own_presence.publish()
        self._questions.show_keys()
        self._show_people()
        self._update()

    @on(events.Paste)
    @on(events.Key)
    def _typed_nowhere(self, event: events.Key | events.Paste) -> None:
        """Tell who types where nothing can be typed why, or what can be done instead."""
        refusal = self.user.refusal
        if refusal is not None and (isinstance(event, events.Paste) or event.is_printable):
            self.hint(refusal)
        elif self.mode not in (Mode.NAVIGATE, Mode.CONTEXTS):
            return
        elif isinstance(event, events.Paste):
            self.hint(
                "Nothing is pasted here: <key:write> goes to the message, <key:edit> into a cell."
            )
        elif event.key not in self.active_bindings:
            self.hint(
                f"{shown_key(event.key)} does nothing here: <key:help> lists the keys that do."
            )

    @on(DocumentView.Refused)
    @on(CellEditor.Refused)
    @on(Sidebar.EndReached)
    def _refused(
        self, message: DocumentView.Refused | CellEditor.Refused | Sidebar.EndReached
    ) -> None:
        self.hint(message.reason)

    @on(DraftPreview.Clicked)
    def _draft_clicked(self, message: DraftPreview.Clicked) -> None:
        reason = self.source.edit_denied_reason(message.block)
        if reason is not None:
            self.hint(reason)

    @on(Outline.Clicked)
    def _outline_clicked(self, message: Outline.Clicked) -> None:
        self.outline.go(message.entry)

    @on(Composer.Changed)
    def _message_changed(self) -> None:
        self._submitter.draft_changed()
        self.run_last_of("names", self._submitter.check_names)
        self.own_presence.publish()
        self._update()

    def on_resize(self, event: events.Resize) -> None:
        if self._frame.fit(event.size):
            self._update_sidebar()

    @on(events.TextSelected)
    def _text_selected(self) -> None:
        self._update()

    @on(CellEditor.CursorMoved)
    @on(CellEditor.Refolded)
    def _cursor_moved(self) -> None:
        self.own_presence.publish()
        self._update()

    @on(CellEditor.Edited)
    def _edited(self, message: CellEditor.Edited) -> None:
        self.own_presence.typed()
        self._undo.edited()
        if message.editor is not self.composer.editor:
            self._tour.tour.typed(message.inserted)
            self._suggest()

    def _view_changed(self) -> None:
        self._arranger.show_move()
        self._questions.show_keys()
        if self.mode is Mode.NAVIGATE:
            self.own_presence.publish()
        self._show_people()
        self._update()

    # Changes of the session

    def _status_changed(self) -> None:
        """Also called when the number of unsaved changes does, which is with every key."""
        self._show_people()
        self._connection.look()
        if self._session.status.is_rejected:
            self._view.hide_preview()

    def _came_live(self) -> None:
        self._connection.identify()
        self._visitors.watch(self.run_last_of)
        self._submit_pending()
        self._list_contexts()
        self.run_last_of("models", self.models.fetch)
        if self._session.is_elsewhere:
            self.run_last_of("place", self._name_place)
        self._view.restore()
        self._view.replace_preview()

    async def _name_place(self) -> None:
        """Show the project's name in the header instead of an address."""
        found = await self._kernel.call("kernel.info", {}, "The kernel does not say its name")
        if found is not None:
            self._frame.header.name_place(displayable_in_a_row(found["label"]))
            self._show_people()

    def _identified(self) -> None:
        self._frame.drafts.show(self.source.drafts())
        self._submit_pending()

    def _role_changed(self) -> None:
        """The person may write now, or may not any more."""
        self.composer.show_role()
        self._questions.redraw()
        if self.user.refusal is not None:
            # The composer is of no use, unless there is something in it to be copied. An editor
            # that has just been opened gets the focus only now.
            is_idle = self.mode is Mode.WRITE and self.area.editor is None
            if is_idle and not self.composer.draft.text:
                self.composer.action_navigate()
        self._update()
        self._visitors.watch(self.run_last_of)

    def _submit_pending(self) -> None:
        self.run_worker(self._submitter.connection_changed(), exit_on_error=False)

    def _presence_changed(self) -> None:
        self.source.presence_changed()
        if self._session.is_live:
            self._connection.identify()
        self._tour.presence_changed()
        ended = self._turns.ended()
        if ended and self._session.is_live:
            self.run_last_of("models", self.models.fetch)
            self._tell(f"{join_names(sorted(ended))} ended")
        self.following.presence_changed()
        self._show_people()
        self._update()

    def _cells_changed(self, change: CellChange) -> None:
        if change.drafts:
            self._frame.drafts.show(self.source.drafts())
        if change.ended and not self._turns.at_work:
            # A turn so short that its author was never seen at work.
            self.run_last_of("models", self.models.fetch)
        self._questions.cells_changed(change)
        self._arranger.leave_hidden(change)
        if self._tour.cells_changed(change):
            self._suggest()

    # Contexts and the sidebar

    def _look(self) -> None:
        self._view.keep(is_left=False)
        self.run_last_of("editors", self._versions.name_editors)
        self._update_sidebar()
        if not self._frame.has_sidebar:
            self._list_contexts()

    def _look_at_contexts(self) -> None:
        if self._frame.has_sidebar:
            self.run_one_of("contexts", self.contexts.fetch)

    def _list_contexts(self) -> None:
        if self._session.is_live:
            self.run_one_of("contexts", self.contexts.fetch_branches)

    def _contexts_changed(self) -> None:
        self._show_contexts()
        self._show_people_and_update()

    def _show_contexts(self) -> None:
        self._frame.sidebar.show_contexts(self.contexts.all, self._session.document.context or "")

    def _update_sidebar(self) -> None:
        """The sidebar may have come or gone, or may be out of date."""
        if self._frame.has_sidebar:
            self._show_contexts()
            self._list_contexts()
        elif self.focused is self._frame.sidebar:
            self._leave_sidebar()
        self._show_people()

    @on(Sidebar.Left)
    def _leave_sidebar(self) -> None:
        before = self._focused_before
        if before is None or not before.is_attached:
            before = self.composer.editor
        before.focus(scroll_visible=False)

    @on(Sidebar.ContextChosen)
    def _context_chosen(self, message: Sidebar.ContextChosen) -> None:
        self.open_context(message.context)

    @on(Sidebar.PersonClicked)
    def _person_clicked(self, message: Sidebar.PersonClicked) -> None:
        self._leave_sidebar()
        self.following.follow(message.principal)

    def open_context(self, context: str) -> None:
        """Show a context, which needs the kernel; the one that is shown is gone back to."""
        if context == self._session.document.context:
            self._leave_sidebar()
        elif not self._session.is_live:
            self.hint("Offline: another context needs the kernel; try again when it is back.")
        else:
            self._switch_context(context, None)

    def choose_theme(self, name: str) -> None:
        """Show a theme, now and in later runs."""
        self.post_message(self.SettingChosen("theme", name))

    def choose_model(self, name: str) -> None:
        """Let a model answer the messages in this context that name none."""
        self.run_worker(self.models.choose(name), exit_on_error=False)

    # Actions anywhere

    def action_write(self) -> None:
        if self.user.refusal is not None and not self.composer.draft.text:
            self.hint(self.user.refusal)
        else:
            self.composer.editor.focus()

    def action_open_paste(self) -> None:
        editor = self._focus.editor
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
        if selected := self._selection():
            await self.area.copy(selected)
        else:
            await self._turns.interrupt()

    @requires_write
    def action_bring_back(self) -> None:
        self.area.bring_back()

    def action_page_history(self) -> None:
        self.area.show_page_history()

    def action_page_down(self) -> None:
        self.cells.move_page(1)

    def action_page_up(self) -> None:
        self.cells.move_page(-1)

    @on(HintBar.Clicked)
    def action_tail(self) -> None:
        editor = self.area.editor
        if editor is None:
            self.cells.move_to_tail()
            return
        before = editor.cursor_offset
        editor.action_text_end()
        if editor.cursor_offset == before:
            self.hint("This is the end of the cell.")

    @on(LiveStrip.Clicked)
    def action_to_writer(self) -> None:
        before = self.cells.position()
        if not self.following.come():
            self._live.go()
        if self.cells.position() == before:
            self.hint("Nobody writes out of sight.")

    def follow(self, principal: str) -> None:
        """Keep the view at what somebody else sees or writes, until the first key."""
        self.shown_now.following.follow(principal)

    def action_gather(self) -> None:
        self.following.gather()

    def action_find(self) -> None:
        if self.mode is Mode.FIND:
            self._find.step(1)
            return
        if self.mode in (Mode.WRITE, Mode.NAVIGATE):
            self._find.focused_before = self.focused
        self._find.open()
        if self.area.editor is None:
            self._earlier.read_all()

    action_find_text = action_find

    @on(FindBar.QueryChanged)
    def _query_changed(self, message: FindBar.QueryChanged) -> None:
        self._find.look_for(message.query)

    @work(exit_on_error=False)
    async def action_search(self) -> None:
        if not self._session.is_live:
            self.hint("Offline: a search in all contexts needs the kernel; / finds in this one.")
            return
        found = await choose_found(self.app, self._kernel)
        if found is None:
            return
        block, query = found
        context = block.partition(".")[0]
        is_here = context == self._session.document.context
        if not is_here or (self._session.omitted and block not in self._session.document):
            self._switch_context(context, block, query=query)
        elif self.cells.has_cell(block):
            self.area.leave()
            self._find.find_from(block, query)

    # Pages over the document

    def action_contexts(self) -> None:
        here = self._session.document.context or ""
        self.app.push_screen(
            ContextsPanel(
                partial(KernelCalls, self._session),
                self._memory.seen,
                here,
                lambda context: self.open_context(context) if context != here else None,
            )
        )

    def action_people(self) -> None:
        def copy(text: str) -> None:
            self.run_worker(self.area.copy(text), exit_on_error=False)

        def colour(principal: str) -> int:
            return self.source.name(principal)[1]

        def follow_if_here(principal: str) -> bool:
            is_here = any(one.principal == principal for one in self.following.others())
            if is_here:
                self.follow(principal)
            return is_here

        kernel = partial(KernelCalls, self._session)
        self.app.push_screen(PeoplePanel(kernel, self.source.me, colour, follow_if_here, copy))

    def action_sidebar(self) -> None:
        """Into the sidebar, which comes if it is not there; from inside, put it away."""
        frame = self._frame
        is_inside = frame.has_sidebar and frame.sidebar.has_focus
        if is_inside:
            self._leave_sidebar()
        if (is_inside or not frame.has_sidebar) and frame.toggle_sidebar(self.size):
            self._update_sidebar()
            if self.size.width >= WIDE:
                # In a narrow terminal it comes for a moment, to choose a context.
                self.post_message(self.SettingChosen("sidebar", frame.has_sidebar))
        if is_inside:
            return
        if frame.has_sidebar:
            frame.sidebar.focus()
        else:
            self.hint("There is no room for the sidebar in a terminal this narrow.")

    def action_outline(self) -> None:
        if self._frame.toggle_outline(self.size):
            self.outline.request()
            self.post_message(self.SettingChosen("outline", self._frame.has_outline))
        else:
            self.hint(f"The outline needs a terminal of {OUTLINE_FROM} columns or more.")

    def action_settings(self) -> None:
        chosen = "Theme, sidebar and outline are chosen in the palette."
        if self._session.is_guest:
            self.hint(f"{chosen} Over SSH there are no other settings.")
            return
        file = under_home(config_folder() / SETTINGS_FILE)
        self.hint(f"{chosen} Keys and the rest: {file}, read at the start. See `antiphon keys`.")

    @work(exit_on_error=False)
    async def action_decide_key(self) -> None:
        await self._visitors.decide(self.app)

    @work(exit_on_error=False)
    async def action_join_again(self) -> None:
        """Show this context anew, over another connection; what is shown stays if that fails."""
        try:
            await self._session.check_access()
        except AntiphonError as error:
            self.hint(error.message)
            return
        self._switch_context(self._session.document.context or self._frame.header.context, None)

    def action_help(self) -> None:
        self.app.push_screen(TextModal(partial(help_rows, self.keymap)))

    action_show_help = action_help

    def action_hints(self) -> None:
        self.app.push_screen(TextModal(partial(hint_rows, self._hints)))

    def action_refused(self) -> None:
        refused = self._session.status.refused
        if refused is not None:
            self.people.looked_at = refused
            self.app.push_screen(TextModal(partial(rejected_rows, refused)))

    def action_palette(self) -> None:
        self.app.action_command_palette()

    @work(exit_on_error=False)
    async def action_quit(self) -> None:
        await self.app.action_quit()
