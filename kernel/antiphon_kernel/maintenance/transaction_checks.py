"""Replaying one context's transactions with an eye on every single one."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from antiphon_kernel.document.document import Document
from antiphon_kernel.maintenance.findings import Check, ContextReport
from antiphon_kernel.storage import READABLE_FORMATS, versions_of
from antiphon_kernel.yjs.id_set import IdSet
from antiphon_kernel.yjs.update import DecodedUpdate, ItemId, decode_update


@dataclass(slots=True)
class TransactionReplay:
    """A context as its transactions make it, up to the last one that could be applied."""

    report: ContextReport
    owners: dict[int, int]
    """CRDT client id to the number of the principal that it belongs to."""
    numbers: dict[int, str]
    """Number of a block to its id."""
    document: Document = field(default_factory=lambda: Document(client_id=1))
    seq: int = 0
    versions: dict[int, int] = field(default_factory=dict)
    """Number of a block to how many transactions touched it."""
    units: set[int] = field(default_factory=set)
    clocks: dict[int, int] = field(default_factory=dict)
    """CRDT client id to the clock after its last item."""
    watched: Collection[int] = ()
    """Transactions of which `inserted` is wanted."""
    inserted: dict[int, IdSet] = field(default_factory=dict)
    """The ids that each of them brought."""
    copies: Mapping[int, Iterable[str | None]] = field(default_factory=dict)
    """Number of a copied block to the sections of which `copied` is wanted."""
    copied: dict[tuple[int, str | None], int] = field(default_factory=dict)
    """How long each of their texts was when it was copied."""

    def follow(self, rows: Iterable[sqlite3.Row]) -> bool:
        """Take in rows (seq, format, principal, touched, unit, changes); False: it cannot go on."""
        for row in rows:
            seq, format_, principal, touched, unit, changes = row
            if seq != self.seq + 1:
                self.report.find(
                    Check.SEQUENCE,
                    f"the transactions from {self.seq + 1} to {seq - 1} are missing",
                    self.seq + 1,
                )
                return False
            self.seq = seq
            self.report.transactions += 1
            if unit is not None:
                self.units.add(unit)
            if format_ not in READABLE_FORMATS or not isinstance(changes, bytes):
                what = f"has the unknown format {format_!r}" if changes else "holds no bytes"
                self.report.find(Check.TRANSACTION, f"transaction {seq} {what}", seq)
                return False
            if not self._apply(seq, principal, touched, changes):
                return False
        return True

    def _apply(self, seq: int, principal: int, touched: str, changes: bytes) -> bool:
        try:
            decoded = decode_update(changes)
            self._check_base(seq, principal, decoded)
            if seq in self.watched:
                self.inserted[seq] = decoded.inserted()
            changed = self.document.apply_update(changes).change.touched
        except ValueError as error:
            self.report.find(
                Check.TRANSACTION, f"transaction {seq} cannot be applied: {error}", seq
            )
            return False
        self._count(seq, touched, changed)
        return True

    def _check_base(self, seq: int, principal: int, decoded: DecodedUpdate) -> None:
        for struct in decoded.structs:
            known = self.clocks.get(struct.client, 0)
            end = struct.clock + struct.length
            if struct.clock > known:
                self.report.find(
                    Check.TRANSACTION,
                    f"transaction {seq} skips from clock {known} to {struct.clock} of client"
                    f" {struct.client}",
                    seq,
                )
            if end > known:
                self.clocks[struct.client] = end
                owner = self.owners.get(struct.client, principal)
                if owner != principal:
                    self.report.find(
                        Check.CLIENTS,
                        f"transaction {seq} writes with the client id {struct.client} of"
                        " somebody else",
                        seq,
                    )
        for struct in decoded.structs:
            for needed in (struct.origin, struct.right_origin, struct.parent):
                if isinstance(needed, ItemId) and needed.clock >= self.clocks.get(needed.client, 0):
                    self.report.find(
                        Check.TRANSACTION,
                        f"transaction {seq} stands on an item that is not there yet",
                        seq,
                    )
                    return

    def _measure(self, number: int) -> None:
        block = self.numbers.get(number)
        for section in self.copies[number]:
            try:
                length = len(self.document.text(str(block), section))
            except (KeyError, ValueError):
                continue  # there is no such text
            self.copied[number, section] = length

    def _count(self, seq: int, touched: str, changed: Iterable[str]) -> None:
        try:
            stated = versions_of(touched)
        except (ValueError, AttributeError):
            self.report.find(Check.VERSIONS, f"transaction {seq} does not say what it touched", seq)
            return
        for number, version in stated.items():
            counted = self.versions[number] = self.versions.get(number, 0) + 1
            if counted == 1 and number in self.copies:
                self._measure(number)
            if version != counted:
                self.report.find(
                    Check.VERSIONS,
                    f"transaction {seq} made version {version} of block"
                    f" {self.numbers.get(number, number)}, counted {counted}",
                    seq,
                )
        unsaid = set(changed) - {self.numbers.get(number) for number in stated}
        if unsaid:
            self.report.find(
                Check.VERSIONS,
                f"transaction {seq} touched {len(unsaid)} blocks that it does not name:"
                f" {min(unsaid)}",
                seq,
            )
