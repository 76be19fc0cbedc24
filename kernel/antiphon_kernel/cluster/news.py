"""Notifications between kernels on one database: they say that rows have changed, not how.

A notification may be lost with the connection, so everything counts as changed every few seconds.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from enum import StrEnum
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from antiphon_kernel.tasks import BackgroundTasks
from antiphon_kernel.types.errors import AntiphonError
from antiphon_kernel.types.signal import Signal

if TYPE_CHECKING:  # it imports its library
    from antiphon_kernel.storage.postgres import PostgresDatabase

LOOK_SECONDS: Final = 5.0
"""Seconds after which everything counts as changed, whoever has said so or not."""

_RETRY_SECONDS: Final = 1.0

_log = logging.getLogger(__name__)


class NewsKind(StrEnum):
    """Rows that have changed."""

    CONTEXTS = "contexts"
    """Contexts, files and drifts."""
    MEMBERS = "members"
    """Members, invitations and permissions of tools."""
    SEARCH = "search"
    """The search index: somebody looks for what owners have not indexed yet."""


class ClusterNews:
    """Notifications of the other kernels on a database. Belongs to one event loop."""

    def __init__(self, database: PostgresDatabase) -> None:
        self._database = database
        self._changed = {kind: Signal[()]() for kind in NewsKind}
        self._name = uuid4().hex
        """Begins the messages of this kernel, which it does not need itself."""
        self._tasks = BackgroundTasks(_log)
        self._is_closed = False

    def start(self) -> None:
        """Begin to listen."""
        self._tasks.start(self._listen_forever(), "news of other kernels")
        self._tasks.start(self._look_forever(), "looks at the rows of other kernels")

    async def close(self) -> None:
        """Listen no more; what is being read again is read no further."""
        self._is_closed = True
        await self._tasks.close()

    def announce(self, kind: NewsKind) -> None:
        """Tell the other kernels that rows have changed, which are on disk."""
        if not self._is_closed:
            self._tasks.start(self._send(kind), f"news of {kind}")

    def follow(self, kind: NewsKind, read: Callable[[], Awaitable[None]]) -> None:
        """Call `read` whenever rows have changed, and once more for what changes meanwhile."""
        waiting = asyncio.Event()

        async def read_forever() -> None:
            while True:
                await waiting.wait()
                waiting.clear()
                try:
                    await read()
                except AntiphonError as error:
                    _log.warning("what other kernels have changed was not read: %s", error)

        self._changed[kind].listen(waiting.set)
        self._tasks.start(read_forever(), "reading of what other kernels have changed")

    async def _send(self, kind: NewsKind) -> None:
        try:
            await self._database.notify(f"{self._name} {kind}")
        except AntiphonError as error:
            _log.warning("other kernels learn late of changed %s: %s", kind, error)

    async def _listen_forever(self) -> None:
        while True:
            try:
                async for message in self._database.messages():
                    sender, _, kind = message.partition(" ")
                    if not message:
                        self._notify_all()
                    # A newer version may tell of what this one does not hold.
                    if sender != self._name and kind in self._changed:
                        self._changed[NewsKind(kind)].notify()
            except AntiphonError as error:
                _log.warning("nothing is heard of other kernels: %s", error)
            await asyncio.sleep(_RETRY_SECONDS)

    async def _look_forever(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            self._notify_all()

    def _notify_all(self) -> None:
        for kind in (NewsKind.CONTEXTS, NewsKind.MEMBERS):
            self._changed[kind].notify()
