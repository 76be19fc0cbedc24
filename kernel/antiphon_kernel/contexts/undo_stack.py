"""Undo and redo stacks of one context, per principal.

A unit is one tool call, one typing run (same session and blocks, gaps under a second) or one
streaming run of a block. A new unit of a principal clears what that principal could redo. What a
unit did is not kept here: it follows from the journal's transactions (`document.history`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from antiphon_kernel.document.history.undo_units import UndoDirection
from antiphon_kernel.storage import UndoRow
from antiphon_kernel.types.records import Actor

TYPING_GAP_MS: Final = 1_000
"""A pause as long as this ends a typing run."""


class UndoKind(StrEnum):
    """Kind of undo unit."""

    CALL = "call"
    TYPING = "typing"
    STREAM = "stream"


@dataclass(frozen=True, slots=True)
class StackChange:
    """Changes to the stacks to be stored."""

    unit: int | None = None
    kept: tuple[UndoRow, ...] = ()
    dropped: tuple[int, ...] = ()


NOTHING_RECORDED: Final = StackChange()
"""Of a change that nobody can undo."""


class UndoStacks:
    """The undo and redo stacks of everybody in one context, in memory; the journal stores them.

    A stack goes by the turn that its units can take.
    """

    def __init__(self, rows: Iterable[UndoRow], limit: int) -> None:
        self._stacks: dict[tuple[str, str], list[UndoRow]] = {}
        self._limit = limit
        for row in rows:
            self._stacks.setdefault((row.principal, row.stack), []).append(row)

    def record(
        self, actor: Actor, kind: UndoKind, blocks: tuple[str, ...], seq: int, time: int
    ) -> StackChange:
        """A principal has written: a new unit, or more of the last one.

        Args:
            seq: the number of the transaction, which is the unit's from now on.
        """
        principal = actor.principal.id
        stack = self._stacks.setdefault((principal, UndoDirection.UNDO), [])
        redo = self._stacks.pop((principal, UndoDirection.REDO), [])
        dropped = [row.unit for row in redo]
        last = stack[-1] if stack else None
        if last is not None and _continues(last, actor, kind, blocks, time):
            row = last.at(time)
            stack[-1] = row
        else:
            row = UndoRow(
                unit=seq,
                principal=principal,
                session=actor.session,
                kind=kind,
                stack=UndoDirection.UNDO,
                place=seq,
                time=time,
                blocks=blocks,
            )
            stack.append(row)
            if len(stack) > self._limit:
                dropped.append(stack.pop(0).unit)
        return StackChange(row.unit, (row,), tuple(dropped))

    def rows(self, principal: str, turn: UndoDirection, block: str | None) -> Sequence[UndoRow]:
        """Return the units a principal can undo (or redo), last first; only in `block` if named."""
        return [
            row
            for row in reversed(self._stacks.get((principal, turn), []))
            if block is None or block in row.blocks
        ]

    def apply(self, row: UndoRow, seq: int, time: int) -> StackChange:
        """A unit is undone or done again by a transaction: it stands on the other stack now."""
        self._stacks[row.principal, row.stack].remove(row)
        other = UndoDirection.REDO if row.stack == UndoDirection.UNDO else UndoDirection.UNDO
        turned = replace(row, stack=other, place=seq, time=time)
        self._stacks.setdefault((row.principal, other), []).append(turned)
        return StackChange(row.unit, (turned,))


def _continues(
    last: UndoRow, actor: Actor, kind: UndoKind, blocks: tuple[str, ...], time: int
) -> bool:
    if last.kind != kind or last.session != actor.session or last.blocks != blocks:
        return False
    if kind is UndoKind.TYPING:
        return time - last.time < TYPING_GAP_MS
    return kind is UndoKind.STREAM
