"""Widgets and state of the document screen, which its actions and message handlers share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial, wraps
from typing import Any, Final, Protocol, TypeVar

from textual.app import ComposeResult
from textual.timer import Timer
from textual.widget import Widget
from textual.worker import WorkType

from antiphon.actions import ActionContext, Mode, shown_key
from antiphon.input_queue import InputQueue
from antiphon.join_watcher import JoinWatcher
from antiphon.key_request_watcher import KeyRequestWatcher, WaitingKey
from antiphon.keymap import KeyMap
from antiphon.message_history import MessageHistory
from antiphon.render.display import displayable_in_a_row
from antiphon.render.status_label import ASKS, WAITS
from antiphon.running_blocks import InterruptTarget, RunningBlocks
from antiphon.screens.background_tasks import BackgroundTaskMixin
from antiphon.screens.blame_view import BlameView
from antiphon.screens.find_view import FindView
from antiphon.screens.following import Following
from antiphon.screens.kernel_calls import KernelCalls
from antiphon.screens.known_contexts import list_contexts
from antiphon.screens.known_models import KnownModels
from antiphon.screens.layout import DocumentLayout
from antiphon.screens.live_writers import LiveWriters
from antiphon.screens.modals import CommandModal
from antiphon.screens.outline_view import OutlineView
from antiphon.screens.submitter import MessageSubmitter
from antiphon.screens.text_undo import TextUndo
from antiphon.screens.view_state import ViewStateController
from antiphon.session import Session
from antiphon.settings import Settings
from antiphon.terminal_title import terminal_title
from antiphon.tour import Tour
from antiphon.widgets.block_list import (
    BlockList,
    CellModel,
    DocumentView,
    MessageLocation,
    PreviewView,
    Siblings,
)
from antiphon.widgets.composer import Composer, DraftSync
from antiphon.widgets.editor import CellEditor
from antiphon.widgets.first_page import FirstPageContent
from antiphon.widgets.sidebar import ContextName, participant_rows
from antiphon.widgets.status import HintLog, Participant
from antiphon.widgets.status.participants import participants
from antiphon_kernel.client.rejected_edits import Rejection
from antiphon_kernel.types.clock import Clock, SystemClock
from antiphon_kernel.types.enums import Activity, BlockKind, PrincipalKind, Role, Status
from antiphon_kernel.types.presence import PresenceState
from antiphon_kernel.types.quoting import join_names
from antiphon_kernel.types.records import BlockHeader

CONTEXTS_SECONDS: Final = 0.5
"""How long is waited for the list of contexts before something else is done."""

EARLIER_CELLS: Final = "Earlier cells are being read."

READING: Final = "READ"
"""In the place of a mode in which others write."""

FIRST_PAGE_CONTEXTS: Final = 3
"""Other contexts that the page of an empty one names."""

READ_SECONDS: Final = 0.5
"""How long a question has been on the screen at least when a key answers it."""

PRIVATE: Final = "PRIVATE"
"""In the place of WRITE when nobody else sees what is written."""
S = TypeVar("S", bound="BaseScreen")


def requires_write(action: Callable[[S], object]) -> Callable[[S], None]:
    """Answer people who may not write with the reason, instead of performing the action."""

    @wraps(action)
    def guarded(self: S) -> None:
        if self.user.refusal is not None:
            self.hint(self.user.refusal)
        else:
            action(self)

    return guarded


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool of the kernel and its parameters."""

    tool: str
    params: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Arrangement:
    """A change of whole cells, and how it is taken back."""

    calls: tuple[ToolCall, ...]
    back: tuple[ToolCall, ...]
    blocks: frozenset[str]
    """Cells at which the person takes it back or makes it again."""
    focus: str
    """The cell to go to when it has been taken back."""
    undone: str
    """Sentence that says that it has been taken back."""
    made: tuple[str, str] | None = None
    """Cell that it made, with its text; once that is another, the change is not taken back."""


class OpenContext(Protocol):
    """The way to another context, and there to a cell, or to a text that is found in it."""

    def __call__(self, context: str, block: str | None, query: str = "") -> None: ...


class BaseScreen(BackgroundTaskMixin[None]):
    """Composes the widgets; knows what the person can do now, and fills header and sidebar."""

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
        self.mode = Mode.WRITE
        self.settings = settings or Settings()
        self._history = history
        self.keymap = KeyMap(self.settings.keys)
        self.user = session.user
        self.source = CellModel(
            session.document, presence=session.presence, user=session.user, clock=clock
        )
        self.source.ink.is_shown = self.settings.ink
        self.source.gutter = self.settings.gutter
        self.source.name_keys = self.keymap.name_keys
        self.source.before_answer = self._before_answer
        self.composer = Composer(draft, session.user)
        self.area = DocumentView(self.source)
        self.cells = self.area.cells
        self._session = session
        self._shows_tour = tour is not None
        self._tour = tour or Tour()
        self._asked_for = context
        self._switch_context = open_context
        self._keys = keys
        self._running_blocks = RunningBlocks(session.document)
        self._hints = hints
        self._frame = DocumentLayout(
            self.area,
            self.composer,
            hints,
            self.keymap,
            place=place,
            settings=self.settings,
        )
        self._kernel = KernelCalls(session, self.hint)
        self.models = KnownModels(self._kernel)
        self._text_undo = TextUndo(self._kernel)
        self._submitter = MessageSubmitter(
            session,
            draft,
            self.hint,
            shows_all=lambda: self.composer.shows_all and not self._frame.is_covered,
            ask=self._ask_to_run,
            cells=self.source,
            kernel=self._kernel,
            models=self.models,
            follow=self.follow_answer,
        )
        self._live = LiveWriters(
            self.source, self.cells, self._frame.live, self._frame.notice, clock
        )
        self.outline = OutlineView(self.source, self.area, self._frame.outline)
        self._following = Following(
            session,
            self.area,
            self.hint,
            self._publish_presence,
            read_all=self.read_all,
            clock=clock,
        )
        self._has_stopped_following = False
        """The last key has ended it."""
        self._blame = BlameView(self.cells, self.source, self._kernel)
        self._find = FindView(self.area, self.source, self._frame.find, self.run_last_of)
        self._contexts: Sequence[ContextName] = ()
        self._branched_at: Sequence[tuple[str, int]] = ()
        """Ids and versions of the contexts when it was last asked where they branch."""
        self._arriving: str | None = None
        """The block to go to when the document is there."""
        self._arriving_query = ""
        """The text to find in it."""
        self._decided: str | None = None
        """The call about which the person has decided last."""
        self.looked_at: Rejection | None = None
        """Rejected edits that the person has been shown."""
        self._focused_before: Widget | None = None
        """Widget that had the focus before the sidebar."""
        self._focused_before_find: Widget | None = None
        self._memory = memory
        self._preview: PreviewView | None = None
        """Blocks of the context that are shown until the document is here."""
        self._goes_first = False
        """The person waits for the first cell, which is not here."""
        self._brings_back = False
        """The person waits for cells that are not here, to choose one that is cut out."""
        self._asked_blocks = 0
        """Number of the last blocks that the kernel was asked for."""
        self._came_back = False
        """The view is where it was when this context was left."""
        self._retired = False
        self._status = session.status
        self._joins = JoinWatcher(session.options, self.hint)
        self._key_requests = KeyRequestWatcher(session.options, self._key_waits)
        self._away_since: float | None = None
        self._typing: Timer | None = None
        """Runs while the person counts as typing."""
        asked = session.document.headers(session.document.open_blocks())
        self._asked: dict[str, float | None] = {one.id: None for one in asked if one.is_undecided}
        """Calls that have begun to wait for somebody's decision, in that order, and when each was
        first on the screen."""
        self._answered_at: tuple[Mode, str | None, str | None] | None = None
        """The place of the person on which the keys depend that decide about calls."""
        self._clock = clock or SystemClock()
        self._undone_theirs: tuple[str, str] | None = None
        """Block and author of the edit that has just been undone: Ctrl+Y brings it back."""
        self._arranging = asyncio.Lock()
        """Held while whole cells are changed: u, pressed before the kernel answers, waits."""
        self._arranged: list[Arrangement] = []
        """Changes of whole cells since the last letter, the last of which u takes back."""
        self._disarranged: list[Arrangement] = []
        """Changes of whole cells that were taken back, the last of which Ctrl+Y makes again."""
        self._moving: str | None = None
        """The cell for which the person looks for another place."""
        self._stops: tuple[Callable[[], None], ...] = ()

    @property
    def shown_cells(self) -> BlockList:
        """The cells on the screen: those of the preview until the document is here."""
        return self.cells if self._preview is None else self._preview.cells

    def compose(self) -> ComposeResult:
        yield self._frame

    def hint(self, text: str, *, weighty: bool = False) -> None:
        """Say one sentence above the composer; no hint takes the place of a weighty one."""
        if (shown := self.shown_now) is not self:
            shown.hint(text, weighty=weighty)
        else:
            self._frame.notice.show_hint(self.keymap.name_keys(text), weighty=weighty)

    @property
    def shown_now(self) -> BaseScreen:
        """This screen, or the one that has taken its place below a page that was opened here."""
        first = self.app.screen_stack[0] if self._retired else self
        return first if isinstance(first, BaseScreen) else self

    @property
    def hint_shown(self) -> str | None:
        return self._frame.notice.hint

    async def _ask_to_run(self, command: str, reason: str) -> bool:
        """Show a command and why it is asked about; return whether the person has it run."""
        return await self.app.push_screen_wait(CommandModal(command, reason))

    def _key_waits(self, key: WaitingKey) -> None:
        """Tell that somebody waits; nothing is asked while the person may be typing."""
        self.hint(f"{key.words}: <key:palette>, Let somebody in who waits.", weighty=True)

    def read_earlier(self, blocks: int) -> None:
        """Ask for so many of the last cells, once: another screen shows them."""
        if blocks > self._asked_blocks and self._session.is_live:
            self._asked_blocks = blocks
            self.run_one_of("earlier", partial(self._session.read_earlier, blocks))

    def read_all(self) -> None:
        """Ask for every earlier cell, if there are some."""
        if self._session.omitted:
            self.read_earlier(self._session.omitted + len(self._session.document))

    # Work in the background

    def run_in_background(self, work: Coroutine[Any, Any, object]) -> None:
        self.run_worker(work, exit_on_error=False)

    def run_last_of(self, group: str, work: WorkType[None]) -> None:
        """Do this beside everything else; of a group only the last one goes on.

        It takes a function: of a coroutine that is dropped before it begins Python warns.
        """
        self.run_worker(work, group=group, exclusive=True, exit_on_error=False)

    def follow_answer(self, context: str) -> None:
        """Show the end of a context, where a model has been asked to answer."""
        if context == self._session.document.context:
            self.cells.to_tail()
        else:
            self._switch_context(context, None)

    def _show_drafts(self) -> None:
        self._frame.drafts.show(self.source.drafts())

    # What can be done now

    @property
    def mode_word(self) -> str:
        """The mode as a person is told it: who may not write is never in a mode for it."""
        writing = self.mode in (Mode.WRITE, Mode.EDIT)
        if writing and self.user.refusal is not None:
            return READING
        is_private = self.mode is Mode.WRITE and self.composer.draft.is_private
        return PRIVATE if is_private else self.mode.value

    @property
    def situation(self) -> ActionContext:
        session, cells, target = self._session, self.cells, self._interrupt_target()
        status, reading = session.status, self.user.refusal is not None
        block = cells.focused_cell
        header = None
        if block is not None and block in session.document:
            header = session.document.header(block)
        me = session.me
        return ActionContext(
            mode=self.mode,
            mode_word=self.mode_word,
            live=session.is_live,
            composing=bool(self.composer.draft.text),
            selecting=bool(self._selection()),
            stoppable=(
                target.words if target is not None and session.is_live and not reading else None
            ),
            following=cells.following,
            company=bool(session.presence()),
            writer=self._following.waits_for_me or self._live.shown_name,
            finding=self._find.is_open,
            moving=self._moving is not None,
            unread=cells.unread_lines > 0,
            focused=header is not None,
            theirs=header is not None and me is not None and header.author != me.principal,
            branched=block is not None and self.source.branches.siblings(block) is not None,
            own_message=(
                header is not None
                and me is not None
                and header.author == me.principal
                and header.role == Role.USER
                and header.kind == BlockKind.TEXT
                and header.status == Status.DONE
            ),
            answered=(
                header is not None
                and header.role == Role.MODEL
                and header.status in (Status.DONE, Status.ERROR)
            ),
            asks=header is not None and self.source.may_decide(header),
            waiting=self.asked_call is not None,
            revising=self._submitter.is_revising,
            folded=bool((editor := self._editor()) and editor.document.labels),
            private=self.composer.draft.is_private,
            foldable=header is not None
            and (
                header.kind != BlockKind.TOOL_CALL or header.status in (Status.DONE, Status.ERROR)
            ),
            is_result=header is not None and header.kind == BlockKind.TOOL_RESULT,
            reading=reading,
            running=self.user.may_run_commands,
            refused=status.refused is not None,
            key_waits=self._key_requests.first is not None,
            shut_out=status.is_rejected,
        )

    @property
    def asked_call(self) -> str | None:
        """The first call that waits for a decision of the person here."""
        return next((header.id for header in self._asking()), None)

    def _asking(self) -> Iterator[BlockHeader]:
        """Return the calls that wait for a decision of the person here."""
        return (header for header in self._waiting() if self.source.may_decide(header))

    def _waiting(self) -> Iterator[BlockHeader]:
        """Return the calls that wait for a decision, whoever may decide."""
        document = self._session.document
        headers = (document.header(block) for block in self._asked if block in document)
        return (one for one in headers if one.is_undecided)

    def _before_answer(self, block: str) -> str:
        """Return what leads to where keys decide about a call: elsewhere they are text."""
        if self.mode is Mode.NAVIGATE and self.cells.focused_cell == block:
            return ""
        is_next = self.mode is Mode.WRITE and block == self.asked_call
        return "Esc, then " if is_next else "In this cell: "

    def _show_answer_keys(self) -> None:
        """Say below the calls that wait which keys decide about them from here."""
        place = (self.mode, self.cells.focused_cell, self.asked_call)
        if place != self._answered_at:
            self._answered_at = place
            self.source.redraw_questions(self._asked)

    def _note_questions(self) -> None:
        """Remember when the calls that wait were first on the screen."""
        for block, since in self._asked.items():
            if since is None and self.cells.viewport.seen_rows(block):
                self._asked[block] = self._clock.monotonic()

    def _has_just_appeared(self, question: str) -> bool:
        """Return whether the person cannot have read a question: a key of theirs is no answer."""
        since = self._asked.get(question)
        return since is None or self._clock.monotonic() - since < READ_SECONDS

    def _choose_next_asked(self) -> None:
        """Go from a call that was decided about to the next one that waits."""
        following = next((one.id for one in self._asking() if one.id != self._decided), None)
        at_decided = self._decided is not None and self.cells.focused_cell == self._decided
        if following is not None and at_decided and self.mode is Mode.NAVIGATE:
            self.cells.focus_cell(following)

    def _interrupt_target(self) -> InterruptTarget | None:
        me = self._session.me
        principal = me.principal if me is not None else None
        return self._running_blocks.target(self._current_block(), principal, self._turns())

    def _turns(self) -> list[PresenceState]:
        present = self._session.presence().values()
        models = (one for one in present if one.kind == PrincipalKind.MODEL)
        return [one for one in models if one.activity == Activity.STREAMING]

    def _is_streaming(self, principal: str) -> bool:
        return any(one.principal == principal for one in self._turns())

    def _editor(self) -> CellEditor | None:
        if self.mode is Mode.WRITE:
            return self.composer.editor
        return self.area.editor if self.mode is Mode.EDIT else None

    def _current_block(self) -> str | None:
        if self.mode is Mode.WRITE:
            return self.composer.draft.block
        editor = self._editor()
        return self.cells.focused_cell if editor is None else editor.block

    def _selection(self) -> str:
        editor = self._editor()
        return self.get_selected_text() or "" if editor is None else editor.selected_text

    def _update(self) -> None:
        situation = self.situation
        self._frame.footer.situation = situation
        self._frame.notice.mode = situation.mode_word
        self.composer.editor.says = self._placeholder()
        self._suggest()
        self._frame.first_page.content = self._first_page()

    def _first_page(self) -> FirstPageContent | None:
        """Return what an empty context says; None if there is something in this one."""
        document = self._session.document
        if not self._came_back or self.composer.draft.text or self._shows_tour:
            return None
        # A message on its way is a draft, and shown.
        for block in document.block_ids():
            if not document.is_draft(block) or self.source.deliveries.label(block):
                return None
        keys = {action.name: action.keys for action in self.keymap.actions}
        named = (("send", "sends what you write below"), ("palette", "everything, by name"))
        models, may_write = self.models.here, self.user.refusal is None
        shown = [
            (shown_key(keys[name][0]), does)
            for name, does in named
            if keys[name] and (may_write or name != "send")
        ]
        if may_write:
            does = "runs a command, as in !ls; / lists commands"
            may_run = self.user.may_run_commands
            shown.append(("!", does) if may_run else ("/", "lists commands"))
        answers = [self.models.nobody] if self.models.is_known else []
        if not may_write:
            answers = ["Nothing has been written here yet."]
        elif models.default is not None:
            others = [name for name in models.names if name != models.default]
            answers = [f"{models.default} answers."]
            if others:
                answers = [f"{models.default} answers; @ addresses {join_names(others)}."]
        latest = sorted(self.contexts, key=lambda one: one.version, reverse=True)
        return FirstPageContent(
            keys=shown,
            answers=answers,
            contexts=[
                (one.label, f"●{one.unread}" if one.unread else "")
                for one in latest[:FIRST_PAGE_CONTEXTS]
            ],
        )

    def _placeholder(self) -> Sequence[str]:
        """Return what an empty message says in this mode: what it is for, and the way out."""
        key = self.keymap.shown_key("write")
        to_write = (f"{key} to write",) if key else ()
        if (denial := self.user.denial) is not None:
            return tuple(map(self.keymap.name_keys, denial.instead))
        if self.composer.draft.is_private:
            shares = self.keymap.name_keys("<key:private> shares")
            return "Private: seen by nobody until sent", shares
        match self.mode:
            case Mode.WRITE:
                what = "Message, or !command" if self.user.may_run_commands else "Message"
                return what, "Esc ends the search" if self._find.is_open else "Esc to the cells"
            case Mode.EDIT:
                return ("Esc leaves the cell",)
            case Mode.NAVIGATE:
                return to_write
            case _:
                return ("Esc goes back",)

    def _suggest(self) -> None:
        notice, name = self._frame.notice, self._following.name
        if name is not None:
            notice.suggest(f"{name} · any key stops", label="FOLLOWING")
        elif legend := self._blame.legend():
            notice.suggest(legend, label="BLAME")
        else:
            text = self._tour.hint_text if self._shows_tour else None
            notice.suggest(text and self.keymap.name_keys(text))

    def _publish_presence(self) -> None:
        """Tell the others in which cell the person is, where in it, and what they see of it."""
        block, editor = self._current_block(), self._editor()
        cursor, anchor = None, None
        if editor is not None and block is not None:
            cursor, anchor = editor.cursor_offset, editor.anchor_offset
        draft = self.composer.draft
        is_seen = bool(draft.text) and not draft.is_private
        may_type = self.mode is Mode.EDIT or (self.mode is Mode.WRITE and is_seen)
        is_typing = self._typing is not None and may_type
        self._session.replica.set_presence(
            block,
            cursor,
            anchor,
            Activity.TYPING if is_typing else Activity.IDLE,
            view=self.cells.shown.first_place(),
            pointer=self._following.pointer,
            gathers=self._following.gathers,
        )

    # Following

    @property
    def to_follow(self) -> Sequence[PresenceState]:
        return self._following.others()

    def follow(self, principal: str) -> None:
        """Keep the view at what somebody else sees or writes, until the first key."""
        if (shown := self.shown_now) is not self:
            shown.follow(principal)
        else:
            self._following.follow(principal)
            self._update()

    def stop_following(self) -> bool:
        """Follow nobody any more, at each key; whether somebody was followed."""
        self._has_stopped_following = self._following.stop()
        if self._has_stopped_following:
            self._update()
        return self._has_stopped_following

    # Header and sidebar

    @property
    def label(self) -> str:
        return displayable_in_a_row(self._session.document.label or self._asked_for)

    @property
    def contexts(self) -> Sequence[ContextName]:
        """The other contexts of the kernel as it listed them last."""
        here = self._session.document.context
        return [one for one in self._contexts if one.id != here]

    def choose_model(self, name: str) -> None:
        """Let a model answer the messages in this context that name none."""
        self.run_in_background(self.models.choose(name))

    def _models_changed(self) -> None:
        if not self._retired:
            self._update_participants()
            self._update()

    def label_of(self, context: str) -> str | None:
        """Return the label of a context of the kernel, as far as it is known."""
        if context == self._session.document.context:
            return self.label
        return next((one.label for one in self._contexts if one.id == context), None)

    def _update_sidebar(self) -> None:
        """The sidebar may have come or gone, or may be out of date."""
        if self._frame.has_sidebar:
            self._show_contexts()
            self._list_contexts()
        elif self.focused is self._frame.sidebar:
            self._leave_sidebar()
        self._update_participants()

    def _leave_sidebar(self) -> None:
        before = self._focused_before
        if before is None or not before.is_attached:
            before = self.composer.editor
        before.focus(scroll_visible=False)

    def _list_contexts(self) -> None:
        if self._session.is_live:
            self.run_one_of("contexts", self._fetch_branches)

    async def _fetch_branches(self) -> None:
        """Ask which contexts there are, and if some are forks, which messages here branch."""
        await self.fetch_contexts()
        now = [(one.id, one.version) for one in self._contexts]
        if now == self._branched_at:
            return
        has_forks = any(one.source is not None for one in self._contexts)
        found = await self._siblings() if has_forks else {}
        if found is not None and not self._retired:
            self._branched_at = now
            self.source.branches.show(found)
            self._update()

    async def _siblings(self) -> Mapping[tuple[str, ...], Siblings] | None:
        """Return the siblings of each message that has some, by its blocks; None if not said."""
        params = {"context": self._session.document.context}
        result = await self._kernel.call(
            "message.branches", params, "The branches cannot be listed"
        )
        if result is None:
            return None
        return {
            tuple(one["blocks"]): Siblings(
                one["position"], tuple(map(MessageLocation.of, one["siblings"]))
            )
            for one in result["messages"]
        }

    async def fetch_contexts(self) -> None:
        if not self._session.is_live:
            return
        self._contexts = await list_contexts(self._kernel, self._memory.seen())
        here = self._session.document.context
        self.source.show_labels({one.id: displayable_in_a_row(one.label) for one in self._contexts})
        for one in self._contexts:
            if one.id == here:
                self._memory.saw(one.id, one.version)
        self._show_contexts()
        self._update_participants()
        self._update()

    async def refresh_contexts(self) -> None:
        """As `fetch_contexts`, but do not wait long for the kernel's answer."""
        asked = asyncio.create_task(self.fetch_contexts(), name="contexts")
        await asyncio.wait({asked}, timeout=CONTEXTS_SECONDS)

    def _show_contexts(self) -> None:
        """This context is among them, also one that is archived."""
        here = self._session.document.context
        named = [
            one if one.id != here else one._replace(label=self.label) for one in self._contexts
        ]
        if not any(one.id == here for one in named):
            mark = " · archived" if self._session.document.archived else ""
            named.append(ContextName(here or "", self.label + mark))
        self._frame.sidebar.show_contexts(named, here or "")

    def participants(self) -> Sequence[Participant]:
        """Return the people present, with what they do."""
        others = self._session.presence().values()
        waiting = {one.author: WAITS for one in self._waiting()}
        waiting.update((one.author, ASKS) for one in self._asking())
        return participants(self._session.me, others, waiting)

    def _update_participants(self) -> None:
        """Update the people present, in the header and, with their cells, in the sidebar."""
        people = self.participants()
        status = self._session.status
        if status.reason is not None:
            status = replace(status, reason=self.keymap.name_keys(status.reason))
        if status.refused is self.looked_at:
            status = replace(status, refused=None)
        self._frame.header.show(self.label, people, status, self.models.here.use)
        if self._frame.has_sidebar:
            self._frame.sidebar.show_people(
                [participant_rows(one, self._number(one), self.mode_word) for one in people]
            )
        if not self._retired:
            unread = sum(one.unread for one in self.contexts)
            self.app.title = terminal_title(self.label, people, unread)

    def _number(self, person: Participant) -> int | None:
        """Return the cell somebody is in, counted from 1; None in a draft or nowhere."""
        block = self._current_block() if person.is_me else person.block
        # A screen that is being replaced has another document than the session.
        if block is None or block not in self.source.document or self.source.is_hidden(block):
            return None
        return self._number_of(block)

    def _number_of(self, block: str) -> int:
        """Return the place of a block among all, counted from 1."""
        return self._session.omitted + self.source.document.order.index(block) + 1
