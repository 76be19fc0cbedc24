"""Histories of blocks from the transactions of the journal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from antiphon_kernel.contexts.history.journal_index import NO_BLOCK, SYNC, ItemOwners
from antiphon_kernel.document.history.block_history import BlockHistory, HistoryChange, Run, Stamp
from antiphon_kernel.document.history.undo_units import UndoDirection
from antiphon_kernel.document.schema import Schema, each_part, is_counter, is_text, path_of
from antiphon_kernel.storage import StoredOp
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
