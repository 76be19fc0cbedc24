"""Sending to the clients of a room: states, changes in their order and, behind them, presence."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from logging import Logger

from antiphon_kernel.contexts import Broadcast, Context
from antiphon_kernel.contexts.opening import RecentBlocks, omitted_segment
from antiphon_kernel.server.limits import ServerLimits
from antiphon_kernel.server.rate_limits import BatchPause
from antiphon_kernel.server.sync.awareness import ServerAwareness
from antiphon_kernel.server.sync.connection import CloseFrame, SyncConnection, hang_up
from antiphon_kernel.server.sync.send_queue import StateRequest, UpdateFrame
from antiphon_kernel.types.errors import AntiphonError
from antiphon_kernel.yjs import frames
from antiphon_kernel.yjs.frames import AwarenessEntry, encode_awareness
from antiphon_kernel.yjs.id_set import NO_STATE, decode_state_vector, encode_state_vector
from antiphon_kernel.yjs.merge import merge


def presence_frame(entries: Iterable[AwarenessEntry]) -> bytes:
    """The frame that says where these are."""
    return frames.encode_frame(frames.AwarenessUpdate(encode_awareness(entries)))


@dataclass(eq=False)
class RoomWriter:
    """Sends to the clients of a room: states, and what is new to all of them.

    What is new is collected for the length of a tick, and put into everybody's queue as one.
    """

    clients: Collection[SyncConnection]
    context: Context
    awareness: ServerAwareness
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
        self.recent = RecentBlocks(self.context)
        self.awareness.changed.listen(self.presence_changed)
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
                entries = {client: self.awareness.entry(client) for client in self._moved}
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
                    client.outgoing.put(UpdateFrame(merge(others)))
                continue
            if shared is None:
                shared = UpdateFrame(merge([commit.update for commit in batch]))
            client.outgoing.put(shared)

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
                    client.outgoing.put(presence_frame(others))
            else:
                client.outgoing.put(shared)

    # One client

    def ask(self, client: SyncConnection) -> None:
        """Ask a client for what it has and the context lacks."""
        client.outgoing.put(
            frames.encode_frame(frames.SyncStep1(self.context.document.state_vector()))
        )

    def introduce(self, client: SyncConnection) -> None:
        """Tell a client who else is here."""
        everyone = self.awareness.everyone(but=client.awareness_client)
        client.outgoing.put(presence_frame(everyone))

    async def send(self, client: SyncConnection) -> None:
        """Send what is due, one frame at a time, until the client is dismissed or gone."""
        outgoing = client.outgoing
        try:
            while client.goodbye is None:
                item = outgoing.take()
                if isinstance(item, StateRequest):
                    await self._write_state(client, item.state_vector)
                elif item is not None:
                    await _write(client, item)
                elif (count := outgoing.take_ack()) is not None:
                    await _write(client, frames.encode_frame(frames.Ack(count)))
                elif (missed := outgoing.take_missed()) is not None:
                    clocks = decode_state_vector(self.context.document.state_vector())
                    for crdt_client, start in missed.items():
                        clocks[crdt_client] = min(start, clocks.get(crdt_client, start))
                    await self._write_state(client, encode_state_vector(clocks))
                    self.ask(client)
                    self.introduce(client)
                else:
                    await outgoing.changed()
            await hang_up(client.send, client.goodbye)
        except OSError:
            client.line.cut()
        except Exception:
            self.log.exception("sending to a sync client failed")
            client.line.cut()

    async def _write_state(self, client: SyncConnection, state_vector: bytes) -> None:
        """Bring a client up to date: the last part of the state is the answer that it waits for."""
        context, began, cut = self.context, client.began_with, self.context.cut
        before: bytes | None = None
        try:
            is_recent = client.recent > 0 and state_vector == NO_STATE
            if is_recent:
                is_held = context.holds_last(client.recent)
            else:  # whoever has what the context leaves out would take that for removed
                is_held = cut is None or (began is not None and began.omitted >= cut.omitted)
            if not is_held:
                await context.whole()
            if is_recent:
                begin = client.began_with = await self.recent.cut(client.recent)
                if not (begin.clocks and context.holds_last(client.recent)):
                    await context.whole()
                await _write(
                    client,
                    frames.encode_frame(frames.Omitted(begin.omitted, begin.meta, begin.members)),
                )
                if begin.clocks:
                    await _write_part(client, frames.SyncUpdate(omitted_segment(begin)))
                    state_vector = encode_state_vector(begin.clocks)
            async for part in context.committed_state(state_vector, client.limits.state_part):
                if before is not None:
                    await _write_part(client, frames.SyncUpdate(before))
                before = part
        except AntiphonError as error:
            client.finish(CloseFrame.of_failure(error))
        else:
            assert before is not None, "there is a part at least"
            await _write_part(client, frames.SyncStep2(before))


async def _write(client: SyncConnection, frame: bytes) -> None:
    await client.send({"type": "websocket.send", "bytes": frame})


async def _write_part(client: SyncConnection, frame: frames.SyncStep2 | frames.SyncUpdate) -> None:
    client.pace.sent(len(frame.update))
    await _write(client, frames.encode_frame(frame))
