"""Opening a context: its snapshot, if one can be trusted, and the transactions behind it.

A long one can be opened with its last blocks only.

The reading is done in pieces: whoever else uses the kernel gets a turn between two of them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from typing import Final

from antiphon_kernel.document.document import Document, DocumentLoader
from antiphon_kernel.storage import (
    ContextRow,
    CorruptContextError,
    Journal,
    Snapshot,
    StoredContext,
    StoredRecentState,
)
from antiphon_kernel.types.memory import without_collection
from antiphon_kernel.yjs.merge import FAN_IN
from antiphon_kernel.yjs.state_vector import decode_state_vector
from antiphon_kernel.yjs.update import ContentKind, Struct, decode_update
from antiphon_kernel.yjs.update_writer import encode_update

_MOST_BEHIND: Final = 5_000
"""Transactions that are read behind a recent state; more, and the whole context is opened."""

_TEXT_ONLY: Final = frozenset(("sync", "join"))
"""Operations that leave the blocks where they are, unless they make one."""

_log = logging.getLogger(__name__)

_OWN_CLIENTS: Final = range(2**7, 2**14)
"""CRDT client ids of kernels: two bytes when written. One that comes again goes on counting."""


async def open_document(
    journal: Journal, row: ContextRow, client_id: int
) -> tuple[StoredContext, Document]:
    """Load a context from the journal, and build its document.

    Args:
        client_id: a random one, from which the document's is derived.

    Raises:
        CorruptContextError: if what is stored cannot be read.
        AntiphonError: storage_failed.
    """
    with without_collection():
        last = await journal.check_sequence(row)
        client_id = _short(client_id, await journal.clients(row))
        snapshot = await journal.snapshots.read(row)
        if snapshot is not None and snapshot.seq > last:
            journal.snapshots.discard(row, f"transaction {snapshot.seq} is not in the journal")
            snapshot = None
        if snapshot is not None:
            loader = await _from_snapshot(journal, row, snapshot, client_id)
            if loader is not None:
                stored = await journal.load(row, after=snapshot.seq)
                stored = replace(stored, item_index=snapshot.item_index)
                return stored, await _finish(loader, stored)
        stored = await journal.load(row)
        return stored, await _finish(DocumentLoader(client_id), stored)


async def open_recent(
    journal: Journal, row: ContextRow, client_id: int
) -> tuple[StoredContext, Document, StoredRecentState] | None:
    """Load the last blocks of a context, and build a document of them.

    None if they are not stored, or more has changed since than their texts.

    Args:
        client_id: as for `open_document`.

    Raises:
        CorruptContextError: if what is stored cannot be read.
        AntiphonError: storage_failed.
    """
    recent = await journal.recent_states.read(row)
    last = await journal.check_sequence(row)
    if recent is None or not last - _MOST_BEHIND <= recent.seq <= last:
        return None
    for touch in await journal.touches(row, recent.seq, _MOST_BEHIND):
        is_omitted = any(number <= recent.omitted for number in touch.blocks)
        if is_omitted or touch.operation not in _TEXT_ONLY:
            return None
    stored = await journal.load(row, after=recent.seq, omitted=recent.omitted)
    if recent.omitted + len(stored.blocks) != recent.blocks:
        return None
    loader = DocumentLoader(_short(client_id, stored.clients))
    try:
        loader.apply([encode_beginning(recent.clocks)])
        loader.apply([recent.state])
        is_sound = decode_state_vector(loader.state_vector()) == recent.ends
    except ValueError:
        is_sound = False
    if not is_sound:
        _log.warning("the recent state of context %s cannot be read and is left out", row.label)
        return None
    document = await _finish(loader, stored)
    if recent.omitted + len(document) != recent.blocks:
        _log.warning("the recent state of context %s has other blocks and is left out", row.label)
        document.close()
        return None
    document.omit(recent.meta, recent.members)
    return stored, document, recent


def encode_beginning(clocks: Mapping[int, int]) -> bytes:
    """Return an update that stands for all that was written up to a state vector."""
    passed = (Struct(client, 0, clock, ContentKind.GC) for client, clock in clocks.items() if clock)
    return encode_update(passed, ())


def _short(drawn: int, taken: Container[int]) -> int:
    """A client id that is short when written: it stands in an item up to three times.

    Clients draw theirs from 2^32, so that none is more likely than others to draw this one.
    """
    own = _OWN_CLIENTS[drawn % len(_OWN_CLIENTS)]
    while own in taken:
        own = _OWN_CLIENTS[(own + 1) % len(_OWN_CLIENTS)]
    return own


async def _from_snapshot(
    journal: Journal, row: ContextRow, snapshot: Snapshot, client_id: int
) -> DocumentLoader | None:
    """A loader that has read the snapshot; None if it is not what it says it is."""
    loader = DocumentLoader(client_id)
    try:
        for part in snapshot.state:
            loader.apply([part])
            await asyncio.sleep(0)
        read = decode_state_vector(loader.state_vector())
        written = decode_state_vector(snapshot.state_vector)
    except ValueError as error:
        journal.snapshots.discard(row, str(error))
        return None
    if read != written:
        journal.snapshots.discard(row, f"it holds another state than that of seq {snapshot.seq}")
        return None
    await asyncio.sleep(0)
    return loader


async def _finish(loader: DocumentLoader, stored: StoredContext) -> Document:
    updates = stored.updates
    for at in range(0, len(updates), FAN_IN):
        piece = updates[at : at + FAN_IN]
        try:
            loader.apply(piece)
        except ValueError as error:
            first = stored.seq - len(updates) + at + 1
            raise _unreadable(stored.row, piece, first, error) from error
        await asyncio.sleep(0)
    document = loader.unfinished()
    for _ in document.finish_parts(row.id for row in stored.blocks):
        await asyncio.sleep(0)
    return document


def _unreadable(
    row: ContextRow, piece: Sequence[bytes], first: int, error: ValueError
) -> CorruptContextError:
    """The error of a piece, naming the transaction where that can be told."""
    for seq, update in enumerate(piece, first):
        try:
            decode_update(update)
        except ValueError as inner:
            return CorruptContextError(row, f"its changes cannot be read ({inner})", seq)
    what = f"its changes up to seq {first + len(piece) - 1} cannot be applied ({error})"
    return CorruptContextError(row, what, first)
