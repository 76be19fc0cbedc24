"""A replica of one context's document, kept in step with the kernel's.

The app and every remote client use this one class. Text can be written into `document` at any
time, connected or not; only what the other side lacks travels when the connection comes back.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Final, TypeVar

from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed

from antiphon_kernel.client.address import KernelAddress
from antiphon_kernel.client.connecting import open_socket
from antiphon_kernel.client.connection import (
    ReplicaConnection,
    ServerRejection,
    rejection_of,
    unreadable,
)
from antiphon_kernel.client.edit_replay import EditReplay
from antiphon_kernel.client.local_replica import LocalReplica, ReplicaState
from antiphon_kernel.client.rejected_edits import Keep, RejectedEdit, Rejection, format_report
from antiphon_kernel.document.changes import REMOTE
from antiphon_kernel.document.document import Document
from antiphon_kernel.types.constants import DEFAULT_CONTEXT
from antiphon_kernel.types.errors import (
    AntiphonError,
    no_kernel,
    permission_denied,
    storage_failed,
)
from antiphon_kernel.types.ids import IdSource
from antiphon_kernel.yjs.close_codes import CloseCode

LEFT_BEHIND = "nothing before the program ended; it may have saved this all the same."
"""Why edits are written down that were never refused; stands behind `The kernel said:`."""

LAST_SECONDS: Final = 1.0
"""How long the kernel may take to save the last edits before they are written down here."""

STEADY_SECONDS: Final = 1.0
"""How long a connection has to last for the next attempt to come as soon as the first."""

_COME_AGAIN: Final = (CloseCode.MOVED, CloseCode.RESTART)
"""Close codes after which another kernel may be there already."""

Result = TypeVar("Result")


def default_retry(attempt: int) -> float:
    """Seconds to wait before attempt number `attempt` (from 0): 50 ms, doubling up to 2 s."""
    return float(min(2.0, 0.05 * 2 ** min(attempt, 10)) * random.uniform(0.8, 1.2))


class Replica(LocalReplica):
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
        recent: int = 0,
    ) -> None:
        """
        Args:
            keep: writes down edits that the kernel refuses; the replica then goes on without them.
                Without it a refused edit is the end of the replica.
            recent: number of the last blocks to begin with in a long document; 0 for all.
        """
        super().__init__(client_id if client_id is not None else IdSource().client_id())
        self._locate = locate
        self._context = context
        self._as_name = as_name
        self._retry = retry
        self._keep = keep
        self._recent = recent
        self._kernel: str | None = None
        self._connection: ReplicaConnection | None = None
        self._replay: EditReplay | None = None
        self._closed = asyncio.Event()
        self.rejection: str | None = None
        """Why the kernel refused this replica."""
        self.rejection_code: int | None = None
        """The close code that it was refused with."""
        self.rejected_edits: Rejection | None = None
        """The edits that the kernel has refused so far, while the replica went on."""

    async def read_earlier(self, blocks: int) -> None:
        """Ask for a document with so many blocks at least; `document_replaced` tells of it.

        Without a connection the next one brings it.
        """
        if blocks <= self._recent:
            return
        self._recent = blocks
        is_unknown = self.document.epoch is None
        if self._connection is not None and (self.omitted or is_unknown):
            with suppress(ConnectionClosed):
                await self._connection.begin_anew()

    async def saved(self) -> None:
        """Wait, through reconnects, until all that was written here is on the kernel's disk.

        Raises:
            AntiphonError: if the kernel refuses this replica, or the replica is closed before.
        """
        await self.outbox.saved()

    async def run(self) -> None:
        """Keep the replica in step until it is closed or refused; reconnects by itself."""
        try:
            await self._keep_connected()
        finally:
            if self.rejection is not None and not self._closed.is_set():
                self._report_unsent(self.rejection)
                self.become(ReplicaState.REFUSED)
                self.outbox.fail(permission_denied(self.rejection))
            else:
                self.become(ReplicaState.OFFLINE)

    def _room(self, address: KernelAddress) -> str:
        """By its id once this kernel has said it: the label may be another one by now."""
        known = self.document.context if address.kernel == self._kernel else None
        self._kernel = address.kernel
        return known or self._context

    async def _keep_connected(self) -> None:
        attempt, loop = 0, asyncio.get_running_loop()
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
                self.last_error = error.message
                self.become(ReplicaState.OFFLINE)
            else:
                if socket is None:
                    break
                if self._closed.is_set():  # while the socket opened: `close` did not know it
                    await socket.close()
                    break
                began, is_kept, is_moved = loop.time(), True, False
                if self._replay is not None:
                    was_live, refused = False, None
                    try:
                        refused = await self._recreate(socket, self._replay)
                    except AntiphonError:  # the text stays in the document until it is written down
                        is_kept = False
                        self.become(ReplicaState.OFFLINE)
                else:
                    was_live, refused = await self._serve(socket)
                    is_moved = was_live and socket.close_code in _COME_AGAIN
                if refused is not None and not self._closed.is_set():
                    if refused.code == CloseCode.REFUSED and self._keep is not None:
                        self._replay = EditReplay(self.document.client_id, IdSource().client_id())
                        continue
                    self.rejection_code, self.rejection = refused
                    if refused.code != CloseCode.UNAUTHORISED:
                        break
                    refused_by = address
                is_steady = was_live and loop.time() - began >= STEADY_SECONDS
                if is_steady or (self._replay is not None and is_kept):
                    attempt = 0
                if is_moved and attempt == 0:
                    attempt = 1
                    continue
            await self._unless_closed(asyncio.sleep(self._retry(attempt)))
            attempt += 1

    async def close(self) -> None:
        """Send what is still to be sent, then let go of the connection.

        What the kernel does not save in `LAST_SECONDS` is written down, as refused edits are.

        Raises:
            AntiphonError: `storage_failed` if that cannot be.
        """
        if self._closed.is_set():
            return
        if self._connection is not None:
            # Until all is on the kernel's disk, or refused; not for long.
            self.wake.set()
            with suppress(TimeoutError, AntiphonError):
                async with asyncio.timeout(LAST_SECONDS):
                    await self.saved()
        self._closed.set()
        self.stop_following()
        try:
            if self.rejection is None:
                self._report_unsent(LEFT_BEHIND)
        finally:
            if self._connection is not None:  # it may be another one by now
                await self._connection.socket.close()
            self.outbox.fail(no_kernel("The replica was closed."))

    async def _serve(self, socket: ClientConnection) -> tuple[bool, ServerRejection | None]:
        """Speak on one connection until it ends: whether it got live, and why it was refused."""
        self._connection = connection = ReplicaConnection(socket, self)
        try:
            was_live = await connection.run()
        finally:
            self._connection = None
        return was_live, rejection_of(socket, connection.denied)

    # After a refused edit

    def _report_unsent(self, reason: str) -> None:
        done = self._replay.refused if self._replay is not None else []
        left = self._replay.due if self._replay is not None else []
        rest = [RejectedEdit(edit, reason) for edit in (*left, *self.take_edits())]
        self._report([*done, *rest])

    async def _recreate(
        self, socket: ClientConnection, replay: EditReplay
    ) -> ServerRejection | None:
        """Bring the edits to the kernel that it does accept, then go on with its document.

        Raises:
            AntiphonError: `storage_failed` if the others cannot be written down; `no_kernel` if
                what the kernel sends cannot be read.
        """
        replay.due += self.take_edits()
        self.become(ReplicaState.CATCHING_UP)
        try:
            state = await self._unless_closed(replay.run(socket, self.document.state_vector()))
            if state is not None and not self.edits:
                self._rebuild(replay, state)
        except ValueError as error:
            self.last_error = self.kernel_error = unreadable(error)
            raise no_kernel(unreadable(error)) from error
        finally:
            await socket.close()
        refused = rejection_of(socket) if state is None else None
        return None if refused is None or refused.code == CloseCode.REFUSED else refused

    def _rebuild(self, replay: EditReplay, state: bytes) -> None:
        renewed = Document(replay.new_client)
        renewed.apply_update(state, REMOTE)
        self._report(replay.refused)
        former = self.outbox
        self.begin_with(renewed)
        if self.rejected_edits is not None and replay.refused:
            former.fail(
                permission_denied(self.rejected_edits.reason, file=str(self.rejected_edits.file))
            )
        else:
            former.flush()
        self._replay = None
        self.document_replaced.notify()
        self.state_changed.notify()

    def _report(self, refused: Sequence[RejectedEdit]) -> None:
        if not refused or self._keep is None:
            return
        try:
            file = self._keep(format_report(self.document, refused))
        except OSError as error:
            trouble = f"What was refused ({refused[0].reason}) cannot be written: {error}"
            self.last_error = trouble
            raise storage_failed(trouble) from error
        before = self.rejected_edits.edits if self.rejected_edits is not None else 0
        self.rejected_edits = Rejection(refused[0].reason, before + len(refused), file)

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
