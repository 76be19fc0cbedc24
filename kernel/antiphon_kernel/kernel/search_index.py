"""Keeping the search index level with the documents, and asking it.

Nothing is indexed while people and models write: a search first indexes what has changed since the
last one. What is written into the index is on disk already, so the version that stands with it is
that text's for ever.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Final

from antiphon_kernel.journal.rows import ContextRow
from antiphon_kernel.journal.search_table import Candidate, Indexed, SearchTable, Wanted
from antiphon_kernel.kernel.context import Context
from antiphon_kernel.types.errors import AntiphonError

_log = logging.getLogger(__name__)

_BLOCKS: Final = 200
_CODE_POINTS: Final = 100_000
"""What is written or read at a time; commits wait no longer than that takes."""


class SearchIndex:
    """The texts of every context of a kernel, open or not."""

    def __init__(
        self,
        table: SearchTable,
        rows: Callable[[], Sequence[ContextRow]],
        open_context: Callable[[str], Awaitable[Context]],
    ) -> None:
        self._table = table
        self._rows = rows
        self._open_context = open_context
        self._catching_up = asyncio.Lock()

    async def catch_up(self) -> list[str]:
        """Index what has changed; the labels of the contexts that cannot be read.

        Raises:
            AntiphonError: storage_failed.
        """
        unreadable = []
        async with self._catching_up:
            behind = await self._table.behind()
            for row in self._rows():
                if row.number not in behind:
                    continue
                try:
                    context = await self._open_context(row.id)
                except AntiphonError as error:
                    _log.warning("context %s cannot be searched: %s", row.label, error)
                    unreadable.append(row.label)
                    continue
                await self._index(row, context)
        return unreadable

    async def _index(self, row: ContextRow, context: Context) -> None:
        seq = context.seq
        await context.settled()
        waiting: list[Indexed] = []
        size = 0
        for number, block in await self._table.dirty(row.number):
            header, text = context.document.header(block), context.document.text(block)
            version, kind = context.version(block), str(header.kind)
            waiting.append(Indexed(row.number, number, version, kind, header.path, text))
            size += len(text)
            if len(waiting) >= _BLOCKS or size >= _CODE_POINTS:
                await self._store(context, waiting)
                waiting, size = [], 0
        await self._store(context, waiting)
        await self._table.reached(row.number, seq)

    async def _store(self, context: Context, texts: Sequence[Indexed]) -> None:
        await context.settled()  # a version that is lost in a failing commit is given again
        await self._table.store(texts)

    async def clear(self) -> None:
        """Forget everything: the next search indexes all texts anew."""
        async with self._catching_up:
            await self._table.clear()

    async def row_of(self, block: str) -> int | None:
        """Where a block stands in the order of what `texts` gives."""
        return await self._table.row_of(block)

    async def texts(self, wanted: Wanted, after: int) -> AsyncIterator[list[tuple[Candidate, str]]]:
        """The indexed blocks behind row `after` that have what is wanted, in order of creation."""
        while True:
            found = await self._table.candidates(wanted, after, _BLOCKS)
            at = 0
            while at < len(found):
                end, size = at, 0
                while end < len(found) and (end == at or size + found[end].length < _CODE_POINTS):
                    size += found[end].length
                    end += 1
                texts = await self._table.texts([one.row for one in found[at:end]])
                yield [(one, texts[one.row]) for one in found[at:end] if one.row in texts]
                at = end
            if len(found) < _BLOCKS:
                return
            after = found[-1].row
