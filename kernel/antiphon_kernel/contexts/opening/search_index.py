"""Keeping the search index level with the documents, and asking it.

Nothing is indexed while people and models write. A search finds which blocks have changed since
they were indexed, looks at those itself, and has them indexed behind it. What is written into the
index is on disk already, so the version that stands with it is that text's for ever.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Final

from antiphon_kernel.cluster import forwarding
from antiphon_kernel.contexts.context import Context
from antiphon_kernel.contexts.context_users import UseScope
from antiphon_kernel.document.rendering import render
from antiphon_kernel.storage import (
    ContextRow,
    IndexedText,
    SearchFilter,
    SearchTable,
    row_number,
)
from antiphon_kernel.tasks import BackgroundTasks, portions
from antiphon_kernel.types.errors import AntiphonError, NotOwnerError
from antiphon_kernel.types.signal import Signal

_log = logging.getLogger(__name__)

_BLOCKS: Final = 200
_CODE_POINTS: Final = 100_000
"""The portion that is written or looked at in one go; others wait no longer than that takes."""


@dataclass(frozen=True, slots=True)
class SearchChanges:
    """Changes that are not in the index yet."""

    blocks: Mapping[int, tuple[Context, str]]
    """Context and id of each block whose text is not indexed as it is there, by its row."""
    unreadable: Sequence[str]
    """Labels of the contexts that have changed but cannot be opened."""


class SearchIndex:
    """The texts of every context of a kernel, open or not."""

    def __init__(
        self,
        table: SearchTable,
        rows: Callable[[], Sequence[ContextRow]],
        open_context: Callable[[str], Awaitable[Context]],
        owns: Callable[[ContextRow], bool],
    ) -> None:
        """`owns`: whether no other kernel has a context at the moment."""
        self.missed = Signal[()]()
        """Notified when another kernel has a context whose changes are not indexed."""
        self.table = table
        self._rows = rows
        self._open_context = open_context
        self._owns = owns
        self._tasks = BackgroundTasks(_log)
        self._indexing: asyncio.Task[None] | None = None
        self._stopping = False

    async def changes(self) -> SearchChanges:
        """Return the changes since indexing, and start indexing them in the background."""
        blocks: dict[int, tuple[Context, str]] = {}
        unreadable: list[str] = []
        opened: list[ContextRow] = []
        behind = await self.table.stale_contexts()
        for row in self._rows():
            if row.number not in behind:
                continue
            try:
                context = await self._open(row)
            except AntiphonError as error:
                if isinstance(error, NotOwnerError):
                    self.missed.notify()
                else:
                    _log.warning("context %s cannot be searched: %s", row.label, error)
                    unreadable.append(row.label)
                continue
            opened.append(row)
            blocks |= {
                row_number(row.number, number): (context, block)
                for number, block in await self.table.changed(row.number)
            }
        self._start_indexing(opened)
        return SearchChanges(blocks, unreadable)

    async def index_own(self) -> None:
        """Start indexing what has changed of the contexts that this kernel has, for the others."""
        behind = await self.table.stale_contexts()
        self._start_indexing(
            [row for row in self._rows() if row.number in behind and self._owns(row)]
        )

    def _start_indexing(self, rows: Sequence[ContextRow]) -> None:
        if rows and (self._indexing is None or self._indexing.done()):
            self._indexing = self._tasks.start(self._index_all(rows), "search index")

    async def wait_indexed(self) -> None:
        """Wait until what has been found changed is indexed."""
        if self._indexing is not None:
            await asyncio.wait([self._indexing])

    async def stop(self) -> None:
        """Leave the rest to the next search."""
        self._stopping = True  # not cancelled: what it writes is one transaction
        await self.wait_indexed()
        self._stopping = False

    async def texts(
        self, wanted: SearchFilter, after: int, changes: SearchChanges
    ) -> AsyncIterator[list[IndexedText]]:
        """The blocks behind row `after` that have what is wanted, in order of creation."""
        changed = {row: one for row, one in changes.blocks.items() if row > after}
        while True:
            found = await self.table.candidates(wanted, after, _BLOCKS)
            last = found[-1][0] if len(found) == _BLOCKS else None
            lengths = Counter({row: length for row, length in found if row not in changed})
            due = [row for row in changed if row > after and (last is None or row <= last)]
            for rows in _portions(sorted([*lengths, *due]), lengths.__getitem__):
                stored = await self.table.texts([row for row in rows if row in lengths])
                read = [_read(row, *changed[row]) for row in rows if row in changed]
                for context in {changed[one.row][0] for one in read}:
                    await context.wait_persisted()
                texts = [*stored, *filter(wanted.matches, read)]
                yield sorted(texts, key=lambda one: one.row)
            if last is None:
                return
            after = last

    async def _index_all(self, rows: Sequence[ContextRow]) -> None:
        for row in rows:
            if not self._stopping:
                with UseScope(), suppress(NotOwnerError):  # those before it may be closed
                    await self._index(row, await self._open(row))

    async def _open(self, row: ContextRow) -> Context:
        with forwarding():  # a context of another kernel is indexed there
            return await self._open_context(row.id)

    async def _index(self, row: ContextRow, context: Context) -> None:
        seq = context.seq
        await context.wait_persisted()
        changed = await self.table.changed(row.number)
        read = (_read(row_number(row.number, number), context, block) for number, block in changed)
        for texts in _portions(read, lambda one: len(one.text)):
            await context.wait_persisted()  # a version lost in a failing commit is given again
            await self.table.store(texts)
            if self._stopping:
                return
        await self.table.mark_indexed(row.number, seq)


_portions: Final = partial(portions, size=_CODE_POINTS, count=_BLOCKS)


def _read(row: int, context: Context, block: str) -> IndexedText:
    """Return a block as it is in its document."""
    header, text = context.document.header(block), render(context.document, block)
    version = context.blocks.version(block)
    return IndexedText(row, block, version, str(header.kind), header.path, text)
