"""Undo and redo stacks of one context, per principal.

A unit is what one tool call, one typing run or one streaming run has changed in one block. A new
unit of a principal clears what that principal could redo. What a unit did is not kept here: it
follows from the journal's transactions (`document.history`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

from antiphon_kernel.document.history.undo_units import UndoDirection
from antiphon_kernel.storage import UndoRow
from antiphon_kernel.types.enums import ANSWERING_KINDS
from antiphon_kernel.types.records import Actor
from antiphon_kernel.types.typing_run import KEYSTROKE_UNITS, may_go_on
from antiphon_kernel.yjs.id_set import IdRange
from antiphon_kernel.yjs.update import ContentKind, ItemId, Struct

STREAM_PAUSE_MS: Final = 2_000
"""A pause as long as this ends a streaming run, unless it is a model's."""


_UNSEEN: Final = (ContentKind.TYPE, ContentKind.FORMAT)


class UndoKind(StrEnum):
    """Kind of undo unit."""

    CALL = "call"
    TYPING = "typing"
    STREAM = "stream"
    SPLIT = "split"
    """Removal of a text that stands in a new block since."""
    DRIFT = "drift"
    """All that came with a drift, in one row: its block of kind drift."""


@dataclass(frozen=True, slots=True)
class Keystroke:
    """Text inserted or deleted at one place of a text."""

    inserts: bool
    ids: IdRange
    """The items that were inserted or deleted."""
    origin: ItemId | None
    """Item left of inserted text."""
    has_newline: bool

    @classmethod
    def of(
        cls, inserted: Sequence[tuple[Struct, int]], deleted: Sequence[IdRange]
    ) -> Keystroke | None:
        """Return the keystroke that an update is; None if it is more, or something else.

        The first letter of a draft comes with the draft; format marks do not count.

        Args:
            inserted: new items of texts, and new shared types, each with the clock from which on
                it is new.
        """
        inserted = [one for one in inserted if one[0].kind not in _UNSEEN]
        if not inserted:
            return cls(False, deleted[0], None, False) if len(deleted) == 1 else None
        first, start = inserted[0]
        end = start
        for item, begin in inserted:
            if deleted or item.kind is not ContentKind.STRING or item.client != first.client:
                return None
            if begin != end or (end > start and item.origin != ItemId(item.client, end - 1)):
                return None
            end = item.clock + item.length
        text = "".join(str(item.content) for item, _ in inserted)
        origin = first.origin if start == first.clock else ItemId(first.client, start - 1)
        return cls(True, IdRange(first.client, start, end), origin, "\n" in text)

    @property
    def size(self) -> int:
        """UTF-16 units."""
        return self.ids.end - self.ids.start

    @property
    def is_long(self) -> bool:
        """Whether it is a paste, a cut or a kill."""
        return self.size > KEYSTROKE_UNITS

    def follows(self, last: Keystroke) -> bool:
        """Return whether it goes on where the last one of a run has left the cursor."""
        ids, before = self.ids, last.ids
        if self.inserts != last.inserts:
            return False
        if self.inserts:
            return self.origin == ItemId(before.client, before.end - 1)
        return ids.client == before.client and before.start in (ids.end, ids.start - 1, before.end)


@dataclass(slots=True)
class _UndoRun:
    """The typing or streaming run that a principal's last unit is, as long as it may go on."""

    unit: int
    block: str
    session: str
    kind: UndoKind
    begun: int
    last: int
    keystroke: Keystroke | None
    size: int

    def goes_on(self, actor: Actor, kind: UndoKind, now: Keystroke | None, time: int) -> bool:
        """Return whether a change of the same block is part of this run."""
        if kind is not self.kind or actor.session != self.session:
            return False
        if kind is UndoKind.STREAM:
            is_model = actor.principal.kind in ANSWERING_KINDS
            return is_model or time - self.last < STREAM_PAUSE_MS
        before = self.keystroke
        if kind is not UndoKind.TYPING or before is None or now is None:
            return False
        return (
            may_go_on(begun=self.begun, last=self.last, now=time, size=self.size)
            and not (before.has_newline or before.is_long or now.is_long)
            and now.follows(before)
        )


class StackChange(NamedTuple):
    """Changes to the stacks to be stored."""

    unit: int | None = None
    kept: tuple[UndoRow, ...] = ()
    dropped: tuple[UndoRow, ...] = ()


NOTHING_RECORDED: Final = StackChange()
"""Of a change that nobody can undo."""


class UndoStacks:
    """The undo and redo stacks of everybody in one context, in memory; the journal stores them.

    A stack goes by the turn that its units can take. Runs do not go on after a restart.
    """

    def __init__(self, rows: Iterable[UndoRow], limit: int) -> None:
        self._stacks: dict[tuple[str, str], list[UndoRow]] = {}
        self._runs: dict[str, _UndoRun] = {}
        self._limit = limit
        for row in rows:
            self._stacks.setdefault((row.principal, row.stack), []).append(row)

    def record(
        self,
        actor: Actor,
        kind: UndoKind,
        blocks: Sequence[str],
        keystroke: Keystroke | None,
        seq: int,
        time: int,
    ) -> StackChange:
        """Record that a principal has changed texts: a unit of each block, or more of the last one.

        Args:
            blocks: sorted, so that their units have the same order after a restart.
            keystroke: what was typed, if it is no more than that.
            seq: the number of the transaction, which is that of new units from now on.
        """
        principal = actor.principal.id
        stack = self._stacks.setdefault((principal, UndoDirection.UNDO), [])
        dropped = self._stacks.pop((principal, UndoDirection.REDO), [])
        run = self._runs.pop(principal, None)
        if (
            run is not None
            and run.goes_on(actor, kind, keystroke, time)
            and stack
            and (stack[-1].unit, stack[-1].block) == (run.unit, run.block)
            and [*blocks] == [run.block]
        ):
            new = list[UndoRow]()
        else:
            new = [
                UndoRow(seq, block, principal, kind, UndoDirection.UNDO, seq, time)
                for block in blocks
            ]
            stack += new
            # Several at a time: to remove one row writes a page of the database.
            if len(stack) > self._limit + self._limit // 8:
                over = len(stack) - self._limit
                dropped += stack[:over]
                del stack[:over]
                new = new[max(len(new) - len(stack), 0) :]
            run = None
        if len(blocks) == 1 and kind in (UndoKind.TYPING, UndoKind.STREAM):  # which never goes on
            if run is None:
                run = _UndoRun(seq, blocks[0], actor.session, kind, time, time, None, 0)
            run.last, run.keystroke = time, keystroke
            run.size += keystroke.size if keystroke is not None else 0
            self._runs[principal] = run
        return StackChange(run.unit if run is not None else seq, tuple(new), tuple(dropped))

    def rows(self, principal: str, turn: UndoDirection, block: str | None) -> Sequence[UndoRow]:
        """Return the units a principal can undo (or redo), last first; only in `block` if named."""
        return [
            row
            for row in reversed(self._stacks.get((principal, turn), []))
            if block is None or block == row.block
        ]

    def apply(self, row: UndoRow, seq: int, time: int) -> StackChange:
        """A unit is undone or done again by a transaction: it stands on the other stack now."""
        self._stacks[row.principal, row.stack].remove(row)
        other = UndoDirection.REDO if row.stack == UndoDirection.UNDO else UndoDirection.UNDO
        turned = row._replace(stack=other, place=seq, time=time)
        self._stacks.setdefault((row.principal, other), []).append(turned)
        return StackChange(row.unit, (turned,))
