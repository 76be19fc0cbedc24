"""The trees of forks that this kernel has: its lease, and its rows among those of all owners.

The database's clock alone decides whether a lease has run out. Here it counts from when its last
renewal was sent, so that a kernel that is cut off, or was stopped, gives up before others take.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from antiphon_kernel.cluster.routing import is_forwarding
from antiphon_kernel.storage.stores import SqlDatabase
from antiphon_kernel.tasks import BackgroundTasks
from antiphon_kernel.types.errors import AntiphonError, NotOwnerError, storage_failed
from antiphon_kernel.types.signal import Signal

_RENEWALS: Final = 5
"""How often a lease is renewed in the time that it lasts."""

PATIENCE_SECONDS: Final = 10.0
"""How long a tree may be at a kernel that does not answer: the lease of a dead one ends before."""

_PAUSE_SECONDS: Final = 0.1

_log = logging.getLogger(__name__)

# A lease that has run out is never renewed: whoever has seen that takes, at any later time.
_LEASE: Final = "clock_timestamp() + make_interval(secs => ?)"
_REGISTER: Final = (
    "WITH ended AS (UPDATE kernels SET lease_until = clock_timestamp() WHERE number = ?),"
    " gone AS (DELETE FROM kernels k WHERE lease_until < clock_timestamp() AND number <> ?"
    " AND NOT EXISTS (SELECT FROM owners o WHERE o.kernel = k.number))"
    f" INSERT INTO kernels (address, lease_until) SELECT CAST(? AS text), {_LEASE} RETURNING number"
)
_RENEW: Final = (
    f"UPDATE kernels SET lease_until = {_LEASE}"
    " WHERE number = ? AND lease_until > clock_timestamp() RETURNING number"
)
_LIVE: Final = "SELECT number FROM kernels WHERE lease_until > clock_timestamp()"
_ADDRESSES: Final = _LIVE.replace("number", "address", 1)
_TAKE: Final = (
    "WITH former AS (SELECT kernel FROM owners WHERE context = ?)"
    " INSERT INTO owners AS o (context, kernel, epoch)"
    f" SELECT CAST(? AS bigint), number, 1 FROM ({_LIVE} AND number = ?) AS own"
    " ON CONFLICT (context) DO UPDATE SET kernel = excluded.kernel, epoch = o.epoch + 1"
    f" WHERE o.kernel IS NULL OR o.kernel = excluded.kernel OR o.kernel NOT IN ({_LIVE})"
    " RETURNING epoch, (SELECT kernel IS NOT NULL FROM former)"
)
_OWNER: Final = (
    "SELECT address FROM owners o JOIN kernels k ON k.number = o.kernel"
    " WHERE context = ? AND lease_until > clock_timestamp() AND number <> ?"
)
_RELEASE: Final = (
    "UPDATE owners o SET kernel = NULL"
    " FROM unnest(CAST(? AS bigint[]), CAST(? AS bigint[])) AS given (context, epoch)"
    " WHERE o.context = given.context AND o.epoch = given.epoch AND kernel = ? RETURNING o.context"
)
_LEFT: Final = f"SELECT context FROM owners WHERE kernel NOT IN ({_LIVE}) ORDER BY context"
_END_SILENT: Final = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
    " WHERE datname = current_database() AND usename = current_user"
    " AND application_name = current_setting('application_name')"
    " AND state = 'active' AND wait_event = 'ClientRead' AND xact_start IS NOT NULL"
    " AND state_change < clock_timestamp()"
    " - CAST(current_setting('idle_in_transaction_session_timeout') AS interval)"
)
"""Ends transactions of which only a part has come from a kernel that stands still, or was cut off.

They would hold up whoever takes its trees. The server's own limit begins after a whole pipeline.
"""

_END: Final = "DELETE FROM kernels WHERE number = ? RETURNING number"
"""Leaves what the kernel had to anybody."""


class Ownership:
    """The trees of forks that this kernel has, by the numbers of their roots.

    Belongs to one event loop. What speaks to the database raises AntiphonError storage_failed.
    """

    def __init__(self, database: SqlDatabase, lease_seconds: float) -> None:
        """`lease_seconds`: how long a kernel that says nothing keeps what it has."""
        self.address = ""
        """The URL at which other kernels reach this one; empty as long as they do not."""
        self.lost = Signal[int]()
        """Each root that this kernel has no more, without having given it up."""
        self.ask_owner: Callable[[str, int], Awaitable[None]] | None = None
        """Asks the kernel at an address to hand a tree over; raises AntiphonError if it refuses.

        One that does not answer may have died: its lease runs out then.
        """
        self.unread = dict[int, bool]()
        """Trees that were taken, and of which others may have changed what is not read yet; whether
        each is of a kernel that has died."""
        self.kernel = 0
        """The number of this kernel, another one after each lease that has run out."""
        self._database = database
        self._lease_seconds = lease_seconds
        self._ends = 0.0
        """When the lease ends, by the clock of the event loop."""
        self._epochs = dict[int, int]()
        self._tasks = BackgroundTasks(_log)
        self._end_timer: asyncio.TimerHandle | None = None

    @classmethod
    async def open(cls, database: SqlDatabase, lease_seconds: float) -> Ownership:
        """Begin a lease, and keep it up."""
        ownership = cls(database, lease_seconds)
        await ownership._register()
        ownership._tasks.start(ownership._renew_forever(), "lease")
        return ownership

    async def close(self) -> None:
        """Give up everything, the lease too."""
        await self._tasks.close()
        if self._end_timer is not None:
            self._end_timer.cancel()
        self._epochs.clear()
        try:
            await self._database.select(_END, (self.kernel,))
        except AntiphonError as error:
            _log.warning("what this kernel has is free when its lease has run out: %s", error)

    async def listen_at(self, address: str) -> None:
        """Let other kernels know the URL at which they reach this one."""
        self.address = address
        sql = "UPDATE kernels SET address = ? WHERE number = ? RETURNING number"
        await self._database.select(sql, (address, self.kernel))

    # The lease

    @property
    def is_live(self) -> bool:
        """Return whether no other kernel may take what this one has."""
        return asyncio.get_running_loop().time() < self._ends

    async def _renew_forever(self) -> None:
        while True:
            await asyncio.sleep(self._lease_seconds / _RENEWALS)
            try:
                await self._renew()
            except AntiphonError as error:
                _log.warning("the lease of this kernel was not renewed: %s", error)

    async def _renew(self) -> None:
        if self.is_live:
            sent = asyncio.get_running_loop().time()
            if await self._database.select(_RENEW, (self._lease_seconds, self.kernel)):
                self._extend(sent)
                await self._database.select(_END_SILENT)
                return
        self._lose_all()
        await self._register()

    async def _register(self) -> None:
        sent = asyncio.get_running_loop().time()
        rows = await self._database.select(
            _REGISTER, (self.kernel, self.kernel, self.address, self._lease_seconds)
        )
        self.kernel = int(rows[0][0])
        self._extend(sent)

    def _extend(self, sent: float) -> None:
        if self._end_timer is not None:
            self._end_timer.cancel()
        self._ends = sent + self._lease_seconds
        self._end_timer = asyncio.get_running_loop().call_at(self._ends, self._lose_all)

    def _lose_all(self) -> None:
        self._ends = 0.0
        if self._epochs:
            _log.error("this kernel's lease has run out: it gives up %d trees", len(self._epochs))
        for root in list(self._epochs):
            self.lose(root)

    def lose(self, root: int) -> None:
        """Have a tree no more, which may be another kernel's by now."""
        if self._epochs.pop(root, None) is not None:
            self.lost.notify(root)

    # Trees

    def roots(self) -> set[int]:
        """Return the trees that this kernel has."""
        return set(self._epochs) if self.is_live else set()

    def owns(self, root: int) -> bool:
        """Return whether this kernel has a tree."""
        return self.epoch(root) > 0

    def epoch(self, root: int) -> int:
        """Return which taking of a tree it was by which this kernel has it; 0 if it has it not."""
        return self._epochs.get(root, 0) if self.is_live else 0

    async def acquire(self, root: int) -> None:
        """Return when this kernel has a tree, which nobody else has then; one call at a time.

        Unless the current task is within `forwarding`, another owner is asked to hand it over.
        Raises NotOwnerError if another kernel has it, or keeps it.
        """
        loop, pause = asyncio.get_running_loop(), 0.0
        ends = loop.time() + PATIENCE_SECONDS
        while not self.owns(root):
            # Most often another kernel has it: taking first would hold up the commits there.
            rows = await self._database.select(_OWNER, (root, self.kernel))
            if not rows and await self._take(root):
                return
            if loop.time() >= ends:
                raise storage_failed(
                    "The context could not be taken: this kernel has no lease in its database, or"
                    " others take turns with it. Try again.",
                )
            if rows:
                address = str(rows[0][0])
                if is_forwarding() or self.ask_owner is None or not address:
                    raise NotOwnerError("Another kernel has the context.", address or None)
                await self.ask_owner(address, root)
            await asyncio.sleep(pause)
            pause = _PAUSE_SECONDS

    async def _take(self, root: int) -> bool:
        kernel = self.kernel
        rows = await self._database.select(_TAKE, (root, root, kernel))
        if not rows or kernel != self.kernel or not self.is_live:
            return False
        self._epochs[root] = int(rows[0][0])
        self.unread[root] = bool(rows[0][1])
        return True

    def know_new(self, root: int) -> None:
        """Have the tree of a new context, whose row is on disk with it."""
        self._epochs[root] = 1

    async def release(self, *roots: int) -> None:
        """Give trees up; all that has been written of them is on disk."""
        epochs = {root: self._epochs.pop(root) for root in roots if self.owns(root)}
        if epochs:
            values = list(epochs), list(epochs.values()), self.kernel
            await self._database.select(_RELEASE, values)

    async def live(self) -> set[str]:
        """Return the addresses of the kernels whose leases have not run out."""
        return {str(row[0]) for row in await self._database.select(_ADDRESSES)}

    async def left(self) -> list[int]:
        """Return the roots of the trees whose owners have died without giving them up."""
        return [int(row[0]) for row in await self._database.select(_LEFT)]
