"""Defaults of the items of lists: what an item does not name, its schema may give it.

An item is one JSON value, so it is complete when it is written. How much the defaults add is
counted, because a short list can make many long items of them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from antiphon_kernel.document.schema import (
    CompositeSchema,
    FieldSchema,
    ItemSchema,
    ListSchema,
    MapSchema,
    Part,
    Schema,
    each_part,
)


@dataclass(frozen=True, slots=True)
class Filled:
    """A value with the defaults of its items."""

    value: Any
    added: int
    """Code points of JSON that the defaults are."""


def fill_items(part: Part, value: Any) -> Filled:
    """Give the items in the content of a part their defaults; what does not fit stays as it is."""
    filler = _Filler()
    return Filled(filler.content(part, value), filler.added)


def fill_item(schema: ItemSchema | None, value: Any) -> Filled:
    """Give one item its defaults."""
    filler = _Filler()
    return Filled(filler.item(schema, value), filler.added)


def added_by_defaults(schema: Schema) -> int:
    """Code points that defaults of items add to the defaults of the lists of a schema."""
    fields = (part for _, part in each_part(schema) if isinstance(part, FieldSchema))
    return sum(fill_items(field, field.default).added for field in fields)


class _Filler:
    def __init__(self) -> None:
        self.added = 0
        self._known: dict[int, Filled] = {}
        """Defaults that have been made, by the identity of their field or section."""

    def content(self, part: Part, value: Any) -> Any:
        match part:
            case ListSchema() | FieldSchema():
                return self._items(part.item_schema, value)
            case MapSchema() if isinstance(value, Mapping):
                parts: dict[str, Part] = {one.name: one for one in part.fields}
            case CompositeSchema() if isinstance(value, Mapping):
                parts = {one.name: one.content for one in part.sections}
            case _:
                return value
        return {
            name: self.content(parts[name], one) if name in parts else one
            for name, one in value.items()
        }

    def item(self, schema: ItemSchema | None, value: Any) -> Any:
        match schema:
            case ListSchema():
                return self._items(schema.item_schema, value)
            case MapSchema() if isinstance(value, Mapping):
                filled = dict(value)
                for field in schema.fields:
                    if field.name in value:
                        filled[field.name] = self._items(field.item_schema, value[field.name])
                    elif field.default is not None:
                        filled[field.name] = self._default(field)
                return filled
            case CompositeSchema() if isinstance(value, Mapping):
                filled = dict(value)
                for section in schema.sections:
                    if section.name in value:
                        filled[section.name] = self.item(section.content, value[section.name])
                    elif given := self._default(section.content):
                        filled[section.name] = given
                return filled
        return value

    def _items(self, schema: ItemSchema | None, value: Any) -> Any:
        if schema is None or not isinstance(value, list):
            return value
        return [self.item(schema, one) for one in value]

    def _default(self, part: FieldSchema | Schema) -> Any:
        """The value that a field has from the start, or the fields that a section then has."""
        known = self._known.get(id(part))
        if known is None:
            known = self._known[id(part)] = self._new_default(part)
        self.added += known.added
        return known.value

    def _new_default(self, part: FieldSchema | Schema) -> Filled:
        if isinstance(part, FieldSchema):
            made = fill_items(part, part.default)
            size = len(json.dumps(part.default, ensure_ascii=False))
            return Filled(made.value, made.added + size)
        if isinstance(part, MapSchema | CompositeSchema):
            return fill_item(part, {})
        return Filled(None, 0)
