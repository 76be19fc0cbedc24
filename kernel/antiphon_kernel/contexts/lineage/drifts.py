"""The drifts of a kernel: what was asked to go from one context to another, and what came of it."""

from __future__ import annotations

import asyncio
from weakref import WeakValueDictionary

from antiphon_kernel.storage import ContextRow, DriftRow, Journal
from antiphon_kernel.types.enums import DriftKind, DriftState


class Drifts:
    """Every drift, as the journal has it or will have."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._rows: dict[str, DriftRow] = {}
        self._locks = WeakValueDictionary[str, asyncio.Lock]()

    async def load(self) -> None:
        """Read what is on disk."""
        self._rows = {row.id: row for row in await self._journal.drifts()}

    def rows(self) -> list[DriftRow]:
        """Return every drift, oldest first."""
        return list(self._rows.values())

    def __getitem__(self, drift: str) -> DriftRow:
        return self._rows[drift]

    async def store(self, row: DriftRow) -> None:
        """Store a drift that is new or has another state, when no context changes with it."""
        await self._journal.write_drift(row)
        self.know(row)

    def know(self, row: DriftRow) -> None:
        """Take over the state that a change of its target gives a drift."""
        self._rows[row.id] = row

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
