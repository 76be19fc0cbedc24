"""What can be undone and redone in one context, per principal.

A unit is one tool call, one typing run (same session and block, gaps under a second) or one
streaming run of a block. A new unit of a principal clears what that principal could redo.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from antiphon_kernel.journal.rows import UndoRow
from antiphon_kernel.types.records import Actor
from antiphon_kernel.wire.id_set import IdSet, normalise

TYPING_GAP_MS: Final = 1_000
"""A pause as long as this ends a typing run."""


class UndoKind(StrEnum):
    """What makes a unit."""

    CALL = "call"
    TYPING = "typing"
    STREAM = "stream"


class Stack(StrEnum):
    """On which side of a unit its principal stands."""

    UNDO = "undo"
    REDO = "redo"


@dataclass(frozen=True, slots=True)
class StackChange:
    """What must be stored of a change to the stacks."""

    kept: tuple[UndoRow, ...] = ()
    dropped: tuple[int, ...] = ()


class UndoStacks:
    """The undo and redo stacks of everybody in one context, in memory; the journal stores them."""

    def __init__(self, rows: Iterable[UndoRow], limit: int) -> None:
        self._stacks: dict[tuple[str, str], list[UndoRow]] = {}
        self._limit = limit
        self._next = 1
        for row in rows:
            self._stacks.setdefault((row.principal, row.stack), []).append(row)
            self._next = max(self._next, row.number + 1)

    def record(
        self,
        actor: Actor,
        kind: UndoKind,
        blocks: tuple[str, ...],
        inserted: IdSet,
        deleted: IdSet,
        time: int,
    ) -> StackChange:
        """A principal has written: a new unit, or more of the last one."""
        principal = actor.principal.id
        stack = self._stacks.setdefault((principal, Stack.UNDO), [])
        redo = self._stacks.pop((principal, Stack.REDO), [])
        dropped = [row.number for row in redo]
        last = stack[-1] if stack else None
        if last is not None and _continues(last, actor, kind, blocks, time):
            row = replace(
                last,
                time=time,
                inserted=normalise((*last.inserted, *inserted)),
                deleted=normalise((*last.deleted, *deleted)),
            )
            stack[-1] = row
        else:
            row = UndoRow(
                number=self._next,
                principal=principal,
                session=actor.session,
                kind=kind,
                stack=Stack.UNDO,
                time=time,
                blocks=blocks,
                inserted=inserted,
                deleted=deleted,
            )
            self._next += 1
            stack.append(row)
            if len(stack) > self._limit:
                dropped.append(stack.pop(0).number)
        return StackChange((row,), tuple(dropped))

    def top(self, principal: str, stack: Stack, block: str | None) -> UndoRow | None:
        """The last unit of a principal, of those that touch `block` if one is named."""
        for row in reversed(self._stacks.get((principal, stack), [])):
            if block is None or block in row.blocks:
                return row
        return None

    def turn(self, row: UndoRow, inserted: IdSet, deleted: IdSet, time: int) -> StackChange:
        """A unit has been taken back (or done again): it stands on the other stack now.

        `inserted` and `deleted` are what that made and removed.
        """
        own = self._stacks[row.principal, row.stack]
        own.remove(row)
        other = Stack.REDO if row.stack == Stack.UNDO else Stack.UNDO
        turned = replace(
            row, number=self._next, stack=other, inserted=inserted, deleted=deleted, time=time
        )
        self._next += 1
        self._stacks.setdefault((row.principal, other), []).append(turned)
        return StackChange((turned,), (row.number,))


def _continues(
    last: UndoRow, actor: Actor, kind: UndoKind, blocks: tuple[str, ...], time: int
) -> bool:
    if last.kind != kind or last.session != actor.session or last.blocks != blocks:
        return False
    if kind is UndoKind.TYPING:
        return time - last.time < TYPING_GAP_MS
    return kind is UndoKind.STREAM
