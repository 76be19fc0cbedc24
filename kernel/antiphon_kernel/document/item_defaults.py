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
    inner_parts,
)


@dataclass(frozen=True, slots=True)
class Filled:
    """A value with the defaults of its items."""

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
            known = self._known[id(part)] = self._new_default(part)
        self.added += known.added
        return known.value

    def _new_default(self, part: Part) -> Filled:
        if isinstance(part, FieldSchema) and part.default is not None:
            made = fill_items(part, part.default)
            size = len(json.dumps(part.default, ensure_ascii=False))
            return Filled(made.value, made.added + size)
        if isinstance(part, MapSchema | CompositeSchema):
            return fill_items(part, {}, complete=True)
        return Filled(None, 0)
