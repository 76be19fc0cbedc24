"""The index of an open document's items: read off when first needed, kept up from then on."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterator, Sequence
from math import inf
from typing import Final

from antiphon_kernel.document.document import Document
from antiphon_kernel.types.memory import without_collection
from antiphon_kernel.validation.item_index import ItemIndex
from antiphon_kernel.yjs.id_set import IdSet, decode_state_vector

_BEHIND: Final = 5_000
"""Updates that are followed behind an index that was kept; more, and the document is read."""

_log = logging.getLogger(__name__)

_SLICE: Final = 0.008
"""Seconds of reading before the rest of the program gets a turn."""


class LazyItemIndex:
    """Lazy index of every item of one document."""

    def __init__(
        self, document: Document, kept: bytes | None = None, behind: Sequence[bytes] = ()
    ) -> None:
        """
        Args:
            kept: what `encode` gave when the document was shorter.
            behind: the updates that have come since.
        """
        self._document = document
        self._item_index = ItemIndex()
        self._reading: Iterator[None] | None = None
        self._kept = kept if len(behind) <= _BEHIND else None
        self._later: list[bytes] | None = list(behind) if self._kept is not None else None
        """Updates that are to be followed behind what is kept or read; None before that."""
        self._adopted: bytes | None = None
        self._lock = asyncio.Lock()
        self.ready = False
        """Whether the index is known."""

    async def read(self) -> None:
        """Read the index off the document, a few milliseconds at a time."""
        async with self._lock:
            while True:
                if self._read_until(time.perf_counter() + _SLICE):
                    return
                await asyncio.sleep(0)

    def _read_until(self, pause_at: float) -> bool:
        """Read on until a time; return whether all is read."""
        with without_collection():
            while not self.ready:
                if time.perf_counter() >= pause_at:
                    return False
                self._reading = self._reading or self._steps()
                if next(self._reading, self) is self:
                    self._reading = None
        return True

    @property
    def item_index(self) -> ItemIndex:
        """The index; what has not been read yet is read now."""
        if not self.ready:
            self._read_until(inf)
        return self._item_index

    def follow(self, update: bytes) -> None:
        """An update has been applied to the document."""
        if update is self._adopted:
            self._adopted = None
        elif self.ready:
            self._item_index.follow(update)
        elif self._later is not None:
            self._later.append(update)
            if self._kept is not None and len(self._later) > _BEHIND:
                self._start_anew()

    def commit(self, update: bytes, placed: ItemIndex, deleted: IdSet) -> None:
        """An update has been applied to the document whose items were placed when it was checked.

        Args:
            deleted: all that has gone with it: what a key held, or would have held if somebody
                else had not written it at the same time, is in no list of deletions.
        """
        self._item_index.commit(placed)
        for ids in deleted:
            self._item_index.deleted.add(ids)
        self._adopted = update

    async def encode(self) -> bytes | None:
        """Return the index as bytes; None if nobody has needed it, or it cannot be kept now."""
        if self._kept is not None:
            await self.read()
        return self._item_index.encode() if self.ready else None

    def _steps(self) -> Iterator[None]:
        """Read what is kept, if it fits, or else the document, pausing every few milliseconds."""
        index, document = self._item_index, self._document
        kept, self._kept = self._kept, None
        later = self._later = self._later if self._later is not None else []
        try:
            if kept is not None:
                yield from index.decode_in_parts(kept)
            else:
                yield from index.follow_in_parts(document.update_since())
            while later:
                yield from index.follow_in_parts(later.pop(0))
            if kept is not None and index.ends() != decode_state_vector(document.state_vector()):
                raise ValueError("some were not kept")
        except ValueError as error:
            if kept is None:
                raise
            _log.warning("the items of a document are read again: %s", error)
            self._start_anew()
            return
        self.ready = True

    def close(self) -> None:
        """Forget the index, so that its memory is free at once; it is not asked any more."""
        self._item_index.release()
        self._start_anew()

    def _start_anew(self) -> None:
        """Forget what was kept: the document has it all."""
        self._item_index = ItemIndex()
        self._reading = self._kept = self._later = None
