"""Schemas and contents that fit them, drawn at random; two documents that drift and meet."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from antiphon_kernel.document.content_writes import plan_set
from antiphon_kernel.document.document import Document
from antiphon_kernel.document.schema import (
    CompositeSchema,
    FieldSchema,
    FieldType,
    ListSchema,
    LogSchema,
    MapSchema,
    Schema,
    Section,
    TextSchema,
)
from antiphon_kernel.types.enums import BlockKind, Role, Status
from antiphon_kernel.types.ids import ContextId, IdSource
from antiphon_kernel.types.records import BlockHeader

IDS = IdSource()
CONTEXT = ContextId("0" * 31 + "1")
AMY = "0" * 31 + "a"
BLOCK = f"{CONTEXT}.{AMY}.1"
HEADER = BlockHeader(BLOCK, BlockKind.TEXT, Role.USER, Status.RUNNING, "a0", "t", AMY)

texts = st.text(st.sampled_from("ab \n漢😀e\u0301"), max_size=12)
numbers = st.integers(-(2**53) + 1, 2**53 - 1) | st.floats(allow_nan=False, allow_infinity=False)
items = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=5,
)
_times = st.datetimes().map(lambda time: f"{time.isoformat()}+02:00")
_values: dict[FieldType, st.SearchStrategy[Any]] = {
    FieldType.TEXT: texts,
    FieldType.NUMBER: numbers,
    FieldType.BOOLEAN: st.booleans(),
    FieldType.LIST: st.lists(items, max_size=4),
    FieldType.TIMESTAMP: _times,
    FieldType.COUNTER: st.integers(-(10**30), 10**30),
}
_names = st.text(st.sampled_from("abcxyz019-_"), min_size=1, max_size=6).filter(
    lambda name: name[0] not in "-_"
)


@st.composite
def _fields(draw: st.DrawFn) -> tuple[FieldSchema, ...]:
    fields = []
    for name in draw(st.lists(_names, max_size=5, unique=True)):
        kind = draw(st.sampled_from(list(FieldType)))
        fields.append(
            FieldSchema(
                name=name,
                field_type=kind,
                default=draw(st.none() | _values[kind]),
                read_only=draw(st.booleans()),
                max_items=draw(st.none() | st.just(9)) if kind is FieldType.LIST else None,
            )
        )
    return tuple(fields)


def _composite(inner: st.SearchStrategy[Schema]) -> st.SearchStrategy[Schema]:
    named = st.lists(
        st.tuples(_names, inner, st.booleans()), max_size=4, unique_by=lambda one: one[0]
    )
    return named.map(
        lambda parts: CompositeSchema(
            sections=tuple(
                Section(name=name, content=schema, read_only=read_only)
                for name, schema, read_only in parts
            )
        )
    )


schemas: st.SearchStrategy[Schema] = st.recursive(
    st.just(TextSchema())
    | st.builds(ListSchema, max_items=st.none() | st.just(9))
    | st.builds(LogSchema, display_limit=st.none() | st.integers(1, 3))
    | st.builds(MapSchema, fields=_fields()),
    _composite,
    max_leaves=6,
)


def contents(schema: Schema) -> st.SearchStrategy[Any]:
    """Return contents of a schema, with every field and section named."""
    match schema:
        case TextSchema():
            return texts
        case ListSchema() | LogSchema():
            return st.lists(items, max_size=5)
        case MapSchema():
            return st.fixed_dictionaries(
                {
                    field.name: _values[field.field_type]
                    if field.field_type in (FieldType.TEXT, FieldType.LIST, FieldType.COUNTER)
                    else st.none() | _values[field.field_type]
                    for field in schema.fields
                }
            )
        case CompositeSchema():
            return st.fixed_dictionaries(
                {section.name: contents(section.content) for section in schema.sections}
            )


def grown(schema: Schema, first: Any, second: Any) -> Any:
    """`second`, with the entries of `first` before those of its logs."""
    if isinstance(schema, LogSchema):
        return [*first, *second]
    if isinstance(schema, CompositeSchema):
        return {
            one.name: grown(one.content, first[one.name], second[one.name])
            for one in schema.sections
        }
    return second


def founded(schema: Schema | None = None) -> Document:
    """A document, with one block if a schema is given."""
    document = Document.create(IDS.client_id(), context=CONTEXT, epoch=IDS.uuid7(), label="default")
    if schema is not None:
        document.create_block(HEADER, schema=schema)
    return document


def replica_of(document: Document) -> Document:
    replica = Document(IDS.client_id())
    replica.apply_update(document.update_since())
    return replica


def merge(one: Document, other: Document) -> None:
    mine, theirs = one.update_since(), other.update_since()
    one.apply_update(theirs)
    other.apply_update(mine)


def set_content(document: Document, value: Any, path: str | None = None) -> None:
    writes = plan_set(document, BLOCK, path, value)
    with document.transaction("test"):
        for one in writes:
            one.apply()
