"""A document as one replica has it, with all that follows it and what is still to be sent of it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from antiphon_kernel.client.awareness import ClientAwareness
from antiphon_kernel.document.changes import REMOTE, DocumentChange
from antiphon_kernel.document.document import Document
from antiphon_kernel.types.errors import AntiphonError
from antiphon_kernel.types.signal import News, Signal
from antiphon_kernel.yjs.frames import Omitted
from antiphon_kernel.yjs.merge import merge, squash
from antiphon_kernel.yjs.update import EMPTY_UPDATE, decode_update


class Outbox:
    """Counts local changes through the three stages written, sent, saved.

    The kernel acknowledges *frames* of one connection, in order; each frame carries all changes up
    to a certain one. While there is no open connection changes are only counted: the handshake of
    the next one sends whatever the kernel lacks in one frame.
    """

    def __init__(self) -> None:
        self._written = 0
        self._saved = 0
        self.open = False
        """Whether changes can be sent as they come."""
        self._unsent: list[bytes] = []
        self._frames_sent = 0
        self._in_flight: deque[tuple[int, int]] = deque()
        self._news = News()
        """Announced when more has been saved, and when nothing more will be."""
        self._failure: AntiphonError | None = None

    @property
    def unsaved(self) -> int:
        """Number of changes not on the kernel's disk, as far as is known."""
        return self._written - self._saved

    def add(self, update: bytes) -> None:
        """A change was made here."""
        self._written += 1
        if self.open:
            self._unsent.append(update)

    def start_connection(self) -> None:
        """A new connection: nothing has been sent on it."""
        self.open = False
        self._unsent.clear()
        self._in_flight.clear()
        self._frames_sent = 0

    def everything_sent(self) -> None:
        """A frame with all that the kernel lacks is being sent; from here on changes follow it."""
        self.open = True
        self._unsent.clear()
        self._sent()

    def take(self) -> bytes | None:
        """The changes that have not been sent yet, as one update, which counts as sent now."""
        if not self._unsent:
            return None
        update = merge(self._unsent)
        if len(self._unsent) > 1:
            update = squash(decode_update(update))
        self._unsent.clear()
        self._sent()
        return update

    def acknowledged(self, frames: int) -> None:
        """The first `frames` frames of this connection are on the kernel's disk."""
        while self._in_flight and self._in_flight[0][0] <= frames:
            self._saved = max(self._saved, self._in_flight.popleft()[1])
        self._news.announce()

    async def saved(self) -> None:
        """Wait until everything written so far is on the kernel's disk.

        Raises:
            AntiphonError: if it can no longer get there.
        """
        written = self._written
        while self._saved < written:
            if self._failure is not None:
                raise self._failure
            await self._news.wait()

    def flush(self) -> None:
        """All that was written has got there in another way."""
        self._saved = self._written
        self._news.announce()

    def fail(self, error: AntiphonError) -> None:
        """Nothing more will be saved: whoever waits for it learns why."""
        self._failure = error
        self._news.announce()

    def _sent(self) -> None:
        self._frames_sent += 1
        self._in_flight.append((self._frames_sent, self._written))


class ReplicaState(StrEnum):
    """Connection state of a replica."""

    CONNECTING = "connecting"
    """Looking for the kernel for the first time."""
    CATCHING_UP = "catching_up"
    """Connected; what was missed is on its way."""
    LIVE = "live"
    OFFLINE = "offline"
    """No connection; the next attempt comes by itself."""
    REFUSED = "refused"
    """The kernel will not have this replica, for the reason `rejection`; it has given up."""


@dataclass(slots=True)
class PendingEdit:
    """One transaction that was made here."""

    update: bytes
    change: DocumentChange | None = None
    """Changes of blocks; None if there are none."""

    @property
    def blocks(self) -> tuple[str, ...]:
        return self.change.touched if self.change is not None else ()


class LocalReplica:
    """The document, what was written into it here, who is in it, and how it is connected.

    The connections that it has one after the other change it.
    """

    def __init__(self, client_id: int) -> None:
        self.state = ReplicaState.CONNECTING
        self.is_silent = False
        """Whether the kernel leaves a ping unanswered, though the connection is there."""
        self.last_error: str | None = None
        """Why the last attempt to connect, or the last connection, failed; None once live."""
        self.kernel_error: str | None = None
        """Why the kernel ended a connection; None once it has saved anything since."""
        self.state_changed = Signal[()]()
        """State, refusal or the number of unsaved changes may have changed."""
        self.presence_changed = Signal[()]()
        self.document_replaced = Signal[()]()
        self.wake = asyncio.Event()
        """There may be something to send."""
        self._recent = 0
        self._stops: tuple[Callable[[], None], ...] = ()
        self.begin_with(Document(client_id))

    def begin_with(self, document: Document) -> None:
        """Go on with a document into which nothing has been written here."""
        self.document = document
        """Another object once `document_replaced` has been notified."""
        self.omitted = 0
        """Number of the oldest blocks that the document lacks."""
        self._next: Document | None = None
        self._next_omitted = 0
        self._to_repeat: list[bytes] = []
        """Edits that the next document may not have in it when it is here."""
        self.outbox = Outbox()
        """Counts what was written until it is on the kernel's disk."""
        self.edits = deque[PendingEdit]()
        """Edits that are not known to be there, in case they have to be made again."""
        self.awareness = ClientAwareness(document.client_id, self.wake)
        self._follow()

    def become(self, state: ReplicaState) -> None:
        """Take on a state; who is refused stays so."""
        if state is ReplicaState.OFFLINE and self.state is ReplicaState.REFUSED:
            return
        if state is ReplicaState.LIVE:
            self.last_error = None
        if state is not self.state:
            self.state = state
            self.state_changed.notify()

    def set_silent(self, is_silent: bool) -> None:
        """Say whether the kernel answers pings."""
        if is_silent is not self.is_silent:
            self.is_silent = is_silent
            self.state_changed.notify()

    @property
    def incoming(self) -> Document:
        """The document that takes in what the kernel sends: the next one while that comes."""
        return self.document if self._next is None else self._next

    def blocks_wanted(self) -> int:
        """Return the number of the last blocks that are wanted; 0 for all.

        No block goes that is here: others come while there is no connection.
        """
        if not self._recent:
            return 0
        return max(self._recent, len(self.document) if self.omitted else 0)

    def missing_since(self, state_vector: bytes) -> bytes:
        """Return an update with all that was written here and a kernel with this vector lacks.

        The engine takes what was left out of a document for removed, so of such a one only edits
        are sent.
        """
        if self._next is None and not self.omitted:
            return self.document.update_since(state_vector)
        return merge([edit.update for edit in self.edits]) if self.edits else EMPTY_UPDATE

    def begin_anew(self, omitted: Omitted) -> None:
        """Expect a state that may lack the oldest blocks; what is shown stays meanwhile."""
        if self.document.epoch is not None:
            self.forget_next()
            self._next = Document(self.document.client_id)
            self._next_omitted = omitted.blocks
            self._to_repeat = [edit.update for edit in self.edits]
        else:
            self.omitted = omitted.blocks
        self.incoming.omit(omitted.meta, omitted.members)
        self.incoming.has_parts = True

    def finish_anew(self) -> None:
        """Go on with the next document, if there is one."""
        if self._next is None:
            return
        if self._to_repeat:
            self._next.apply_update(merge(self._to_repeat), REMOTE)
        self.document, self.omitted = self._next, self._next_omitted
        self._next, self._to_repeat = None, []
        self._follow()
        self.document_replaced.notify()

    def forget_next(self) -> None:
        """The next document will not come."""
        if self._next is not None:
            self._next.close()  # else the CRDT keeps it in memory
        self._next, self._to_repeat = None, []

    def take_edits(self) -> list[PendingEdit]:
        """Return all edits, which are forgotten here."""
        edits = list(self.edits)
        self.edits.clear()
        return edits

    def stop_following(self) -> None:
        """Take note of no further edits."""
        for stop in self._stops:
            stop()

    def _follow(self) -> None:
        self.stop_following()
        self._stops = (
            self.document.watch_updates(self._follow_update),
            self.document.watch(self._follow_change),
        )

    def _follow_update(self, update: bytes, origin: object) -> None:
        if origin is REMOTE:
            return
        self.edits.append(PendingEdit(update))
        if self._next is not None:
            self._to_repeat.append(update)
        self.outbox.add(update)
        self.wake.set()
        if self.outbox.unsaved == 1:
            self.state_changed.notify()

    def _follow_change(self, change: DocumentChange) -> None:
        if change.origin is not REMOTE and self.edits:
            self.edits[-1].change = change
