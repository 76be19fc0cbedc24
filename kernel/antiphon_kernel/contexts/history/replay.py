"""Histories of blocks from the transactions of the journal, and the authors of what was copied."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from antiphon_kernel.contexts.history.journal_index import NO_BLOCK, SYNC, ItemOwners, JournalIndex
from antiphon_kernel.document.history.block_history import BlockHistory, HistoryChange, Run, Stamp
from antiphon_kernel.document.history.undo_units import UndoDirection
from antiphon_kernel.document.schema import Schema, each_part, is_counter, is_text, path_of
from antiphon_kernel.storage import ContextRow, InheritedRun, Journal, StoredOp
from antiphon_kernel.time_slice import TimeSlice
from antiphon_kernel.types.ids import moved_block
from antiphon_kernel.yjs.update import DecodedUpdate, decode_update

_NOTHING: Final = DecodedUpdate((), ())


@dataclass(frozen=True, slots=True)
class CopiedText:
    """Authors of a text before it was copied: runs that together are as long as it."""

    runs: Sequence[Run]
    text: str | None = None
    """Their text, if it is known."""


Inherited = Mapping[int, Mapping[str | None, CopiedText]]
"""The copied texts of each block, by its number and the path of the text."""


class Replay:
    """Histories of several blocks that follow the same transactions, each read once for all."""

    def __init__(self, histories: Mapping[int, BlockHistory], inherited: Inherited) -> None:
        """
        Args:
            histories: new ones, by the block's number.
            inherited: who wrote the texts of blocks that are copies.
        """
        self._histories = histories
        self._inherited = inherited
        numbers = {history.block: number for number, history in histories.items()}
        self._owners = ItemOwners(lambda block: numbers.get(block, NO_BLOCK))

    def follow(self, op: StoredOp) -> None:
        """Follow the next transaction that concerns one of the blocks."""
        update = decode_update(op.update)
        if op.operation != SYNC and len(op.versions) == 1:
            (block,) = op.versions
            parts = {block: update}
            self._owners.assign(update, block)
        else:
            parts = self._owners.split(update)
        for block in (op.versions.keys() | parts.keys()) & self._histories.keys():
            history, version = self._histories[block], op.versions.get(block)
            if version is None and op.operation != SYNC:
                continue
            part = parts.get(block, _NOTHING)
            history.follow(history_change(op, part, version or history.version))
            if version == 1 and block in self._inherited:
                inherit(history, self._inherited[block])


def history_change(op: StoredOp, update: DecodedUpdate, version: int) -> HistoryChange:
    """Return a transaction, or a part of it, as the history of a block follows it.

    Args:
        version: of the block, as the transaction leaves it.
    """
    turn = UndoDirection(op.operation) if op.unit and op.operation in tuple(UndoDirection) else None
    return HistoryChange(update, Stamp(op.principal, version, op.time), op.unit, turn, op.revivals)


def new_history(block: str, schema: Schema) -> BlockHistory:
    """Return a history that has not followed anything yet."""
    return BlockHistory(block, [names for names, part in each_part(schema) if is_counter(part)])


def text_paths(schema: Schema) -> list[str | None]:
    """Return the path of each text in a content."""
    return [path_of(names) for names, part in each_part(schema) if is_text(part)]


class DifferentTextError(Exception):
    """A text is not what its authors are said to have written before it was copied."""


def inherit(history: BlockHistory, copied: Mapping[str | None, CopiedText]) -> None:
    """Name those who wrote a copied block before; its history must stand at the copy.

    Raises:
        DifferentTextError: if that is another text than is known of them.
    """
    for path, one in copied.items():
        if one.text is not None and one.text != history.text(path):
            raise DifferentTextError(history.block)
        history.inherit(path, one.runs)


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
    """Reader of the authors of texts in one context that were copied from another one.

    An import states the authors with each text. A fork states where it was copied from, and they
    are read from the transactions of its source: forking takes no longer after a long history.
    """

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
        async for op in index.ops({seq for number in numbers for seq in index.seqs[number]}):
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
