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

from antiphon_kernel.document.counters import as_decimal, written
from antiphon_kernel.document.header import CONTENT
from antiphon_kernel.document.schema import (
    FieldSchema,
    FieldType,
    Part,
    Schema,
    field_type_of,
    fill_items,
    inner_parts,
)

Container: TypeAlias = Text | Map[Any] | Array[Any]


def new_container(part: Part, client_id: int) -> Any:
    """The container of a new block, section or field, with the defaults in it but those of lists.

    A field that has no container is its default.

    Args:
        client_id: under which the counters that do not start at zero begin.
    """
    default = part.default if isinstance(part, FieldSchema) else None
    match field_type_of(part):
        case FieldType.TEXT:
            return Text(default)
        case FieldType.LIST:
            return Array()
        case FieldType.COUNTER:
            start = {str(client_id): written(as_decimal(default))} if default else {}
            return Map(start)
        case None:
            inner = ((name, new_container(one, client_id)) for name, one in inner_parts(part))
            return Map({name: held for name, held in inner if held is not None})
        case _:
            return default


def fill_lists(container: Container, schema: Schema) -> None:
    """Put the defaults of lists into a new container that is in its document."""
    if not isinstance(container, Map):
        return
    for name, one in inner_parts(schema):
        if not isinstance(one, FieldSchema):
            fill_lists(container[name], one)
        elif one.field_type is FieldType.LIST and one.default:
            insert_items(container[name], 0, fill_items(one, one.default).value)


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
