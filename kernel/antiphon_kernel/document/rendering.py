"""A block's content as people and models read it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from antiphon_kernel.document.content import part_of, read_value
from antiphon_kernel.document.document import Document
from antiphon_kernel.document.schema import (
    CompositeSchema,
    FieldSchema,
    LogSchema,
    MapSchema,
    Part,
    TextSchema,
    joined,
    names_of,
    read_only_part,
)

_READ_ONLY = " [read-only]"


def render(document: Document, block: str, path: str | None = None) -> str:
    """The content at a path as text; of a block that is one text, that text.

    A map is a line for each field, a list and a log one for each item, a composite a heading for
    each section. What only the system and sources write is marked ``[read-only]``; alone, a
    section of that kind has a heading too, which says so.

    Raises:
        KeyError: if there is no such block.
        AntiphonError: schema_violation if its schema has nothing at that path.
    """
    part = part_of(document, block, path)
    is_read_only = read_only_part(document.schema(block), names_of(path)) is not None
    if isinstance(part, FieldSchema):
        lines = _field(part, read_value(document, block, path), is_read_only)
        return "".join(f"{line}\n" for line in lines)
    heading = f"## {path}{_READ_ONLY}\n" if is_read_only else ""
    if isinstance(part, TextSchema):
        return heading + document.text(block, path)
    value = read_value(document, block, path)
    return heading + "".join(f"{line}\n" for line in _lines(part, value, path))


def _lines(part: Part, value: Any, path: str | None) -> Iterator[str]:
    match part:
        case TextSchema():
            if value:
                yield value.removesuffix("\n")
        case MapSchema():
            for field in part.fields:
                yield from _field(field, value[field.name], field.read_only)
        case CompositeSchema():
            for number, section in enumerate(part.sections):
                if number:
                    yield ""
                at = joined(path, section.name)
                yield f"## {at}{_READ_ONLY if section.read_only else ''}"
                yield from _lines(section.content, value[section.name], at)
        case LogSchema():
            shown = value[-part.display_limit :] if part.display_limit else value
            if len(shown) < len(value):
                yield f"({len(value) - len(shown)} earlier entries)"
            yield from _items(shown)
        case _:
            yield from _items(value)


def _field(field: FieldSchema, value: Any, is_read_only: bool) -> Iterator[str]:
    yield from _indented(f"{field.name}{_READ_ONLY if is_read_only else ''}:", value)


def _items(values: Sequence[Any]) -> Iterator[str]:
    for value in values:
        yield from _indented("-", value)


def _indented(head: str, value: Any) -> Iterator[str]:
    """A value behind its head; its further lines stand a little to the right."""
    said = "" if value is None else value
    text = said if isinstance(said, str) else json.dumps(said, ensure_ascii=False)
    first, *others = text.split("\n")
    yield f"{head} {first}" if first else head
    for line in others:
        yield f"  {line}" if line else ""
