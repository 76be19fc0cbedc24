"""Rules for what a connected client writes: texts that are not read-only, and drafts of its own.

A draft is a block of its own, with a header as tools write it; it is submitted by `done` written
over its status.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from antiphon_kernel.access import check_draft, check_role
from antiphon_kernel.document.document import Document
from antiphon_kernel.document.header import CONTENT, FIELDS, json_object
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
from antiphon_kernel.types.block_metadata import DRIFT, SUMMARY_TYPE
from antiphon_kernel.types.enums import BlockKind, PrincipalKind, Status
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.ids import DRAFT_SEQ_LIMIT, DRAFT_SEQ_MIN, BlockId
from antiphon_kernel.types.quoting import quote, truncate
from antiphon_kernel.types.records import Actor
from antiphon_kernel.validation.errors import denied, reject_long_text, tools_only
from antiphon_kernel.validation.header_values import TOOLS_ONLY, check_field
from antiphon_kernel.validation.item_index import Container, ItemIndex, ItemLocation, ItemRole
from antiphon_kernel.yjs.id_set import IdRange
from antiphon_kernel.yjs.update import ContentKind, ItemId, SharedType, Struct

_IN_TEXTS: Final = (ContentKind.STRING, ContentKind.FORMAT, ContentKind.DELETED)

_DONE: Final = (Status.DONE.value,)


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
    """The places of everything that the document holds."""
    limits: Limits
    has_drafts: bool = True
    """Whether clients may make drafts; a file of the project has one block."""


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
        part = "the content" if path is None else quote(path)
        tools = _tools(part_at(self._schema(container), path), deletes=deletes)
        return denied(
            f"A connected client edits texts and creates its own drafts; {part} of block"
            f" {container.block} is written by tools: call {tools}."
        )


@dataclass(slots=True)
class _Growth:
    """How much longer one text becomes, in UTF-16 units."""

    added: int = 0
    """Units that come and stay."""
    removed: list[IdRange] = field(default_factory=list)
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


class DraftRules:
    """The drafts that one update creates, and those that it submits."""

    def __init__(self, scope: UpdateScope) -> None:
        self._document = scope.document
        self._item_index = scope.item_index
        self._limits = scope.limits
        self._principal = scope.actor.principal
        self._has_drafts = scope.has_drafts
        self._items: dict[str, ItemId] = {}
        self._contents: dict[str, ItemId] = {}
        self._names: dict[int, list[tuple[int, int, str]]] = {}
        """By client the items in headers, from a clock up to one, and which field they are of."""
        self._submitted: dict[str, ItemId | None] = {}
        """By submitted block the status that is replaced; None of a block that is new."""

    def create(self, item: Struct) -> None:
        """A new key in `blocks`; raises if it is no draft of the actor's."""
        key, principal = str(item.key), self._principal
        if not self._has_drafts:
            raise denied("A file of the project has one block: no draft is made beside it.")
        try:
            block = BlockId.parse(key)
        except ValueError as error:
            raise denied(
                f"A block is created under {quote(key)}, which is no block id: {error}."
            ) from error
        if block.context != self._document.context or block.principal != principal.id:
            raise denied(f"Block {key} would not be your own: use your principal and this context.")
        if not DRAFT_SEQ_MIN <= block.seq < DRAFT_SEQ_LIMIT:
            raise denied(
                f"The number {block.seq} of a draft is not drawn from 2^32 up to 2^53: draw it"
                " anew."
            )
        if key in self._items or key in self._document:
            raise _taken(key)
        if principal.kind is not PrincipalKind.HUMAN:
            raise denied(
                f"Only people have drafts, and {principal.username} is a {principal.kind}: call"
                " block.create."
            )
        if item.kind is not ContentKind.TYPE or item.content is not SharedType.MAP:
            raise denied(f"Block {key} is not a map: see the document layout.")
        self._items[key] = ItemId(item.client, item.clock)

    def confirm(self) -> None:
        """Raises if others have made such a block meanwhile, or given a draft another status."""
        for key in self._items:
            if key in self._document:
                raise _taken(key)
        for block, origin in self._submitted.items():
            if origin is not None:
                if origin not in self._item_index.statuses(block):
                    raise tools_only()
                self._check_own_draft(block)

    def note(self, item: Struct) -> None:
        """Remember which field of a new draft an item is a value of."""
        name = item.key
        for beside in (item.origin, item.right_origin):
            name = name if name is not None or beside is None else self._name(beside)
        run = item.clock, item.clock + item.length, name or ""
        self._names.setdefault(item.client, []).append(run)

    def _name(self, item: ItemId) -> str | None:
        runs = self._names.get(item.client, [])
        at = bisect_right(runs, item.clock, key=lambda run: run[0]) - 1
        return runs[at][2] if at >= 0 and item.clock < runs[at][1] else None

    def is_field(self, item: Struct, place: ItemLocation) -> bool:
        """Return whether an item is the content or a header field of a new draft.

        Raises:
            AntiphonError: permission_denied if no client may write it; invalid_params or too_large
                if no tool would have written its value.
        """
        block = place.container.block
        if block is None or block not in self._items:
            return False
        if item.key == CONTENT:
            if item.content is not SharedType.TEXT or block in self._contents:
                raise denied(f"The content of draft {block} is not one text: see the layout.")
            self._contents[block] = ItemId(item.client, item.clock)
            return True
        if item.kind is ContentKind.DELETED:
            return self._in_field(item)
        values = item.content
        if item.kind is not ContentKind.ANY or not isinstance(values, tuple):
            return False
        name = self._name(ItemId(item.client, item.clock)) or ""
        if name not in FIELDS:
            raise denied(f"A block has no header field {quote(name)}: see the document layout.")
        if name in TOOLS_ONLY:
            raise tools_only()
        for value in values:
            check_field(name, value, self._limits)
            if name == "role":
                check_role(str(value), BlockKind.TEXT, self._principal)
            said = json_object(str(value)) if name == "metadata" else {}
            if said.get("type") == SUMMARY_TYPE:
                raise denied(
                    f"Draft {block} would be of the type {SUMMARY_TYPE}, and only context.compact"
                    " writes such a block: use another type."
                )
            if DRIFT in said:
                raise denied(
                    f"Draft {block} would say in metadata.{DRIFT} where it came from, and only the"
                    " tools of drift do: leave it out."
                )
        if name == "parent":
            for parent in dict.fromkeys(values):
                self._check_parent(block, parent)
        return self._in_field(item)

    def _check_parent(self, block: str, parent: object) -> None:
        if not isinstance(parent, str) or parent not in self._document:
            raise denied(f"The parent of draft {block} is no block of this context.")
        limit = self._limits.parent_depth
        if self._document.reply_depth(parent, limit) >= limit:
            raise denied(
                f"The chain of parents above draft {block} would be longer than {limit}: answer"
                " a block nearer to the start."
            )

    def _in_field(self, item: Struct) -> bool:
        """A field that is written twice stands behind its first value, never behind a type."""
        return item.origin not in self._items.values() and (
            item.origin not in self._contents.values()
        )

    def reject_deletion(self, ids: IdRange) -> None:
        """A new draft may overwrite its fields; raises if it loses its content or itself."""
        for item in (*self._items.values(), *self._contents.values()):
            if item.client == ids.client and ids.start <= item.clock < ids.end:
                raise tools_only()

    def check_complete(self) -> None:
        """Raises if a draft has no content."""
        for block in self._items:
            if block not in self._contents:
                raise denied(f"Draft {block} has no content: create it in the same transaction.")

    def submits(self, item: Struct, place: ItemLocation, statuses: tuple[ItemId, ...]) -> bool:
        """Return whether an item in a header submits the block.

        Of a block that the update creates, anything else is a field of a draft.

        Args:
            statuses: the items that hold the block's status so far.

        Raises:
            AntiphonError: permission_denied if it gives a block that was there before another
                status, or one that is no draft of the actor's.
        """
        block = place.container.block
        if block is None or item.origin not in statuses:
            return False
        is_done = item.kind is ContentKind.ANY and item.content == _DONE
        if block in self._items:
            if is_done:
                self._submitted[block] = None
            return is_done
        if not is_done or block in self._submitted:
            raise denied(
                f"An update gives block {block} a status: it may set done, once, on a draft of"
                " your own; everything else is for tools."
            )
        self._check_own_draft(block)
        self._submitted[block] = item.origin
        return True

    def _check_own_draft(self, block: str) -> None:
        header = self._document.header(block)
        if header.author != self._principal.id or not header.is_draft:
            raise denied(
                f"An update submits block {block}, which is no draft of your own: tools set the"
                " status of others."
            )

    def replaces(self, ids: IdRange, place: ItemLocation) -> bool:
        """Return whether a deletion removes nothing but the status replaced by a submission."""
        block = place.container.block
        if block not in self._submitted:
            return False
        statuses = self._item_index.statuses(block)
        return all(ItemId(ids.client, clock) in statuses for clock in range(ids.start, ids.end))


def _taken(key: str) -> AntiphonError:
    return denied(f"There is already a block {key}: draw another number for a new draft.")
