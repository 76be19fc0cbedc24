"""One connection of a replica: its part of the sync protocol, until the connection ends."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Final, NamedTuple

from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed

from antiphon_kernel.client.local_replica import LocalReplica, ReplicaState
from antiphon_kernel.document.changes import REMOTE
from antiphon_kernel.tasks import TimeSlice
from antiphon_kernel.yjs import frames
from antiphon_kernel.yjs.close_codes import SHUTTING_DOWN, CloseCode, is_final
from antiphon_kernel.yjs.frames import decode_awareness
from antiphon_kernel.yjs.id_set import NO_STATE, decode_state_vector

PING_INTERVAL: Final = 1.0
"""Seconds between the answer to a ping and the next one."""

_KERNEL_FAILURES: Final = (
    CloseCode.RESTART,
    CloseCode.INTERNAL_ERROR,
    CloseCode.TRY_AGAIN_LATER,
)
"""Close codes of connections that ended for a reason that people should know."""

LATE_PONG: Final = 2.0
"""Seconds after which a ping counts as unanswered. The connection stays: it is the library that
ends one whose pings go unanswered for long."""


class ServerRejection(NamedTuple):
    """The kernel will not go on with a replica."""

    code: int
    """The close code."""
    reason: str


def rejection_of(socket: ClientConnection, denied: str | None = None) -> ServerRejection | None:
    """Return the rejection that closed a connection; None if it is worth trying again.

    Args:
        denied: the reason that it gave before.
    """
    code = socket.close_code or CloseCode.NORMAL
    if not is_final(code):
        return None
    return ServerRejection(code, denied or socket.close_reason or f"refused with code {code}")


def unreadable(error: ValueError) -> str:
    """Say that the kernel has sent something that cannot be read."""
    return f"The kernel sent something that cannot be read: {error}."


class ReplicaConnection:
    """Speaks for one copy of a document on one socket."""

    def __init__(self, socket: ClientConnection, copy: LocalReplica) -> None:
        self.socket = socket
        self._copy = copy
        self._asked: bytes | None = None
        self.denied: str | None = None
        """The reason that the kernel gave before it ended the connection."""
        self._misread: str | None = None

    async def run(self) -> bool:
        """Speak until the connection ends; whether it got live."""
        copy = self._copy
        copy.outbox.start_connection()
        copy.awareness.start_connection()
        copy.become(ReplicaState.CATCHING_UP)
        writer = asyncio.create_task(self._write(), name="replica writer")
        reader = asyncio.create_task(self._read(), name="replica reader")
        pinger = asyncio.create_task(self._ping(), name="replica pinger")
        reader.add_done_callback(lambda _: writer.cancel())
        try:
            # The reader ends with the connection, behind the last frame; the writer may notice it
            # before that, so that only its failing is a reason to stop reading.
            await asyncio.wait({reader, writer}, return_when=asyncio.FIRST_EXCEPTION)
            for task in (reader, writer):
                if task.done() and not task.cancelled():
                    task.result()
            return copy.state is ReplicaState.LIVE
        finally:
            reader.cancel()
            writer.cancel()
            pinger.cancel()
            await asyncio.wait({reader, writer, pinger})
            copy.set_silent(False)
            await self.socket.close()
            copy.kernel_error = self._kernel_error() or copy.kernel_error
            copy.become(ReplicaState.OFFLINE)
            copy.forget_next()
            if copy.awareness.start_connection():
                copy.presence_changed.notify()

    def _kernel_error(self) -> str | None:
        """Return the reason that the kernel gave for ending the connection, or what was wrong with
        what it sent; None if it may not be tried again, or if the kernel only shuts down.
        """
        if self._misread is not None:
            return self._misread
        end = self.socket.protocol.close_rcvd
        if end is None or end.code not in _KERNEL_FAILURES or end.reason in ("", SHUTTING_DOWN):
            return None
        return self.denied or end.reason

    async def _read(self) -> None:
        socket, time_slice = self.socket, TimeSlice()
        with suppress(ConnectionClosed):
            await self._begin()
            async for data in socket:
                try:
                    await self._receive(
                        frames.decode_frame(data if isinstance(data, bytes) else b"")
                    )
                except ValueError as error:
                    self._misread = self._copy.last_error = unreadable(error)
                    await socket.close(CloseCode.UNSUPPORTED_DATA)  # no final one: it is echoed
                    return
                await time_slice.pause()  # a flood lets the rest of the program run

    async def _begin(self) -> None:
        """Say what is here, and what is not. Raises ConnectionClosed."""
        document, omitted = self._copy.document, self._copy.omitted
        # The epoch may have come before all that proves it to the kernel.
        is_proved = document.genesis_client in decode_state_vector(document.state_vector())
        if not is_proved or (omitted and document.has_parts):
            await self.begin_anew()
            return
        due: list[frames.Frame] = [frames.SyncStep1(document.state_vector())]
        if omitted:
            meta, _ = document.stated_values()
            due[:0] = frames.Recent(self._copy.blocks_wanted()), frames.Omitted(omitted, meta, {})
        for frame in due:
            await self.socket.send(frames.encode_frame(frame))

    async def begin_anew(self) -> None:
        """Ask for a state to begin with. Raises ConnectionClosed."""
        if (blocks := self._copy.blocks_wanted()) > 0:
            await self.socket.send(frames.encode_frame(frames.Recent(blocks)))
        await self.socket.send(frames.encode_frame(frames.SyncStep1(NO_STATE)))

    async def _ping(self) -> None:
        """Notice a kernel that has stopped to answer while there is nothing to send."""
        with suppress(ConnectionClosed):
            while True:
                await asyncio.sleep(PING_INTERVAL)
                pong = asyncio.ensure_future(await self.socket.ping())
                _, late = await asyncio.wait({pong}, timeout=LATE_PONG)
                self._copy.set_silent(bool(late))
                await pong
                self._copy.set_silent(False)

    async def _receive(self, frame: frames.Frame) -> None:
        copy = self._copy
        match frame:
            case frames.SyncUpdate(update) if copy.incoming.is_partial:
                copy.incoming.apply_part(update)
            case frames.SyncUpdate(update):
                copy.incoming.apply_update(update, REMOTE)
            case frames.Omitted():
                copy.begin_anew(frame)
            case frames.SyncStep2(update):
                document = copy.incoming
                if document.has_parts:  # this is the last one, or all that the document lacks
                    document.apply_part(update)
                    for _ in document.finish_parts():
                        await asyncio.sleep(0)
                    copy.finish_anew()
                else:
                    document.apply_update(update, REMOTE)
                copy.become(ReplicaState.LIVE)
            case frames.SyncStep1(state_vector):
                decode_state_vector(state_vector)
                self._asked = state_vector
                copy.wake.set()
            case frames.Ack(count):
                copy.outbox.acknowledged(count)
                if count:
                    copy.kernel_error = None
                while len(copy.edits) > copy.outbox.unsaved:
                    copy.edits.popleft()
                copy.state_changed.notify()
            case frames.AwarenessUpdate(update):
                if copy.awareness.receive(decode_awareness(update)):
                    copy.presence_changed.notify()
            case frames.PermissionDenied(reason):
                self.denied = reason
            case frames.QueryAwareness():
                copy.awareness.republish()

    async def _write(self) -> None:
        copy = self._copy
        with suppress(ConnectionClosed):
            while True:
                for frame in self._frames_due():
                    await self.socket.send(frame)
                delay = copy.awareness.delay() if copy.outbox.open else None
                with suppress(TimeoutError):
                    async with asyncio.timeout(delay):
                        await copy.wake.wait()
                copy.wake.clear()

    def _frames_due(self) -> list[bytes]:
        """Return the frames to send now: text first, so that no cursor is ahead of its text."""
        outbox, awareness = self._copy.outbox, self._copy.awareness
        due = []
        if self._asked is not None:
            missing = self._copy.missing_since(self._asked)
            self._asked = None
            outbox.everything_sent()
            due.append(frames.encode_frame(frames.SyncStep2(missing)))
        update = outbox.take()
        if update is not None:
            due.append(frames.encode_frame(frames.SyncUpdate(update)))
        if outbox.open and awareness.delay() == 0:
            due.append(awareness.take())
        return due
