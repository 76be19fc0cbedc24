"""Making refused edits again, one by one, on a connection of their own.

A CRDT cannot leave an edit out: what the same client wrote later builds on it. So all that the
kernel lacks is written anew under another client id, one edit after the other, at the same places;
what stood beside an edit that was left out then stands beside that edit's own neighbour.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, TypeVar

from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed

from antiphon_kernel.client.local_replica import PendingEdit
from antiphon_kernel.client.rejected_edits import RejectedEdit
from antiphon_kernel.yjs import frames
from antiphon_kernel.yjs.close_codes import CloseCode
from antiphon_kernel.yjs.id_set import IdRange, decode_state_vector, normalise
from antiphon_kernel.yjs.merge import merge
from antiphon_kernel.yjs.update import ContentKind, ItemId, Struct, decode_update
from antiphon_kernel.yjs.update_writer import encode_update


class OrphanedEditError(Exception):
    """The edit writes into something that was left out."""


@dataclass(frozen=True, slots=True)
class _IdSpan:
    """The new place of the ids of one struct."""

    struct: Struct
    parent: str | ItemId | None
    key: str | None
    moved: int | None
    """Its first clock under the new client id; None if it was left out."""


class Rebase:
    """The edits of one client, made again one after the other."""

    def __init__(self, client: int, known: int, new_client: int) -> None:
        """`known`: up to which clock of `client` the kernel has everything."""
        self._client = client
        self._known = known
        self._new_client = new_client
        self._clock = 0
        self._starts: list[int] = []
        self._spans: list[_IdSpan] = []
        self._left = defaultdict[ItemId | None, list[Struct]](list)
        self._right = defaultdict[ItemId | None, list[Struct]](list)
        """Structs that were written directly left and right of others: the last stand nearest."""

    def add(self, update: bytes) -> bytes | None:
        """The edit under new ids, taken to be made; None if nothing of it is left to be made.

        Raises:
            OrphanedEditError: nothing has been added; `leave_out` has to be called.
        """
        decoded = decode_update(update)
        mark = self.mark()
        moved: list[Struct] = []
        try:
            for one in self._missing(decoded.structs):
                moved.append(self._move(one))
        except OrphanedEditError:
            self.return_to(mark)
            raise
        deletions = normalise(
            part for ids in decoded.deletions for part in self._moved_deletions(ids)
        )
        if not moved and not deletions:
            return None
        return encode_update(moved, deletions)

    def leave_out(self, update: bytes) -> None:
        """The edit is not made."""
        for one in self._missing(decode_update(update).structs):
            parent, key = self._target_parent(one)
            self._remember(_IdSpan(one, parent, key, None))

    def mark(self) -> tuple[int, int]:
        """To be given to `return_to`."""
        return self._clock, len(self._spans)

    def return_to(self, mark: tuple[int, int]) -> None:
        """Everything since has not happened."""
        self._clock, size = mark
        del self._starts[size:]
        while len(self._spans) > size:
            struct = self._spans.pop().struct
            self._left[struct.right_origin].pop()
            self._right[struct.origin].pop()

    def _missing(self, structs: tuple[Struct, ...]) -> list[Struct]:
        return [one for one in structs if one.client == self._client and one.clock >= self._known]

    def _move(self, one: Struct) -> Struct:
        if one.kind in (ContentKind.GC, ContentKind.SKIP):
            raise OrphanedEditError
        origin = self._beside(one.origin, is_left=True)
        right = self._beside(one.right_origin, is_left=False)
        parent, key = home = self._target_parent(one)
        if origin is None and right is None:
            if isinstance(parent, ItemId) and (span := self._span(parent)) is not None:
                parent = self._new_id(span, parent)
            if parent is None:
                raise OrphanedEditError
        else:
            parent = key = None
        moved = one._replace(
            client=self._new_client,
            clock=self._clock,
            origin=origin,
            right_origin=right,
            parent=parent,
            key=key,
        )
        self._remember(_IdSpan(one, *home, self._clock))
        self._clock += one.length
        return moved

    def _remember(self, span: _IdSpan) -> None:
        struct = span.struct
        self._starts.append(struct.clock)
        self._spans.append(span)
        self._left[struct.right_origin].append(struct)
        self._right[struct.origin].append(struct)

    def _span(self, item: ItemId) -> _IdSpan | None:
        """Return the new place of an item that the kernel does not have; None if it has it."""
        if item.client != self._client or item.clock < self._known:
            return None
        at = bisect_right(self._starts, item.clock) - 1
        if at < 0 or item.clock >= self._starts[at] + self._spans[at].struct.length:
            raise OrphanedEditError
        return self._spans[at]

    def _new_id(self, span: _IdSpan, item: ItemId) -> ItemId | None:
        if span.moved is None:
            return None
        return ItemId(self._new_client, span.moved + item.clock - span.struct.clock)

    def _beside(self, item: ItemId | None, *, is_left: bool) -> ItemId | None:
        """Return what stands on one side of an edit, in place of an item that may be left out."""
        while item is not None and (span := self._span(item)) is not None:
            if (new := self._new_id(span, item)) is not None:
                return new
            struct = span.struct
            if is_left:
                beside, within = self._left, range(item.clock, struct.clock - 1, -1)
                item = struct.origin
            else:
                beside, within = self._right, range(item.clock, struct.clock + struct.length)
                item = struct.right_origin
            nearest = (beside.get(ItemId(self._client, clock)) for clock in within)
            if (written := next(filter(None, nearest), None)) is not None:
                found = written[-1]
                item = ItemId(found.client, found.clock + (found.length - 1) * is_left)
        return item

    def _target_parent(self, one: Struct) -> tuple[str | ItemId | None, str | None]:
        """Parent and key of an item, as far as it or those it was written beside say."""
        if one.parent is not None:
            return one.parent, one.key
        for item in (one.origin, one.right_origin):
            span = self._span(item) if item is not None else None
            if span is not None and span.parent is not None:
                return span.parent, span.key
        return None, None

    def _moved_deletions(self, ids: IdRange) -> Iterator[IdRange]:
        if ids.client != self._client or ids.end <= self._known:
            yield ids
            return
        if ids.start < self._known:
            yield IdRange(ids.client, ids.start, self._known)
        for start, span in zip(self._starts, self._spans, strict=True):
            first, last = max(start, ids.start), min(start + span.struct.length, ids.end)
            if first < last and span.moved is not None:
                moved = span.moved + first - start
                yield IdRange(self._new_client, moved, moved + last - first)


_BATCH: Final = 64
"""Edits sent at a time; the one among them that is refused is found by sending them singly."""
_HOPELESS: Final = 3
"""After so many refusals in a row a block's other edits are not even asked about."""

F = TypeVar("F", frames.SyncStep1, frames.SyncStep2, frames.Ack)


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
            await socket.send(frames.encode_frame(frames.SyncStep1(state_vector)))
            asked = await self._next(socket, frames.SyncStep1)
            await self._next(socket, frames.SyncStep2)
            if self._transplant is None:
                known = decode_state_vector(asked.state_vector).get(self._client, 0)
                self._transplant = Rebase(self._client, known, self.new_client)
            sent = 0
            while self.due:
                sent += await self._send_batch(socket, self._transplant, sent)
            await socket.send(frames.encode_frame(frames.SyncStep1(b"\x00")))
            parts: list[bytes] = []
            last = await self._next(socket, frames.SyncStep2, parts)
            return merge([*parts, last.update])
        except (ConnectionClosed, _RejectedError):
            return None

    async def _send_batch(self, socket: ClientConnection, transplant: Rebase, sent: int) -> int:
        """Make the next few edits; how many frames that took."""
        batch = [self.due[at] for at in range(min(self._batch, len(self.due)))]
        mark = transplant.mark()
        encoded = []
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
                encoded.append(frames.encode_frame(frames.SyncUpdate(update)))
        try:
            for frame in encoded:
                await socket.send(frame)
            while encoded and (await self._next(socket, frames.Ack)).count < sent + len(encoded):
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
        return len(encoded)

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
            frame = frames.decode_frame(data if isinstance(data, bytes) else b"")
            if isinstance(frame, frames.SyncUpdate) and updates is not None:
                updates.append(frame.update)
            elif isinstance(frame, frames.PermissionDenied):
                denied = frame.reason
            elif isinstance(frame, kind):
                return frame
