"""The message being written: here at once, and in the shared document as a draft of one's own.

The text area edits a document of its own with a single block, which is there before any kernel has
answered and never has to wait. Its splices are repeated, one for one, in a draft block of the
shared document as soon as there is one, and what changes in that block (an undo) comes back. A
private draft is in a file of the person's instead, until it is shared or submitted; the kernel
knows nothing of its undo.
"""

from __future__ import annotations

import os
import random
from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Final, NamedTuple

from antiphon.widgets.editor import ORIGIN as TYPED
from antiphon_kernel.client.address import take_lock
from antiphon_kernel.client.ownership import write_private
from antiphon_kernel.document.changes import DocumentChange
from antiphon_kernel.document.document import Document
from antiphon_kernel.text.fractional_index import key_between
from antiphon_kernel.text.splice_diff import Replacement, apply_splices, as_splices
from antiphon_kernel.types.clock import Clock, SystemClock, iso_time
from antiphon_kernel.types.enums import BlockKind, Role, Status
from antiphon_kernel.types.ids import DRAFT_SEQ_LIMIT, DRAFT_SEQ_MIN, BlockId, PrincipalId
from antiphon_kernel.types.records import BlockHeader, TextSplice
from antiphon_kernel.types.typing_run import KEYSTROKE_UNITS, may_go_on

STEPS: Final = 1_000
"""Steps that can be taken back."""


class _TypingRun(NamedTuple):
    """Typing that may go on with the last step."""

    begun: int
    last: int
    size: int
    key: TextSplice
    """The last keystroke."""


class DraftUndo:
    """Steps of one text that only one person changes."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._undo: deque[Sequence[TextSplice]] = deque(maxlen=STEPS)
        """The way back of each step."""
        self._redo: deque[Sequence[TextSplice]] = deque()
        self._run: _TypingRun | None = None

    def record(self, splices: Sequence[TextSplice], now: int) -> None:
        """Record changes that were made together at `now`, in milliseconds."""
        before, self._text = self._text, apply_splices(self._text, splices)
        if before == self._text:
            return
        self._redo.clear()
        begun, size, run, self._run = now, 0, self._run, None
        if len(splices) == 1 and _is_keystroke(key := splices[0]):
            if run is not None and _goes_on(run, key, now):
                before = apply_splices(before, self._undo.pop())
                begun, size = run.begun, run.size
            if "\n" not in key.inserted:
                size += len(key.inserted) + key.deleted
                self._run = _TypingRun(begun, now, size, key)
        self._undo.append(_way(self._text, before))

    def step(self, direction: int) -> Sequence[TextSplice]:
        """Return the changes that take the last step back (-1), or do it again (1); if any."""
        taken, other = (self._undo, self._redo) if direction < 0 else (self._redo, self._undo)
        if not taken:
            return ()
        splices, before = taken.pop(), self._text
        self._text = apply_splices(before, splices)
        other.append(_way(self._text, before))
        self._run = None
        return splices


def _way(text: str, other: str) -> Sequence[TextSplice]:
    """Return what makes one text of another."""
    return as_splices(text, [Replacement(0, len(text), other)])


def _is_keystroke(splice: TextSplice) -> bool:
    """Return whether it is a key's, not a paste, a cut or a replaced selection."""
    size = len(splice.inserted) + splice.deleted
    return size <= KEYSTROKE_UNITS and not (splice.inserted and splice.deleted)


def _goes_on(run: _TypingRun, key: TextSplice, now: int) -> bool:
    """Return whether a keystroke goes on where the run has left the cursor, and soon enough."""
    last = run.key
    if not may_go_on(begun=run.begun, last=run.last, now=now, size=run.size):
        return False
    if key.inserted:
        return not last.deleted and key.offset == last.offset + len(last.inserted)
    return not last.inserted and last.offset in (key.offset, key.offset + key.deleted)


FOLDER: Final = "drafts"

WINDOWS: Final = 16
"""Windows of one person that can have a private draft in one context at once."""


class PrivateDraftFile:
    """The text of one window's private draft; held from `take` to `close`."""

    def __init__(self, folder: Path, place: str) -> None:
        """`place` names the kernel, for which the state `folder` holds a file for each context."""
        self._folder = folder / FOLDER
        self._place = place
        self.path: Path | None = None
        """The file that is held."""
        self._lock: int | None = None

    def take(self, context: str) -> str:
        """Take a file that no other window has, one with a text if there is one; return its text.

        Raises OSError if there is none to be had.
        """
        name = sha256(f"{self._place}\n{context}".encode()).hexdigest()[:32]
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        files = [self._folder / f"{name}-{number}.txt" for number in range(WINDOWS)]
        # `sorted` keeps the order of equals: those with a text come first.
        for path in sorted(files, key=lambda one: not one.exists()):
            lock = take_lock(path.with_suffix(".lock"), seconds=0)
            if lock is not None:
                self.path, self._lock = path, lock
                return path.read_text("utf-8") if path.exists() else ""
        raise OSError(0, f"{WINDOWS} other windows have private drafts here")

    def write(self, text: str) -> None:
        """Keep a text; none if it is empty. Raises OSError."""
        if self.path is None:
            return
        if text:
            write_private(self.path, text)
        else:
            self.path.unlink(missing_ok=True)

    def close(self) -> None:
        """Leave the file to other windows."""
        if self._lock is not None:
            os.close(self._lock)
            self.path = self._lock = None


SHELL_MARK: Final = "!"
"""The first character of a message that is a command for the shell."""

LOCAL_BLOCK: Final = "message"
"""The one block of `DraftSync.local`."""

ORIGIN: Final = "composer"
"""The origin of what is copied from one document into the other."""

UNDO: Final = "undo"
"""The origin of what an undo or a redo of a private message changes."""


def random_seq() -> int:
    """A number for a new draft that no other session of the same person will choose."""
    return random.SystemRandom().randrange(DRAFT_SEQ_MIN, DRAFT_SEQ_LIMIT)


class DraftSync:
    """One message after the other; `block` is where the others see the present one."""

    def __init__(
        self,
        shared: Document,
        *,
        clock: Clock | None = None,
        new_seq: Callable[[], int] = random_seq,
        private: PrivateDraftFile | None = None,
        notify: Callable[[str], None] | None = None,
    ) -> None:
        """`private` keeps a private draft beyond the app; `notify` is told when it cannot."""
        self.block: str | None = None
        self._shared = shared
        self._clock = clock or SystemClock()
        self._new_seq = new_seq
        self._principal: PrincipalId | None = None
        self.is_typed_here = True
        """All of the message was typed or pasted in this window since it was empty.

        Everything else changes that: a draft of an earlier session, an undo, a change that came
        with the shared document, and a copied command until it is edited here.
        """
        self._is_copy = False
        self._former: str | None = None
        self._carried = ""
        self._latest = [self]
        """The draft that shows the message now; one list for all that have done so."""
        self._undo: DraftUndo | None = None
        self._file = private
        self._notify = notify
        self.local = Document(client_id=1)
        self.local.create_block(
            BlockHeader(LOCAL_BLOCK, BlockKind.TEXT, Role.USER, Status.PENDING, "", "", "")
        )
        self._unwatch = (
            self.local.watch(self._typed),
            shared.watch(self._shared_changed),
        )

    @property
    def text(self) -> str:
        return self.local.text(LOCAL_BLOCK)

    @property
    def is_private(self) -> bool:
        """Return whether what is typed is seen by nobody else."""
        return self._undo is not None

    @property
    def is_identified(self) -> bool:
        """Return whether it is known who writes here, so that others see it."""
        return self._principal is not None

    @property
    def unheard(self) -> str:
        """Return the message if it is neither in the shared document nor a private draft.

        So it is until a kernel has said who writes, and when they may not write any more.
        """
        return "" if self.block is not None or self.is_private else self.text

    def close(self) -> None:
        """Stop mirroring; the draft stays in the document."""
        for unwatch in self._unwatch:
            unwatch()
        if self._file is not None:
            self._file.close()

    def make_private(self) -> None:
        """Take the message out of the shared document, and what is typed from now on."""
        self._undo = DraftUndo(self.text)
        self._withdraw()
        self._keep()

    def make_shared(self) -> None:
        """Show the message to the others, and what is typed from now on."""
        self._undo = None
        self.share()
        self._keep()

    def step(self, direction: int) -> bool:
        """Take back the last step in a private message (-1) or do it again (1), if there is one."""
        splices = () if self._undo is None else self._undo.step(direction)
        _repeat(splices, self.local, LOCAL_BLOCK, UNDO)
        return bool(splices)

    def _withdraw(self) -> None:
        """Empty the draft block, which serves again when the message is shared."""
        block, self.block = self.block, None
        if block is not None:
            self._former = block
            self._write_block(block, "")

    def _keep(self) -> None:
        if self._file is None:
            return
        try:
            self._file.write(self.text if self.is_private else "")
        except OSError as error:
            self._file_failed(error)

    def _file_failed(self, error: OSError) -> None:
        self._file = None
        if self._notify is not None:
            self._notify(f"Your private draft cannot be kept beyond this window: {error}")

    def _kept_text(self) -> str:
        """Return the private draft of an earlier session."""
        if self._file is None or self._file.path is not None or self._shared.context is None:
            return ""
        try:
            return self._file.take(self._shared.context)
        except (OSError, UnicodeError) as error:
            self._file_failed(OSError(*error.args))
            return ""

    def succeed(self, former: DraftSync) -> None:
        """Show the message of another draft, whose document has been replaced by this one's.

        If the kernel has not accepted all of it, it is shared again only when the person edits or
        sends it: else it would be refused once more.
        """
        self._latest = former._latest
        self._latest[0] = self
        self._former, self._carried = former.block or former._former, former.text
        self._file, former._file = former._file, None
        self._insert(former.text)
        self._undo = former._undo

    def attach(self, principal: str, taken: Collection[str] = ()) -> None:
        """The kernel has said who writes here: go on with their latest unsent draft.

        What has been typed meanwhile comes after it. Drafts that are `taken` belong to another
        window of the same person.
        """
        if self._principal is not None:
            return
        self._principal = PrincipalId(principal)
        typed = self.text
        kept = self._kept_text()
        if kept or self.is_private:
            self._insert(_ended(kept) if typed else kept)
            self._undo = self._undo or DraftUndo(self.text)
            self._keep()
            return
        if typed and self._carried:
            former = self._former_draft()
            if former is not None and self._shared.text(former) == typed:
                self.block = former
            elif typed != self._carried:
                self.share()
            elif former is None and self._has_former(typed):
                self._empty()  # it was submitted while its document was replaced
            return
        found = self._latest_unsent(taken)
        if found is None:
            if typed:
                self._create_block()
            return
        self.block = found
        kept = self._shared.text(found)
        before = _ended(kept) if typed else kept
        if typed:
            with self._shared.transaction(ORIGIN):
                self._shared.append(found, before[len(kept) :] + typed)
        self._insert(before)

    def clear(self) -> None:
        """Empty the message; the same draft block serves for the next one."""
        self.local.splice(LOCAL_BLOCK, 0, len(self.text), "")

    def write(self, text: str, *, typed_here: bool = False) -> None:
        """Replace the message by `text`; it is this window's own once it is edited here.

        Args:
            typed_here: whether it comes back after it had been typed in this window.
        """
        with self.local.transaction(None):
            self.clear()
            self.local.append(LOCAL_BLOCK, text)
        self.is_typed_here = typed_here or not text
        self._is_copy = not self.is_typed_here

    def put_back(self, text: str, *, typed_here: bool = False) -> None:
        """Write a text that was not accepted before what has come since."""
        if self._latest[0] is not self:
            self._latest[0].put_back(text, typed_here=typed_here)
            return
        since = self.text
        typed_here = typed_here and self.is_typed_here
        self.write(text + (f"\n{since}" if since else ""), typed_here=typed_here)

    def detach(self) -> str:
        """Let go of the draft block, to be submitted; the message is empty then.

        Raises ValueError if no kernel has said yet who writes here.
        """
        if self.block is None:
            raise ValueError("there is no draft block yet")
        block, self.block = self.block, None
        self._empty()
        return block

    def _empty(self) -> None:
        """Empty the message, and leave the block that it was in as it is."""
        with self.local.transaction(ORIGIN):
            self.clear()

    def share(self) -> None:
        """Put the message into a draft block of the shared document, if it is in none."""
        if self.block is not None or not self.text or self._principal is None:
            return
        former = self._former_draft()
        if former is None:
            self._create_block()
        else:
            self._take_block(former)

    def restore(self, block: str, text: str) -> None:
        """A released draft with this text was not submitted: it stands before what came since.

        Does nothing if it was submitted all the same. The text counts, not the block: that may have
        been changed by an undo, or be gone with a rejected edit.
        """
        if self._latest[0] is not self:
            self._latest[0].restore(block, text)
            return
        is_there = block in self._shared
        if is_there and not self._shared.header(block).is_draft:
            return
        since, other = self.text, self.block
        self._insert(text + ("\n" if since else ""))
        if self.is_private:
            self.block = block if is_there else None
            self._withdraw()
        elif is_there:
            self._take_block(block)
            if other is not None:
                self._write_block(other, "")
        elif other is not None:
            self._take_block(other)
        else:
            self._carried = self.text

    def _take_block(self, block: str) -> None:
        self.block = block
        self._write_block(block, self.text)

    def _write_block(self, block: str, text: str) -> None:
        with self._shared.transaction(ORIGIN):
            self._shared.splice(block, 0, len(self._shared.text(block)), text)

    def _insert(self, text: str) -> None:
        """Write a text that others see already, or nobody is to see, before what is typed."""
        with self.local.transaction(ORIGIN):
            self.local.splice(LOCAL_BLOCK, 0, 0, text)

    def _former_draft(self) -> str | None:
        """Return the draft block of the message that was carried over, if it is still one."""
        former = self._former
        is_there = former is not None and former in self._shared
        return former if is_there and self._shared.header(str(former)).is_draft else None

    def _has_former(self, text: str) -> bool:
        former = self._former
        return former in self._shared and self._shared.text(str(former)) == text

    def _latest_unsent(self, taken: Collection[str]) -> str | None:
        """My newest draft with something in it."""
        # The id says who began a block: only my own headers are read.
        own = f".{self._principal}."
        started = (one for one in self._shared.open_blocks() if own in one and one not in taken)
        headers = map(self._shared.header, started)
        mine = (header for header in headers if header.is_draft)
        newest = max(
            (one for one in mine if self._shared.text(one.id)),
            key=lambda one: one.created,
            default=None,
        )
        return newest.id if newest is not None else None

    def _create_block(self) -> None:
        """Put what is there into a draft block of the shared document."""
        context, principal = self._shared.context, self._principal
        if context is None or principal is None:
            return
        blocks = self._shared.block_ids()
        last = self._shared.header(blocks[-1]).order if blocks else None
        header = BlockHeader(
            id=str(BlockId(context, principal, self._new_seq())),
            kind=BlockKind.TEXT,
            role=Role.USER,
            status=Status.PENDING,
            order=key_between(last, None),
            created=iso_time(self._clock.now_ms()),
            author=principal,
        )
        with self._shared.transaction(ORIGIN):
            self._shared.create_block(header, self.text)
        self._shared.text(header.id)
        self.block = header.id

    def _typed(self, change: DocumentChange) -> None:
        if not self.text or (self._is_copy and change.origin == TYPED):
            self.is_typed_here = True
        elif change.origin != TYPED:
            self.is_typed_here = False
        self._is_copy = False
        splices = [one for text in change.texts for one in text.splices]
        if self._undo is not None:
            if change.origin == ORIGIN:
                self._undo = DraftUndo(self.text)
            elif change.origin != UNDO:
                self._undo.record(splices, self._clock.now_ms())
            self._keep()
            return
        if change.origin == ORIGIN:
            return
        if self.block is None:
            self.share()
            return
        _repeat(splices, self._shared, self.block, ORIGIN)

    def _shared_changed(self, change: DocumentChange) -> None:
        if change.origin == ORIGIN or self.block is None:
            return
        if any(header.block == self.block for header in change.headers):
            if not self._shared.header(self.block).is_draft:
                # It has been submitted after all, or from elsewhere: what follows is new.
                self.detach()
                return
        for text in change.texts:
            if text.block == self.block:
                _repeat(text.splices, self.local, LOCAL_BLOCK, ORIGIN)


def _repeat(splices: Iterable[TextSplice], document: Document, block: str, origin: str) -> None:
    with document.transaction(origin):
        for one in splices:
            document.splice(block, one.offset, one.deleted, one.inserted)


def _ended(text: str) -> str:
    """Return a text with an end of its last line, if it has lines."""
    return text if not text or text.endswith("\n") else f"{text}\n"
