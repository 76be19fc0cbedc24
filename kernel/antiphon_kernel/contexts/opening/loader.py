"""Opening a context: its snapshot, if one can be trusted, and the transactions behind it.

A long one can be opened with its last blocks only. A damaged one is found, named, and left alone,
so that the others are not concerned.

The reading is done in pieces: whoever else uses the kernel gets a turn between two of them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Container, Iterable, Sequence
from dataclasses import replace
from typing import Final

from antiphon_kernel.contexts.opening.segments import join
from antiphon_kernel.document.document import Document
from antiphon_kernel.storage import ContextRow, CorruptContextError, Journal, StoredContext
from antiphon_kernel.tasks import BackgroundTasks
from antiphon_kernel.types.errors import AntiphonError
from antiphon_kernel.types.ids import ContextId
from antiphon_kernel.types.memory import without_collection
from antiphon_kernel.yjs.merge import FAN_IN, merge
from antiphon_kernel.yjs.update import decode_update

_MOST_BEHIND: Final = 5_000
"""Transactions that are read behind a recent state; more, and the whole context is opened."""

_TEXT_ONLY: Final = frozenset(("sync", "join"))
"""Operations that leave the blocks where they are, unless they make one."""

_OWN_CLIENTS: Final = range(2**7, 2**14)
"""CRDT client ids of kernels: two bytes when written. One that comes again goes on counting."""


async def open_document(
    journal: Journal, row: ContextRow, client_id: int
) -> tuple[StoredContext, Document]:
    """Load a context from the journal, and build its document.

    The document's client id is derived from `client_id`, a random one. Raises CorruptContextError
    if what is stored cannot be read, and storage_failed.
    """
    with without_collection():
        last, clients, snapshot = await asyncio.gather(
            journal.check_sequence(row), journal.clients(row), journal.snapshots.read(row)
        )
        client_id = _short(client_id, clients)
        if snapshot is not None:
            try:
                if snapshot.seq > last:
                    raise ValueError(f"transaction {snapshot.seq} is not in the journal")
                document = await join(snapshot, client_id)
                stored = await journal.load(row, after=snapshot.seq)
                stored = replace(stored, item_index=snapshot.item_index)
                return stored, await finish(document, row, stored.updates, stored.seq)
            except ValueError as error:
                journal.snapshots.discard(row, str(error))
        stored = await journal.load(row)
        return stored, await finish(Document(client_id), row, stored.updates, stored.seq)


async def open_recent(
    journal: Journal, row: ContextRow, client_id: int
) -> tuple[StoredContext, Document] | None:
    """Load the last blocks of a context, and build a document of them, as `open_document` does.

    None if they are not stored, or more has changed since than their texts.
    """
    recent = await journal.recent_states.read(row)
    if recent is None:
        return None
    last = await journal.check_sequence(row)
    if not last - _MOST_BEHIND <= recent.seq <= last:
        return None
    cut = recent.cut
    assert cut is not None
    for touch in await journal.changes(row, recent.seq):
        is_omitted = any(number <= cut.omitted for number in touch.versions)
        if is_omitted or touch.operation not in _TEXT_ONLY:
            return None
    stored = await journal.load(row, after=recent.seq, omitted=cut.omitted)
    if cut.omitted + len(stored.blocks) != cut.blocks:
        return None
    try:
        document = await join(recent, _short(client_id, stored.clients))
        await finish(document, row, stored.updates, stored.seq)
        if cut.omitted + len(document) != cut.blocks:
            document.close()
            raise ValueError("it has other blocks than the journal")
    except ValueError as error:
        journal.recent_states.discard(row, str(error))
        return None
    document.omit(cut.meta, cut.members)
    return replace(stored, cut=cut), document


def _short(drawn: int, taken: Container[int]) -> int:
    """A client id that is short when written: it stands in an item up to three times.

    Clients draw theirs from 2^32, so that none is more likely than others to draw this one.
    """
    own = _OWN_CLIENTS[drawn % len(_OWN_CLIENTS)]
    while own in taken:
        own = _OWN_CLIENTS[(own + 1) % len(_OWN_CLIENTS)]
    return own


async def finish(
    document: Document, row: ContextRow, updates: Sequence[bytes], seq: int
) -> Document:
    """Read the transactions behind what a document has read already, up to `seq`; return it.

    Raises CorruptContextError, naming the transaction that cannot be read where that can be told.
    """
    for at in range(0, len(updates), FAN_IN):
        piece = updates[at : at + FAN_IN]
        try:
            document.apply_part(merge(piece))
        except ValueError as error:
            document.close()
            first = seq - len(updates) + at + 1
            for number, update in enumerate(piece, first):
                try:
                    decode_update(update)
                except ValueError as inner:
                    what = f"its changes cannot be read ({inner})"
                    raise CorruptContextError(row, what, number) from error
            what = f"its changes up to seq {first + len(piece) - 1} cannot be applied ({error})"
            raise CorruptContextError(row, what, first) from error
        await asyncio.sleep(0)
    for _ in document.finish_parts():
        await asyncio.sleep(0)
    return document


_PAUSE_SECONDS: Final = 0.01
"""Between two contexts: whoever waits for the database comes first."""

_log = logging.getLogger(__name__)


class Quarantine:
    """The contexts that cannot be opened, and why."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self.damaged: dict[ContextId, CorruptContextError] = {}
        self._tasks = BackgroundTasks(_log)
        self.close = self._tasks.close

    def raise_if_quarantined(self, context: ContextId) -> None:
        """Raises CorruptContextError if it is known to be damaged."""
        if context in self.damaged:
            raise self.damaged[context]

    def add(self, context: ContextId, error: CorruptContextError) -> None:
        """From now on the context is not opened any more."""
        if context not in self.damaged:
            _log.error("quarantined: %s", error)
        self.damaged[context] = error

    def scan(self, rows: Iterable[ContextRow]) -> None:
        """Begin to look, in the background, whether the records of these contexts are complete."""
        self._tasks.start(self._inspect(tuple(rows)), "survey of contexts")

    async def _inspect(self, rows: Iterable[ContextRow]) -> None:
        for row in rows:
            try:
                await self._journal.check_sequence(row)
            except CorruptContextError as error:
                self.add(row.id, error)
            except AntiphonError as error:
                _log.warning("context %s could not be looked at: %s", row.label, error)
            await asyncio.sleep(_PAUSE_SECONDS)
