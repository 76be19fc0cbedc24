"""A replica of one context's document, kept in step with the kernel's.

The app and every remote client use this one class. Text can be written into `document` at any
time, connected or not; only what the other side lacks travels when the connection comes back.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
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
from antiphon_kernel.client.local_replica import LocalReplica
from antiphon_kernel.client.rejected_edits import Keep, RejectedEdit, Rejection, format_report
from antiphon_kernel.client.state import ConnectionStateMachine, ReplicaState
from antiphon_kernel.document.changes import REMOTE
from antiphon_kernel.document.document import Document
from antiphon_kernel.types.constants import DEFAULT_CONTEXT
from antiphon_kernel.types.enums import Activity
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.ids import RandomIds
from antiphon_kernel.types.presence import PresenceState, TextPlace
from antiphon_kernel.types.signal import Signal
from antiphon_kernel.yjs.close_codes import CloseCode

LEFT_BEHIND = "nothing before the program ended; it may have saved this all the same."
"""Why edits are written down that were never refused; stands behind `The kernel said:`."""

LAST_SECONDS: Final = 1.0
"""How long the kernel may take to save the last edits before they are written down here."""

STEADY_SECONDS: Final = 1.0
"""How long a connection has to last for the next attempt to come as soon as the first."""

Result = TypeVar("Result")


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
        recent: int = 0,
    ) -> None:
        """
        Args:
            keep: writes down edits that the kernel refuses; the replica then goes on without them.
                Without it a refused edit is the end of the replica.
            recent: number of the last blocks to begin with in a long document; 0 for all.
        """
        self._standing = ConnectionStateMachine()
        self._presence = Signal[()]()
        self._rebuilt = Signal[()]()
        self._copy = LocalReplica(
            client_id if client_id is not None else RandomIds().client_id(), self._wrote
        )
        self._locate = locate
        self._context = context
        self._as_name = as_name
        self._retry = retry
        self._keep = keep
        self._recent = recent
        self._kernel: str | None = None
        self._connection: ReplicaConnection | None = None
        self._verdict: ServerRejection | None = None
        self._replay: EditReplay | None = None
        self._refused: Rejection | None = None
        self._closed = asyncio.Event()

    @property
    def document(self) -> Document:
        """Another object after the kernel has refused an edit: see `on_document_replaced`."""
        return self._copy.document

    @property
    def state(self) -> ReplicaState:
        return self._standing.state

    @property
    def is_silent(self) -> bool:
        """Whether the kernel leaves a ping unanswered, though the connection is there."""
        return self._standing.is_silent

    @property
    def rejection(self) -> str | None:
        """Why the kernel refused this replica."""
        return self._verdict.reason if self._verdict is not None else None

    @property
    def rejection_code(self) -> int | None:
        """The close code that it was refused with."""
        return self._verdict.code if self._verdict is not None else None

    @property
    def rejected_edits(self) -> Rejection | None:
        """The edits that the kernel has refused so far, while the replica went on."""
        return self._refused

    @property
    def last_error(self) -> str | None:
        """Why the last attempt to connect, or the last connection, failed; None once live."""
        return self._standing.trouble

    @property
    def kernel_error(self) -> str | None:
        """Why the kernel ended a connection; None once it has saved anything since."""
        return self._standing.kernel_error

    @property
    def unsaved(self) -> int:
        """Number of local changes not known to be on the kernel's disk."""
        return self._copy.outbox.unsaved

    @property
    def omitted(self) -> int:
        """Number of the oldest blocks that `document` lacks; see `read_earlier`."""
        return self._copy.omitted

    async def read_earlier(self, blocks: int) -> None:
        """Ask for a document with so many blocks at least; `on_document_replaced` tells of it.

        Without a connection the next one brings it.
        """
        if blocks <= self._recent:
            return
        self._recent = blocks
        is_unknown = self._copy.document.epoch is None
        if self._connection is not None and (self._copy.omitted or is_unknown):
            with suppress(ConnectionClosed):
                await self._connection.begin_anew()

    @property
    def me(self) -> PresenceState | None:
        """This replica as the kernel knows it; None until it has been connected."""
        return self._copy.awareness.me

    def presence(self) -> Mapping[int, PresenceState]:
        """Everyone in the context but this replica, by awareness client id."""
        return self._copy.awareness.others

    async def saved(self) -> None:
        """Wait, through reconnects, until all that was written here is on the kernel's disk.

        Raises:
            AntiphonError: if the kernel refuses this replica, or the replica is closed before.
        """
        await self._copy.outbox.saved()

    def set_presence(
        self,
        block: str | None,
        cursor: int | None,
        anchor: int | None,
        activity: Activity,
        *,
        view: TextPlace | None = None,
        pointer: TextPlace | None = None,
        gathers: bool = False,
    ) -> None:
        """Say where this replica's cursor is; the last of several in quick succession is sent."""
        if self._copy.awareness.publish(
            block, cursor, anchor, activity, view=view, pointer=pointer, gathers=gathers
        ):
            self._wake()

    def watch_state(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call `listener` when state, refusal or unsaved may have changed; returns the way out."""
        return self._standing.changed.listen(listener)

    def watch_presence(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call `listener` when anyone's presence changed; returns the way to stop."""
        return self._presence.listen(listener)

    def on_document_replaced(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call `listener` when `document` is another object; returns the way to stop.

        That is so after the kernel has refused an edit (see `rejected_edits`), and when blocks have
        come that it lacked.
        """
        return self._rebuilt.listen(listener)

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
                self._standing.trouble = error.message
                self._standing.become(ReplicaState.OFFLINE)
            else:
                if socket is None:
                    break
                if self._closed.is_set():  # while the socket opened: `close` did not know it
                    await socket.close()
                    break
                began, is_kept = loop.time(), True
                if self._replay is not None:
                    was_live, refused = False, None
                    try:
                        refused = await self._recreate(socket, self._replay)
                    except AntiphonError:  # the text stays in the document until it is written down
                        is_kept = False
                        self._standing.become(ReplicaState.OFFLINE)
                else:
                    was_live, refused = await self._serve(socket)
                if refused is not None and not self._closed.is_set():
                    if refused.code == CloseCode.REFUSED and self._keep is not None:
                        self._replay = EditReplay(self.document.client_id, RandomIds().client_id())
                        continue
                    self._verdict = refused
                    if refused.code != CloseCode.UNAUTHORISED:
                        break
                    refused_by = address
                is_steady = was_live and loop.time() - began >= STEADY_SECONDS
                if is_steady or (self._replay is not None and is_kept):
                    attempt = 0
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
            await self._save_last_edits()
        self._closed.set()
        self._copy.edits.close()
        try:
            if self._verdict is None:
                self._report_unsent(LEFT_BEHIND)
        finally:
            if self._connection is not None:  # it may be another one by now
                await self._connection.close()
            self._copy.outbox.fail(AntiphonError(ErrorCode.NO_KERNEL, "The replica was closed."))

    async def _save_last_edits(self) -> None:
        """Wait until all is on the kernel's disk, or refused; not for long."""
        self._wake()
        with suppress(TimeoutError, AntiphonError):
            async with asyncio.timeout(LAST_SECONDS):
                await self.saved()

    async def _serve(self, socket: ClientConnection) -> tuple[bool, ServerRejection | None]:
        """Speak on one connection until it ends: whether it got live, and why it was refused."""
        connection = ReplicaConnection(
            socket,
            self._copy,
            self._standing,
            self._presence,
            recent=self._blocks_wanted,
            replaced=self._rebuilt.notify,
        )
        self._connection = connection
        try:
            was_live = await connection.run()
        finally:
            self._connection = None
        return was_live, connection.verdict

    def _blocks_wanted(self) -> int:
        """No block goes that is here: others come while there is no connection."""
        if not self._recent:
            return 0
        return max(self._recent, len(self.document) if self.omitted else 0)

    def _wrote(self) -> None:
        self._wake()
        if self._copy.outbox.unsaved == 1:
            self._standing.changed.notify()

    def _wake(self) -> None:
        if self._connection is not None:
            self._connection.wake()

    # After a refused edit

    def _report_unsent(self, reason: str) -> None:
        done = self._replay.refused if self._replay is not None else []
        left = self._replay.left() if self._replay is not None else []
        rest = [RejectedEdit(edit, reason) for edit in (*left, *self._copy.edits.take())]
        self._report([*done, *rest])

    async def _recreate(
        self, socket: ClientConnection, replay: EditReplay
    ) -> ServerRejection | None:
        """Bring the edits to the kernel that it does accept, then go on with its document.

        Raises:
            AntiphonError: `storage_failed` if the others cannot be written down; `no_kernel` if
                what the kernel sends cannot be read.
        """
        replay.add(self._copy.edits.take())
        self._standing.become(ReplicaState.CATCHING_UP)
        try:
            state = await self._unless_closed(replay.run(socket, self.document.state_vector()))
            if state is not None and not len(self._copy.edits):
                self._rebuild(replay, state)
        except ValueError as error:
            self._standing.trouble = self._standing.kernel_error = unreadable(error)
            raise AntiphonError(ErrorCode.NO_KERNEL, unreadable(error)) from error
        finally:
            await socket.close()
        refused = rejection_of(socket) if state is None else None
        return None if refused is None or refused.code == CloseCode.REFUSED else refused

    def _rebuild(self, replay: EditReplay, state: bytes) -> None:
        renewed = LocalReplica(replay.new_client, self._wrote)
        renewed.document.apply_update(state, REMOTE)
        self._report(replay.refused)
        former, self._copy = self._copy, renewed
        former.edits.close()
        if self._refused is not None and replay.refused:
            error = AntiphonError(
                ErrorCode.PERMISSION_DENIED, self._refused.reason, file=str(self._refused.file)
            )
            former.outbox.fail(error)
        else:
            former.outbox.flush()
        self._replay = None
        self._rebuilt.notify()
        self._standing.changed.notify()

    def _report(self, refused: Sequence[RejectedEdit]) -> None:
        if not refused or self._keep is None:
            return
        try:
            file = self._keep(format_report(self.document, refused))
        except OSError as error:
            trouble = f"What was refused ({refused[0].reason}) cannot be written: {error}"
            self._standing.trouble = trouble
            raise AntiphonError(ErrorCode.STORAGE_FAILED, trouble) from error
        before = self._refused.edits if self._refused is not None else 0
        self._refused = Rejection(refused[0].reason, before + len(refused), file)

    def _end(self) -> None:
        if self._verdict is not None and not self._closed.is_set():
            self._report_unsent(self._verdict.reason)
            self._standing.become(ReplicaState.REFUSED)
            error = AntiphonError(ErrorCode.PERMISSION_DENIED, self._verdict.reason)
            self._copy.outbox.fail(error)
        else:
            self._standing.become(ReplicaState.OFFLINE)

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
