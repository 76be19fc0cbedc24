"""Blocks of a document as cells: which are shown, folded, changed, and whose cursor is where.

Messages are on their way, wait for a model, and have a place among branches.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from antiphon.local_user import LocalUser
from antiphon.render.cell_renderer import FOLDED_RESULT_LINES
from antiphon.render.differences import is_edit
from antiphon.render.display import displayable_in_a_row
from antiphon.render.view import (
    OWN_NAME,
    CellView,
    ReferredLines,
    permission_question,
    queue_label,
    server_question,
)
from antiphon.widgets.block_list.gutter import GutterWidth
from antiphon.widgets.block_list.remote_cursors import Ink, RemoteCursors, Writer
from antiphon_kernel.document.changes import REMOTE, DocumentChange, TextChange
from antiphon_kernel.document.document import Document
from antiphon_kernel.document.rendering import render
from antiphon_kernel.document.schema import TEXT
from antiphon_kernel.text.lines import line_count
from antiphon_kernel.types.block_metadata import (
    CHOICES,
    SUMMARY_TYPE,
    is_cut_out,
    open_question,
    stands_for_earlier,
)
from antiphon_kernel.types.clock import Clock, SystemClock
from antiphon_kernel.types.enums import Activity, BlockKind, Role, Status
from antiphon_kernel.types.presence import PresenceState, TextPlace
from antiphon_kernel.types.records import BlockHeader
from antiphon_kernel.types.signal import Signal


@dataclass(eq=False)
class Deliveries:
    """States of messages until they are answered."""

    _document: Document
    _redraw: Callable[[Iterable[str], tuple[str, ...]], None]
    sending: dict[str, None] = field(default_factory=dict)
    """Drafts of one's own that are shown as messages on their way, in their order."""
    _queue: Mapping[str, int] = field(default_factory=dict)
    """Messages that wait for their answer, by their place among those of a model, from 2 on."""

    def begin(self, block: str) -> None:
        """Show a draft of one's own as a message on its way, until it is submitted."""
        self.sending[block] = None
        self._redraw([block], (block,))

    def cancel(self, block: str) -> None:
        """Show the message as a draft again: the kernel has not accepted it."""
        if block in self.sending:
            del self.sending[block]
            self._redraw([block], (block,))

    def finish(self, block: str) -> bool:
        """Let go of a message that has been submitted; return whether it was on its way."""
        is_finished = block in self.sending and not self._document.is_draft(block)
        if is_finished:
            del self.sending[block]
        return is_finished

    def label(self, block: str) -> str:
        """Return the state of a message: `sending`, `queued · 2nd`, or nothing."""
        if block in self.sending:
            return "sending"
        position = self._queue.get(block)
        return "" if position is None else queue_label(position)

    def update_queue(self, states: Iterable[PresenceState]) -> set[str]:
        """Count the waiting messages of each model; return those whose position is another."""
        waiting = [
            (self._document.header(one.block).order, one.block, one.principal)
            for one in states
            if one.activity == Activity.WAITING and one.block in self._document and one.block
        ]
        answered: dict[str, int] = {}
        positions: dict[str, int] = {}
        for _, block, model in sorted(waiting):
            answered[model] = answered.get(model, 1) + 1
            positions[block] = max(positions.get(block, 0), answered[model])
        before, self._queue = self._queue, positions
        return {block for block, _ in before.items() ^ positions.items()}


_ANSWER_DEPTH: Final = 2
"""Steps from a block of an answer to the message that it answers: a result is below its call."""


@dataclass(frozen=True, slots=True)
class MessageLocation:
    """A message in its context."""

    context: str
    block: str

    @classmethod
    def of(cls, told: Mapping[str, Any]) -> MessageLocation:
        """Return the message that the result of a tool is about."""
        return cls(told["context_id"], told["message_id"])


@dataclass(frozen=True, slots=True)
class Siblings:
    """The messages that stand in one place in the branches of a conversation."""

    position: int
    """The one that is shown, from 0."""
    places: tuple[MessageLocation, ...]
    """Of all of them, oldest branch first."""


class Branches:
    """Siblings of the messages of a document, as the kernel listed them last."""

    def __init__(self, document: Document, redraw: Callable[[Iterable[str]], None]) -> None:
        self._document = document
        self._redraw = redraw
        self._siblings: Mapping[str, Siblings] = {}
        """Of each block of a message that has some."""
        self._answers: dict[str, Siblings] = {}
        """Siblings of the first answer that has some, by the message that is answered."""
        self.labels: Mapping[str, str] = {}
        """Places among its siblings of each message, by the block that it ends with: `‹ 2/3 ›`."""

    def siblings(self, block: str) -> Siblings | None:
        """Return the siblings of the message that a block is of; None if it has none.

        An answer is several messages, with thinking and calls: those of the first that has some.
        """
        found = self._siblings.get(block)
        for _ in range(_ANSWER_DEPTH):
            if found is not None or block not in self._document:
                break
            header = self._document.header(block)
            if header.role == Role.USER or header.parent is None:
                break
            block = header.parent
            found = self._answers.get(block)
        return found

    def show(self, found: Mapping[tuple[str, ...], Siblings]) -> None:
        """Mark messages, each given as its blocks, that have siblings; all others have none."""
        self._siblings = {block: one for blocks, one in found.items() for block in blocks}
        self._answers = {}
        for block, one in self._siblings.items():
            header = self._document.header(block) if block in self._document else None
            if header is not None and header.parent is not None and header.role != Role.USER:
                self._answers.setdefault(header.parent, one)
        labels = {
            blocks[-1]: f"‹ {one.position + 1}/{len(one.places)} ›" for blocks, one in found.items()
        }
        changed = {block for block, _ in self.labels.items() ^ labels.items()}
        self.labels = labels
        self._redraw(block for block in changed if block in self._document)


BULK = 64
"""From so many new blocks in one change on, their headers are read later."""


BULK_TEXTS = 8
"""Texts that are changed at once by somebody who writes, at most."""


@dataclass(frozen=True, slots=True)
class Draft:
    """Text that somebody else is writing and has not submitted."""

    block: str
    username: str
    colour: int
    text: str


@dataclass(frozen=True, slots=True)
class CellChange:
    """Changes to the cells by one transaction, one presence change or one fold."""

    changed: frozenset[str] = frozenset()
    """Cells that look different, new ones included."""
    added: tuple[str, ...] = ()
    moved: tuple[str, ...] = ()
    texts: tuple[TextChange, ...] = ()
    drafts: bool = False
    """`CellModel.drafts` says something else now."""
    streamed: bool = False
    """Only a model's or a tool's appending: may wait for the next frame."""
    ended: bool = False
    """A model has finished a cell."""


class CellModel:
    """A document as the person at this screen sees it.

    Drafts, one's own and others', are blocks but not cells: `is_hidden` is true of them. A message
    of one's own on its way to the kernel is a cell at the end.
    """

    def __init__(
        self,
        document: Document,
        *,
        me: str | None = None,
        presence: Callable[[], Mapping[int, PresenceState]] = dict,
        user: LocalUser | None = None,
        clock: Clock | None = None,
    ) -> None:
        """`me` is the principal id of the person here; `presence` is everybody else's."""
        self.document = document
        self.user = user or LocalUser()
        self.me = me
        """Principal id of the person here; None until the kernel has said it."""
        self._presence = presence
        clock = self._clock = clock or SystemClock()
        self.cursors = RemoteCursors(clock)
        """Of everybody else."""
        self.ink = Ink(clock)
        self.in_replay = False
        """Time passes when `fade` is called, and nothing is unread."""
        self.gutter: GutterWidth = "auto"
        """Width of the gutter beside the cells."""
        self.is_file = False
        """The one cell is a file that fills the page."""
        self.name_keys: Callable[[str], str] = str
        """Writes the keys of actions where a text names these."""
        self.before_answer: Callable[[str], str] = lambda _: ""
        """Says what is to be done before keys decide about a call."""
        self.versions = Counter[str]()
        """Of cells: each grows with everything that `view` says."""
        self.views: dict[str, CellView] = {}
        """Of cells that somebody looks at; those of others can be taken out."""
        self.folds: dict[str, bool] = {}
        """Cells that the person has folded (True) and opened."""
        self._came_collapsed: dict[str, bool] = {}
        self._drafts: set[str] = set()
        self._summaries: set[str] = set()
        self._read_from: str | None = None
        self._unread_headers: list[str] = list(document.block_ids())
        self.changed = Signal[CellChange]()
        self.close: Final = document.watch(self._document_changed)
        """Ends the following of the document."""
        self.branches = Branches(document, self._redraw)
        self.deliveries = Deliveries(document, self._redraw)
        self._referred: dict[str, ReferredLines] = {}
        self._labels: Mapping[str, str] = {}
        """Of contexts, by id."""
        self._ticks = 0
        self.cursors.update_presence(presence())

    def identify(self, principal: str) -> None:
        """Take somebody for the person here from now on."""
        if principal != self.me:
            self.me = principal
            self._unread_headers = list(self.document.block_ids())
            self._redraw(self.views, drafts=True)

    # Reading

    def ids(self) -> Sequence[str]:
        """All blocks in order, hidden ones included."""
        return self.document.block_ids()

    def block_before(self, block: str) -> str | None:
        """The block in front of this one on the screen: messages on their way are behind all."""
        ids = self.document.block_ids()
        if block in self.deliveries.sending:
            before = (one for one in reversed(ids) if one not in self.deliveries.sending)
            sent = list(self.deliveries.sending)
            at = sent.index(block)
            return sent[at - 1] if at else next(before, None)
        if ids[-1] == block:
            at = len(ids) - 1
        else:
            place = (self.document.header(block).order, block)
            at = bisect_left(ids, place, key=lambda one: (self.document.header(one).order, one))
        return ids[at - 1] if at else None

    def header(self, block: str) -> BlockHeader:
        """Raises KeyError."""
        header = self.document.header(block)
        if header.author != self.me and self.document.is_draft(block):
            self._drafts.add(block)
        if header.metadata.get("type") == SUMMARY_TYPE:
            self._summaries.add(block)
        return header

    def is_hidden(self, block: str) -> bool:
        """A draft, or cut out: not shown among the cells."""
        header = self.header(block)
        if is_cut_out(header):
            return True
        return self.document.is_draft(block) and block not in self.deliveries.sending

    def cut_out_blocks(self) -> list[str]:
        return [block for block in self.ids() if is_cut_out(self.document.header(block))]

    def text(self, block: str) -> str:
        """The text of a cell: of a block with a schema, its content as it is rendered."""
        return render(self.document, block)

    def view(self, block: str) -> CellView:
        """Raises KeyError."""
        version = self.versions[block]
        view = self.views.get(block)
        if view is not None and view.version == version:
            return view
        header = self.document.header(block)
        view = self.views[block] = CellView(
            header,
            self.text(block),
            version,
            author=self.name(header.author)[0],
            ticks=self._ticks,
            stopped_by=self._stopper(header.stopped_by),
            question=self._question(header),
            is_sending=block in self.deliveries.sending,
            collapsed=self.is_folded(block),
            siblings=self.branches.labels.get(block, ""),
            source_context=self._labels.get(header.source_context or ""),
            is_read_from=block == self._read_from,
            referred=self._referred.get(block),
            is_told_above=self._is_told_above(header),
            is_page=self.is_file,
        )
        return view

    def _is_told_above(self, header: BlockHeader) -> bool:
        if header.kind != BlockKind.TOOL_RESULT or header.is_error or header.parent is None:
            return False
        return header.parent in self.document and is_edit(self.document.header(header.parent))

    def name(self, principal: str) -> tuple[str, int]:
        """Username and colour slot of a principal."""
        member = self.document.member(principal)
        if member is not None:
            return displayable_in_a_row(member.username), member.colour
        for state in self._presence().values():
            if state.principal == principal:
                return displayable_in_a_row(state.username), state.colour
        return displayable_in_a_row(principal[:8]), 0

    def shown_name(self, principal: str) -> tuple[str, int]:
        """Name and colour slot as this person reads them: they are `you` themselves."""
        name, colour = self.name(principal)
        return OWN_NAME if principal == self.me else name, colour

    def is_folded(self, block: str) -> bool:
        """Return the person's choice, else True for thinking and long results, else as it came."""
        chosen = self.folds.get(block)
        if chosen is not None:
            return chosen
        header = self.document.header(block)
        if header.kind == BlockKind.THINKING:
            return True
        if header.kind == BlockKind.TOOL_RESULT:
            most = 1 if self._is_told_above(header) else FOLDED_RESULT_LINES
            return line_count(self.text(block)) > most
        return self._came_collapsed.setdefault(block, header.collapsed)

    def take_folds(self, folds: Mapping[str, bool]) -> None:
        """Fold and open cells as the person has on another screen."""
        self.folds |= folds
        self._redraw(block for block in folds if block in self.document)

    def set_folded(self, blocks: Iterable[str], folded: bool) -> None:
        folds = dict.fromkeys(blocks, folded)
        self.folds |= folds
        self._redraw(folds)

    def show_lines(self, block: str, lines: ReferredLines) -> None:
        """Show the lines of a file in the cell that refers to them."""
        if lines != self._referred.get(block):
            self._referred[block] = lines
            self._redraw([block])

    def show_labels(self, labels: Mapping[str, str]) -> None:
        """Name the contexts that cells come from by their labels."""
        if labels == self._labels:
            return
        self._labels = labels
        self._redraw(block for block, one in self.views.items() if one.header.source_context)

    def point(self, place: TextPlace | None) -> None:
        """Mark the text that the person here points at."""
        name, colour = self.name(self.me) if self.me is not None else ("", 0)
        touched = self.cursors.point(0, place, OWN_NAME if name else "", colour)
        self.changed.notify(CellChange(changed=frozenset(touched)))

    def writers(self) -> list[Writer]:
        """Return others who are writing in cells, who has begun last first."""
        return [
            one
            for one in self.cursors.writers()
            if one.block in self.document and not self.is_hidden(one.block)
        ]

    def drafts(self) -> list[Draft]:
        """Of others, in document order; empty ones are left out."""
        headers = map(self.document.header, self._drafts)
        others = [
            one for one in headers if one.author != self.me and self.document.is_draft(one.id)
        ]
        self._drafts = {one.id for one in others}
        others.sort(key=lambda one: (one.order, one.id))
        texts = ((one, self.text(one.id)) for one in others)
        return [Draft(one.id, *self.name(one.author), text) for one, text in texts if text]

    def edit_denied_reason(self, block: str, *, to_read: bool = False) -> str | None:
        """A sentence for the person, or None if the cell can be edited in place, or read so."""
        if block not in self.document:
            return "This cell is not there any more."
        if self.user.refusal is not None and not to_read:
            return self.user.refusal
        header = self.document.header(block)
        if block in self.deliveries.sending:
            return "This message is on its way: it can be edited when it has arrived."
        if header.kind == BlockKind.TOOL_CALL:
            return "A tool call stays as it was made: a copy of it can be edited and sent."
        if header.author != self.me and self.document.is_draft(block):
            name, _ = self.name(header.author)
            return f"{name} is still writing this: only {name} changes it before it is sent."
        if header.kind == BlockKind.TOOL_RESULT:
            return "This is what a tool gave, and it stays as it is: y copies it."
        if self.document.schema(block) != TEXT:
            return "This cell has a schema: its fields are set by tools, like block.set_field."
        return None

    # Following

    def preload(self, count: int = 1_000) -> bool:
        """Look for drafts among so many blocks that came in bulk, newest first; False at the end.

        Reading the headers of a long document at once would stop everything else.
        """
        behind = max(0, len(self._unread_headers) - count)
        blocks = self._unread_headers[behind:]
        del self._unread_headers[behind:]
        known = self.document
        for block in known.blocks_with_metadata(blocks, SUMMARY_TYPE):
            self.header(block)
        hidden = frozenset(block for block in known.open_blocks(blocks) if self.is_hidden(block))
        changed = hidden | self._follow_summaries()
        if changed:
            self.changed.notify(CellChange(changed=changed, drafts=bool(hidden)))
        return bool(self._unread_headers)

    def presence_changed(self) -> None:
        """Read the presence again: call it from `Replica.presence_changed`."""
        touched, only_models = self.cursors.update_presence(self._presence())
        queued = self.deliveries.update_queue(self._presence().values())
        touched |= queued
        only_models = only_models and not queued
        if touched:
            self.changed.notify(CellChange(changed=frozenset(touched), streamed=only_models))

    def is_call_running(self, block: str) -> bool:
        if block not in self.document:
            return False
        header = self.document.header(block)
        return header.kind == BlockKind.TOOL_CALL and header.status == Status.RUNNING

    def tick(self, blocks: Iterable[str]) -> None:
        """Let the signs of running calls move on."""
        self._ticks += 1
        self._redraw(blocks, streamed=True)

    @property
    def next_fade(self) -> float | None:
        """Seconds until `fade` changes something; None if nothing does."""
        fades = (self.cursors.next_fade, self.ink.next_fade)
        return min((one for one in fades if one is not None), default=None)

    def fade(self) -> None:
        """Take away flags of cursors that have not moved for a while, and let new text age."""
        touched = self.cursors.fade() | self.ink.fade()
        if touched:
            self.changed.notify(CellChange(changed=frozenset(touched), streamed=True))

    def rewind(self) -> None:
        """Forget what has happened lately: the clock shows another time next."""
        is_shown = self.ink.is_shown
        self.cursors, self.ink = RemoteCursors(self._clock), Ink(self._clock)
        self.ink.is_shown = is_shown

    def _document_changed(self, change: DocumentChange) -> None:
        is_bulk = len(change.added) > BULK
        streamed = change.origin == REMOTE and not is_bulk
        ended, touched = False, change.touched
        drafts = not self._drafts.isdisjoint(touched)
        if is_bulk:
            self._unread_headers += change.added
        for block in () if is_bulk else change.added:
            header = self.header(block)
            streamed = streamed and header.role != Role.USER
            ended = ended or _has_ended(header)
        moved: list[str] = []
        for header_change in change.headers:
            block = header_change.block
            header = self.header(block)
            streamed = streamed and header.role != Role.USER
            ended = ended or ("status" in header_change.fields and _has_ended(header))
            if self.deliveries.finish(block) or not header_change.fields.isdisjoint(
                ("order", "excluded")
            ):
                moved.append(block)
        # Inside a content with a schema, offsets are not those of the cell.
        texts = tuple(text for text in change.texts if text.section is None)
        is_new = change.origin == REMOTE and len(texts) <= BULK_TEXTS
        for text in texts:
            grown = sum(len(one.inserted) - one.deleted for one in text.splices)
            length = self.document.length(text.block) - grown
            is_marked = is_new and self.ink.is_shown and not self.is_hidden(text.block)
            self.ink.follow(
                text,
                self.document.header(text.block) if is_marked else None,
                length,
                self.cursors.colour_at,
                self.text,
            )
            streamed = self._follow_text(text, length) and streamed
        changed = self._mark_changed(touched)
        if not self._summaries.isdisjoint(changed):
            changed |= self._follow_summaries()
        self.changed.notify(
            CellChange(
                changed=changed,
                added=change.added,
                moved=tuple(moved),
                texts=texts,
                drafts=drafts or not self._drafts.isdisjoint(touched),
                streamed=streamed,
                ended=ended,
            )
        )

    def _follow_summaries(self) -> frozenset[str]:
        """Find the summary that models read from; return the cells that look different by it."""
        header, text = self.document.header, self.document.peek_text
        before = self._read_from
        self._read_from = max(
            (block for block in self._summaries if stands_for_earlier(header(block), text(block))),
            key=lambda block: (header(block).order, block),
            default=None,
        )
        if self._read_from == before:
            return frozenset()
        both = before, self._read_from
        return self._mark_changed(block for block in both if block is not None)

    def _follow_text(self, text: TextChange, length: int) -> bool:
        """Carry cursors along; True if it is what a model or a tool appended to its own block.

        `length` is that of the text before the change.
        """
        if text.splices:
            self.cursors.shift(text.block, text.splices)
        elif self.cursors.of(text.block):
            self.cursors.move_to_end(text.block, len(self.document.text(text.block)))
        appended = True
        for splice in text.splices:
            appended = appended and not splice.deleted and splice.offset == length
            length += len(splice.inserted)
        header = self.document.header(text.block)
        return appended and header.role != Role.USER and header.status == Status.RUNNING

    def _redraw(
        self,
        blocks: Iterable[str],
        moved: tuple[str, ...] = (),
        *,
        drafts: bool = False,
        streamed: bool = False,
    ) -> None:
        """Have cells drawn again that look different, though their text is the same."""
        changed = self._mark_changed(blocks)
        if changed or drafts:
            self.changed.notify(CellChange(changed, moved=moved, drafts=drafts, streamed=streamed))

    def _mark_changed(self, blocks: Iterable[str]) -> frozenset[str]:
        changed = frozenset(blocks)
        for block in changed:
            self.versions[block] += 1
        return changed

    def _question(self, header: BlockHeader) -> str:
        if (asked := open_question(header)) is not None:
            before, may = self.before_answer(header.id), self.may_decide(header)
            return self.name_keys(server_question(asked, may_decide=may, before=before))
        if not header.is_undecided:
            return ""
        asker = displayable_in_a_row(self._stopper(header.runs_for) or "somebody")
        may = self.may_decide(header)
        question = permission_question(
            asker,
            is_own=asker == OWN_NAME,
            may_decide=may,
            before=self.before_answer(header.id),
            choices=header.metadata.get(CHOICES),
        )
        return self.name_keys(question)

    def may_decide(self, header: BlockHeader) -> bool:
        """Return whether a call waits for a decision or an answer that is the person's here."""
        if open_question(header) is not None:
            return self.user.is_owner
        if not header.is_undecided:
            return False
        return self.user.may_decide(is_asker=self._stopper(header.runs_for) == OWN_NAME)

    def redraw_questions(self, blocks: Iterable[str]) -> None:
        """Draw calls that wait again: the person decides about others, or by other keys."""
        views = ((block, self.views.get(block)) for block in blocks)
        self._redraw([block for block, view in views if view is not None and view.question])

    def _stopper(self, username: str | None) -> str | None:
        own = self.document.member(self.me) if self.me is not None else None
        return OWN_NAME if own is not None and username == own.username else username


def _has_ended(header: BlockHeader) -> bool:
    return header.role == Role.MODEL and header.status in (Status.DONE, Status.ERROR)
