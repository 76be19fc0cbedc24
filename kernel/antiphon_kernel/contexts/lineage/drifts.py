"""The drifts of a kernel: what was asked to go from one context to another, and what came of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from weakref import WeakValueDictionary

from antiphon_kernel.storage import ContextRow, DriftRow, Journal
from antiphon_kernel.types.enums import DriftKind, DriftState
from antiphon_kernel.types.signal import Signal


class Drifts:
    """Every drift, as the journal has it or will have."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self.known = Signal[()]()
        """Notified when a drift is new, or has another state, which may be on its way to disk."""
        self._rows: dict[str, DriftRow] = {}
        self._newer = set[str]()
        """Those that have become known since the last reading began."""
        self._locks = WeakValueDictionary[str, asyncio.Lock]()

    async def load(self, is_known: Callable[[int], bool]) -> None:
        """Read what is on disk of contexts that are known here; what is on its way there stays."""
        self._newer.clear()
        for row in await self._journal.drifts():
            is_newer = row.id not in self._newer and not self.lock(row.id).locked()
            if is_newer and is_known(row.source) and is_known(row.target):
                self._rows[row.id] = row

    def rows(self) -> list[DriftRow]:
        """Return every drift, oldest first."""
        return sorted(self._rows.values(), key=lambda row: (row.time, row.id))

    def __getitem__(self, drift: str) -> DriftRow:
        return self._rows[drift]

    async def store(self, row: DriftRow) -> None:
        """Store a drift that is new or has another state, when no context changes with it."""
        await self._journal.write_drift(row)
        self.know(row)

    def know(self, row: DriftRow) -> None:
        """Take over the state that a change of its target gives a drift."""
        self._rows[row.id] = row
        self._newer.add(row.id)
        self.known.notify()

    def lock(self, drift: str) -> asyncio.Lock:
        """Return what whoever delivers or cancels a drift holds."""
        return self._locks.setdefault(drift, asyncio.Lock())

    def of_unit(self, target: ContextRow, unit: int) -> DriftRow:
        """Return the drift that made an undo unit of its target. Raises StopIteration."""
        at = target.number, unit
        return next(row for row in self._rows.values() if (row.target, row.seq) == at)

    def last_common(self, fork: ContextRow, source: ContextRow) -> tuple[int, int]:
        """Return the versions at which a fork was made, or merged last, of it and of its source."""
        assert fork.origin is not None
        merges = (row for row in self.in_force(fork, source) if row.kind is DriftKind.MERGE)
        # A fork begins with one transaction for each block that it copies, behind the founding one.
        begun = fork.origin.blocks + 1, fork.origin.seq
        return max(((row.version, row.seq) for row in merges), default=begun)

    def in_force(self, source: ContextRow, target: ContextRow) -> list[DriftRow]:
        """Return what has come from one context into another and is not undone, oldest first."""
        ends = source.number, target.number, DriftState.DELIVERED
        found = [row for row in self._rows.values() if (row.source, row.target, row.state) == ends]
        return sorted(found, key=lambda row: row.seq)
