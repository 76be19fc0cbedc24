"""Builder of updates that change a block's content into another one.

Restored content goes right behind its original item. A shared text is indexed by what is visible,
so its own operations could not say on which side of removed characters new text goes; the update
is therefore written item by item.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal

from antiphon_kernel.document.counters import partial_sum, written
from antiphon_kernel.document.history.item_index import (
    ContainerIndex,
    ItemContent,
    ItemKind,
    ItemList,
    Segment,
)
from antiphon_kernel.document.history.undo_units import UndoDifference
from antiphon_kernel.yjs.id_set import IdRange, normalise
from antiphon_kernel.yjs.restored_ids import RestoredRange
from antiphon_kernel.yjs.update import ContentKind, ItemId, Struct, utf16_length
from antiphon_kernel.yjs.update_writer import encode_update


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
    last: Segment | None = None
    for segment in sequence:
        last = segment
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
        items = [_together([came], last, None, anew)]
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
    last: Segment | None = None
    for segment in own or ():
        last = segment
    before = counted_to(last)
    origin = last.last if last is not None else None
    content = (written(before + amount),)
    return NewItem(counter, str(client), origin, None, content)


def counted_to(segment: Segment | None) -> Decimal:
    """The sum that an item of a counter holds."""
    if segment is None or not segment.size:
        return Decimal(0)
    return partial_sum(segment.content[0]) or Decimal(0)
