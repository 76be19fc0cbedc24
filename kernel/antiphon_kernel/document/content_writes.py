"""Writing content, whatever its schema: planned first, applied if all of it is right.

Setting a value changes only what differs, so that what others write at the same time, their cursors
and the authors of what stays are left alone. A plan holds until the document changes; it is
applied inside a transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from pycrdt import Array, Map, Text

from antiphon_kernel.document.containers import insert_items
from antiphon_kernel.document.content import part_of, read_value, reject_violations
from antiphon_kernel.document.counters import EXACT, add, as_decimal, as_number, total
from antiphon_kernel.document.document import Document
from antiphon_kernel.document.schema import (
    FieldSchema,
    FieldType,
    ListSchema,
    LogSchema,
    Part,
    Rule,
    Schema,
    ValueSchema,
    Violation,
    each_part,
    field_type_of,
    fill_items,
    inner_parts,
    is_counter,
    item_violations,
    joined,
    lacking,
    path_of,
    too_many,
    violations,
)
from antiphon_kernel.text.sequence_diff import changed_ranges
from antiphon_kernel.text.splice_diff import plan_difference
from antiphon_kernel.types.errors import invalid_params
from antiphon_kernel.types.frozen_json import canonical_json

_Container = TypeVar("_Container", Text, Map[Any], Array[Any])


@dataclass(frozen=True, slots=True)
class Write:
    """A change of one part of a content."""

    path: str | None
    """The part: the text, list, log, counter or field."""
    apply: Callable[[], None]
    items: int | None = None
    """How many items the list or log then has."""
    value: int | float | None = None
    """The value of the counter afterwards."""


def plan_set(
    document: Document,
    block: str,
    path: str | None,
    value: Any,
    *,
    allow: Collection[Rule] = (),
) -> list[Write]:
    """Return the writes that make the part at a path hold `value`; none if it does.

    Fields and sections that an object does not name stay as they are; null empties a field.

    Args:
        allow: rules that may be broken, because the source of the value broke them.

    Raises:
        KeyError: if there is no such block.
        AntiphonError: schema_violation.
    """
    part = part_of(document, block, path)
    found = [one for one in violations(part, value, path) if one.rule not in allow]
    reject_violations(block, found)
    writes = list(_WritePlan(document, block).set(part, path, value))
    if Rule.REQUIRED not in allow:
        reject_violations(block, _unnamed(document, block, part, path, value))
    return writes


def plan_append(document: Document, block: str, path: str | None, entry: Any) -> Write:
    """Add an entry to a log; raises the same."""
    part = part_of(document, block, path)
    if not isinstance(part, LogSchema):
        reject_violations(block, [Violation(path, Rule.TYPE, "a log", _named(part))])
    array: Array[Any] = _container(document, block, path, Array)
    reject_violations(block, item_violations(None, entry, path, len(array)))
    return Write(path, lambda: array.append(entry), len(array) + 1)


def plan_insert(
    document: Document, block: str, path: str | None, index: int | None, value: Any
) -> Write:
    """Put an item before the one at `index`, None for the end of a list; raises the same."""
    part, array = _list(document, block, path)
    count = len(array)
    at = count if index is None else index
    _check_index(block, path, at, count)
    if part.max_items is not None and count >= part.max_items:
        reject_violations(block, [too_many(part.max_items, count + 1, path)])
    reject_violations(block, item_violations(part.item_schema, value, path, at))
    if index is None:
        return Write(path, lambda: array.append(value), count + 1)
    return Write(path, lambda: array.insert(at, value), count + 1)


def plan_delete(document: Document, block: str, path: str | None, index: int) -> Write:
    """Take an item away; raises the same."""
    _, array = _list(document, block, path)
    _check_index(block, path, index, len(array) - 1)
    return Write(path, lambda: array.pop(index))


def plan_increment(document: Document, block: str, path: str | None, amount: int | float) -> Write:
    """Count on; raises the same."""
    part = part_of(document, block, path)
    if not is_counter(part):
        reject_violations(block, [Violation(path, Rule.TYPE, "a counter", _named(part))])
    counter: Map[Any] = _container(document, block, path, Map)
    reject_violations(block, violations(part, amount, path))
    after = as_number(EXACT.add(total(counter), as_decimal(amount)))
    reject_violations(block, violations(part, after, path))
    return Write(path, lambda: add(counter, document.client_id, as_decimal(amount)), value=after)


def check_defaults(schema: Schema) -> None:
    """Check every default against its own field.

    Raises:
        AntiphonError: invalid_params.
    """
    for names, part in _each_field(schema):
        if part.default is None:
            continue
        filled = fill_items(part, part.default).value
        for one in violations(part, filled, path_of(names)):
            raise invalid_params(
                f"The default of a field does not fit it: {one}.",
                field="schema",
                **one.as_json(),
            )


def _each_field(part: Part | ValueSchema) -> Iterator[tuple[tuple[str, ...], FieldSchema]]:
    """Every field, those of items of lists too, each with the names that lead to it."""
    if isinstance(part, ValueSchema):
        return
    for names, one in each_part(part):
        if isinstance(one, FieldSchema):
            yield names, one
        item = one.item_schema if isinstance(one, FieldSchema | ListSchema) else None
        if item is not None:
            yield from ((names + inner, field) for inner, field in _each_field(item))


def check_initial(schema: Schema, value: Any, block: str) -> None:
    """Check `value` as the initial content of a new block.

    Raises:
        AntiphonError: schema_violation.
    """
    reject_violations(block, violations(schema, value))
    missing = []
    for names, part in each_part(schema):
        if isinstance(part, FieldSchema) and part.required and part.default is None:
            given: Any = value
            for name in names:
                given = given.get(name) if isinstance(given, dict) else None
            if given is None:
                missing.append(lacking(part, path_of(names)))
    reject_violations(block, missing)


@dataclass(frozen=True, slots=True)
class _WritePlan:
    """Sets one part; what is set fits the schema."""

    document: Document
    block: str

    def set(self, part: Part, path: str | None, value: Any) -> Iterator[Write]:
        document, block = self.document, self.block
        match field_type_of(part):
            case FieldType.TEXT:
                _container(document, block, path, Text)
                splices = plan_difference(document.text(block, path), value or "")
                if splices:
                    yield Write(path, lambda: document.splice_all(block, splices, path))
            case FieldType.LIST if isinstance(part, LogSchema):
                yield from self._log(path, value)
            case FieldType.LIST:
                yield from self._list(path, value or [])
            case FieldType.COUNTER:
                counter: Map[Any] = _container(document, block, path, Map)
                amount = EXACT.subtract(as_decimal(value or 0), total(counter))
                if amount:
                    yield Write(path, lambda: add(counter, document.client_id, amount))
            case None:
                for name, one in inner_parts(part):
                    if name in value:
                        yield from self.set(one, joined(path, name), value[name])
            case _:
                yield from self._single(path, value)

    def _list(self, path: str | None, value: list[Any]) -> Iterator[Write]:
        array: Array[Any] = _container(self.document, self.block, path, Array)
        before = read_value(self.document, self.block, path)
        ranges = changed_ranges([*map(canonical_json, before)], [*map(canonical_json, value)])

        def apply() -> None:
            for one in reversed(ranges):
                if one.start < one.end:
                    del array[one.start : one.end]
                insert_items(array, one.start, value[one.new_start : one.new_end])

        if ranges:
            yield Write(path, apply, len(value))

    def _log(self, path: str | None, value: list[Any]) -> Iterator[Write]:
        before = read_value(self.document, self.block, path)
        kept = value[: len(before)]
        if [*map(canonical_json, before)] != [*map(canonical_json, kept)]:
            expected = f"a list that begins with the {len(before)} entries that are there"
            found = Violation(path, Rule.APPEND_ONLY, expected, f"{len(value)} others")
            reject_violations(self.block, [found])
        yield from self._list(path, value)

    def _single(self, path: str | None, value: Any) -> Iterator[Write]:
        above, _, name = (path or "").rpartition("/")
        fields: Map[Any] = _container(self.document, self.block, above or None, Map)

        def apply() -> None:
            if value is not None:
                fields[name] = value
            elif name in fields:
                del fields[name]

        if canonical_json(read_value(self.document, self.block, path)) != canonical_json(value):
            yield Write(path, apply)


def _container(
    document: Document, block: str, path: str | None, kind: type[_Container]
) -> _Container:
    container = document.container(block, path)
    if not isinstance(container, kind):
        expected = {Text: "a text", Map: "a map", Array: "a list"}[kind]
        found = Violation(path, Rule.UNREADABLE, expected, "something else in the document")
        reject_violations(block, [found])
    assert isinstance(container, kind)
    return container


def _list(
    document: Document, block: str, path: str | None
) -> tuple[ListSchema | FieldSchema, Array[Any]]:
    part = part_of(document, block, path)
    if field_type_of(part) is not FieldType.LIST or isinstance(part, LogSchema):
        reject_violations(block, [Violation(path, Rule.TYPE, "a list", _named(part))])
    assert isinstance(part, ListSchema | FieldSchema)
    return part, _container(document, block, path, Array)


def _check_index(block: str, path: str | None, index: int, last: int) -> None:
    if not 0 <= index <= last:
        expected = f"an index from 0 to {last}" if last >= 0 else "nothing: the list is empty"
        reject_violations(block, [Violation(path, Rule.INDEX, expected, str(index))])


def _unnamed(
    document: Document, block: str, part: Part, path: str | None, value: Any
) -> Iterator[Violation]:
    """Required fields that have no value and that `value` does not name."""
    for name, one in inner_parts(part):
        at = joined(path, name)
        if name in value:
            yield from _unnamed(document, block, one, at, value[name])
        elif isinstance(one, FieldSchema) and one.required:
            if read_value(document, block, at) is None:
                yield lacking(one, at)


def _named(part: Part) -> str:
    return f"a {part.field_type if isinstance(part, FieldSchema) else part.type}"
