"""Sending to one client of a room, one frame at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from logging import Logger

from antiphon_kernel.contexts import Context
from antiphon_kernel.contexts.opening import RecentBlocks, omitted_segment
from antiphon_kernel.server.sync.awareness import ServerAwareness
from antiphon_kernel.server.sync.connection import CloseFrame, SyncConnection
from antiphon_kernel.server.sync.send_queue import StateRequest
from antiphon_kernel.types.errors import AntiphonError
from antiphon_kernel.yjs.awareness import AwarenessEntry, encode_awareness
from antiphon_kernel.yjs.frames import (
    Ack,
    AwarenessUpdate,
    Omitted,
    SyncStep1,
    SyncStep2,
    SyncUpdate,
    encode_frame,
)
from antiphon_kernel.yjs.state_vector import NO_STATE, decode_state_vector, encode_state_vector


def presence_frame(entries: Iterable[AwarenessEntry]) -> bytes:
    """The frame that says where these are."""
    return encode_frame(AwarenessUpdate(encode_awareness(entries)))


def ask(client: SyncConnection, context: Context) -> None:
    """Ask a client for what it has and the context lacks."""
    client.outgoing.frame(encode_frame(SyncStep1(context.document.state_vector())))


def broadcast(client: SyncConnection, awareness: ServerAwareness) -> None:
    """Tell a client who else is here."""
    client.outgoing.frame(presence_frame(awareness.everyone(but=client.awareness_client)))


async def send(
    client: SyncConnection,
    context: Context,
    recent: RecentBlocks,
    awareness: ServerAwareness,
    log: Logger,
) -> None:
    """Send what is due, one frame at a time, until the client is dismissed or gone."""
    outgoing = client.outgoing
    try:
        while client.goodbye is None:
            item = outgoing.take()
            if isinstance(item, StateRequest):
                await _write_state(client, context, recent, item.state_vector)
            elif item is not None:
                await _write_pending(client, item)
            elif (count := outgoing.take_ack()) is not None:
                await _write_pending(client, encode_frame(Ack(count)))
            elif (missed := outgoing.take_missed()) is not None:
                await _resync(client, context, recent, missed)
                broadcast(client, awareness)
            else:
                await outgoing.changed()
        await client.disconnect(client.goodbye)
    except OSError:
        client.cut()
    except Exception:
        log.exception("sending to a sync client failed")
        client.cut()


async def _write_pending(client: SyncConnection, frame: bytes) -> None:
    client.sending_since = asyncio.get_running_loop().time()
    await client.send(frame)
    client.sending_since = None


async def _write_state(
    client: SyncConnection, context: Context, recent: RecentBlocks, state_vector: bytes
) -> None:
    """Bring a client up to date: the last part of the state is the answer that it waits for."""
    before: bytes | None = None
    try:
        is_recent = client.recent > 0 and state_vector == NO_STATE
        if not (context.holds_last(client.recent) if is_recent else _goes_on(client, context)):
            await context.whole()
        if is_recent:
            begin = client.began_with = await recent.cut(client.recent)
            if not (begin.clocks and context.holds_last(client.recent)):
                await context.whole()
            await _write_pending(
                client, encode_frame(Omitted(begin.omitted, begin.meta, begin.members))
            )
            if begin.clocks:
                await _write_part(client, SyncUpdate(omitted_segment(begin)))
                state_vector = encode_state_vector(begin.clocks)
        async for part in context.committed_state(state_vector, client.limits.state_part):
            if before is not None:
                await _write_part(client, SyncUpdate(before))
            before = part
    except AntiphonError as error:
        client.finish(CloseFrame.of_failed_storage(error))
    else:
        assert before is not None, "there is a part at least"
        await _write_part(client, SyncStep2(before))


def _goes_on(client: SyncConnection, context: Context) -> bool:
    """Return whether a client leaves out all that a context does: it takes that for removed."""
    began, cut = client.began_with, context.cut
    return cut is None or (began is not None and began.omitted >= cut.omitted)


async def _write_part(client: SyncConnection, frame: SyncStep2 | SyncUpdate) -> None:
    client.pace.sent(len(frame.update))
    await _write_pending(client, encode_frame(frame))


async def _resync(
    client: SyncConnection, context: Context, recent: RecentBlocks, missed: dict[int, int]
) -> None:
    """Bring a client that had fallen behind up to date."""
    clocks = decode_state_vector(context.document.state_vector())
    for crdt_client, start in missed.items():
        clocks[crdt_client] = min(start, clocks.get(crdt_client, start))
    await _write_state(client, context, recent, encode_state_vector(clocks))
    ask(client, context)
