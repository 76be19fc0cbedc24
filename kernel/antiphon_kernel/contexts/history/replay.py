"""Histories of blocks from the transactions of the journal, and the authors of what was copied."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from antiphon_kernel.contexts.history.journal_index import NO_BLOCK, SYNC, ItemOwners, JournalIndex
from antiphon_kernel.document.history.block_history import BlockHistory, HistoryChange
from antiphon_kernel.document.history.undo_units import UndoDirection
from antiphon_kernel.document.schema import Schema, each_part, is_counter, is_text, path_of
from antiphon_kernel.storage import ContextRow, InheritedText, Journal, StoredOp
from antiphon_kernel.tasks import TimeSlice
from antiphon_kernel.types.ids import moved_block
from antiphon_kernel.types.records import Run, Stamp
from antiphon_kernel.yjs.update import DecodedUpdate, decode_update

_NOTHING: Final = DecodedUpdate((), ())


@dataclass(frozen=True, slots=True)
class CopiedText:
    """Authors of a text before it was copied: runs that together are as long as it."""

    runs: Sequence[Run]
    text: str | None = None
    """Their text, if it is known."""


Copied = Mapping[str | None, CopiedText]
"""Copied texts of a block, by the path of the text."""

Inherited = Mapping[tuple[int, int], Copied]
"""The copied texts of each block, by its number and the version that it got them with."""

_NONE: Final[Inherited] = {}


class FollowedHistories:
    """Histories of several blocks that follow the same transactions, each read once for all."""

    def __init__(self, histories: Mapping[int, BlockHistory], inherited: Inherited) -> None:
        """
        Args:
            histories: new ones, by the block's number.
            inherited: who wrote the texts of blocks that are copies.
        """
        self.histories = histories
        self._inherited = inherited
        numbers = {history.block: number for number, history in histories.items()}
        self._owners = ItemOwners(lambda block: numbers.get(block, NO_BLOCK))

    def follow(self, op: StoredOp) -> None:
        """Follow the next transaction that concerns one of the blocks."""
        parts = self._owners.split(decode_update(op.update))
        for block in (op.versions.keys() | parts.keys()) & self.histories.keys():
            history, version = self.histories[block], op.versions.get(block)
            if version is None and op.operation != SYNC:
                continue
            part = parts.get(block, _NOTHING)
            history.follow(history_change(op, part, version or history.version))
            if version is not None and (copied := self._inherited.get((block, version))):
                inherit(history, copied)
            inherit(history, copied_texts(op.inherited).get((block, version or 0), {}))


def history_change(op: StoredOp, update: DecodedUpdate, version: int) -> HistoryChange:
    """Return what the history of a block follows of a transaction, which leaves it in a version."""
    turn = UndoDirection(op.operation) if op.unit and op.operation in tuple(UndoDirection) else None
    return HistoryChange(update, Stamp(op.principal, version, op.time), op.unit, turn, op.revivals)


def text_paths(schema: Schema) -> list[str | None]:
    """Return the path of each text in a content."""
    return [path_of(names) for names, part in each_part(schema) if is_text(part)]


class DifferentTextError(Exception):
    """A text is not what its authors are said to have written before it was copied."""


def texts_of(history: BlockHistory, schema: Schema, version: int | None = None) -> Copied:
    """Return what copies of a block get, as it is now or was at a version."""
    return {
        path: CopiedText(
            with_block(history.blame(path, version), history.block), history.text(path, version)
        )
        for path in text_paths(schema)
    }


def copied_texts(stored: Iterable[InheritedText]) -> Inherited:
    """Return the copied texts whose authors the journal states."""
    found: dict[tuple[int, int], dict[str | None, CopiedText]] = {}
    for one in stored:
        found.setdefault((one.block, one.version), {})[one.section] = CopiedText(one.runs)
    return found


def inherit(history: BlockHistory, copied: Copied) -> None:
    """Name those who wrote what was copied before; the history must stand at the copy.

    Raises DifferentTextError if that is another text than is known of them.
    """
    for path, one in copied.items():
        if one.text is not None and one.text != history.text(path):
            raise DifferentTextError(history.block)
        history.inherit(path, one.runs)


class InheritedAuthors:
    """Reader of histories, with the authors of texts that were copied from another context.

    Imports and drifts state the authors with each text. A fork states where it was copied from, and
    they are read from the transactions of its source: forking takes no longer after a long history.

    Reading raises DifferentTextError unless it is exact: then transactions are read, too, that
    concern a block without touching it. It raises CorruptContextError if the source of a fork
    cannot be read, and storage_failed.
    """

    def __init__(self, journal: Journal, schema_of: Callable[[str], Schema]) -> None:
        """`schema_of`: the schema of a block of the context; a copy has that of its original."""
        self._journal = journal
        self._schema_of = schema_of

    async def as_of(
        self, row: ContextRow, blocks: Mapping[int, str], version: int
    ) -> dict[str, Copied]:
        """Return the texts of blocks as they were at a version of their context, with authors."""
        try:
            found = await self._texts(row, version, blocks, exact=False)
        except DifferentTextError:
            found = await self._texts(row, version, blocks, exact=True)
        return {blocks[number]: texts for number, texts in found.items()}

    async def replay(
        self,
        row: ContextRow,
        blocks: Mapping[int, str],
        upto: int,
        *,
        exact: bool,
        known: Inherited = _NONE,
        index: JournalIndex | None = None,
    ) -> FollowedHistories:
        """Return the histories of blocks of a context up to a transaction.

        Args:
            row: the context, or a source of it.
            blocks: their ids in the context that is asked about, by number.
            known: copied texts that need not be read.
            index: of the transactions, if there is one already, which is exact if this is.
        """
        histories = dict[int, BlockHistory]()
        for number, one in blocks.items():
            parts = each_part(self._schema_of(one))
            counters = [names for names, part in parts if is_counter(part)]
            histories[number] = BlockHistory(moved_block(one, row.id), counters)
        inherited = await self._inherited(row, blocks, exact=exact, known=known)
        replay, slices = FollowedHistories(histories, inherited), TimeSlice()
        if exact and index is None:
            numbers = await self._journal.block_numbers(row)
            index = JournalIndex(self._journal, row, lambda one: numbers.get(one, NO_BLOCK))
            await index.make_exact(upto)
        if index is None:
            for op in await self._journal.ops(row, upto=upto, blocks=histories):
                replay.follow(op)
                await slices.pause()
        else:
            async for op in index.ops({seq for number in blocks for seq in index.seqs[number]}):
                replay.follow(op)
                await slices.pause()
        return replay

    async def _inherited(
        self, row: ContextRow, blocks: Mapping[int, str], *, exact: bool, known: Inherited
    ) -> Inherited:
        """Return the copied texts of blocks; nothing of those that are no copies."""
        found = {**known, **copied_texts(await self._journal.inherited(row, blocks))}
        origin = row.origin
        copied = {
            number: one
            for number, one in blocks.items()
            if origin and number <= origin.blocks and (number, 1) not in known
        }
        if origin is None or not copied:
            return found
        source = await self._journal.source(origin)
        ids = {moved_block(one, source.id): n for n, one in copied.items()}
        numbers = await self._journal.block_numbers(source, ids)
        copies = {numbers[block]: n for block, n in ids.items()}
        originals = {number: copied[copy] for number, copy in copies.items()}
        texts = await self._texts(source, origin.seq, originals, exact=exact)
        return found | {(copies[number], 1): one for number, one in texts.items()}

    async def _texts(
        self, row: ContextRow, upto: int, blocks: Mapping[int, str], *, exact: bool
    ) -> dict[int, Copied]:
        found: dict[int, Copied] = {}
        replay = await self.replay(row, blocks, upto, exact=exact)
        for number, history in replay.histories.items():
            found[number] = texts_of(history, self._schema_of(blocks[number]))
            history.release()
        return found


def with_block(runs: Iterable[Run], block: str | None) -> list[Run]:
    """Return runs of a copied text with the block that has the versions: `block`, or the copy."""

    def stated(stamp: Stamp) -> Stamp:
        return stamp if stamp.block is not None else replace(stamp, block=block)

    return [replace(run, stamp=stated(run.stamp)) for run in runs]
