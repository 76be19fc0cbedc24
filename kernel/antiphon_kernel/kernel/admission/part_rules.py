"""What an update may do to one part of a content: what a tool could have done to it.

Each rule takes down what an update brings to its part and takes away, and says in the end whether
it may. What fits a schema is said by `conformity`, how much there may be by `content_limits`.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import Protocol

from antiphon_kernel.document.conformity import Rule, Violation, too_many, violations
from antiphon_kernel.document.content import number_of_items, refuse_violations, sums_of
from antiphon_kernel.document.counters import EXACT, as_number, partial_sum
from antiphon_kernel.document.document import Document
from antiphon_kernel.document.schema import FieldSchema, ItemSchema, ListSchema
from antiphon_kernel.kernel.admission.placement import Container, Place, Placement
from antiphon_kernel.kernel.admission.succession import Supposed, written_over
from antiphon_kernel.kernel.content_limits import (
    check_limit,
    refuse_large_value,
    refuse_long_text,
    refuse_many_items,
)
from antiphon_kernel.kernel.limits import Limits
from antiphon_kernel.types.quoting import shown
from antiphon_kernel.wire.id_intervals import IdIntervals
from antiphon_kernel.wire.id_set import IdRange
from antiphon_kernel.wire.update import ContentKind, ItemId, Struct


class PartRule(Protocol):
    """The rule of one part. All methods raise AntiphonError: schema_violation, too_large."""

    def insert(self, item: Struct, begin: int) -> None:
        """An item that comes there; new of it is what is from clock `begin` on."""

    def delete(self, ids: IdRange, *, own: bool) -> None:
        """Items that go; their `own` are what the same update brings. After every `insert`."""

    def confirm(self) -> None:
        """All of it, with what is there now; may be asked again when others have written."""


class Part:
    """Which part, of which document."""

    __slots__ = ("block", "document", "limits", "path", "placement")

    def __init__(
        self,
        document: Document,
        block: str,
        path: str | None,
        placement: Placement,
        limits: Limits,
    ) -> None:
        self.document = document
        self.block = block
        self.path = path
        self.placement = placement
        self.limits = limits

    def refuse(self, found: Iterable[Violation]) -> None:
        """Raises AntiphonError schema_violation if there is any."""
        refuse_violations(self.block, found)

    def refuse_run(self, item: Struct) -> None:
        """Raises AntiphonError if a value under a key has a place no client would give it."""
        if item.right_origin is not None:
            expected = "written over the value before it"
            self.refuse([Violation(self.path, Rule.TYPE, expected, "one before another")])
        most = self.limits.update_structs
        check_limit(item.length, most, f"A field has {item.length} values in one update", "wait")

    def refuse_value(self, schema: ItemSchema | FieldSchema | None, value: object) -> None:
        """Raises AntiphonError if a value is not what is asked for, or too large."""
        self.refuse(violations(schema, value, self.path))
        refuse_large_value(self.limits, value)


class _Growing:
    """A text or a list, and by how much it grows."""

    def __init__(self, part: Part) -> None:
        self._part = part
        self._removed: list[IdRange] = []
        self._added = 0
        """What comes and stays."""

    def insert(self, item: Struct, begin: int) -> None:
        self._added += item.clock + item.length - begin

    def delete(self, ids: IdRange, *, own: bool) -> None:
        if own:
            self._added -= ids.end - ids.start
        else:
            self._removed.append(ids)

    def _total(self, there: int) -> int:
        """What it comes to; `there` is how much there is."""
        deleted = self._part.placement.deleted
        # Others may have deleted the same meanwhile.
        gone = sum(fresh.end - fresh.start for ids in self._removed for fresh in deleted.lacks(ids))
        return there + self._added - gone

    def _items(self) -> int:
        """How many items the list then has; raises AntiphonError too_large if too many come."""
        part = self._part
        total = self._total(number_of_items(part.document, part.block, part.path))
        refuse_many_items(part.limits, total)
        return total


class TextRule(_Growing):
    """Characters, and marks without meaning."""

    def __init__(self, part: Part, container: Container) -> None:
        super().__init__(part)
        self._container = container

    def insert(self, item: Struct, begin: int) -> None:
        if item.kind is not ContentKind.FORMAT:
            super().insert(item, begin)

    def confirm(self) -> None:
        part, added = self._part, self._added
        if added <= 0 or self._container.written + added <= part.limits.block_code_points:
            return
        is_there = part.block in part.document
        there = len(part.document.text(part.block, part.path)) if is_there else 0
        refuse_long_text(part.limits, self._total(there))


class ListRule(_Growing):
    """Items that fit, no more than there may be."""

    def __init__(self, part: Part, schema: ListSchema | FieldSchema) -> None:
        super().__init__(part)
        self._schema = schema

    def insert(self, item: Struct, begin: int) -> None:
        super().insert(item, begin)
        for value in _values(item):
            self._part.refuse_value(self._schema.item_schema, value)

    def confirm(self) -> None:
        if self._added <= 0:
            return
        total, limit = self._items(), self._schema.max_items
        if limit is not None and total > limit:
            self._part.refuse([too_many(limit, total, self._part.path)])


class LogRule(_Growing):
    """Entries at the end, and none goes that was there."""

    def __init__(self, part: Part) -> None:
        super().__init__(part)
        self._behind: list[ItemId] = []
        self._gone = IdIntervals()

    def insert(self, item: Struct, begin: int) -> None:
        super().insert(item, begin)
        if item.right_origin is not None:
            self._behind.append(item.right_origin)
        for value in _values(item):
            self._part.refuse_value(None, value)

    def delete(self, ids: IdRange, *, own: bool) -> None:
        if not own:
            self._refuse("entries that stay", "a deletion")
        super().delete(ids, own=own)
        self._gone.add(ids)

    def confirm(self) -> None:
        for before in self._behind:
            if before not in self._gone and before not in self._part.placement.deleted:
                self._refuse("entries at the end only", "one before another")
        if self._added > 0:
            self._items()

    def _refuse(self, expected: str, found: str) -> None:
        self._part.refuse([Violation(self._part.path, Rule.APPEND_ONLY, expected, found)])


class _Kept:
    """The value under one key, which is replaced and never removed."""

    def __init__(self, part: Part, place: Place) -> None:
        self._part = part
        self._place = place
        self._written: list[tuple[ItemId, ItemId | None]] = []
        self._gone = IdIntervals()

    def insert(self, item: Struct, begin: int) -> None:
        self._written.extend(written_over(item, begin))
        if item.kind is ContentKind.DELETED:
            self._gone.add(IdRange(item.client, begin, item.clock + item.length))

    def delete(self, ids: IdRange) -> None:
        self._gone.add(ids)

    def is_lost(self) -> bool:
        """Whether there is a value now, and would be none."""
        placement = self._part.placement
        line = placement.succession(self._place)
        if line.last is None or line.last in placement.deleted:
            return False
        supposed = Supposed(line)
        for value, over in self._written:
            supposed.add(value, over)
        last = supposed.last
        return last is None or last in self._gone or last in placement.deleted


class FieldRule:
    """A value of the field's type; a required one is replaced, never removed."""

    def __init__(self, part: Part, field: FieldSchema, place: Place) -> None:
        self._part = part
        self._field = field
        self._kept = _Kept(part, place)

    def insert(self, item: Struct, begin: int) -> None:
        part = self._part
        part.refuse_run(item)
        for value in _values(item):
            if value is None:
                expected = f"a {self._field.field_type}, or removed"
                part.refuse([Violation(part.path, Rule.TYPE, expected, "null")])
            part.refuse_value(self._field, value)
        self._kept.insert(item, begin)

    def delete(self, ids: IdRange, *, own: bool) -> None:
        self._kept.delete(ids)

    def confirm(self) -> None:
        if self._field.required and self._kept.is_lost():
            self._part.refuse(violations(self._field, None, self._part.path))


class SumRule:
    """The sum of one CRDT client in a counter: under its own id, replaced, never removed."""

    def __init__(
        self, part: Part, counter: FieldSchema, place: Place, written: dict[str, list[Decimal]]
    ) -> None:
        """`written`: what one update brings to the counter, by key; shared by its rules."""
        self._part = part
        self._counter = counter
        self._key = place.key
        self._written = written
        self._kept = _Kept(part, place)

    def insert(self, item: Struct, begin: int) -> None:
        self._part.refuse_run(item)
        key = str(item.client)
        if self._key != key:
            self._refuse(f"under {self._key!r} the sum of that CRDT client", key)
        for value in _values(item):
            partial = partial_sum(value)
            if partial is None:
                self._refuse("a sum in decimal digits", shown(value))
            else:
                self._written.setdefault(key, []).append(partial)
        self._kept.insert(item, begin)

    def delete(self, ids: IdRange, *, own: bool) -> None:
        self._kept.delete(ids)

    def confirm(self) -> None:
        part, written = self._part, self._written
        if self._kept.is_lost():
            self._refuse("sums that are replaced", "a deletion")
        if self._key not in written:
            return
        others = spread = Decimal(0)
        for key, partial in sums_of(part.document, part.block, part.path).items():
            if key not in written:
                others = EXACT.add(others, partial)
        for key, sums in written.items():
            if key != self._key:
                spread = EXACT.add(spread, max(map(abs, sums)))
        for own in written[self._key]:
            for more in {spread, -spread}:
                total = EXACT.add(EXACT.add(others, own), more)
                part.refuse(violations(self._counter, as_number(total), part.path))

    def _refuse(self, expected: str, found: str) -> None:
        self._part.refuse([Violation(self._part.path, Rule.TYPE, expected, found)])


def _values(item: Struct) -> tuple[object, ...]:
    """The JSON that an item brings; nothing if it was deleted before it came."""
    return item.content if isinstance(item.content, tuple) else ()
