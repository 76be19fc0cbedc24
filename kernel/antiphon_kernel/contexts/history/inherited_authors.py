"""Authors of texts that were copied from another context.

An import states the authors with each text. A fork states where it was copied from, and they are
read from the transactions of its source: forking takes no longer after a long history.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Mapping
from dataclasses import dataclass, replace

from antiphon_kernel.contexts.history.journal_index import NO_BLOCK, JournalIndex
from antiphon_kernel.contexts.history.replay import (
    CopiedText,
    Inherited,
    Replay,
    new_history,
    text_paths,
)
from antiphon_kernel.document.history.block_history import BlockHistory, Run, Stamp
from antiphon_kernel.document.schema import Schema
from antiphon_kernel.storage import ContextRow, InheritedRun, Journal, StoredOp
from antiphon_kernel.time_slice import TimeSlice
from antiphon_kernel.types.ids import moved_block


@dataclass(frozen=True, slots=True)
class _Source:
    """Blocks of a context that have been copied, as of one of its versions."""

    row: ContextRow
    upto: int
    numbers: Mapping[str, int]
    """The number of each block there."""
    copies: Mapping[int, int]
    """The number of each block that was copied to the number of its copy."""
    top: Mapping[int, str]
    """The number of each to the id of its copy in the context that is asked about."""


class InheritedAuthors:
    """Reader of the authors of copied texts in one context."""

    def __init__(
        self, journal: Journal, context: ContextRow, schema_of: Callable[[str], Schema]
    ) -> None:
        """`schema_of`: the schema of a block of the context; a copy has that of its original."""
        self._journal = journal
        self._context = context
        self._schema_of = schema_of

    async def read(self, blocks: Mapping[int, str], *, exact: bool) -> Inherited:
        """Return the copied texts of blocks; nothing of those that are no copies.

        Args:
            blocks: the id of each block, by its number.
            exact: whether transactions are read that concern a block without touching it.

        Raises:
            DifferentTextError: if the reading must be exact.
            CorruptContextError: if the source of a fork cannot be read.
            AntiphonError: storage_failed.
        """
        row, first, sources = self._context, blocks, await self._sources(blocks)
        if sources:
            row, first = sources[-1].row, sources[-1].top
        inherited: Inherited = {
            number: {path: CopiedText(list(map(_run, runs))) for path, runs in texts.items()}
            for number, texts in (await self._journal.inherited(row, first)).items()
        }
        for source in reversed(sources):
            inherited = await self._replay(source, inherited, exact=exact)
        return inherited

    async def _sources(self, blocks: Mapping[int, str]) -> list[_Source]:
        """The contexts that the blocks were copied from, one after the other, the nearest first."""
        found: list[_Source] = []
        row, top = self._context, blocks
        while (origin := row.origin) is not None:
            copied = {number: one for number, one in top.items() if number <= origin.blocks}
            if not copied:
                break
            row = await self._journal.source(origin)
            numbers = await self._journal.block_numbers(row)
            copies = {numbers[moved_block(one, row.id)]: number for number, one in copied.items()}
            top = {number: copied[copy] for number, copy in copies.items()}
            found.append(_Source(row, origin.seq, numbers, copies, top))
        return found

    async def _replay(self, source: _Source, inherited: Inherited, *, exact: bool) -> Inherited:
        """The texts that were copied from a source, given those that were copied into it."""
        histories = {
            number: new_history(moved_block(copy, source.row.id), self._schema_of(copy))
            for number, copy in source.top.items()
        }
        replay, slices = Replay(histories, inherited), TimeSlice()
        async for op in self._ops(source, histories, exact=exact):
            replay.follow(op)
            await slices.pause()
        return {
            source.copies[number]: self._texts(history, source.top[number])
            for number, history in histories.items()
        }

    async def _ops(
        self, source: _Source, numbers: Collection[int], *, exact: bool
    ) -> AsyncIterator[StoredOp]:
        """The transactions of a source that concern some of its blocks."""
        if len(numbers) == 1 and not exact:
            (number,) = numbers
            for op in await self._journal.ops(source.row, upto=source.upto, block=number):
                yield op
            return
        index = JournalIndex(
            self._journal, source.row, lambda block: source.numbers.get(block, NO_BLOCK)
        )
        await index.extend(source.upto)
        if exact:
            await index.make_exact()
        async for op in index.ops({seq for number in numbers for seq in index.seqs(number)}):
            yield op

    def _texts(self, history: BlockHistory, copy: str) -> dict[str | None, CopiedText]:
        texts = {
            path: CopiedText(_runs_of(history, path), history.text(path))
            for path in text_paths(self._schema_of(copy))
        }
        history.release()
        return texts


def _runs_of(original: BlockHistory, path: str | None) -> list[Run]:
    """Authors of a text of an original, each with the block whose version it is."""

    def stated(stamp: Stamp) -> Stamp:
        return stamp if stamp.block is not None else replace(stamp, block=original.block)

    return [replace(run, stamp=stated(run.stamp)) for run in original.blame(path)]


def _run(stored: InheritedRun) -> Run:
    stamp = Stamp(stored.principal, stored.version, stored.time)
    return Run(stored.end - stored.start, stamp)
