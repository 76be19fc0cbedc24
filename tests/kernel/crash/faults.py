"""Failures at a chosen step of a write: the statement fails, or the process dies there."""

from __future__ import annotations

import os
import signal
import sqlite3
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

from antiphon_kernel.journal import database
from antiphon_kernel.journal.transaction import Statement

STEPS = (
    "BEGIN",
    "INSERT OR IGNORE INTO sessions",
    "INSERT INTO contexts",
    "INSERT INTO ops",
    "INSERT INTO blocks",
    "INSERT OR IGNORE INTO clients",
    "INSERT OR REPLACE INTO undo",
    "COMMIT",
)
"""How the statements of one write begin."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What happens at the `count`-th execution of a statement, and at every later one."""

    step: str
    after: bool
    """Once the statement has been carried out, or in its place."""
    kills: bool = False
    """The process dies of SIGKILL; else the statement fails as on a broken disk."""
    count: int = 1


class _Breaking:
    """A connection as a transaction sees it, with the fault in its statements."""

    def __init__(self, connection: sqlite3.Connection, fault: Fault, reached: Counter[str]) -> None:
        self._connection = connection
        self._fault = fault
        self._reached = reached

    @property
    def in_transaction(self) -> bool:
        return self._connection.in_transaction

    def execute(self, sql: str) -> None:
        self._run(sql, lambda: self._connection.execute(sql))

    def executemany(self, sql: str, rows: Sequence[tuple[object, ...]]) -> None:
        self._run(sql, lambda: self._connection.executemany(sql, rows))

    def _run(self, sql: str, carry_out: Callable[[], object]) -> None:
        fault = self._fault
        due = sql.startswith(fault.step)
        self._reached[fault.step] += due
        due = due and self._reached[fault.step] >= fault.count
        if due and not fault.after:
            self._strike()
        carry_out()
        if due:
            self._strike()

    def _strike(self) -> None:
        if self._fault.kills:
            os.kill(os.getpid(), signal.SIGKILL)
        raise sqlite3.OperationalError("disk I/O error")


def inject(fault: Fault) -> Callable[[], None]:
    """Let the transactions of every database of this process fail; returns the way back."""
    reached: Counter[str] = Counter()
    original = database.carry_out

    def broken(connection: sqlite3.Connection, statements: Sequence[Statement]) -> None:
        original(cast("sqlite3.Connection", _Breaking(connection, fault, reached)), statements)

    def mend() -> None:
        database.carry_out = original  # type: ignore[attr-defined]

    database.carry_out = broken  # type: ignore[attr-defined]
    return mend
