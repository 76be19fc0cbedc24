"""A document as one replica has it, with all that follows it."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from antiphon_kernel.client.awareness import ClientAwareness
from antiphon_kernel.client.outbox import Outbox
from antiphon_kernel.document.changes import REMOTE, DocumentChange
from antiphon_kernel.document.document import Document
from antiphon_kernel.yjs.frames import Omitted
from antiphon_kernel.yjs.merge import merge
from antiphon_kernel.yjs.update import EMPTY_UPDATE


@dataclass(slots=True)
class PendingEdit:
    """One transaction that was made here."""

    update: bytes
    change: DocumentChange | None = None
    """Changes of blocks; None if there are none."""

    @property
    def blocks(self) -> tuple[str, ...]:
        return self.change.touched if self.change is not None else ()


class PendingEdits:
    """Follows one document."""

    def __init__(self, document: Document, wrote: Callable[[bytes], None]) -> None:
        """`wrote` is told the update of each edit."""
        self._edits: deque[PendingEdit] = deque()
        self._wrote = wrote
        self._stops: tuple[Callable[[], None], ...] = ()
        self.follow(document)

    def follow(self, document: Document) -> None:
        """Follow another document from now on."""
        self.close()
        self._stops = (
            document.watch_updates(self._follow_update),
            document.watch(self._follow_change),
        )

    def updates(self) -> list[bytes]:
        """Return the updates of all edits, in order."""
        return [edit.update for edit in self._edits]

    def close(self) -> None:
        """Stop following."""
        for stop in self._stops:
            stop()

    def __len__(self) -> int:
        return len(self._edits)

    def keep(self, count: int) -> None:
        """All but the last `count` are on the kernel's disk."""
        while len(self._edits) > count:
            self._edits.popleft()

    def take(self) -> list[PendingEdit]:
        """All that there are, which are forgotten here."""
        edits = list(self._edits)
        self._edits.clear()
        return edits

    def _follow_update(self, update: bytes, origin: object) -> None:
        if origin is not REMOTE:
            self._edits.append(PendingEdit(update))
            self._wrote(update)

    def _follow_change(self, change: DocumentChange) -> None:
        if change.origin is not REMOTE and self._edits:
            self._edits[-1].change = change


class LocalReplica:
    """The document, what was written into it here, and who is in it."""

    def __init__(self, client_id: int, wrote: Callable[[], None]) -> None:
        """`wrote` is called after each change that is made here."""
        self._wrote = wrote
        self.document = Document(client_id)
        self.omitted = 0
        """Number of the oldest blocks that the document lacks."""
        self._next: Document | None = None
        self._next_omitted = 0
        self._to_repeat: list[bytes] = []
        """Edits that the next document may not have in it when it is here."""
        self.outbox = Outbox()
        """Counts what was written until it is on the kernel's disk."""
        self.edits = PendingEdits(self.document, self._add)
        """Holds what was written, in case it has to be written again."""
        self.awareness = ClientAwareness(client_id, time.monotonic)

    @property
    def incoming(self) -> Document:
        """The document that takes in what the kernel sends: the next one while that comes."""
        return self.document if self._next is None else self._next

    def missing_since(self, state_vector: bytes) -> bytes:
        """Return an update with all that was written here and a kernel with this vector lacks.

        The engine takes what was left out of a document for removed, so of such a one only edits
        are sent.
        """
        if self._next is None and not self.omitted:
            return self.document.update_since(state_vector)
        updates = self.edits.updates()
        return merge(updates) if updates else EMPTY_UPDATE

    def begin_anew(self, omitted: Omitted) -> None:
        """Expect a state that may lack the oldest blocks; what is shown stays meanwhile."""
        if self.document.epoch is not None:
            self.forget_next()
            self._next = Document(self.document.client_id)
            self._next_omitted = omitted.blocks
            self._to_repeat = self.edits.updates()
        else:
            self.omitted = omitted.blocks
        self.incoming.begin_without(omitted.meta, omitted.members)

    def finish_anew(self) -> bool:
        """Go on with the next document, if there is one; whether there was."""
        if self._next is None:
            return False
        if self._to_repeat:
            self._next.apply_update(merge(self._to_repeat), REMOTE)
        self.document, self.omitted = self._next, self._next_omitted
        self._next, self._to_repeat = None, []
        self.edits.follow(self.document)
        return True

    def forget_next(self) -> None:
        """The next document will not come."""
        if self._next is not None:
            self._next.close()  # else the CRDT keeps it in memory
        self._next, self._to_repeat = None, []

    def _add(self, update: bytes) -> None:
        if self._next is not None:
            self._to_repeat.append(update)
        self.outbox.add(update)
        self._wrote()
