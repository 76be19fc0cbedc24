"""Schema of a block's content: text, map, list, log, or a composite; values that fit one.

A schema is a value: it knows nothing of what a block holds. A path names a part of a content: the
names of sections, then perhaps of a field, joined by slashes; None is the content itself.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from itertools import pairwise
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    TypeAdapter,
    ValidationError,
    model_validator,
)

from antiphon_kernel.document.counters import MAX_DIGITS
from antiphon_kernel.types.json_validation import has_whole_characters
from antiphon_kernel.types.quoting import quote

EXACT_INTEGER: Final = 2**53 - 1
"""Numbers are stored as 64-bit floats, in which larger integers would change."""

_UNCOUNTABLE: Final[int] = 10**MAX_DIGITS

MAX_DEPTH: Final = 64
"""How deep lists and objects are nested in one item at most."""

SectionName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_-]*$", max_length=64)]
FieldName = Annotated[str, StringConstraints(pattern=r"^[^/\p{Cc}]+$", max_length=64)]


class FieldType(StrEnum):
    """Type of a field of a map."""

    TEXT = "text"
    """A text of its own, in which several can write at once."""
    NUMBER = "number"
    """A 64-bit float; whole numbers are exact below 2^53."""
    BOOLEAN = "boolean"
    LIST = "list"
    """JSON values in order."""
    TIMESTAMP = "timestamp"
    """A string: an ISO 8601 date and time with its offset from UTC."""
    COUNTER = "counter"
    """A sum: increments that happen at the same time all count."""


class _Model(BaseModel):
    # Most documents have no schemas: building the validators waits for the first one.
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True, defer_build=True)


class TextSchema(_Model):
    """A text: what a block has that was created without a schema."""

    type: Literal["text"] = "text"
    """The kind of content."""


class ValueSchema(_Model):
    """A single value; only as the item of a list."""

    type: Literal["number", "boolean", "timestamp"]
    """The kind of value."""


class FieldSchema(_Model):
    """One field of a map."""

    name: FieldName
    """Anything but slashes and control characters."""
    description: str = ""
    """For people, shown with it."""
    field_type: FieldType
    """The kind of value."""
    required: bool = False
    """Whether it must have a value: content that is set names it, and it is never removed."""
    default: Any = None
    """The value it has from the start."""
    read_only: bool = False
    """Whether only the system and sources write it."""
    max_items: int | None = Field(default=None, ge=1)
    """How many items a list has at most."""
    item_schema: ItemSchema | None = None
    """The schema of each item of a list; any JSON if absent."""

    @model_validator(mode="after")
    def _only_lists_have_items(self) -> FieldSchema:
        if self.field_type is not FieldType.LIST and (self.max_items or self.item_schema):
            raise ValueError(f"only a list has max_items and item_schema, not a {self.field_type}")
        return self


class MapSchema(_Model):
    """Named fields."""

    type: Literal["map"] = "map"
    """The kind of content."""
    fields: tuple[FieldSchema, ...]
    """In the order in which they are shown."""

    @model_validator(mode="after")
    def _names_are_unique(self) -> MapSchema:
        _reject_duplicates("field", (one.name for one in self.fields))
        return self


class ListSchema(_Model):
    """JSON values in order."""

    type: Literal["list"] = "list"
    """The kind of content."""
    item_schema: ItemSchema | None = None
    """The schema of each item; any JSON if absent."""
    max_items: int | None = Field(default=None, ge=1)
    """How many there are at most."""


class LogSchema(_Model):
    """Entries, JSON values, that are only added at the end."""

    type: Literal["log"] = "log"
    """The kind of content."""
    display_limit: int | None = Field(default=None, ge=1)
    """How many of the last entries rendering shows, all if absent; kept are all."""


class Section(_Model):
    """One part of a composite."""

    name: SectionName
    """Lower-case letters, digits, `-` and `_`."""
    content: Schema = Field(alias="schema")
    """The schema of the section."""
    description: str = ""
    """For people, shown with it."""
    read_only: bool = False
    """Whether only the system and sources write it, whatever is inside."""


class CompositeSchema(_Model):
    """Named sections, each with a schema of its own."""

    type: Literal["composite"] = "composite"
    """The kind of content."""
    sections: tuple[Section, ...]
    """In the order in which they are shown."""

    @model_validator(mode="after")
    def _names_are_unique(self) -> CompositeSchema:
        _reject_duplicates("section", (one.name for one in self.sections))
        return self


Schema: TypeAlias = Annotated[
    TextSchema | MapSchema | ListSchema | LogSchema | CompositeSchema, Field(discriminator="type")
]
ItemSchema: TypeAlias = Annotated[
    TextSchema | ValueSchema | MapSchema | ListSchema | LogSchema | CompositeSchema,
    Field(discriminator="type"),
]
Part: TypeAlias = TextSchema | MapSchema | ListSchema | LogSchema | CompositeSchema | FieldSchema
"""The things that a path leads to."""

TEXT: Final = TextSchema()
_SCHEMA: Final[TypeAdapter[Schema]] = TypeAdapter(Schema, config=ConfigDict(defer_build=True))


def _reject_duplicates(what: str, names: Iterable[str]) -> None:
    seen = set[str]()
    for name in names:
        if name in seen:
            raise ValueError(f"two {what}s are called {quote(name)}")
        seen.add(name)


# As bytes


def encode_schema(schema: Schema) -> str:
    """A JSON string, without what says nothing."""
    return schema.model_dump_json(by_alias=True, exclude_defaults=False, exclude_none=True)


def decode_schema(stored: object) -> Schema | None:
    """Decode what `encode_schema` wrote; None if it is something else."""
    try:
        return _SCHEMA.validate_json(stored) if isinstance(stored, str) else None
    except ValidationError:
        return None


# Paths


def names_of(path: str | None) -> tuple[str, ...]:
    """The names that a path consists of."""
    return tuple(path.split("/")) if path is not None else ()


def path_of(names: Sequence[str]) -> str | None:
    """The inverse of `names_of`."""
    return "/".join(names) if names else None


def inner_parts(part: Part) -> Iterator[tuple[str, Part]]:
    """Yield the sections of a composite, or the fields of a map, each with its name."""
    if isinstance(part, CompositeSchema):
        yield from ((one.name, one.content) for one in part.sections)
    elif isinstance(part, MapSchema):
        yield from ((one.name, one) for one in part.fields)


def _parts_to(schema: Schema, names: Sequence[str]) -> list[Part]:
    """The parts on the way to a place, as far as the schema knows its names."""
    parts: list[Part] = [schema]
    for name in names:
        inner = next((one for known, one in inner_parts(parts[-1]) if known == name), None)
        if inner is None:
            break
        parts.append(inner)
    return parts


def part_at(schema: Schema, path: str | None) -> Part | None:
    """Return the part at a path; None if it leads nowhere."""
    names = names_of(path)
    parts = _parts_to(schema, names)
    return parts[-1] if len(parts) > len(names) else None


def each_part(part: Part, names: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Part]]:
    """A content and every section and field in it, each with the names that lead to it."""
    yield names, part
    for name, one in inner_parts(part):
        yield from each_part(one, (*names, name))


def known_names(schema: Schema, names: Sequence[str]) -> tuple[str, ...]:
    """As many of the first names as the schema knows."""
    return tuple(names[: len(_parts_to(schema, names)) - 1])


def field_type_of(part: Part | None) -> FieldType | None:
    """The type of the fields that hold what a part holds; None of a map or composite."""
    match part:
        case FieldSchema():
            return part.field_type
        case TextSchema():
            return FieldType.TEXT
        case ListSchema() | LogSchema():
            return FieldType.LIST
    return None


def is_text(part: Part | None) -> bool:
    """Return whether a part is one text."""
    return field_type_of(part) is FieldType.TEXT


def is_counter(part: Part) -> bool:
    """Return whether a part is a counter."""
    return field_type_of(part) is FieldType.COUNTER


# Permissions


@dataclass(frozen=True, slots=True)
class ReadOnly:
    """The section or field that keeps a path from being written."""

    path: str
    is_field: bool


def read_only_part(schema: Schema, names: Sequence[str]) -> ReadOnly | None:
    """The outermost read-only section or field on the way to a place; None if there is none.

    Names that the schema does not know, like those inside a counter, count as what is around them.
    """
    for at, (part, inner) in enumerate(pairwise(_parts_to(schema, names))):
        is_field = isinstance(inner, FieldSchema)
        sections = part.sections if isinstance(part, CompositeSchema) else ()
        held = (inner,) if isinstance(inner, FieldSchema) else sections
        if any(one.read_only for one in held if one.name == names[at]):
            return ReadOnly("/".join(names[: at + 1]), is_field)
    return None


# Defaults of the items of lists: an item is one JSON value, complete when it is written


@dataclass(frozen=True, slots=True)
class Filled:
    """A value with the defaults of its items.

    How much these add is counted: a short list can make many long items of them.
    """

    value: Any
    added: int
    """Code points of JSON that the defaults are."""


def fill_items(part: Part | ItemSchema | None, value: Any, *, complete: bool = False) -> Filled:
    """Give the items in the content of a part their defaults; what does not fit stays as it is.

    Args:
        complete: whether the value is an item itself, of this schema.
    """
    filler = _Filler()
    return Filled(filler.fill(part, value, complete=complete), filler.added)


def added_by_defaults(schema: Schema) -> int:
    """Code points that defaults of items add to the defaults of the lists of a schema."""
    fields = (part for _, part in each_part(schema) if isinstance(part, FieldSchema))
    return sum(fill_items(field, field.default).added for field in fields)


class _Filler:
    def __init__(self) -> None:
        self.added = 0
        self._known: dict[int, Filled] = {}
        """Defaults that have been made, by the identity of their field or section."""

    def fill(self, part: Part | ItemSchema | None, value: Any, *, complete: bool) -> Any:
        if isinstance(part, ListSchema | FieldSchema):
            if part.item_schema is None or not isinstance(value, list):
                return value
            return [self.fill(part.item_schema, one, complete=True) for one in value]
        if not isinstance(part, MapSchema | CompositeSchema) or not isinstance(value, Mapping):
            return value
        filled = dict(value)
        for name, one in inner_parts(part):
            if name in value:
                filled[name] = self.fill(one, value[name], complete=complete)
            elif complete and (given := self._default(one)) not in (None, {}):
                filled[name] = given
        return filled

    def _default(self, part: Part) -> Any:
        """The value that a field has from the start, or the fields that a section then has."""
        known = self._known.get(id(part))
        if known is None:
            known = Filled(None, 0)
            if isinstance(part, FieldSchema) and part.default is not None:
                made = fill_items(part, part.default)
                size = len(json.dumps(part.default, ensure_ascii=False))
                known = Filled(made.value, made.added + size)
            elif isinstance(part, MapSchema | CompositeSchema):
                known = fill_items(part, {}, complete=True)
            self._known[id(part)] = known
        self.added += known.added
        return known.value


# Values against a schema


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
        case FieldSchema(field_type=FieldType.LIST) | ListSchema():
            yield from items_violations(part.item_schema, part.max_items, value, path)
        case FieldSchema():
            yield from _single(part.field_type, value, path)
        case MapSchema() | CompositeSchema():
            yield from _inner(part, value, path, complete)
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
