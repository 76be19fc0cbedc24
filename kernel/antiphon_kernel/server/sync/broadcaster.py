"""Broadcast to a room: changes in their order, and, behind them, presence."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from logging import Logger

from antiphon_kernel.contexts import Broadcast, Context
from antiphon_kernel.server.limits import ServerLimits
from antiphon_kernel.server.rate_limits import BatchPause
from antiphon_kernel.server.sync.connection import SyncConnection
from antiphon_kernel.server.sync.send_queue import UpdateFrame
from antiphon_kernel.server.sync.writer import presence_frame
from antiphon_kernel.types.errors import AntiphonError
from antiphon_kernel.yjs.awareness import AwarenessEntry
from antiphon_kernel.yjs.merge import merge


@dataclass(eq=False)
class Broadcaster:
    """Collects what is new for the length of a tick, and puts it into everybody's queue as one."""

    clients: Collection[SyncConnection]
    context: Context
    entry: Callable[[int], AwarenessEntry]
    """Says where the client with this awareness id is."""
    limits: ServerLimits
    log: Logger
    _commits: deque[Broadcast] = field(default_factory=deque)
    _moved: set[int] = field(default_factory=set)
    _announcing: asyncio.Task[None] | None = None
    _announced: dict[int, AwarenessEntry] = field(default_factory=dict)
    _flush_timer: asyncio.Handle | None = None
    _next_flush: float = float("-inf")
    """The earliest time of the next broadcast."""

    def __post_init__(self) -> None:
        tick, enough = self.limits.broadcast_tick, self.limits.merged_updates + 1
        self._loop = asyncio.get_running_loop()
        self._pause = BatchPause(tick, enough, self._loop.time)

    def close(self) -> None:
        """Tell nobody anything any more."""
        if self._flush_timer is not None:
            self._flush_timer.cancel()
        if self._announcing is not None:
            self._announcing.cancel()

    def committed(self, commit: Broadcast) -> None:
        """A change is on disk."""
        self._commits.append(commit)
        self._schedule_flush()

    def presence_changed(self, client: int) -> None:
        """The client with this awareness id has come, moved or gone."""
        self._moved.add(client)
        if self._announcing is None:
            self._announcing = asyncio.create_task(self._announce(), name="presence")

    async def _announce(self) -> None:
        """Let presence follow the text that was accepted before it, never overtake it."""
        try:
            while self._moved:
                entries = {client: self.entry(client) for client in self._moved}
                self._moved.clear()
                await self.context.wait_persisted()
                self._announced.update(entries)
                self._schedule_flush()
                await asyncio.sleep(self.limits.presence_tick)
        except AntiphonError as error:
            self.log.warning("presence is not announced: %s", error)
        finally:
            self._announcing = None

    def _schedule_flush(self) -> None:
        if self._flush_timer is None:
            if self._next_flush <= self._loop.time():
                self._flush_timer = self._loop.call_soon(self._flush)
            else:
                self._flush_timer = self._loop.call_at(self._next_flush, self._flush)

    def _flush(self) -> None:
        self._flush_timer = None
        batch = [
            self._commits.popleft()
            for _ in range(min(len(self._commits), self.limits.merged_updates))
        ]
        if batch:
            self._send_changes(batch)
        if self._commits:
            self._flush_timer = self._loop.call_soon(self._flush)
        elif self._announced:
            self._send_presence()
        self._next_flush = self._loop.time() + (self._pause.after(len(batch)) if batch else 0.0)

    def _send_changes(self, batch: Sequence[Broadcast]) -> None:
        sources = {commit.source for commit in batch}
        shared: UpdateFrame | None = None
        for client in self.clients:
            if not client.joined:
                continue
            if client in sources:
                others = [commit.update for commit in batch if commit.source is not client]
                if others:
                    client.outgoing.update(UpdateFrame(merge(others)))
                continue
            if shared is None:
                shared = UpdateFrame(merge([commit.update for commit in batch]))
            client.outgoing.update(shared)

    def _send_presence(self) -> None:
        announced, self._announced = self._announced, {}
        shared = presence_frame(announced.values())
        for client in self.clients:
            if not client.joined:
                continue
            if client.awareness_client in announced:
                others = [
                    entry
                    for number, entry in announced.items()
                    if number != client.awareness_client
                ]
                if others:
                    client.outgoing.frame(presence_frame(others))
            else:
                client.outgoing.frame(shared)
