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
        self._stops = (
            document.watch_updates(self._follow_update),
            document.watch(self._follow_change),
        )

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
        self.outbox = Outbox()
        """Counts what was written until it is on the kernel's disk."""
        self.edits = PendingEdits(self.document, self._add)
        """Holds what was written, in case it has to be written again."""
        self.awareness = ClientAwareness(client_id, time.monotonic)

    def _add(self, update: bytes) -> None:
        self.outbox.add(update)
        self._wrote()
