"""Local changes not known to be on the kernel's disk, edit by edit."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from antiphon_kernel.document.changes import REMOTE, DocumentChange
from antiphon_kernel.document.document import Document


@dataclass(slots=True)
class PendingEdit:
    """One transaction that was made here."""

    update: bytes
    change: DocumentChange | None = None
    """What it did to blocks; None if nothing."""

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
