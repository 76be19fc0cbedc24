"""Who wrote what in one context: the journal, read once more with an eye on the authors.

Nothing is kept for it while nobody asks. The first question reads the context's journal into a
document of its own; every later one reads what has been committed since.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from antiphon_kernel.document.authorship import Authorship, Run, Stamp
from antiphon_kernel.document.document import Document
from antiphon_kernel.journal.journal import Journal
from antiphon_kernel.journal.rows import ContextRow, StoredOp
from antiphon_kernel.types.records import TextSplice

_READ = 200
"""Transactions read before others get their turn."""


class Blame:
    """The authors of every block of one context, as of the last question."""

    def __init__(self, journal: Journal, context: ContextRow, client_id: int) -> None:
        self._journal = journal
        self._context = context
        self._document = Document(client_id)
        self._seq = 0
        self._texts: dict[str, Authorship] = {}
        self._numbers: dict[int, str] = {}
        self._reading = asyncio.Lock()

    async def runs(self, block: str, numbers: dict[int, str]) -> Sequence[Run]:
        """The runs of one block, up to what is on disk now.

        Args:
            numbers: the journal's number of each block, to its id.
        """
        async with self._reading:
            self._numbers = numbers
            while ops := await self._journal.ops(self._context, self._seq, _READ):
                for op in ops:
                    self._follow(op)
        authorship = self._texts.get(block)
        return tuple(authorship.runs) if authorship is not None else ()

    def _follow(self, op: StoredOp) -> None:
        change = self._document.apply_update(op.update).change
        self._seq = op.seq
        versions = {self._numbers.get(number, ""): v for number, v in op.versions.items()}
        restores = op.operation in ("undo", "redo")
        for block in change.added:
            self._texts[block] = Authorship()
            whole = TextSplice(0, 0, self._document.text(block))
            stamp = Stamp(op.principal, versions.get(block, 1), op.time)
            self._texts[block].apply([whole], stamp, restores=False)
        for text in change.texts:
            if text.block not in change.added:
                stamp = Stamp(op.principal, versions.get(text.block, 0), op.time)
                self._texts[text.block].apply(text.splices, stamp, restores=restores)
