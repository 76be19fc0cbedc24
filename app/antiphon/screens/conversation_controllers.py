"""The controllers of one context on the screen, and how they follow the session."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from antiphon.actions import ActionContext, Mode
from antiphon.input_queue import InputQueue
from antiphon.keymap import KeyMap
from antiphon.message_history import MessageHistory
from antiphon.screens.action_scope import ActionScope, ConversationHost, OpenContext
from antiphon.screens.blame_view import BlameView
from antiphon.screens.cell_arranger import CellArranger
from antiphon.screens.cell_list import CellList, EarlierCells
from antiphon.screens.cell_versions import CellVersions
from antiphon.screens.connection_watch import ConnectionWatch
from antiphon.screens.edit_undo import EditUndo
from antiphon.screens.find_view import FindView
from antiphon.screens.following import Following
from antiphon.screens.known_contexts import KnownContexts
from antiphon.screens.known_models import KnownModels
from antiphon.screens.layout import DocumentLayout
from antiphon.screens.live_writers import LiveWriters
from antiphon.screens.message_branches import MessageBranches
from antiphon.screens.model_turns import ModelTurns
from antiphon.screens.outline_view import OutlineView
from antiphon.screens.outside_editor import OutsideEditor
from antiphon.screens.own_presence import OwnPresence
from antiphon.screens.people_here import PeopleHere
from antiphon.screens.questions import Questions
from antiphon.screens.sidebar_view import SidebarView
from antiphon.screens.slash_commands import SlashCommands
from antiphon.screens.submitter import MessageSubmitter
from antiphon.screens.tour import TourView
from antiphon.screens.view_restorer import ViewRestorer
from antiphon.screens.view_state import ViewStateStore
from antiphon.screens.visitors import Visitors
from antiphon.session import Session
from antiphon.widgets.block_list import CellChange
from antiphon.widgets.status import HintLog
from antiphon_kernel.types.clock import Clock
from antiphon_kernel.types.enums import BlockKind, Role, Status
from antiphon_kernel.types.quoting import join_names

CONTEXTS_LOOK_SECONDS: Final = 5.0
"""How long the list of contexts at the side may show what is no longer so."""

LOOK_SECONDS: Final = 3.0
"""How often it is noted where the person is, and seen which contexts there are and how they are
called: that is no part of the document that is followed."""


class ConversationControllers:
    """Controllers that work with one session, document and draft."""

    def __init__(
        self,
        host: ConversationHost,
        frame: DocumentLayout,
        cells: CellList,
        keymap: KeyMap,
        *,
        session: Session,
        context: str,
        open_context: OpenContext,
        keys: InputQueue,
        memory: ViewStateStore,
        hints: HintLog,
        history: MessageHistory,
        clock: Clock | None,
    ) -> None:
        """`context` is its name until the document says it."""
        self._host = host
        self._session = session
        self._stops: tuple[Callable[[], None], ...] = ()
        self.keymap = keymap
        self.hints = hints
        self.history = history
        self.memory = memory
        self.frame = frame
        self.area = frame.area
        self.composer = frame.composer
        self.cells = cells
        cells.hint = host.hint
        source = self.source = cells.source
        scope = self.scope = ActionScope(session, host, frame, cells, open_context)
        self.models = KnownModels(scope)
        self.contexts = KnownContexts(scope, memory, context)
        self.earlier = cells.earlier = EarlierCells(session, cells, host.run_one_of)
        self.find = FindView(scope)
        self.view = ViewRestorer(scope, self.find, self.contexts, memory)
        self.questions = Questions(scope, clock)
        source.before_answer = self.questions.words_before_keys
        self.turns = ModelTurns(scope)
        self.own_presence = OwnPresence(scope)
        self.following = Following(scope, self.own_presence, self.earlier, clock)
        self.live = LiveWriters(source, cells, frame.live, frame.notice, clock)
        self.outline = OutlineView(source, frame.area, frame.outline)
        self.outside = OutsideEditor(scope)
        self.blame = BlameView(scope)
        self.tour = TourView(scope)
        self.arranger = CellArranger(scope, self.earlier)
        self.undo = EditUndo(scope, self.arranger, self.turns, self.tour.tour)
        self.branches = MessageBranches(scope, self.models)
        self.versions = CellVersions(scope)
        self.submitter = MessageSubmitter(scope, self.models, self.branches)
        self.people = PeopleHere(scope, self.questions, self.contexts, self.models, keymap)
        self.sidebar = SidebarView(scope, self.contexts, self.people)
        self.commands = SlashCommands(scope, keymap, self.models, self.contexts, self.sidebar, keys)
        self.connection = ConnectionWatch(scope)
        self.visitors = Visitors(scope)

    def situation(self) -> ActionContext:
        """Return what is known of the session, of the focus and of the focused cell."""
        scope, source, cells, draft = self.scope, self.source, self.cells, self.composer.draft
        session, editor = scope.session, scope.editor
        status, user, target = session.status, source.user, self.turns.target()
        may_stop = target is not None and session.is_live and user.refusal is None
        here = ActionContext(
            mode=scope.mode,
            mode_word=scope.mode_word,
            live=session.is_live,
            composing=bool(draft.text),
            selecting=bool(scope.selection),
            stoppable=target.words if target is not None and may_stop else None,
            following=cells.following,
            company=bool(session.presence()),
            writer=self.following.waits_for_me or self.live.shown_name,
            finding=self.find.is_open,
            moving=self.arranger.state.moving is not None,
            unread=cells.unread_lines > 0,
            waiting=self.questions.first is not None,
            revising=self.submitter.pending.revised is not None,
            folded=editor is not None and bool(editor.document.labels),
            private=draft.is_private,
            reading=user.refusal is not None,
            running=user.may_run_commands,
            refused=status.refused is not None,
            key_waits=self.visitors.wait,
            shut_out=status.is_rejected,
        )
        block, me = cells.focused_cell, session.me
        if block is None:
            return here
        here = replace(here, branched=source.branches.siblings(block) is not None)
        if block not in session.document:
            return here
        header = session.document.header(block)
        is_mine = me is not None and header.author == me.principal
        is_over = header.status in (Status.DONE, Status.ERROR)
        is_message = header.role == Role.USER and header.kind == BlockKind.TEXT
        return replace(
            here,
            focused=True,
            theirs=me is not None and not is_mine,
            own_message=is_mine and is_message and header.status == Status.DONE,
            answered=header.role == Role.MODEL and is_over,
            asks=source.may_decide(header),
            foldable=header.kind != BlockKind.TOOL_CALL or is_over,
            is_result=header.kind == BlockKind.TOOL_RESULT,
        )

    def start(self) -> None:
        """Follow the session and the document, once the widgets are mounted."""
        session, source, drawn = self._session, self.source, self.cells.drawn
        source.changed.listen(self._cells_changed)
        self.turns.running.changed.listen(self._host.update)
        for changed in (
            self.following.changed,
            self.find.changed,
            self.arranger.changed,
            self.live.changed,
            self.connection.changed,
        ):
            changed.listen(self._host.update)
        self.connection.came_live.listen(self._came_live)
        self.connection.role_changed.listen(self._role_changed)
        self.connection.identified.listen(self._identified)
        self._stops = (
            self.frame.set_interval(LOOK_SECONDS, self._look).stop,
            self.frame.set_interval(CONTEXTS_LOOK_SECONDS, self.sidebar.look_at_contexts).stop,
            *self.live.start(),
            *self.outline.start(),
            drawn.listen(self.own_presence.publish),
            drawn.listen(self.earlier.look),
            drawn.listen(self.questions.note_seen),
            source.changed.listen(self.following.text_changed),
            self.questions.changed.listen(self._people_changed),
            self.blame.changed.listen(self._host.suggest),
            self.models.changed.listen(self._people_changed),
            self.contexts.changed.listen(self.sidebar.contexts_changed),
            self.contexts.changed.listen(self._people_changed),
            session.changed.listen(self._status_changed),
            session.replica.presence_changed.listen(self._presence_changed),
            session.previewed.listen(self.view.show_preview),
        )
        self.people.show()
        self.connection.start()
        self._status_changed()
        self._host.update()

    def close(self) -> None:
        """Follow nothing any more: another screen shows the context from now on."""
        self.people.is_retired = True
        self.view.keep()
        for stop in self._stops:
            stop()
        self.blame.close()
        self.composer.draft.close()
        self.find.close()
        self.turns.running.close()
        self.source.close()

    def _people_changed(self) -> None:
        self.people.show()
        self._host.update()

    # Changes of the session

    def _status_changed(self) -> None:
        """Also called when the number of unsaved changes does, which is with every key."""
        self.people.show()
        self.connection.look()
        if self._session.status.is_rejected:
            self.view.hide_preview()

    def _came_live(self) -> None:
        self.connection.identify()
        self.visitors.watch()
        self.submit_pending()
        self.sidebar.list_contexts()
        self._host.run_last_of("models", self.models.fetch)
        if self._session.options.address is not None:  # no folder here names its project
            self._host.run_last_of("place", self.people.name_place)
        self.view.restore()
        self.view.replace_preview()

    def _identified(self) -> None:
        self.frame.drafts.show(self.source.drafts())
        self.submit_pending()

    def _role_changed(self) -> None:
        """The person may write now, or may not any more."""
        self.composer.show_role()
        self.questions.redraw()
        if self._session.user.refusal is not None:
            # The composer is of no use, unless there is something in it to be copied. An editor
            # that has just been opened gets the focus only now.
            is_idle = self.scope.mode is Mode.WRITE and self.area.editor is None
            if is_idle and not self.composer.draft.text:
                self._host.call_action("navigate")
        self._host.update()
        self.visitors.watch()

    def submit_pending(self) -> None:
        self._host.run_in_background(self.submitter.connection_changed)

    def _presence_changed(self) -> None:
        self.source.presence_changed()
        if self._session.is_live:
            self.connection.identify()
        self.tour.presence_changed()
        ended = self.turns.ended()
        if ended and self._session.is_live:
            self._host.run_last_of("models", self.models.fetch)
            self._host.tell(f"{join_names(sorted(ended))} ended")
        self.following.presence_changed()
        self.people.show()
        self._host.update()

    def _cells_changed(self, change: CellChange) -> None:
        if change.drafts:
            self.frame.drafts.show(self.source.drafts())
        if change.ended and not self.turns.at_work:
            # A turn so short that its author was never seen at work.
            self._host.run_last_of("models", self.models.fetch)
        self.questions.cells_changed(change)
        self.arranger.leave_hidden(change)
        if self.tour.cells_changed(change):
            self._host.suggest()

    def _look(self) -> None:
        self.view.keep(is_left=False)
        self._host.run_last_of("editors", self.versions.name_editors)
        self.sidebar.update()
        if not self.frame.has_sidebar:
            self.sidebar.list_contexts()
