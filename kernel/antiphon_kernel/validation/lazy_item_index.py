"""The index of an open document's items: read off when first needed, kept up from then on."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from typing import Final

from antiphon_kernel.document.document import Document
from antiphon_kernel.validation.item_index import ItemIndex
from antiphon_kernel.yjs.id_set import IdSet

_SLICE: Final = 0.008
"""Seconds of reading before the rest of the program gets a turn."""


class LazyItemIndex:
    """Lazy index of every item of one document."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._item_index = ItemIndex()
        self._reading: Iterator[None] | None = None
        self._later: list[bytes] = []
        self._adopted: bytes | None = None
        self._began = False
        self._lock = asyncio.Lock()
        self.ready = False
        """Whether the index is known."""

    async def read(self) -> None:
        """Read the index off the document, a few milliseconds at a time."""
        async with self._lock:
            pause_at = time.perf_counter() + _SLICE
            while not self.ready:
                self._step()
                if time.perf_counter() >= pause_at:
                    await asyncio.sleep(0)
                    pause_at = time.perf_counter() + _SLICE

    @property
    def item_index(self) -> ItemIndex:
        """The index; what has not been read yet is read now."""
        while not self.ready:
            self._step()
        return self._item_index

    def follow(self, update: bytes) -> None:
        """An update has been applied to the document."""
        if update is self._adopted:
            self._adopted = None
        elif self.ready:
            self._item_index.follow(update)
        elif self._began:
            self._later.append(update)

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

    def _step(self) -> None:
        if self._reading is None:
            if not self._began:
                self._began = True
                state = self._document.update_since()
            else:
                state = self._later.pop(0)
            self._reading = self._item_index.follow_in_parts(state)
        elif next(self._reading, self) is self:
            self._reading = None
            self.ready = not self._later
