"""Rules for a connected client's drafts.

A draft is a block of its own, with a header as tools write it; it is submitted by `done` written
over its status.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Final

from antiphon_kernel.access import check_role
from antiphon_kernel.document.header import CONTENT, FIELDS, json_object
from antiphon_kernel.types.block_metadata import SUMMARY_TYPE
from antiphon_kernel.types.enums import BlockKind, PrincipalKind, Status
from antiphon_kernel.types.errors import AntiphonError
from antiphon_kernel.types.ids import DRAFT_SEQ_LIMIT, DRAFT_SEQ_MIN, BlockId
from antiphon_kernel.types.quoting import quote
from antiphon_kernel.validation.content_rules import UpdateScope
from antiphon_kernel.validation.errors import denied, tools_only
from antiphon_kernel.validation.header_values import check_field
from antiphon_kernel.validation.item_index import ItemLocation
from antiphon_kernel.yjs.id_set import IdRange
from antiphon_kernel.yjs.update import ContentKind, ItemId, SharedType, Struct

_TOOLS_ONLY: Final = frozenset(
    (
        *("stopped_by", "edited_after_done", "media_type", "blob", "blob_bytes"),
        *("permission", "runs_for", "decided_by"),
    )
)
"""Fields that no tool lets the author of a new block set."""

_DONE: Final = (Status.DONE.value,)


class DraftRules:
    """The drafts that one update creates, and those that it submits."""

    def __init__(self, scope: UpdateScope) -> None:
        self._document = scope.document
        self._item_index = scope.item_index
        self._limits = scope.limits
        self._principal = scope.actor.principal
        self._items: dict[str, ItemId] = {}
        self._contents: dict[str, ItemId] = {}
        self._names: dict[int, list[tuple[int, int, str]]] = {}
        """By client the items in headers, from a clock up to one, and which field they are of."""
        self._submitted: dict[str, ItemId | None] = {}
        """By submitted block the status that is replaced; None of a block that is new."""

    def create(self, item: Struct) -> None:
        """A new key in `blocks`; raises if it is no draft of the actor's."""
        key, principal = str(item.key), self._principal
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
        if name in _TOOLS_ONLY:
            raise tools_only()
        for value in values:
            check_field(name, value, self._limits)
            if name == "role":
                check_role(str(value), BlockKind.TEXT, self._principal)
            if name == "metadata" and json_object(str(value)).get("type") == SUMMARY_TYPE:
                raise denied(
                    f"Draft {block} would be of the type {SUMMARY_TYPE}, and only context.compact"
                    " writes such a block: use another type."
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
