"""Changes of a block by each undo unit, and the updates that undo or redo it, or bring others.

A character, or a value, is in the document if what wrote it is not undone and no unit that removed
it is in force. A counter has the sum of what the units in force have added.

Restored content goes right behind its original item. A shared text is indexed by what is visible,
so its own operations could not say on which side of removed characters new text goes; the update
is therefore written item by item.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum

from antiphon_kernel.document.counters import partial_sum, written
from antiphon_kernel.document.history.item_index import (
    ContainerIndex,
    ItemContent,
    ItemKind,
    ItemList,
    ItemTable,
    Segment,
)
from antiphon_kernel.yjs.id_set import IdRange, normalise
from antiphon_kernel.yjs.restored_ids import RestoredRange
from antiphon_kernel.yjs.update import ContentKind, ItemId, Struct, utf16_length
from antiphon_kernel.yjs.update_writer import encode_update


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


@dataclass(frozen=True, slots=True)
class NewItem:
    """Something to write between two items that are there."""

    parent: ItemId
    key: str | None
    origin: ItemId | None
    right_origin: ItemId | None
    content: ItemContent
    sources: tuple[IdRange, ...] = ()
    """The ids of the characters or values that it restores; empty if it restores none."""

    @property
    def length(self) -> int:
        """Ids that it takes."""
        return utf16_length(self.content) if isinstance(self.content, str) else len(self.content)

    def struct(self, client: int, clock: int) -> Struct:
        """It as an item of this client."""
        kind = ContentKind.STRING if isinstance(self.content, str) else ContentKind.ANY
        place = self.origin, self.right_origin, self.parent, self.key
        return Struct(client, clock, self.length, kind, *place, self.content)


@dataclass(frozen=True, slots=True)
class UpdatePlan:
    """Items to write and items to delete."""

    items: tuple[NewItem, ...] = ()
    deletions: tuple[IdRange, ...] = ()

    def __bool__(self) -> bool:
        """Return whether anything changes."""
        return bool(self.items or self.deletions)

    def __add__(self, other: UpdatePlan) -> UpdatePlan:
        """Both, of different blocks."""
        return UpdatePlan(self.items + other.items, self.deletions + other.deletions)

    def update(self, client: int, clock: int) -> bytes:
        """The update in which this client writes it all, its ids beginning with `clock`."""
        structs = [item.struct(client, at) for item, at in self._placed(clock)]
        return encode_update(structs, normalise(self.deletions))

    def revivals(self, client: int, clock: int) -> tuple[RestoredRange, ...]:
        """Return the ranges of ids of that update that restore earlier items."""
        found: list[RestoredRange] = []
        for item, at in self._placed(clock):
            for source in item.sources:
                length = source.end - source.start
                first = ItemId(source.client, source.start)
                found.append(RestoredRange(ItemId(client, at), first, length))
                at += length
        return tuple(found)

    def _placed(self, clock: int) -> Iterator[tuple[NewItem, int]]:
        for item in self.items:
            yield item, clock
            clock += item.length


def plan_difference(
    difference: UndoDifference, belonging: ContainerIndex, client: int
) -> UpdatePlan:
    """The plan that brings about a difference.

    Args:
        client: who will write it: counters are counted by client.
    """
    plan = UpdatePlan()
    for sequence in difference.sequences:
        plan += plan_sequence(sequence, difference.going, difference.coming)
    counted = [plan_count(belonging, *one, client) for one in difference.counted]
    return plan + UpdatePlan(tuple(counted))


def plan_sequence(
    sequence: ItemList, going: Iterable[int], coming: Iterable[int], *, anew: bool = False
) -> UpdatePlan:
    """The plan that removes and brings back segments of one sequence.

    Args:
        going: identities of the segments to remove.
        coming: identities of the segments to bring back.
        anew: whether what comes is new, and only reads as what was there.
    """
    going, coming = frozenset(going), frozenset(coming)
    items: list[NewItem] = []
    deletions: list[IdRange] = []
    run: list[Segment] = []
    for segment in sequence:
        if id(segment) in going:
            deletions.append(IdRange(segment.client, segment.clock, segment.end))
        if id(segment) in coming:
            run.append(segment)
        elif run:
            items.append(_together(run, run[-1], segment, anew))
            run = []
    if sequence.kind is ItemKind.ENTRY and (run or items):
        # Only at its end an item is the value of a key.
        came = next(one for one in sequence if id(one) in coming)
        items = [_together([came], sequence.tail, None, anew)]
    elif run:
        items.append(_together(run, run[-1], None, anew))
    return UpdatePlan(tuple(items), tuple(deletions))


def _together(
    run: list[Segment], left: Segment | None, right: Segment | None, anew: bool
) -> NewItem:
    content: ItemContent = run[0].content
    for one in run[1:]:
        content += one.content  # type: ignore[operator]  # all characters, or all values
    firsts = [(one.source or one.first, one.length) for one in run]
    sources = tuple(IdRange(id_.client, id_.clock, id_.clock + size) for id_, size in firsts)
    sequence = run[0].sequence
    return NewItem(
        sequence.container,
        sequence.key,
        left.last if left is not None else None,
        right.first if right is not None else None,
        content,
        () if anew else sources,
    )


def plan_count(belonging: ContainerIndex, counter: ItemId, amount: Decimal, client: int) -> NewItem:
    """The item by which a client adds to a counter."""
    own = belonging.counter(counter, client)
    last = own.tail if own is not None else None
    origin = last.last if last is not None else None
    return NewItem(counter, str(client), origin, None, (written(counted_to(last) + amount),))


def counted_to(segment: Segment | None) -> Decimal:
    """The sum that an item of a counter holds."""
    if segment is None or not segment.size:
        return Decimal(0)
    return partial_sum(segment.content[0]) or Decimal(0)
