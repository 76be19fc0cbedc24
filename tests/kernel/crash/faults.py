"""Failures at a chosen step of a write: the statement fails, or the process dies there."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import re
import signal
import sqlite3
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

import aiosqlite

from antiphon_kernel.kernel import Kernel
from antiphon_kernel.registry import Registry
from antiphon_kernel.storage import database
from antiphon_kernel.storage.open_files import OpenFiles
from antiphon_kernel.tools.all_tools import KERNEL_TOOLS
from tests.waiting import PATIENCE

STEPS = (
    "BEGIN",
    "INSERT INTO sessions",
    "INSERT INTO contexts",
    "INSERT INTO ops",
    "INSERT INTO blocks",
    "INSERT INTO clients",
    "INSERT INTO undo",
    "COMMIT",
)
"""How the statements of one write begin."""


_CONFLICT: Final = re.compile(r"\AINSERT OR (?:IGNORE|REPLACE)")


def moments(steps: Iterable[str]) -> list[tuple[str, bool]]:
    """Return the moments before each step, and after the last: others after one are before one."""
    return [*((step, False) for step in steps), ("COMMIT", True)]


@dataclass(frozen=True, slots=True)
class Fault:
    """Failure of a statement at its `count`-th execution and at every later one."""

    step: str
    after: bool
    """Once the statement has been carried out, or in its place."""
    kills: bool = False
    """The process dies of SIGKILL; else the statement fails as on a broken disk."""
    count: int = 1


class _Faults:
    """Counts the statements of one kind, and strikes."""

    def __init__(self, fault: Fault) -> None:
        self._fault = fault
        self._reached = 0

    def due(self, sql: str) -> bool:
        due = _CONFLICT.sub("INSERT", sql, count=1).startswith(self._fault.step)
        self._reached += due
        return due and self._reached >= self._fault.count

    def before(self, due: bool) -> None:
        if due and not self._fault.after:
            self._strike()

    def after(self, due: bool) -> None:
        if due and self._fault.after:
            self._strike()

    def _strike(self) -> None:
        if self._fault.kills:
            os.kill(os.getpid(), signal.SIGKILL)
        raise sqlite3.OperationalError("disk I/O error")


class _Breaking:
    """An open file whose statements may fail."""

    def __init__(self, connection: sqlite3.Connection, faults: _Faults) -> None:
        self._connection = connection
        self._faults = faults

    @property
    def in_transaction(self) -> bool:
        return self._connection.in_transaction

    def execute(self, sql: str, *rest: Any) -> Any:
        return self._run(self._connection.execute, sql, *rest)

    def executemany(self, sql: str, *rest: Any) -> Any:
        return self._run(self._connection.executemany, sql, *rest)

    def _run(self, statement: Callable[..., Any], sql: str, *rest: Any) -> Any:
        due = self._faults.due(sql)
        self._faults.before(due)
        done = statement(sql, *rest)
        self._faults.after(due)
        return done


def inject(fault: Fault) -> Callable[[], None]:
    """Let the statements of every database of this process fail; returns the way back."""
    faults = _Faults(fault)
    execute, carry_out = aiosqlite.Connection.execute, database.execute

    async def one(connection: aiosqlite.Connection, sql: str, *rest: Any) -> Any:
        due = faults.due(sql)
        faults.before(due)
        cursor = await execute(connection, sql, *rest)
        faults.after(due)
        return cursor

    def many(connection: sqlite3.Connection, statements: Any, files: OpenFiles) -> None:
        carry_out(cast(sqlite3.Connection, _Breaking(connection, faults)), statements, files)

    def mend() -> None:
        aiosqlite.Connection.execute = execute  # type: ignore[method-assign]
        database.execute = carry_out

    aiosqlite.Connection.execute = one  # type: ignore[method-assign,assignment]
    database.execute = many
    return mend


async def open_kernel(data: Path, **options: Any) -> Kernel:
    return await Kernel.open(data, data, registry=Registry(KERNEL_TOOLS), owner="amy", **options)


async def in_a_process(target: Any, *arguments: Any) -> int | None:
    """Run a function in a process of its own; how that has ended."""
    process = multiprocessing.get_context("fork").Process(target=target, args=arguments)
    process.start()
    await asyncio.to_thread(process.join, PATIENCE)
    return process.exitcode
