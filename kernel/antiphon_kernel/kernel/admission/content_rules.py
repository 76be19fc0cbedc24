"""What a connected client may write into the content of a block."""

from __future__ import annotations

from typing import Final

from antiphon_kernel.document.counters import partial_sum
from antiphon_kernel.document.document import Document
from antiphon_kernel.document.schema import (
    TEXT,
    FieldSchema,
    FieldType,
    LogSchema,
    Part,
    Schema,
    inner_part,
    is_counter,
    part_at,
    path_of,
)
from antiphon_kernel.kernel.admission.placement import Place
from antiphon_kernel.kernel.admission.refusals import denied
from antiphon_kernel.kernel.read_only import refuse_read_only
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.records import Actor
from antiphon_kernel.wire.update import ContentKind, SharedType, Struct

_VALUES: Final = (ContentKind.ANY, ContentKind.JSON, ContentKind.DELETED)
_ALLOWED: Final = {
    SharedType.TEXT: (ContentKind.STRING, ContentKind.FORMAT, ContentKind.DELETED),
    SharedType.ARRAY: _VALUES,
    SharedType.MAP: _VALUES,
}
_TYPES: Final[dict[FieldType, type | tuple[type, ...]]] = {
    FieldType.NUMBER: (int, float),
    FieldType.BOOLEAN: bool,
    FieldType.TIMESTAMP: str,
}


class ContentRules:
    """Characters into texts, JSON values into lists and fields, and nothing that is read-only."""

    def __init__(self, document: Document, actor: Actor) -> None:
        self._document = document
        self._actor = actor
        self._parts: dict[Place, Part | None] = {}
        self._written: set[Place] = set()
        self._clients: set[int] = set()

    def check_item(self, item: Struct, place: Place) -> None:
        """Raises if a new item may not be written there."""
        container = place.container
        shared = container.shared
        if shared is None or item.kind not in _ALLOWED.get(shared, ()):
            raise denied(
                f"An update puts {item.kind.name.lower()} into block {container.block},"
                " which takes characters in texts and JSON values elsewhere."
            )
        if shared is SharedType.TEXT and place in self._parts:
            return
        part = self._part(place)
        if isinstance(part, LogSchema) and item.right_origin is not None:
            raise _violation(place, "entries of a log are only added at the end")
        if shared is SharedType.MAP:
            self._check_field(item, place, part)

    def _check_field(self, item: Struct, place: Place, part: Part | None) -> None:
        self._written.add(place)
        self._clients.add(item.client)
        if part is not None and is_counter(part):
            values = item.content if isinstance(item.content, tuple) else ()
            unreadable = any(partial_sum(value) is None for value in values)
            if unreadable or place.key != str(item.client):
                raise _violation(place, "a counter takes each client's own sum under its own id")
            return
        types = _TYPES.get(part.field_type) if isinstance(part, FieldSchema) else None
        if types is None:
            raise _violation(place, "there is no field of one value there")
        if item.kind is ContentKind.ANY and isinstance(item.content, tuple):
            for value in item.content:
                if not isinstance(value, types) or isinstance(value, bool) != (types is bool):
                    raise _violation(place, f"{value!r} is no value of the field")

    def check_deletion(self, place: Place) -> None:
        """Raises if what is there may not be deleted; called after every `check_item`."""
        part = self._part(place)
        if isinstance(part, LogSchema):
            raise _violation(place, "entries of a log stay")
        if part is None or place.key is None:
            return
        if is_counter(part):
            if place.key not in map(str, self._clients):
                raise _violation(place, "a counter's sums are each client's own")
        elif isinstance(part, FieldSchema) and part.required and place not in self._written:
            raise _violation(place, "the field is required")

    def _part(self, place: Place) -> Part | None:
        """What the schema says of a place; raises if it is read-only."""
        if place in self._parts:
            return self._parts[place]
        container = place.container
        block, path = container.block, container.path or ()
        schema: Schema = TEXT
        if block is not None and block in self._document:
            schema = self._document.schema(block)
        names = path if place.key is None else (*path, place.key)
        if schema != TEXT:
            refuse_read_only(self._actor, str(block), schema, names)
        part = part_at(schema, path_of(path))
        if place.key is not None and part is not None and not is_counter(part):
            part = inner_part(part, place.key)
        self._parts[place] = part
        return part


def _violation(place: Place, reason: str) -> AntiphonError:
    container = place.container
    names = container.path or ()
    path = "/".join(names if place.key is None else (*names, place.key))
    return AntiphonError(
        ErrorCode.SCHEMA_VIOLATION,
        f"An update breaks the schema of block {container.block} at {path!r}: {reason}.",
        block_id=container.block,
        path=path,
    )
