"""Large raw updates on their way into one context, each of which goes in whole.

Once accepted, an update belongs to the context: its parts go in, with pauses for the others,
whether or not the connection that brought it is still there. Until they are in, raw updates of the
same principal wait: they may speak of the same drafts with the same CRDT client ids.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from antiphon_kernel.tasks import BackgroundTasks
from antiphon_kernel.types.ids import PrincipalId
from antiphon_kernel.types.records import Actor
from antiphon_kernel.validation import Chunk

_log = logging.getLogger(__name__)

Arrival = asyncio.Task[asyncio.Future[None]]
"""The parts of an update going in; gives what ends when the last of them is on disk."""


class InFlightUpdates:
    """The accepted updates of one context that are not in yet, and those that are being checked."""

    def __init__(self) -> None:
        self._under_way: dict[PrincipalId, Arrival] = {}
        self._turns: defaultdict[PrincipalId, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._tasks = BackgroundTasks(_log)

    @property
    def is_empty(self) -> bool:
        """Return whether no large update is being checked or going in."""
        return not self._under_way and not any(turn.locked() for turn in self._turns.values())

    def has(self, actor: Actor) -> bool:
        """Return whether an accepted update of this principal is not applied yet."""
        return actor.principal.id in self._under_way

    @asynccontextmanager
    async def turn(self, actor: Actor) -> AsyncIterator[None]:
        """One update of a principal at a time is checked, behind the one that is going in."""
        async with self._turns[actor.principal.id]:
            await self.wait_applied(actor)
            yield

    async def wait_applied(self, actor: Actor) -> None:
        """Wait until no accepted update of this principal is under way."""
        while (arrival := self._under_way.get(actor.principal.id)) is not None:
            await asyncio.wait((arrival,))

    def start(
        self,
        actor: Actor,
        parts: deque[Chunk],
        take_in: Callable[[Chunk], asyncio.Future[None]],
    ) -> Arrival:
        """An update has been accepted: `take_in` each of its parts, by and by."""
        name, principal = f"a large update of {actor.principal.username}", actor.principal.id
        arrival = self._tasks.start(self._apply_all(parts, take_in), name)
        self._under_way[principal] = arrival
        arrival.add_done_callback(lambda _: self._under_way.pop(principal))
        return arrival

    async def _apply_all(
        self, parts: deque[Chunk], take_in: Callable[[Chunk], asyncio.Future[None]]
    ) -> asyncio.Future[None]:
        loop = asyncio.get_running_loop()
        while True:
            began = loop.time()
            on_disk = take_in(parts.popleft())
            if not parts:
                return on_disk
            await asyncio.sleep(loop.time() - began)  # the others work as long

    async def finish(self) -> None:
        """Wait until every accepted update is in."""
        while self._under_way:
            await asyncio.wait(tuple(self._under_way.values()))
