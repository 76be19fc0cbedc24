"""Failures at a chosen step of a write: the statement fails, or the process dies there."""

from __future__ import annotations

import os
import signal
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import aiosqlite

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


def inject(fault: Fault) -> Callable[[], None]:
    """Let the statements of every database of this process fail; returns the way back."""
    reached = 0
    originals = (aiosqlite.Connection.execute, aiosqlite.Connection.executemany)

    def strike() -> None:
        if fault.kills:
            os.kill(os.getpid(), signal.SIGKILL)
        raise sqlite3.OperationalError("disk I/O error")

    def breaking(original: Any) -> Any:
        async def run(connection: aiosqlite.Connection, sql: str, *rest: Any) -> Any:
            nonlocal reached
            due = sql.startswith(fault.step)
            reached += due
            due = due and reached >= fault.count
            if due and not fault.after:
                strike()
            cursor = await original(connection, sql, *rest)
            if due:
                strike()
            return cursor

        return run

    def mend() -> None:
        aiosqlite.Connection.execute = originals[0]  # type: ignore[method-assign]
        aiosqlite.Connection.executemany = originals[1]  # type: ignore[method-assign]

    aiosqlite.Connection.execute = breaking(originals[0])  # type: ignore[method-assign]
    aiosqlite.Connection.executemany = breaking(originals[1])  # type: ignore[method-assign]
    return mend
