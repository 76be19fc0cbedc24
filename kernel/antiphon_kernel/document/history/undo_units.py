"""Changes of a block by each undo unit, and the effects of undoing or redoing it.

A character, or a value, is in the document if what wrote it is not undone and no unit that removed
it is in force. A counter has the sum of what the units in force have added.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum

from antiphon_kernel.document.history.item_index import ItemKind, ItemList, ItemTable, Segment
from antiphon_kernel.yjs.id_set import IdRange
from antiphon_kernel.yjs.update import ItemId


class UndoDirection(StrEnum):
    """Choice of undoing or redoing a unit."""

    UNDO = "undo"
    REDO = "redo"


@dataclass(slots=True)
class UndoUnit:
    """Insertions and deletions of one unit, as ids of items that restore no others."""

    made: list[IdRange] = field(default_factory=list)
    took: list[IdRange] = field(default_factory=list)
    counted: dict[ItemId, Decimal] = field(default_factory=dict)
    """The amount it added to each counter."""


@dataclass(frozen=True, slots=True)
class UndoDifference:
    """Items to remove and to restore."""

    going: frozenset[int]
    """Segments, by identity."""
    coming: frozenset[int]
    sequences: tuple[ItemList, ...]
    """The sequences that hold the segments."""
    counted: tuple[tuple[ItemId, Decimal], ...]
    """The amounts to add to counters."""


class UndoUnits:
    """The units of one block."""

    def __init__(self, items: ItemTable) -> None:
        self._items = items
        self._units: defaultdict[int, UndoUnit] = defaultdict(UndoUnit)

    def units_inserting(self, number: int | None, segment: Segment) -> None:
        """A unit has written something."""
        if number is not None:
            ids = IdRange(segment.client, segment.clock, segment.end)
            self._units[number].made.append(ids)

    def units_deleting(self, number: int | None, segment: Segment) -> None:
        """A unit has removed something."""
        # Who removes without a unit removes for ever: no unit has a negative number.
        remover = number if number is not None else -1
        for original in self._items.originals(segment):
            original.deleted_by |= {remover}
            if number is not None:
                ids = IdRange(original.client, original.clock, original.end)
                self._units[number].took.append(ids)

    def counted(self, number: int | None, counter: ItemId, amount: Decimal) -> None:
        """A unit has added to a counter."""
        if number is not None:
            counted = self._units[number].counted
            counted[counter] = counted.get(counter, Decimal(0)) + amount

    def set_undone(self, number: int, turn: UndoDirection) -> None:
        """A unit has been undone, or done again."""
        unit = self._units.get(number, UndoUnit())
        for original in self._each(unit.made):
            original.undone = turn is UndoDirection.UNDO
        for original in self._each(unit.took):
            if turn is UndoDirection.UNDO:
                original.deleted_by -= {number}
            else:
                original.deleted_by |= {number}

    def difference(self, number: int, turn: UndoDirection) -> UndoDifference:
        """Return the changes that undo a unit, or redo it.

        Undoing removes what the unit wrote and restores what it removed, unless somebody else has
        removed that as well, or its writer has undone it.
        """
        unit = self._units.get(number, UndoUnit())
        for _ in self._each([*unit.made, *unit.took]):
            pass  # cut where either of them has a border, so that each segment is all in or all out
        made = {id(one) for one in self._each(unit.made)}
        took = {id(one) for one in self._each(unit.took)}

        def belongs(original: Segment) -> bool:
            unmade, removers = original.undone, original.deleted_by
            if id(original) in made:
                unmade = turn is UndoDirection.UNDO
            if id(original) in took:
                removers = (
                    removers - {number} if turn is UndoDirection.UNDO else removers | {number}
                )
            return not unmade and not removers

        going: set[int] = set()
        coming: set[int] = set()
        sequences: dict[int, ItemList] = {}
        for original in list(self._each([*unit.made, *unit.took])):
            sequence = original.sequence
            if sequence.kind is ItemKind.ENTRY:
                if id(sequence) not in sequences:
                    self._choose_value(sequence, belongs, going, coming)
            else:
                there = belongs(original)
                for newest in self._items.newest(original):
                    if newest.alive and not there:
                        going.add(id(newest))
                    elif not newest.alive and there:
                        coming.add(id(newest))
            sequences[id(sequence)] = sequence
        sign = -1 if turn is UndoDirection.UNDO else 1
        counted = tuple((one, sign * amount) for one, amount in unit.counted.items() if amount)
        return UndoDifference(
            frozenset(going), frozenset(coming), tuple(sequences.values()), counted
        )

    def _each(self, ranges: Iterable[IdRange]) -> Iterator[Segment]:
        for one in ranges:
            yield from self._items.within(*one)

    def _choose_value(
        self,
        entry: ItemList,
        belongs: Callable[[Segment], bool],
        going: set[int],
        coming: set[int],
    ) -> None:
        """The value of a key is the last that was set of those that are in force."""
        values = [one for one in entry if one.source is None and one.size]
        chosen = next((one for one in reversed(values) if belongs(one)), None)
        newest = next(self._items.newest(chosen)) if chosen is not None else None
        if newest is not None and not newest.alive:
            coming.add(id(newest))
        going.update(id(one) for one in entry if one.alive and one.size and one is not newest)
