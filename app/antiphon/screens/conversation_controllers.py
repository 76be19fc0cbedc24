"""The controllers of one context on the screen, and how they follow the session."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from time import monotonic
from typing import Final

from antiphon.actions import ActionContext, Mode
from antiphon.input_queue import InputQueue
from antiphon.message_history import MessageHistory
from antiphon.screens.action_scope import ActionScope, Controller
from antiphon.screens.blame_view import BlameView
from antiphon.screens.cell_arranger import CellArranger
from antiphon.screens.cell_versions import CellVersions
from antiphon.screens.drift_view import DriftView
from antiphon.screens.edit_undo import EditUndo
from antiphon.screens.file_references import FileReferences
from antiphon.screens.file_view import FileView
from antiphon.screens.find_view import FindView
from antiphon.screens.following import Following
from antiphon.screens.known_contexts import KnownContexts
from antiphon.screens.language_view import LanguageView
from antiphon.screens.live_writers import LiveWriters
from antiphon.screens.modals import rejected_location
from antiphon.screens.model_turns import ModelTurns
from antiphon.screens.outline_view import OutlineView
from antiphon.screens.outside_editor import OutsideEditor
from antiphon.screens.questions import Questions
from antiphon.screens.sidebar_view import PeopleHere, SidebarView
from antiphon.screens.slash_commands import SlashCommands
from antiphon.screens.submitter import MessageSubmitter
from antiphon.screens.tour import TourView
from antiphon.screens.view_restorer import ViewRestorer
from antiphon.screens.visitors import Visitors
from antiphon.session import ConnectionStatus, SessionStatus
from antiphon.widgets.block_list import CellChange
from antiphon.widgets.status import HintLog
from antiphon_kernel.document.changes import DocumentChange
from antiphon_kernel.types.block_metadata import open_question
from antiphon_kernel.types.enums import BlockKind, Role, Status
from antiphon_kernel.types.quoting import join_names

LOOK_SECONDS: Final = 3.0
"""How often it is noted where the person is, and seen which contexts there are and how they are
called: that is no part of the document that is followed."""

NOTICED_SECONDS: Final = 1.0
"""A connection that is lost for less than this was not missed."""


class ConversationControllers:
    """Controllers that work with one session, document and draft.

    It tells the person of the connection to the kernel, and takes over from it who they are.
    """

    def __init__(
        self,
        scope: ActionScope,
        context: str,
        keys: InputQueue,
        hints: HintLog,
        history: MessageHistory,
    ) -> None:
        """`context` is its name until the document says it."""
        self.scope = scope
        host = self._host = scope.host
        session = self._session = scope.session
        self._stops: tuple[Callable[[], None], ...] = ()
        self._status = session.status
        """The connection as it was when it was looked at last."""
        self._away_since: float | None = None
        self.hints = hints
        self.history = history
        frame = self.frame = scope.frame
        self.area = scope.area
        self.composer = scope.composer
        cells = self.cells = scope.cells
        cells.hint = host.hint
        source = self.source = scope.source
        self.models = scope.models
        self.file = FileView(scope)
        self.references = FileReferences(scope)
        self.language = LanguageView(scope)
        self.contexts = KnownContexts(scope, context)
        cells.replica = session.replica
        self.find = FindView(scope)
        self.versions = CellVersions(scope, keys)
        self.view = ViewRestorer(scope, self.find, self.contexts, self.versions)
        self.questions = Questions(scope)
        source.before_answer = self.questions.words_before_keys
        self.turns = ModelTurns(scope)
        self.following = Following(scope)
        self.live = LiveWriters(source, cells, frame.live, frame.notice, scope.clock)
        self.outline = OutlineView(source, frame.area, frame.outline)
        self.outside = OutsideEditor(scope)
        self.blame = BlameView(scope)
        self.tour = TourView(scope)
        self.arranger = CellArranger(scope)
        self.undo = EditUndo(scope, self.arranger, self.turns, self.tour.tour)
        self.drift = DriftView(scope, self.contexts, self.arranger)
        self.submitter = MessageSubmitter(scope)
        self.people = PeopleHere(scope, self.questions, self.contexts)
        self.sidebar = SidebarView(scope, self.contexts)
        self.commands = SlashCommands(scope, self.contexts, self.sidebar, keys)
        self.visitors = Visitors(scope)
        self.actions: Mapping[str, Callable[[], object]] = {
            name: getattr(part, name)
            for part in vars(self).values()
            if isinstance(part, Controller)
            for name in dir(part)
            if name.startswith("action_")
        }

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
            in_file=scope.file is not None,
            paired=scope.files.pages.file_page is not None,
            after_g=cells.is_after_first,
            moving=self.arranger.state.moving is not None,
            unread=cells.unread_lines > 0,
            waiting=self.questions.first is not None,
            revising=self.submitter.revised is not None,
            folded=editor is not None and bool(editor.document.labels),
            private=draft.is_private,
            reading=user.refusal is not None,
            running=user.works_on_host,
            refused=status.refused is not None,
            key_waits=bool(self.visitors.waiting),
            shut_out=status.is_rejected,
            replaying=session.player is not None,
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
            questioned=open_question(header) is not None,
            foldable=scope.file is None and (header.kind != BlockKind.TOOL_CALL or is_over),
            is_result=header.kind == BlockKind.TOOL_RESULT,
            leads=self.file.place_of(block) is not None,
        )

    def start(self) -> None:
        """Follow the session and the document, once the widgets are mounted."""
        session, source, drawn = self._session, self.source, self.cells.drawn
        source.changed.listen(self._cells_changed)
        self.live.changed.listen(self._host.update)
        self._stops = (
            self.frame.set_interval(LOOK_SECONDS, self._look).stop,
            *self.live.start(),
            *self.outline.start(),
            drawn.listen(self.following.publish),
            drawn.listen(self.cells.read_ahead),
            drawn.listen(self.questions.note_seen),
            source.changed.listen(self.following.text_changed),
            source.document.watch(self._blocks_changed),
            self.models.changed.listen(self._host.update),
            self.contexts.changed.listen(self.sidebar.show_contexts),
            self.contexts.changed.listen(self._host.update),
            session.changed.listen(self._status_changed),
            session.replica.presence_changed.listen(self._presence_changed),
        )
        if (player := session.player) is not None:
            source.in_replay = True
            player.jumping.listen(source.rewind)
            player.stepped.listen(source.presence_changed)
            player.moved.listen(source.fade)
            player.moved.listen(self._presence_changed)
        self.file.start()
        self.references.start()
        if self._status.connection is ConnectionStatus.LIVE:  # since before it was followed
            self._came_live()
        self._status_changed()
        self._host.update()

    def draw(self) -> None:
        """Draw at once whatever would be drawn in a moment."""
        self.cells.draw()
        self.live.update()
        self.outline.update()

    def close(self) -> None:
        """Follow nothing any more: another screen shows the context from now on."""
        self.people.is_retired = True
        self.view.keep()
        for stop in self._stops:
            stop()
        self.blame.shown = False
        self.composer.draft.close()
        self.find.close()
        self.source.close()

    # Changes of the session

    def _status_changed(self) -> None:
        """Also called when the number of unsaved changes does, which is with every key."""
        status, before = self._session.status, self._status
        if status != before:
            self._status = status
            self._compare_status(status, before)

    def _compare_status(self, status: SessionStatus, before: SessionStatus) -> None:
        """Tell of what has changed of the connection."""
        hint = self._host.hint
        is_live = status.connection is ConnectionStatus.LIVE
        was_live = before.connection is ConnectionStatus.LIVE
        if was_live and not is_live:
            self._away_since = monotonic()
        elif self._away_since is not None and is_live and not status.unsaved:
            away, self._away_since = monotonic() - self._away_since, None
            if away >= NOTICED_SECONDS:
                hint("Caught up: what was written here and elsewhere is together again.")
        if is_live and not was_live:
            self._came_live()
        if status.is_rejected != before.is_rejected:
            self._role_changed()
        if status.reason is not None and status.reason != before.reason:
            hint(status.reason, weighty=status.is_rejected)
        if status.is_rejected and status.refused is not None:
            if before.refused is not status.refused or not before.is_rejected:
                hint(rejected_location(status.refused), weighty=True)
        self._host.update()

    def _identify(self) -> None:
        """Take over who the person is, if the kernel has said so, or that their role is another."""
        me, user, draft = self._session.me, self._session.user, self.composer.draft
        if me is None:
            return
        if self.source.me is None:
            self.source.identify(me.principal)
            self.composer.mark.colour = me.colour
        if me.role is not None and str(me.role) != user.role:
            told = user.update(str(me.role))
            self._role_changed()
            if told is not None:
                self._host.hint(told)
        if user.refusal is None and not draft.is_identified:
            elsewhere = {
                state.block
                for state in self._session.presence().values()
                if state.principal == me.principal and state.block is not None
            }
            draft.attach(me.principal, elsewhere)
            # The message can be shared and sent: it is known whose it is.
            self.frame.drafts.show(self.source.drafts())
            self.submit_pending()

    def _came_live(self) -> None:
        self._identify()
        self.visitors.watch()
        self.submit_pending()
        self.sidebar.list_contexts()
        self._fetch_models()
        if self._session.options.address is not None:  # no folder here names its project
            self._host.run_last_of("place", self.people.name_place)
        self.view.restore()
        self.file.look()

    def _fetch_models(self) -> None:
        if self.scope.file is None:
            self._host.run_last_of("models", self.models.fetch)

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
            self._identify()
        self.tour.presence_changed()
        ended = self.turns.ended()
        self.models.latest = max(self.turns.at_work, default=self.models.latest)
        if ended and self._session.is_live:
            self._fetch_models()
            self._host.tell(f"{join_names(sorted(ended))} ended")
        self.following.presence_changed()
        self._host.update()

    def _blocks_changed(self, change: DocumentChange) -> None:
        """Show what can be stopped: a block may have begun or ended to run."""
        if change.added or any("status" in one.fields for one in change.headers):
            self._host.update()

    def _cells_changed(self, change: CellChange) -> None:
        if change.drafts:
            self.frame.drafts.show(self.source.drafts())
        if change.ended and not self.turns.at_work:
            # A turn so short that its author was never seen at work.
            self._fetch_models()
        elif change.ended and self.models.latest in {one.username for one in self.models.agents}:
            self._host.run_last_of("agents", self.models.fetch_agents)
        self.questions.cells_changed(change)
        self.arranger.leave_hidden(change)
        if self.tour.cells_changed(change):
            self._host.update()

    def _look(self) -> None:
        self.view.keep(is_left=False)
        self.sidebar.update()
