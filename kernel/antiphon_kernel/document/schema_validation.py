"""Validation of JSON values against a schema."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from antiphon_kernel.document.counters import MAX_DIGITS
from antiphon_kernel.document.schema import (
    CompositeSchema,
    FieldSchema,
    FieldType,
    ItemSchema,
    ListSchema,
    LogSchema,
    MapSchema,
    TextSchema,
    ValueSchema,
    inner_parts,
)
from antiphon_kernel.types.json_validation import has_whole_characters
from antiphon_kernel.types.quoting import quote

EXACT_INTEGER: Final = 2**53 - 1
"""Numbers are stored as 64-bit floats, in which larger integers would change."""

_UNCOUNTABLE: Final[int] = 10**MAX_DIGITS

MAX_DEPTH: Final = 64
"""How deep lists and objects are nested in one item at most."""


class Rule(StrEnum):
    """Rule that a value or a write can break."""

    TYPE = "type"
    REQUIRED = "required"
    MAX_ITEMS = "max_items"
    UNKNOWN_NAME = "unknown_name"
    APPEND_ONLY = "append_only"
    INDEX = "index"
    """A list has no such item."""
    UNREADABLE = "unreadable"
    """The CRDT holds something that nobody has put there through a tool."""


@dataclass(frozen=True, slots=True)
class Violation:
    """One thing that is not as the schema says."""

    path: str | None
    """The section or field; absent if it is the whole content."""
    rule: Rule
    """The rule that is broken."""
    expected: str
    """Value that the schema asks for, in words."""
    found: str
    """Value that is there, shortened."""
    item: int | None = None
    """The index of the item in a list or log, from 0."""

    def __str__(self) -> str:
        where = "the content" if self.path is None else quote(self.path)
        item = f", item {self.item}" if self.item is not None else ""
        return f"{where}{item} must be {self.expected}, not {self.found}"

    def as_json(self) -> dict[str, Any]:
        fields: dict[str, Any] = {
            "rule": str(self.rule),
            "expected": self.expected,
            "found": self.found,
        }
        if self.path is not None:
            fields["path"] = self.path
        if self.item is not None:
            fields["item"] = self.item
        return fields


Checked = ItemSchema | FieldSchema


def violations(
    part: Checked | None, value: Any, path: str | None = None, *, complete: bool = False
) -> Iterator[Violation]:
    """Everything in which `value` is not what `part` asks for; None asks only for JSON.

    Args:
        complete: whether required fields must be named; otherwise what is not named is not checked.
    """
    match part:
        case None:
            yield from _json(value, path, 0)
        case FieldSchema() if value is None:
            if part.required:
                yield Violation(path, Rule.REQUIRED, f"a {part.field_type}", "null")
        case FieldSchema(field_type=FieldType.LIST):
            yield from items_violations(part.item_schema, part.max_items, value, path)
        case FieldSchema():
            yield from _single(part.field_type, value, path)
        case MapSchema() | CompositeSchema():
            yield from _inner(part, value, path, complete)
        case ListSchema():
            yield from items_violations(part.item_schema, part.max_items, value, path)
        case LogSchema():
            yield from _single(FieldType.LIST, value, path)
        case TextSchema() | ValueSchema():
            yield from _single(FieldType(part.type), value, path)


def items_violations(
    item: ItemSchema | None, limit: int | None, value: Any, path: str | None
) -> Iterator[Violation]:
    """The same for the items of a list."""
    if not isinstance(value, list):
        yield from _of_type(False, "a list", value, path)
        return
    if limit is not None and len(value) > limit:
        yield too_many(limit, len(value), path)
    for index, one in enumerate(value):
        yield from item_violations(item, one, path, index)


def item_violations(
    item: ItemSchema | None, value: Any, path: str | None, index: int
) -> Iterator[Violation]:
    """The same for one item, which is complete: nothing is added to it later."""
    for one in violations(item, value, path, complete=True):
        yield Violation(one.path, one.rule, one.expected, one.found, index)


def too_many(limit: int, found: int, path: str | None) -> Violation:
    """A list has more items than it may."""
    return Violation(path, Rule.MAX_ITEMS, f"a list of at most {limit} items", f"{found} items")


def lacking(field: FieldSchema, path: str | None) -> Violation:
    """A required field has no value."""
    return Violation(path, Rule.REQUIRED, f"a {field.field_type}", "nothing")


def _single(kind: FieldType, value: Any, path: str | None) -> Iterator[Violation]:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    match kind:
        case FieldType.TEXT:
            yield from _of_type(isinstance(value, str), "a text", value, path)
            yield from _half_characters(value, path)
        case FieldType.NUMBER:
            exact = number and is_exact(value)
            yield from _of_type(exact, "a number (integers below 2^53)", value, path)
        case FieldType.COUNTER:
            # Nothing that is not finite is less than that.
            fits = number and abs(value) < _UNCOUNTABLE
            yield from _of_type(fits, f"a number of at most {MAX_DIGITS} digits", value, path)
        case FieldType.BOOLEAN:
            yield from _of_type(isinstance(value, bool), "true or false", value, path)
        case FieldType.TIMESTAMP:
            expected = "an ISO 8601 time with its offset, like 2026-01-31T09:30:00Z"
            yield from _of_type(_is_timestamp(value), expected, value, path)
        case FieldType.LIST:
            yield from items_violations(None, None, value, path)


def is_exact(value: int | float) -> bool:
    """Return whether a 64-bit float holds a number exactly."""
    if isinstance(value, float):
        return math.isfinite(value)
    return abs(value) <= EXACT_INTEGER


def is_whole(value: object) -> bool:
    """Return whether a value is a whole number that a 64-bit float holds exactly."""
    if isinstance(value, float):
        return value.is_integer() and abs(value) <= EXACT_INTEGER
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) <= EXACT_INTEGER


def _is_timestamp(value: object) -> bool:
    try:
        return isinstance(value, str) and datetime.fromisoformat(value).tzinfo is not None
    except ValueError:
        return False


def _inner(
    schema: MapSchema | CompositeSchema, value: Any, path: str | None, complete: bool
) -> Iterator[Violation]:
    is_map = isinstance(schema, MapSchema)
    if not isinstance(value, Mapping):
        expected = "an object with the " + ("fields of the map" if is_map else "sections")
        yield from _of_type(False, expected, value, path)
        return
    parts = dict(inner_parts(schema))
    for name in value:
        if name not in parts:
            known = ", ".join(sorted(parts)) or "(there are none)"
            expected = f"one of the {'fields' if is_map else 'sections'} {known}"
            yield Violation(joined(path, name), Rule.UNKNOWN_NAME, expected, quote(name))
    for name, one in parts.items():
        at = joined(path, name)
        if name in value:
            yield from violations(one, value[name], at, complete=complete)
        elif complete and isinstance(one, FieldSchema) and one.required:
            yield lacking(one, at)
        elif complete and isinstance(one, MapSchema | CompositeSchema):
            yield from violations(one, {}, at, complete=True)


def _json(value: Any, path: str | None, depth: int) -> Iterator[Violation]:
    if depth > MAX_DEPTH:
        yield from _of_type(False, f"JSON, nested at most {MAX_DEPTH} deep", value, path)
    elif isinstance(value, str):
        yield from _half_characters(value, path)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield from _of_type(is_exact(value), "JSON with integers below 2^53", value, path)
    elif isinstance(value, list):
        for one in value:
            yield from _json(one, path, depth + 1)
    elif isinstance(value, dict):
        for name, one in value.items():
            yield from _half_characters(name, path)
            yield from _json(one, path, depth + 1)
    elif value is not None and not isinstance(value, bool):
        yield from _of_type(False, "JSON", value, path)


def _half_characters(value: object, path: str | None) -> Iterator[Violation]:
    if isinstance(value, str) and not has_whole_characters(value):
        yield Violation(path, Rule.TYPE, "a text", "half a surrogate pair")


def _of_type(fits: bool, expected: str, value: object, path: str | None) -> Iterator[Violation]:
    if not fits:
        yield Violation(path, Rule.TYPE, expected, quote(value))


def joined(path: str | None, name: str) -> str:
    """The path of what is called `name` in the part at `path`."""
    return name if path is None else f"{path}/{name}"
