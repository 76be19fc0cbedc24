"""Rules for block content: read-only parts, and what a connected client writes: texts only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from antiphon_kernel.access import check_draft
from antiphon_kernel.document.document import Document
from antiphon_kernel.document.schema import (
    TEXT,
    FieldSchema,
    FieldType,
    ListSchema,
    LogSchema,
    MapSchema,
    Part,
    Schema,
    TextSchema,
    is_counter,
    is_text,
    part_at,
    path_of,
    read_only_part,
)
from antiphon_kernel.limits import Limits
from antiphon_kernel.types.enums import PrincipalKind
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.quoting import quote, truncate
from antiphon_kernel.types.records import Actor
from antiphon_kernel.validation.errors import content_by_tools, denied, reject_long_text
from antiphon_kernel.validation.item_index import Container, ItemIndex, ItemLocation, ItemRole
from antiphon_kernel.yjs.id_set import IdRange
from antiphon_kernel.yjs.update import ContentKind, Struct

_IN_TEXTS: Final = (ContentKind.STRING, ContentKind.FORMAT, ContentKind.DELETED)


def reject_read_only(actor: Actor, block: str, schema: Schema, names: Sequence[str]) -> None:
    """Refuse to write a place in a block's content, unless the actor is the system or a source.

    Raises:
        AntiphonError: read_only_field, read_only_section.
    """
    if actor.principal.kind in (PrincipalKind.SYSTEM, PrincipalKind.SOURCE):
        return
    found = read_only_part(schema, names)
    if found is None:
        return
    what = "field" if found.is_field else "section"
    raise AntiphonError(
        ErrorCode.READ_ONLY_FIELD if found.is_field else ErrorCode.READ_ONLY_SECTION,
        f"The {what} {quote(found.path)} of block {block} is read-only: only its source writes it.",
        block_id=block,
        path=truncate(found.path),
    )


class UpdateScope(NamedTuple):
    """The document that updates of one writer are for, and what limits them."""

    document: Document
    actor: Actor
    owners: Mapping[int, str]
    """CRDT client id to the principal that writes with it."""
    item_index: ItemIndex
    """Where everything is that the document holds."""
    limits: Limits


class ContentRules:
    """Characters and format marks in texts that are not read-only, as long as texts may be."""

    def __init__(self, scope: UpdateScope) -> None:
        self._scope = scope
        self._texts: dict[Container, _Growth] = {}

    def check_item(self, item: Struct, place: ItemLocation, begin: int) -> None:
        """Raise if a new item may not be written there; new of it is what is from `begin` on."""
        container = place.container
        if place.nature is ItemRole.ITEM:
            raise self._for_tools(container, deletes=False)
        if item.kind not in _IN_TEXTS:
            raise denied(
                f"An update puts {item.kind.name.lower()} into a text of block {container.block}:"
                " a text takes characters and format marks."
            )
        is_mark = item.kind is ContentKind.FORMAT
        self.check_growth(container, 0 if is_mark else item.clock + item.length - begin)

    def check_growth(self, container: Container, added: int) -> None:
        """Raise if a text may not be written; so many UTF-16 units come to it."""
        self._text(container).added += added

    def check_deletion(self, ids: IdRange, place: ItemLocation) -> None:
        """Raise if what is there may not be deleted; called after every `check_item`."""
        if place.nature is ItemRole.ITEM:
            raise self._for_tools(place.container, deletes=True)
        text = self._text(place.container)
        if ids.start >= self._scope.item_index.end(ids.client):
            text.added -= ids.end - ids.start
        else:
            text.removed.append(ids)

    def confirm(self) -> None:
        """Raise if a text would become too long, with what is there now."""
        document, limits = self._scope.document, self._scope.limits
        for container, text in self._texts.items():
            if text.added <= 0 or container.written + text.added <= limits.block_code_points:
                continue
            block, path = str(container.block), path_of(container.path or ())
            there = len(document.text(block, path)) if block in document else 0
            # Others may have deleted the same meanwhile.
            lacks = self._scope.item_index.deleted.lacks
            gone = sum(fresh.end - fresh.start for ids in text.removed for fresh in lacks(ids))
            reject_long_text(limits, there + text.added - gone)

    def _text(self, container: Container) -> _Growth:
        """Return what an update does to the length of a text; raise if it may not be written."""
        text = self._texts.get(container)
        if text is not None:
            return text
        block, document, actor = container.block, self._scope.document, self._scope.actor
        if block is not None and block in document:
            check_draft(document, block, actor.principal)
        schema, names = self._schema(container), container.path or ()
        if names or not isinstance(schema, TextSchema):
            reject_read_only(actor, str(block), schema, names)
            if not is_text(part_at(schema, path_of(names))):
                raise self._for_tools(container, deletes=False)
        text = self._texts[container] = _Growth()
        return text

    def _schema(self, container: Container) -> Schema:
        block, document = container.block, self._scope.document
        return document.schema(block) if block is not None and block in document else TEXT

    def _for_tools(self, container: Container, *, deletes: bool) -> AntiphonError:
        path = path_of(container.path or ())
        tools = _tools(part_at(self._schema(container), path), deletes=deletes)
        return content_by_tools(str(container.block), path, tools)


class _Growth:
    """How much longer one text becomes, in UTF-16 units."""

    __slots__ = ("added", "removed")

    def __init__(self) -> None:
        self.added = 0
        """Units that come and stay."""
        self.removed: list[IdRange] = []
        """The ids of units that were there and go."""


def _tools(part: Part | None, *, deletes: bool) -> str:
    """Return the tools that write into a part of a content."""
    match part:
        case ListSchema() | FieldSchema(field_type=FieldType.LIST):
            return "block.delete_item" if deletes else "block.push_item or block.insert_item"
        case LogSchema():
            return "block.append_log"
        case MapSchema():
            return "block.set_field"
        case FieldSchema() if is_counter(part):
            return "block.increment"
        case _ if is_text(part):
            return "block.edit"
        case _:
            return "block.import"
