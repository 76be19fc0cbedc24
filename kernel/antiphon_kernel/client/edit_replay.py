"""Making refused edits again, one by one, on a connection of their own."""

from __future__ import annotations

from collections import deque
from typing import Final, TypeVar

from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed

from antiphon_kernel.client.local_replica import PendingEdit
from antiphon_kernel.client.rebase import OrphanedEditError, Rebase
from antiphon_kernel.client.rejected_edits import RejectedEdit
from antiphon_kernel.yjs.close_codes import CloseCode
from antiphon_kernel.yjs.frames import (
    Ack,
    PermissionDenied,
    SyncStep1,
    SyncStep2,
    SyncUpdate,
    decode_frame,
    encode_frame,
)
from antiphon_kernel.yjs.merge import merge
from antiphon_kernel.yjs.state_vector import decode_state_vector

_BATCH: Final = 64
"""Edits sent at a time; the one among them that is refused is found by sending them singly."""
_HOPELESS: Final = 3
"""After so many refusals in a row a block's other edits are not even asked about."""

F = TypeVar("F", SyncStep1, SyncStep2, Ack)


class _RejectedError(Exception):
    """The kernel refused one of the edits sent."""


class EditReplay:
    """The edits of one replica whose kernel has refused some of them."""

    def __init__(self, client: int, new_client: int) -> None:
        """`client` wrote the edits; they are made again as `new_client`."""
        self._client = client
        self.new_client = new_client
        self.due: deque[PendingEdit] = deque()
        """The edits not made again yet."""
        self._transplant: Rebase | None = None
        self._batch = _BATCH
        self._refusals: dict[str, int] = {}
        self.refused: list[RejectedEdit] = []
        """The edits that have stayed refused so far."""

    async def run(self, socket: ClientConnection, state_vector: bytes) -> bytes | None:
        """Make edits again until all are through or the connection ends.

        Args:
            state_vector: what the replica knows that wrote the edits.

        Returns:
            the document's state when all are through, else None: call again on a new connection.

        Raises:
            ValueError: if the kernel sends something that cannot be read.
        """
        try:
            await socket.send(encode_frame(SyncStep1(state_vector)))
            asked = await self._next(socket, SyncStep1)
            await self._next(socket, SyncStep2)
            if self._transplant is None:
                known = decode_state_vector(asked.state_vector).get(self._client, 0)
                self._transplant = Rebase(self._client, known, self.new_client)
            sent = 0
            while self.due:
                sent += await self._send_batch(socket, self._transplant, sent)
            await socket.send(encode_frame(SyncStep1(b"\x00")))
            parts: list[bytes] = []
            last = await self._next(socket, SyncStep2, parts)
            return merge([*parts, last.update])
        except (ConnectionClosed, _RejectedError):
            return None

    async def _send_batch(self, socket: ClientConnection, transplant: Rebase, sent: int) -> int:
        """Make the next few edits; how many frames that took."""
        batch = [self.due[at] for at in range(min(self._batch, len(self.due)))]
        mark = transplant.mark()
        frames = []
        reason: str | None = None
        for number, edit in enumerate(batch):
            try:
                if any(self._refusals.get(block, 0) >= _HOPELESS for block in edit.blocks):
                    reason = self.refused[-1].reason
                    raise OrphanedEditError
                update = transplant.add(edit.update)
            except OrphanedEditError:
                if number == 0:
                    self._leave_out(transplant, edit, reason or "it builds on a refused edit")
                    return 0
                batch = batch[:number]
                break
            if update is not None:
                frames.append(encode_frame(SyncUpdate(update)))
        try:
            for frame in frames:
                await socket.send(frame)
            while frames and (await self._next(socket, Ack)).count < sent + len(frames):
                pass
        except (_RejectedError, ConnectionClosed, ValueError) as ended:
            transplant.return_to(mark)
            if isinstance(ended, _RejectedError):
                if len(batch) == 1:
                    self._leave_out(transplant, batch[0], str(ended))
                self._batch = 1
            raise
        for edit in batch:
            self.due.popleft()
            for block in edit.blocks:
                self._refusals.pop(block, None)
        self._batch = min(_BATCH, self._batch * 2)
        return len(frames)

    def _leave_out(self, transplant: Rebase, edit: PendingEdit, reason: str) -> None:
        transplant.leave_out(edit.update)
        self.due.popleft()
        self.refused.append(RejectedEdit(edit, reason))
        for block in edit.blocks:
            self._refusals[block] = self._refusals.get(block, 0) + 1

    async def _next(
        self, socket: ClientConnection, kind: type[F], updates: list[bytes] | None = None
    ) -> F:
        """Return the next frame of a kind; the updates before it are added to `updates`."""
        denied: str | None = None
        while True:
            try:
                data = await socket.recv()
            except ConnectionClosed:
                code = socket.close_code or CloseCode.NORMAL
                if code == CloseCode.REFUSED and denied is not None:
                    raise _RejectedError(denied) from None
                raise
            frame = decode_frame(data if isinstance(data, bytes) else b"")
            if isinstance(frame, SyncUpdate) and updates is not None:
                updates.append(frame.update)
            elif isinstance(frame, PermissionDenied):
                denied = frame.reason
            elif isinstance(frame, kind):
                return frame
