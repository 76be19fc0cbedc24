"""Schema of a block's content: text, map, list, log, or a composite of named sections.

A schema is a value: it knows nothing of what a block holds. A path names a part of a content: the
names of sections, then perhaps of a field, joined by slashes; None is the content itself.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
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

from antiphon_kernel.types.quoting import quote

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


def inner_part(part: Part, name: str) -> Part | None:
    """The section or field of that name; None if there is none."""
    return next((one for known, one in inner_parts(part) if known == name), None)


def part_at(schema: Schema, path: str | None) -> Part | None:
    """Return the part at a path; None if it leads nowhere."""
    part: Part | None = schema
    for name in names_of(path):
        part = inner_part(part, name) if part is not None else None
    return part


def each_part(part: Part, names: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Part]]:
    """A content and every section and field in it, each with the names that lead to it."""
    yield names, part
    for name, one in inner_parts(part):
        yield from each_part(one, (*names, name))


def known_names(schema: Schema, names: Sequence[str]) -> tuple[str, ...]:
    """As many of the first names as the schema knows."""
    part: Part | None = schema
    for at, name in enumerate(names):
        part = inner_part(part, name) if part is not None else None
        if part is None:
            return tuple(names[:at])
    return tuple(names)


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
    part: Part = schema
    for at, name in enumerate(names):
        read_only, inner = False, inner_part(part, name)
        if isinstance(part, CompositeSchema):
            read_only = any(one.read_only for one in part.sections if one.name == name)
        elif isinstance(inner, FieldSchema):
            read_only = inner.read_only
        if read_only:
            return ReadOnly("/".join(names[: at + 1]), isinstance(inner, FieldSchema))
        if inner is None:
            break
        part = inner
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
