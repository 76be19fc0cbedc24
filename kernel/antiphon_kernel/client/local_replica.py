"""A document as one replica has it, with all that follows it."""

from __future__ import annotations

import time
from collections.abc import Callable

from antiphon_kernel.client.awareness import ClientAwareness
from antiphon_kernel.client.outbox import Outbox
from antiphon_kernel.client.pending_edits import PendingEdits
from antiphon_kernel.document.document import Document


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
        self.attendance = ClientAwareness(client_id, time.monotonic)

    def _add(self, update: bytes) -> None:
        self.outbox.add(update)
        self._wrote()
