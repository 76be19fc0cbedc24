"""One context's room: everyone who follows its document over a connection.

The library's room sends and stores in tasks that cancel each other when one client drops, and
holds a document of its own; so this one is not derived from it. What is stored is the context's
business: a change gets here when it is on disk.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from logging import Logger
from typing import Final

from antiphon_kernel.contexts import (
    Applied,
    Context,
    PartialContextError,
    apply_large_update,
    apply_update,
)
from antiphon_kernel.server.limits import ServerLimits
from antiphon_kernel.server.sync.awareness import ServerAwareness
from antiphon_kernel.server.sync.connection import CloseFrame, ConnectionEnded, SyncConnection
from antiphon_kernel.server.sync.writer import RoomWriter, presence_frame
from antiphon_kernel.storage import Cut
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.yjs import frames
from antiphon_kernel.yjs.close_codes import CloseCode
from antiphon_kernel.yjs.frames import decode_awareness
from antiphon_kernel.yjs.id_set import NO_STATE, decode_state_vector
from antiphon_kernel.yjs.merge import MergedUpdate, merge_insertions
from antiphon_kernel.yjs.primitives import Reader
from antiphon_kernel.yjs.update import EMPTY_UPDATE

_RUN: Final = 100
"""Updates that become one."""

_LONG: Final = 1_000
"""Bytes of a message that is taken in for itself."""

_UPDATE: Final = b"\x00\x02"
"""How the frame of an update begins."""


@dataclass(frozen=True, slots=True)
class UpdateBatch:
    """Messages that belong together."""

    messages: Sequence[bytes]
    merged: MergedUpdate | None = None
    """All of them as one update; None if it is one message that is large or no update."""


def coalesce(messages: Sequence[bytes]) -> Iterator[UpdateBatch]:
    """All of `messages`, in order; a run of typing is one bundle, anything else one each."""
    if len(messages) == 1:
        update = _update(messages[0])
        yield UpdateBatch(messages, MergedUpdate(update) if update is not None else None)
        return
    updates = [_update(message) for message in messages]
    at = 0
    while at < len(messages):
        run: list[bytes] = []
        for update in updates[at : at + _RUN]:
            if update is None:
                break
            run.append(update)
        merged = merge_insertions(run) if run else None
        count = merged.updates if merged is not None else 1
        yield UpdateBatch(messages[at : at + count], merged)
        at += count


def _update(message: bytes) -> bytes | None:
    """The update in a message; None if it has none or is large."""
    if not message.startswith(_UPDATE) or len(message) > _LONG:
        return None
    reader = Reader(message)
    reader.at = len(_UPDATE)
    try:
        update = reader.block()
    except ValueError:
        return None
    return None if reader.remaining else update


_GOODBYE_SECONDS: Final = 5.0

_LARGE: Final = 8 * 2**10
"""Bytes of an update that may take longer than a keystroke should."""


_FAILURE: Final = CloseFrame(CloseCode.INTERNAL_ERROR, "The kernel failed at this message.")
_TOO_FAST: Final = CloseFrame.with_whole_reason(
    CloseCode.TRY_AGAIN_LATER,
    f"{ErrorCode.RATE_LIMITED}: This connection writes too fast: come back more slowly.",
)


class Room:
    """Takes in what clients write, and sends them what others have written."""

    def __init__(self, context: Context, limits: ServerLimits, log: Logger) -> None:
        self.context = context
        self.clients: set[SyncConnection] = set()
        self.log = log
        self.empty = asyncio.Event()
        """Set when the last client has left."""
        self._limits = limits
        self._loop = asyncio.get_running_loop()
        self._awareness = ServerAwareness(context.presence, limits.presence_expiry, self._loop.time)
        self._writer = RoomWriter(self.clients, context, self._awareness, limits, log)
        self._heartbeat = self._loop.call_later(limits.heartbeat, self._send_heartbeat)
        self._stops = (
            context.committed.listen(self._writer.committed),
            context.applied.listen(self._applied),
            context.failed.listen(lambda error: self.dismiss(CloseFrame.of_failure(error))),
        )
        context.replicas = self._omitted

    def _omitted(self) -> list[int]:
        """Return the number of blocks that each client was given to leave out; 0 of a whole one."""
        states = [client.began_with for client in self.clients]
        return [state.omitted if state is not None else 0 for state in states]

    async def stop(self) -> None:
        """Let go of the context."""
        for stop in self._stops:
            stop()
        self.context.replicas = tuple
        self._awareness.close()
        self._heartbeat.cancel()
        self._writer.close()

    def dismiss(self, goodbye: CloseFrame) -> None:
        """Say goodbye to everyone."""
        for client in self.clients:
            client.finish(goodbye)

    # One client

    async def serve(self, client: SyncConnection) -> None:
        """Speak with one client until it goes; whatever it does, nobody else notices."""
        self.clients.add(client)
        writer = asyncio.create_task(self._writer.send(client), name="sync writer")
        client.line.deliver = partial(self._receive_now, client)
        try:
            await self._read(client)
        except ConnectionEnded as end:
            if end.goodbye is not None:
                client.finish(end.goodbye)
        except OSError:
            self.log.debug("a sync client dropped its connection")
        except Exception:
            self.log.exception("serving a sync client failed")
            client.finish(_FAILURE)
        finally:
            client.line.deliver = None
            self._awareness.leave(client)
            if client.goodbye is None:
                writer.cancel()
            _, unheard = await asyncio.wait([writer], timeout=_GOODBYE_SECONDS)
            if unheard:
                writer.cancel()
                client.line.cut()
            self.clients.discard(client)
            if not self.clients:
                self.empty.set()

    async def _read(self, client: SyncConnection) -> None:
        turn_ends = self._loop.time() + self._limits.time_slice
        while True:
            message = await client.recv()
            await client.rest()
            messages = [message, *await client.arrived(self._limits.merged_updates)]
            is_unready = client.joined and not self.context.structure.ready
            if is_unready and any(map(self._is_write, messages)):
                await self.context.read_structure()
            for bundle in coalesce(messages):
                if not self._receive_bundle(client, bundle):
                    for one in bundle.messages:
                        later = self._receive(client, one)
                        if later is not None:
                            await self._apply_incrementally(client, later)
                        if client.goodbye is not None:
                            return
                self._count(client, bundle)
                if client.goodbye is not None:
                    return
                await client.rest()
                await client.receipts.fewer_than(self._limits.uncommitted_updates)
                if self._loop.time() >= turn_ends:
                    await asyncio.sleep(0)
                    turn_ends = self._loop.time() + self._limits.time_slice
            if (seconds := client.pause.after(len(messages))) > 0:
                await asyncio.sleep(seconds)

    def _receive_now(self, client: SyncConnection, messages: Sequence[bytes]) -> int:
        """Take in what a client types when it comes; how many of its messages that are.

        Any message that has to wait, or may be refused, is left to `_read`.
        """
        taken = 0
        if client.is_listened_to and client.goodbye is None:
            ends = self._loop.time() + self._limits.time_slice
            try:
                for bundle in coalesce(messages):
                    is_full = len(client.receipts.under_way) >= self._limits.uncommitted_updates
                    has_to_wait = is_full or client.rests_until > self._loop.time()
                    if has_to_wait or not self._receive_bundle(client, bundle):
                        break
                    taken += len(bundle.messages)
                    self._count(client, bundle)
                    if self._loop.time() >= ends:
                        break
            except Exception:
                self.log.exception("serving a sync client failed")
                client.finish(_FAILURE)
            if taken and (seconds := client.pause.after(taken)) > 0:
                client.line.hold(seconds)
        return taken

    def _count(self, client: SyncConnection, bundle: UpdateBatch) -> None:
        """Let a client rest if it writes too fast; say goodbye if it goes on like that."""
        delay = client.pace.received(sum(map(len, bundle.messages)), len(bundle.messages))
        if delay > 0:
            client.rests_until = self._loop.time() + delay
            if client.pace.exhausted:
                client.finish(_TOO_FAST)

    def _is_write(self, message: bytes) -> bool:
        """Return whether a message has to be checked against every item of the document."""
        try:
            frame = frames.decode_frame(message)
            if not isinstance(frame, frames.SyncUpdate | frames.SyncStep2):
                return False
            return not self._changes_nothing(frame.update)
        except ValueError:
            return False

    def _changes_nothing(self, update: bytes) -> bool:
        """Return whether an update is known to change nothing, without looking at every item.

        Raises:
            ValueError: if it cannot be read.
        """
        if update == EMPTY_UPDATE:
            return True
        context = self.context
        if context.structure.ready or context.is_partial:
            return False
        return context.document.only_removes_removed(update)

    def _receive_bundle(self, client: SyncConnection, bundle: UpdateBatch) -> bool:
        """Take in several updates as one; False if they have to be taken in one by one."""
        context = self.context
        if bundle.merged is None or not client.joined or not context.structure.ready:
            return False
        try:
            update, _, decoded = bundle.merged
            future = apply_update(context, client.actor, update, client, decoded=decoded)
        except (AntiphonError, PartialContextError):
            return False
        client.caught_up = True
        client.receipts.applied(future, complete=False, frames=len(bundle.messages))
        return True

    def _receive(
        self, client: SyncConnection, message: bytes
    ) -> frames.SyncUpdate | frames.SyncStep2 | None:
        """Act on a frame; an update that is large or has to wait is given back, for by and by."""
        try:
            frame = frames.decode_frame(message)
            match frame:
                case frames.SyncUpdate(update) | frames.SyncStep2(update):
                    is_large, in_flight = len(update) > _LARGE, self.context.in_flight
                    is_large = is_large and not self._changes_nothing(update)
                    if client.joined and (is_large or in_flight.has(client.actor)):
                        return frame
                    try:
                        self._apply(client, update, complete=isinstance(frame, frames.SyncStep2))
                    except PartialContextError:
                        return frame
                case frames.SyncStep1(state_vector):
                    self._on_sync_step1(client, state_vector)
                case frames.AwarenessUpdate(update):
                    self._apply_presence(client, update)
                case frames.QueryAwareness():
                    self._writer.introduce(client)
                case frames.Recent(blocks):
                    client.recent = blocks
                case frames.Omitted():
                    self._take_up(client, frame)
                case frames.PermissionDenied() | frames.Ack():
                    raise ValueError("only a kernel sends this frame")
        except ValueError as error:
            reason = f"A frame cannot be read: {error}."
            raise ConnectionEnded(CloseFrame(CloseCode.MALFORMED, reason)) from error
        return None

    def _on_sync_step1(self, client: SyncConnection, state_vector: bytes) -> None:
        """The client says what it has: ask for what is new in it, answer with what it lacks."""
        if len(state_vector) > self._limits.state_vector:
            raise ValueError(f"a state vector of {len(state_vector)} bytes is too long")
        clocks = decode_state_vector(state_vector)
        genesis = self.context.document.genesis_client
        if clocks and genesis is not None and genesis not in clocks:
            reason = (
                "This replica belongs to another epoch of the context: begin with an empty one."
            )
            client.finish(CloseFrame(CloseCode.OTHER_EPOCH, reason))
            return
        if not client.joined:
            self._writer.ask(client)
            client.joined = True
            client.outgoing.state(NO_STATE if client.begins_anew else state_vector)
            self._writer.introduce(client)
        else:
            client.outgoing.state(state_vector)

    def _apply(self, client: SyncConnection, update: bytes, *, complete: bool) -> None:
        if not client.joined:
            raise ValueError("a sync step 1 must come before anything else")
        try:
            future: asyncio.Future[None]
            if self._changes_nothing(update):
                future = asyncio.ensure_future(self.context.wait_persisted())
            else:
                future = apply_update(
                    self.context, client.actor, update, client, catching_up=not client.caught_up
                )
                client.caught_up = True
            client.receipts.applied(future, complete=complete)
        except AntiphonError as error:
            self._reject(client, error)

    async def _apply_incrementally(
        self, client: SyncConnection, frame: frames.SyncUpdate | frames.SyncStep2
    ) -> None:
        """Take in an update that is large, or that waits for a large one of the same principal.

        A client that has to go is not waited for; what has been accepted of it goes in anyway.
        """
        context, actor, complete = self.context, client.actor, isinstance(frame, frames.SyncStep2)
        try:
            await context.whole()
            if len(frame.update) <= _LARGE:
                while context.in_flight.has(actor):
                    turn = context.in_flight.wait_applied(actor)
                    waiting = asyncio.create_task(turn, name="sync turn")
                    if not await client.wait_closed(waiting):
                        return
                self._apply(client, frame.update, complete=complete)
                return
            update = apply_large_update(
                context, actor, frame.update, client, catching_up=not client.caught_up
            )
            taking = asyncio.create_task(update, name="sync large update")
            if await client.wait_closed(taking):
                on_disk = taking.result()
                client.caught_up = True
                client.receipts.applied(on_disk, complete=complete)
        except AntiphonError as error:
            self._reject(client, error)

    def _reject(self, client: SyncConnection, error: AntiphonError) -> None:
        if error.code is ErrorCode.GAP:
            client.receipts.gap()
            self._writer.ask(client)
        elif error.code in (ErrorCode.STORAGE_FAILED, ErrorCode.NOT_OWNER):
            client.finish(CloseFrame.of_failure(error))
        else:
            reason = f"{error.code}: {error.message}"
            client.finish(CloseFrame.with_whole_reason(CloseCode.REFUSED, reason))

    def _take_up(self, client: SyncConnection, omitted: frames.Omitted) -> None:
        """Go on with a client that comes back with the last blocks, or begin anew with it."""
        if client.joined or not client.recent:
            raise ValueError("a client says too late, or too early, which blocks it leaves out")
        state = Cut(omitted.blocks, {}, omitted.meta, omitted.members)
        self._keep_shown(client, state)
        if self._writer.recent.is_current(state, client.recent):
            client.began_with = state
        else:
            client.begins_anew = True

    def _keep_shown(self, client: SyncConnection, state: Cut) -> None:
        """Let no block go that a client has which began with a state."""
        client.recent = max(client.recent, self.context.block_count - state.omitted)

    def _applied(self, applied: Applied) -> None:
        """Begin anew with clients that would not see a change in what they were given."""
        for client in self.clients:
            state = client.began_with
            if state is not None and self._writer.recent.outdates(state, applied):
                client.began_with = None
                self._keep_shown(client, state)
                client.outgoing.state(NO_STATE)

    # Presence

    def _apply_presence(self, client: SyncConnection, update: bytes) -> None:
        if len(update) > self._limits.awareness:
            raise ValueError(f"an awareness message of {len(update)} bytes is too long")
        limits = self._limits
        entries = decode_awareness(update, limits.awareness_state, limits.awareness_depth)
        self._awareness.receive(client, self.context.ensure_member(client.actor), entries)
        own = self._awareness.echo(client)
        if own is not None:
            client.outgoing.put(presence_frame([own]))

    def _send_heartbeat(self) -> None:
        """A sign of life for everyone."""
        self._heartbeat = self._loop.call_later(self._limits.heartbeat, self._send_heartbeat)
        in_the_kernel = self._awareness.in_the_kernel()
        for present in in_the_kernel:
            self._writer.presence_changed(present)
        frame = presence_frame(())
        self._awareness.expire()
        silent = self._loop.time() - self._limits.greeting
        for client in self.clients:
            if not client.joined and client.since < silent:
                client.finish(CloseFrame(CloseCode.TRY_AGAIN_LATER, "No sync step 1 came."))
            elif client.joined and not in_the_kernel:
                client.outgoing.put(frame)
