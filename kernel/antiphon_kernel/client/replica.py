"""A replica of one context's document, kept in step with the kernel's.

The app and every remote client use this one class. Text can be written into `document` at any
time, connected or not; only what the other side lacks travels when the connection comes back.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from enum import StrEnum
from typing import Final, TypeVar

from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed

from antiphon_kernel.client.address import KernelAddress
from antiphon_kernel.client.attendance import Attendance
from antiphon_kernel.client.connecting import open_socket
from antiphon_kernel.client.local_edits import LocalEdits
from antiphon_kernel.client.outbox import Outbox
from antiphon_kernel.client.refused_edits import Keep, Refusal, RefusedEdit, account_of
from antiphon_kernel.client.replay import Replay
from antiphon_kernel.document.changes import REMOTE
from antiphon_kernel.document.document import Document
from antiphon_kernel.types.conventions import DEFAULT_CONTEXT
from antiphon_kernel.types.enums import Activity
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.ids import RandomIds
from antiphon_kernel.types.presence import PresenceState
from antiphon_kernel.wire.awareness import decode_awareness
from antiphon_kernel.wire.close_codes import CloseCode, is_final
from antiphon_kernel.wire.frames import (
    Ack,
    AwarenessUpdate,
    Frame,
    PermissionDenied,
    QueryAwareness,
    SyncStep1,
    SyncStep2,
    SyncUpdate,
    decode_frame,
    encode_frame,
)

TIME_SLICE: Final = 0.008
"""Seconds after which a flood of remote changes lets the rest of the program run."""

Result = TypeVar("Result")


class ReplicaState(StrEnum):
    """How a replica stands to its kernel."""

    CONNECTING = "connecting"
    """Looking for the kernel for the first time."""
    CATCHING_UP = "catching_up"
    """Connected; what was missed is on its way."""
    LIVE = "live"
    OFFLINE = "offline"
    """No connection; the next attempt comes by itself."""
    REFUSED = "refused"
    """The kernel will not have this replica, for the reason `refusal`; it has given up."""


def default_retry(attempt: int) -> float:
    """Seconds to wait before attempt number `attempt` (from 0): 50 ms, doubling up to 2 s."""
    return float(min(2.0, 0.05 * 2 ** min(attempt, 10)) * random.uniform(0.8, 1.2))


class Replica:
    """One context's document here, the other people in it, and the connection that keeps both."""

    def __init__(
        self,
        locate: Callable[[], KernelAddress],
        context: str = DEFAULT_CONTEXT,
        *,
        as_name: str | None = None,
        client_id: int | None = None,
        retry: Callable[[int], float] = default_retry,
        keep: Keep | None = None,
    ) -> None:
        """`keep` writes down edits that the kernel refuses; the replica then goes on without them.

        Without it a refused edit is the end of the replica.
        """
        self._retry = retry
        self._keep = keep
        self._replay: Replay | None = None
        self._refused: Refusal | None = None
        self._rebuilt_listeners: list[Callable[[], None]] = []
        self._follow(Document(client_id if client_id is not None else RandomIds().client_id()))
        self._locate = locate
        self._context = context
        self._kernel: str | None = None
        self._as_name = as_name
        self._state = ReplicaState.CONNECTING
        self._refusal: str | None = None
        self._refusal_code: int | None = None
        self._trouble: str | None = None
        self._denied: str | None = None
        self._state_listeners: list[Callable[[], None]] = []
        self._presence_listeners: list[Callable[[], None]] = []
        self._closed = asyncio.Event()
        self._wake = asyncio.Event()
        self._socket: ClientConnection | None = None
        self._asked: bytes | None = None

    def _follow(self, document: Document) -> None:
        self.document = document
        self._outbox = Outbox()
        self._edits = LocalEdits(document, self._wrote)
        self._attendance = Attendance(document.client_id, time.monotonic)

    @property
    def state(self) -> ReplicaState:
        return self._state

    @property
    def refusal(self) -> str | None:
        """Why the kernel refused this replica."""
        return self._refusal

    @property
    def refusal_code(self) -> int | None:
        """The close code that it was refused with."""
        return self._refusal_code

    @property
    def refused(self) -> Refusal | None:
        """The edits that the kernel refused last, while the replica went on."""
        return self._refused

    @property
    def trouble(self) -> str | None:
        """Why the last attempt to connect, or the last connection, failed; None once live."""
        return self._trouble

    @property
    def unsaved(self) -> int:
        """How many changes made here are not known to be on the kernel's disk."""
        return self._outbox.unsaved

    @property
    def me(self) -> PresenceState | None:
        """This replica as the kernel knows it; None until it has been connected."""
        return self._attendance.me

    def presence(self) -> Mapping[int, PresenceState]:
        """Everyone in the context but this replica, by awareness client id."""
        return self._attendance.others

    async def saved(self) -> None:
        """Wait, through reconnects, until all that was written here is on the kernel's disk.

        Raises:
            AntiphonError: if the kernel refuses this replica, or the replica is closed before.
        """
        await self._outbox.saved()

    def set_presence(
        self, block: str | None, cursor: int | None, anchor: int | None, activity: Activity
    ) -> None:
        """Say where this replica's cursor is; the last of several in quick succession is sent."""
        if self._attendance.say(block, cursor, anchor, activity):
            self._wake.set()

    def watch_state(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call `listener` when state, refusal or unsaved may have changed; returns the way out."""
        self._state_listeners.append(listener)
        return lambda: self._state_listeners.remove(listener)

    def watch_presence(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call `listener` when anyone's presence changed; returns the way to stop."""
        self._presence_listeners.append(listener)
        return lambda: self._presence_listeners.remove(listener)

    def watch_rebuilt(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call `listener` when `document` is another object; returns the way to stop.

        That is so after the kernel has refused an edit: see `refused`.
        """
        self._rebuilt_listeners.append(listener)
        return lambda: self._rebuilt_listeners.remove(listener)

    async def run(self) -> None:
        """Keep the replica in step until it is closed or refused; reconnects by itself."""
        try:
            await self._keep_connected()
        finally:
            self._end()

    def _room(self, address: KernelAddress) -> str:
        """By its id once this kernel has said it: the label may be another one by now."""
        known = self.document.context if address.kernel == self._kernel else None
        self._kernel = address.kernel
        return known or self._context

    async def _keep_connected(self) -> None:
        attempt = 0
        refused_by: KernelAddress | None = None
        while not self._closed.is_set():
            try:
                address = self._locate()
                if address == refused_by:
                    break
                socket = await self._unless_closed(
                    open_socket(
                        address, ("sync", self._room(address)), as_name=self._as_name, ack="1"
                    )
                )
            except AntiphonError as error:
                self._trouble = error.message
                self._become(ReplicaState.OFFLINE)
            else:
                if socket is None:
                    break
                if self._replay is not None:
                    was_live, refused = False, await self._make_again(socket, self._replay)
                else:
                    was_live, refused = await self._serve(socket)
                if refused is not None and not self._closed.is_set():
                    if refused[0] == CloseCode.REFUSED and self._keep is not None:
                        self._replay = Replay(self.document.client_id, RandomIds().client_id())
                        continue
                    self._refusal_code, self._refusal = refused
                    if self._refusal_code != CloseCode.UNAUTHORISED:
                        break
                    refused_by = address
                if was_live or self._replay is not None:
                    attempt = 0
            await self._unless_closed(asyncio.sleep(self._retry(attempt)))
            attempt += 1

    async def close(self) -> None:
        """Send what is still to be sent, then let go of the connection."""
        if self._closed.is_set():
            return
        socket = self._socket
        if socket is not None:
            with suppress(ConnectionClosed):
                for frame in self._frames_due():
                    await socket.send(frame)
        self._closed.set()
        self._edits.close()
        if socket is not None:
            await socket.close()
        self._outbox.fail(AntiphonError(ErrorCode.NO_KERNEL, "The replica was closed."))

    # One connection

    async def _serve(self, socket: ClientConnection) -> tuple[bool, tuple[int, str] | None]:
        """Speak on one connection until it ends: whether it got live, and why it was refused."""
        self._socket = socket
        self._asked = self._denied = None
        self._outbox.start_connection()
        self._attendance.start_connection()
        self._become(ReplicaState.CATCHING_UP)
        writer = asyncio.create_task(self._write(socket), name="replica writer")
        reader = asyncio.create_task(self._read(socket), name="replica reader")
        reader.add_done_callback(lambda _: writer.cancel())
        try:
            # The reader ends with the connection, behind the last frame; the writer may notice it
            # before that, so that only its failing is a reason to stop reading.
            await asyncio.wait({reader, writer}, return_when=asyncio.FIRST_EXCEPTION)
            for task in (reader, writer):
                if task.done() and not task.cancelled():
                    task.result()
            was_live = self._state is ReplicaState.LIVE
        finally:
            reader.cancel()
            writer.cancel()
            await asyncio.wait({reader, writer})
            self._socket = None
            await socket.close()
            self._become(ReplicaState.OFFLINE)
            if self._attendance.start_connection():
                self._tell(self._presence_listeners)
        return was_live, self._verdict(socket)

    def _verdict(self, socket: ClientConnection) -> tuple[int, str] | None:
        """The code and the reason if the kernel refused; None if it is worth trying again."""
        code = socket.close_code or CloseCode.NORMAL
        if not is_final(code):
            return None
        return code, self._denied or socket.close_reason or f"refused with code {code}"

    async def _read(self, socket: ClientConnection) -> None:
        loop = asyncio.get_running_loop()
        pause_at = loop.time() + TIME_SLICE
        with suppress(ConnectionClosed):
            await socket.send(encode_frame(SyncStep1(self.document.state_vector())))
            async for data in socket:
                try:
                    frame = decode_frame(data if isinstance(data, bytes) else b"")
                except ValueError as error:
                    self._trouble = f"The kernel sent something that cannot be read: {error}."
                    await socket.close(CloseCode.MALFORMED)
                    return
                self._receive(frame)
                if loop.time() >= pause_at:
                    await asyncio.sleep(0)
                    pause_at = loop.time() + TIME_SLICE

    def _receive(self, frame: Frame) -> None:
        match frame:
            case SyncUpdate(update):
                self.document.apply_update(update, REMOTE)
            case SyncStep2(update):
                self.document.apply_update(update, REMOTE)
                self._trouble = None
                self._become(ReplicaState.LIVE)
            case SyncStep1(state_vector):
                self._asked = state_vector
                self._wake.set()
            case Ack(count):
                self._outbox.acknowledged(count)
                self._edits.keep(self._outbox.unsaved)
                self._tell(self._state_listeners)
            case AwarenessUpdate(update):
                if self._attendance.receive(decode_awareness(update)):
                    self._tell(self._presence_listeners)
            case PermissionDenied(reason):
                self._denied = reason
            case QueryAwareness():
                self._attendance.repeat()
                self._wake.set()

    async def _write(self, socket: ClientConnection) -> None:
        loop = asyncio.get_running_loop()
        try:
            while True:
                for frame in self._frames_due():
                    await socket.send(frame)
                timer = None
                if self._outbox.open:
                    timer = loop.call_later(self._attendance.delay(), self._wake.set)
                await self._wake.wait()
                self._wake.clear()
                if timer is not None:
                    timer.cancel()
        except ConnectionClosed:
            return

    def _frames_due(self) -> list[bytes]:
        """What is to be sent now: text first, so that no cursor is ahead of its text."""
        frames = []
        if self._asked is not None:
            missing = self.document.update_since(self._asked)
            self._asked = None
            self._outbox.everything_sent()
            frames.append(encode_frame(SyncStep2(missing)))
        update = self._outbox.take()
        if update is not None:
            frames.append(encode_frame(SyncUpdate(update)))
        if self._outbox.open and self._attendance.delay() == 0:
            frames.append(self._attendance.take())
        return frames

    def _wrote(self, update: bytes) -> None:
        self._outbox.add(update)
        self._wake.set()
        if self._outbox.unsaved == 1:
            self._tell(self._state_listeners)

    # After a refused edit

    def _write_down_the_rest(self, reason: str) -> None:
        """The kernel will not have this replica: nothing that was written here gets there."""
        done = self._replay.refused if self._replay is not None else []
        left = self._replay.left() if self._replay is not None else []
        rest = [RefusedEdit(edit, reason) for edit in (*left, *self._edits.take())]
        self._write_down([*done, *rest])

    async def _make_again(self, socket: ClientConnection, replay: Replay) -> tuple[int, str] | None:
        """Bring the edits to the kernel that it does accept, then go on with its document."""
        replay.add(self._edits.take())
        self._become(ReplicaState.CATCHING_UP)
        try:
            state = await self._unless_closed(replay.run(socket, self.document.state_vector()))
        finally:
            await socket.close()
        if state is None:
            refused = self._verdict(socket)
            return None if refused is None or refused[0] == CloseCode.REFUSED else refused
        if not len(self._edits):
            self._rebuild(replay, state)
        return None

    def _rebuild(self, replay: Replay, state: bytes) -> None:
        document = Document(replay.new_client)
        document.apply_update(state, REMOTE)
        self._write_down(replay.refused)
        self._edits.close()
        if self._refused is not None and replay.refused:
            error = AntiphonError(
                ErrorCode.PERMISSION_DENIED, self._refused.reason, file=str(self._refused.file)
            )
            self._outbox.fail(error)
        else:
            self._outbox.settle()
        self._follow(document)
        self._replay = None
        self._tell(self._rebuilt_listeners)
        self._tell(self._state_listeners)

    def _write_down(self, refused: Sequence[RefusedEdit]) -> None:
        if not refused or self._keep is None:
            return
        try:
            file = self._keep(account_of(self.document, refused))
        except OSError as error:
            self._trouble = f"What was refused ({refused[0].reason}) cannot be written: {error}"
            raise AntiphonError(ErrorCode.STORAGE_FAILED, self._trouble) from error
        self._refused = Refusal(refused[0].reason, len(refused), file)

    # State

    def _become(self, state: ReplicaState) -> None:
        if state is ReplicaState.OFFLINE and self._state is ReplicaState.REFUSED:
            return
        if state is not self._state:
            self._state = state
            self._tell(self._state_listeners)

    def _end(self) -> None:
        if self._refusal is not None and not self._closed.is_set():
            self._write_down_the_rest(self._refusal)
            self._become(ReplicaState.REFUSED)
            self._outbox.fail(AntiphonError(ErrorCode.PERMISSION_DENIED, self._refusal))
        else:
            self._become(ReplicaState.OFFLINE)

    async def _unless_closed(self, work: Awaitable[Result]) -> Result | None:
        """The result of `work`, or None if the replica is closed first."""
        closing = asyncio.ensure_future(self._closed.wait())
        working = asyncio.ensure_future(work)
        try:
            await asyncio.wait({closing, working}, return_when=asyncio.FIRST_COMPLETED)
            return working.result() if working.done() else None
        finally:
            closing.cancel()
            if not working.done():
                working.cancel()

    @staticmethod
    def _tell(listeners: list[Callable[[], None]]) -> None:
        for listener in tuple(listeners):
            listener()
