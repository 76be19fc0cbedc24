"""Layout of a block's content in the CRDT: the only module that knows which container is whose.

A text is a Y.Text; a map is a Y.Map, in which text fields are Y.Texts, list fields Y.Arrays,
counters Y.Maps and other fields JSON values; a list and a log are Y.Arrays of JSON values; a
composite is a Y.Map from its sections to their containers. They are made with the block, never
later and never anew: two people who made one at the same time would lose what one of them wrote.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, TypeAlias

from pycrdt import Array, Map, Text

from antiphon_kernel.document.counters import new_counter
from antiphon_kernel.document.header import CONTENT
from antiphon_kernel.document.item_defaults import fill_items
from antiphon_kernel.document.schema import (
    CompositeSchema,
    FieldSchema,
    FieldType,
    MapSchema,
    Schema,
    TextSchema,
)

Container: TypeAlias = Text | Map[Any] | Array[Any]


def new_container(schema: Schema, client_id: int) -> Container:
    """The container of a new block or section, with the defaults in it but those of lists.

    Args:
        client_id: under which the counters that do not start at zero begin.
    """
    match schema:
        case TextSchema():
            return Text()
        case MapSchema():
            fields = ((one.name, _new_field(one, client_id)) for one in schema.fields)
            return Map({name: value for name, value in fields if value is not None})
        case CompositeSchema():
            return Map({one.name: new_container(one.content, client_id) for one in schema.sections})
        case _:
            return Array()


def _new_field(field: FieldSchema, client_id: int) -> Any:
    match field.field_type:
        case FieldType.TEXT:
            return Text(field.default)
        case FieldType.LIST:
            return Array()
        case FieldType.COUNTER:
            return new_counter(client_id, field.default or 0)
        case _:
            return field.default


def fill_lists(container: Container, schema: Schema) -> None:
    """Put the defaults of lists into a new container that is in its document."""
    if isinstance(schema, MapSchema) and isinstance(container, Map):
        for field in schema.fields:
            if field.field_type is FieldType.LIST and field.default:
                items = fill_items(field, field.default).value
                insert_items(container[field.name], 0, items)
    elif isinstance(schema, CompositeSchema) and isinstance(container, Map):
        for section in schema.sections:
            fill_lists(container[section.name], section.content)


def insert_items(array: Array[Any], index: int, items: Sequence[Any]) -> None:
    """Insert many items.

    From the last to the first: the engine joins items that were appended one after the other in
    one transaction, which takes the square of their number, in memory too.
    """
    for item in reversed(items):
        array.insert(index, item)


def items_of(array: Array[Any]) -> list[Any]:
    """The items as JSON.

    All at once: the engine looks for each single one from the start.
    """
    items: list[Any] = json.loads(str(array))
    return items


def find_container(block: Map[Any], names: Sequence[str]) -> Container | None:
    """The container of a path in a block's content; None if there is none."""
    found: Any = block.get(CONTENT)
    for name in names:
        found = found.get(name) if isinstance(found, Map) else None
    return found if isinstance(found, Text | Map | Array) else None
