"""The journal of one kernel: one writer, commits in groups, acknowledged when on disk.

The writer commits as soon as it is idle; whatever is handed in meanwhile shares the next commit.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from itertools import chain, count
from pathlib import Path
from typing import Final, Protocol

from antiphon_kernel.storage.commit_rows import (
    ADD_PRESENCE,
    commit_rows,
    drift_rows,
    file_rows,
    session_rows,
)
from antiphon_kernel.storage.database import Database, FenceError, Row, Statement, TakenError
from antiphon_kernel.storage.journal_reader import JournalReader
from antiphon_kernel.storage.open_files import StorageLostError
from antiphon_kernel.storage.rows import (
    Commit,
    ContextRow,
    DriftRow,
    FileRow,
    StoredContext,
)
from antiphon_kernel.storage.schema import JOURNAL_SCHEMA, NUMBERS_AT_ONCE
from antiphon_kernel.storage.search_table import SearchTable
from antiphon_kernel.storage.snapshots import RECENT_STATES, SNAPSHOTS, Records
from antiphon_kernel.storage.stores import SqlDatabase, open_tables
from antiphon_kernel.types.enums import ContextKind
from antiphon_kernel.types.errors import AntiphonError, kernel_is_closing, storage_failed
from antiphon_kernel.types.ids import ContextId
from antiphon_kernel.types.records import Actor, Principal
from antiphon_kernel.types.signal import Signal

_ATTEMPTS: Final = 3
"""How often commits are tried that were refused only for what was out of date here."""

_NEXT_IN_FILE: Final = "SELECT coalesce(max(number), 0) + 1 FROM contexts"
_NEXT_IN_DATABASE: Final = "SELECT nextval('context_numbers')"
"""The first of `NUMBERS_AT_ONCE` numbers, which no other kernel takes."""

_log = logging.getLogger(__name__)


class WriteFence(Protocol):
    """The conditions of a group of commits where several kernels write to one database."""

    def statement(self, group: Sequence[Commit], *others: int) -> Statement:
        """Return `SELECT check_commit(...)` for the contexts and principals of the group.

        `others` are numbers of contexts of which something is written apart from commits.
        """

    async def refusals(
        self, error: FenceError, group: Iterable[Commit]
    ) -> list[AntiphonError | None]:
        """Return why each commit of a refused group fails; None for those that may be tried again.

        What the refusal has shown to be out of date has been read again then.
        """


class Journal(JournalReader):
    """An open database. `commit` may be called from one event loop only."""

    def __init__(self, database: SqlDatabase) -> None:
        super().__init__(database)
        self.snapshots = Records(database, SNAPSHOTS)
        self.recent_states = Records(database, RECENT_STATES)
        self.search = SearchTable(database)
        self._waiting: list[tuple[Sequence[Commit], asyncio.Future[None]]] = []
        self._generations: dict[int, int] = {}
        self._failures: dict[int, AntiphonError] = {}
        self._wake = asyncio.Event()
        self._is_closing = False
        self._new_sessions: list[Actor] = []
        self._new_presences: list[Row] = []
        self._numbers = deque[int]()
        """Numbers of contexts to come."""
        self._next_number = 1
        self.fence: WriteFence | None = None
        """The first statement of every group of commits; None if nobody else writes here."""
        self._broken: AntiphonError | None = None
        self.files_lost = Signal[StorageLostError]()
        """Notified once, when nothing can be saved any more, before any commit fails."""
        self._writer: asyncio.Task[None] | None = None
        self.lost: StorageLostError | None = None
        """Why nothing more is saved, also after the file is back; what is there can be read."""
        self.depend_on(database)

    @classmethod
    async def open(cls, place: Path | str, spare: Path | None = None) -> Journal:
        """Open or create the journal, as `open_tables` does, and begin to write."""
        database = await open_tables(place, JOURNAL_SCHEMA, spare)
        journal = cls(database)
        try:
            await journal.principals()
            await journal.reserve_contexts(1)
        except AntiphonError:
            await database.close()
            raise
        journal._writer = asyncio.create_task(journal._write_until_closed(), name="journal writer")
        journal._writer.add_done_callback(journal._writer_ended)
        return journal

    async def close(self) -> None:
        """Write what is waiting and close the file; what is handed in later is refused."""
        self._is_closing = True
        self._wake.set()
        if self._writer is not None:
            await asyncio.wait([self._writer])
        await self._database.close()

    def alone(self, what: str) -> AbstractAsyncContextManager[None]:
        """Do something that no other kernel does at the same time; see `Database.alone`."""
        return self._database.alone(what)

    async def reserve_contexts(self, count: int) -> None:
        """See that `add_context` has numbers for so many contexts."""
        sql = _NEXT_IN_DATABASE if self._database.is_shared else _NEXT_IN_FILE
        while len(self._numbers) < count:
            first = max(self._next_number, (await self._database.select(sql))[0][0])
            self._next_number = first + NUMBERS_AT_ONCE
            self._numbers += range(first, self._next_number)

    # Kernel, principals, sessions, contexts: small and rare, each its own transaction

    async def set_setting(self, key: str, value: str) -> None:
        await self._database.insert("INSERT OR REPLACE INTO kernel VALUES (?, ?)", (key, value))

    async def settle(self, key: str, value: str) -> str:
        """Store a fact about the kernel unless there is one; return the one that there is."""
        sql = "INSERT OR IGNORE INTO kernel VALUES (?, ?)"
        await self._database.insert(sql, (key, value))
        return (await self.settings(key))[key]

    async def add_principal(self, principal: Principal, created: int) -> None:
        """Store a principal, unless another kernel has done so."""
        number = await self._database.insert(
            "INSERT INTO principals (id, username, kind, created) VALUES (?, ?, ?, ?)"
            " ON CONFLICT (id) DO UPDATE SET id = excluded.id",  # for its number
            (principal.id, principal.username, principal.kind, created),
        )
        self._principals[principal.id] = number

    async def set_display_name(self, principal: Principal) -> None:
        """Store the display name that a principal has from now on."""
        sql = "UPDATE principals SET display_name = ? WHERE id = ?"
        await self._database.insert(sql, (principal.display_name, principal.id))

    def add_session(self, session: Actor) -> None:
        """Record a session that may never commit anything; with others, or with a commit."""
        if self._broken is None:
            self._new_sessions.append(session)
            self._wake.set()

    def add_presences(self, presences: Iterable[Row]) -> None:
        """Record where sessions are, in rows of `ADD_PRESENCE`; with others, or with a commit."""
        if self._broken is None:
            self._new_presences += presences
            self._wake.set()

    def add_context(
        self, context: ContextId, label: str, epoch: str, created: int, kind: ContextKind
    ) -> ContextRow:
        """Name a new context; it begins to exist with its first commit.

        No two may have one label at a time.
        """
        return ContextRow(self._numbers.popleft(), context, label, epoch, created, kind=kind)

    async def write_file(self, file: FileRow) -> None:
        """Store what is known of a file, when its block does not change with it."""
        await self._database.write([*self._fenced(file.context), *file_rows(file)])

    async def write_drift(self, drift: DriftRow) -> None:
        """Store a drift, when no context changes with it."""
        self.refuse_if_broken()
        await self._database.write([drift_rows([drift], if_staged=True)])

    async def write_agent_session(
        self, context: ContextRow, agent: str, session: str, seq: int
    ) -> None:
        """Store the session that an agent has, and the version of its context that it has read."""
        self.refuse_if_broken()
        sql = "INSERT OR REPLACE INTO agent_sessions VALUES (?, ?, ?, ?)"
        row = context.number, agent, session, seq
        await self._database.write([*self._fenced(context.number), (sql, [row])])

    def _fenced(self, context: int) -> list[Statement]:
        return [self.fence.statement([], context)] if self.fence is not None else []

    async def set_epoch(self, context: ContextRow, epoch: str) -> None:
        """From now on replicas of another epoch are refused."""
        sql = "UPDATE contexts SET epoch = ? WHERE number = ?"
        await self._database.insert(sql, (epoch, context.number))

    async def load(self, context: ContextRow, after: int = 0, *, omitted: int = 0) -> StoredContext:
        """Everything of one context; transactions behind `after`, blocks behind `omitted`.

        Raises CorruptContextError if a transaction is missing or its record cannot be read.
        """
        updates = await self.updates(context, after)  # first: the blocks of all of them are there
        blocks, undo, clients = await asyncio.gather(
            self.blocks(context, omitted), self.undo(context), self.clients(context)
        )
        return StoredContext(
            context,
            after + len(updates),
            tuple(updates),
            blocks,
            undo,
            clients,
            self._generations.get(context.number, 0),
        )

    # Commits

    def commit(self, *commits: Commit) -> asyncio.Future[None]:
        """Store successive transactions of one context, or all of new ones; all or none.

        The future is done when they are on disk. Futures are done in the order of the calls. After
        a failure (storage_failed) everything that was built on the lost commit fails too, until the
        context is loaded again.
        """
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if self._broken is not None:
            future.set_exception(self._broken)
            return future
        self._waiting.append((commits, future))
        self._wake.set()
        return future

    def refuse_waiting(self, context: int, error: AntiphonError) -> None:
        """Let what waits to be written of a context fail, until the context is loaded again.

        What is being written already may succeed. `context` is its number.
        """
        self._generations[context] = self._generations.get(context, 0) + 1
        self._failures[context] = error

    def refuse_if_broken(self) -> None:
        """Raises AntiphonError storage_failed if nothing can be committed any more."""
        if self._broken is not None:
            raise self._broken

    def depend_on(self, database: SqlDatabase) -> None:
        """Commit nothing more once the files of this database have been lost."""
        if isinstance(database, Database):
            database.files_lost.listen(self._lose)

    def _lose(self, error: StorageLostError) -> None:
        if self.lost is not None:
            return
        self.lost = self._broken = error
        _log.critical("%s", error)
        self._new_sessions.clear()
        self.files_lost.notify(error)

    async def _write_until_closed(self) -> None:
        while not self._is_closing or self._wake.is_set():
            await self._wake.wait()
            self._wake.clear()
            group = list(self._waiting)
            current = self._generations
            sound = [
                commits
                for commits, _ in group
                if commits[0].generation == current.get(commits[0].context.number, 0)
            ]
            due = sound or self._new_sessions or self._new_presences
            failed = await self._write_sound(sound) if due else {}
            # Commits that are built on a lost one are refused: only who loads again may go on.
            for context, error in failed.items():
                self.refuse_waiting(context, error)
            written = {id(one) for one in sound if one[0].context.number not in failed}
            for commits, future in group:
                if future.cancelled():
                    continue
                if id(commits) in written:
                    future.set_result(None)
                else:
                    future.set_exception(self._failures[commits[0].context.number])
            del self._waiting[: len(group)]
        self._broken = self._broken or kernel_is_closing()

    def _writer_ended(self, writer: asyncio.Task[None]) -> None:
        """A writer that dies of a bug must not leave anybody waiting."""
        if writer.cancelled() or writer.exception() is None:
            return
        self._broken = error = storage_failed(
            f"The journal's writer has stopped: {writer.exception()}. Restart the kernel.",
        )
        _log.critical("the journal's writer has stopped", exc_info=writer.exception())
        for _, future in self._waiting:
            if not future.done():
                future.set_exception(error)
        self._waiting.clear()

    async def _write_sound(self, sound: Sequence[Sequence[Commit]]) -> dict[int, AntiphonError]:
        """Write all that is not refused; why the others fail, by the number of the context."""
        failed: dict[int, AntiphonError] = {}
        for attempt in count(1):
            error = await self._write_group([*chain(*sound)])
            if error is None:
                break
            refused = await self._refusals(error, sound)
            if not refused and isinstance(error, FenceError) and attempt < _ATTEMPTS:
                continue  # all that was out of date has been read again
            # What nobody in particular is to blame for, all fail of.
            failed |= refused or {commits[0].context.number: error for commits in sound}
            sound = [one for one in sound if one[0].context.number not in failed]
            if not sound:
                break
        return failed

    async def _refusals(
        self, error: AntiphonError, sound: Sequence[Sequence[Commit]]
    ) -> dict[int, AntiphonError]:
        """Return why some of them fail for themselves; what was out of date is read again."""
        group, whys = [*chain(*sound)], list[AntiphonError | None]()
        if isinstance(error, TakenError):
            whys = [error if error.name in _names(one) else None for one in group]
        elif self.fence is not None and isinstance(error, FenceError):
            whys = await self.fence.refusals(error, group)
        numbers = [commits[0].context.number for commits in sound for _ in commits]
        return {number: why for number, why in zip(numbers, whys, strict=False) if why is not None}

    async def _write_group(self, group: list[Commit]) -> AntiphonError | None:
        """One transaction for all of them; the error if it did not happen."""
        if self._broken is not None:
            return self._broken
        count, presences = len(self._new_sessions), self._new_presences
        self._new_presences = []  # those that cannot be written are lost
        sessions = {one.session: one for one in self._new_sessions}
        sessions |= {one.actor.session: one.actor for one in group}
        try:
            rows = commit_rows(group, self._principals)
            first = session_rows(sessions.values(), self._principals)
            fence = [self.fence.statement(group)] if self.fence is not None and group else []
            await self._database.write(chain(fence, [first], rows, [(ADD_PRESENCE, presences)]))
        except StorageLostError as error:
            return error
        except AntiphonError as error:
            _log.error("a commit of %d transactions failed: %s", len(group), error)
            return error
        del self._new_sessions[:count]
        return None


def _names(commit: Commit) -> Iterator[str]:
    """Yield what a commit gives that no two may have."""
    if commit.seq == 1 or commit.restated:
        yield commit.context.label
    if commit.file is not None:
        yield commit.file.path
