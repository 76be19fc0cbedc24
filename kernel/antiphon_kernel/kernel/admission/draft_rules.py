"""How a connected client creates a draft: a block of its own, with a header that can be read."""

from __future__ import annotations

import math

from antiphon_kernel.document.ancestry import chain_length
from antiphon_kernel.document.document import Document
from antiphon_kernel.document.header import CONTENT, FIELDS
from antiphon_kernel.kernel.admission.placement import Place
from antiphon_kernel.kernel.admission.refusals import denied, tools_only
from antiphon_kernel.kernel.limits import Limits
from antiphon_kernel.types.errors import AntiphonError
from antiphon_kernel.types.ids import DRAFT_SEQ_LIMIT, DRAFT_SEQ_MIN, BlockId
from antiphon_kernel.types.quoting import shown
from antiphon_kernel.types.records import Actor
from antiphon_kernel.wire.id_set import IdRange
from antiphon_kernel.wire.update import ContentKind, ItemId, SharedType, Struct


class DraftRules:
    """The drafts that one update creates."""

    def __init__(self, document: Document, actor: Actor, limits: Limits) -> None:
        self._document = document
        self._limits = limits
        self._actor = actor
        self._items: dict[str, ItemId] = {}
        self._contents: dict[str, ItemId] = {}
        self._parents: set[ItemId] = set()
        """The items that say, or have said, what a draft answers."""

    @property
    def created(self) -> tuple[str, ...]:
        """The new blocks."""
        return tuple(self._items)

    def create(self, item: Struct) -> None:
        """A new key in `blocks`; raises if it is no draft of the actor's."""
        key = str(item.key)
        self._check_id(key)
        if item.kind is not ContentKind.TYPE or item.content is not SharedType.MAP:
            raise denied(f"Block {key} is not a map: see the document layout.")
        self._items[key] = ItemId(item.client, item.clock)

    def _check_id(self, key: str) -> None:
        try:
            block = BlockId.parse(key)
        except ValueError as error:
            raise denied(
                f"A block is created under {shown(key)}, which is no block id: {error}."
            ) from error
        context, principal = self._document.context, self._actor.principal.id
        if block.context != context or block.principal != principal:
            raise denied(f"Block {key} would not be your own: use your principal and this context.")
        if not DRAFT_SEQ_MIN <= block.seq < DRAFT_SEQ_LIMIT:
            raise denied(
                f"The number {block.seq} of a draft is not drawn from 2^32 up to 2^53: draw it"
                " anew."
            )
        if key in self._items:
            raise _taken(key)
        self._check_free(key)

    def _check_free(self, key: str) -> None:
        if key in self._document:
            raise _taken(key)

    def confirm(self) -> None:
        """Raises if somebody else has made such a block meanwhile."""
        for key in self._items:
            self._check_free(key)

    def owns(self, place: Place) -> bool:
        """Whether a place is in the header of a new draft."""
        return place.container.block in self._items

    def is_field(self, item: Struct, place: Place) -> bool:
        """Whether an item is the content or a header field of a new draft.

        Raises:
            AntiphonError: permission_denied if nobody could read it as such.
        """
        block = place.container.block
        if block is None or block not in self._items:
            return False
        if item.key == CONTENT:
            if item.content is not SharedType.TEXT or block in self._contents:
                raise denied(f"The content of draft {block} is not one text: see the layout.")
            self._contents[block] = ItemId(item.client, item.clock)
            return True
        is_parent = item.key == "parent" or not self._parents.isdisjoint(_beside(item))
        if is_parent:
            clocks = range(item.clock, item.clock + item.length)
            self._parents.update(ItemId(item.client, clock) for clock in clocks)
        if item.kind is ContentKind.DELETED:
            return self._in_field(item)
        values = item.content
        if item.kind is not ContentKind.ANY or not isinstance(values, tuple):
            return False
        if item.key is not None and item.key not in FIELDS:
            raise denied(f"A block has no header field {shown(item.key)}: see the document layout.")
        if not all(map(_is_plain, values)):
            raise denied(f"A header field of draft {block} is no string, number or boolean.")
        if is_parent:
            for parent in dict.fromkeys(values):
                self._check_parent(block, parent)
        return self._in_field(item)

    def _check_parent(self, block: str, parent: object) -> None:
        if not isinstance(parent, str) or parent not in self._document:
            raise denied(f"The parent of draft {block} is no block of this context.")
        limit = self._limits.parent_depth
        if chain_length(self._document, parent, limit) >= limit:
            raise denied(
                f"The chain of parents above draft {block} would be longer than {limit}: answer"
                " a block nearer to the start."
            )

    def _in_field(self, item: Struct) -> bool:
        """A field that is written twice stands behind its first value, never behind a type."""
        return item.origin not in self._items.values() and (
            item.origin not in self._contents.values()
        )

    def refuse_deletion(self, ids: IdRange) -> None:
        """A new draft may overwrite its fields; raises if it loses its content or itself."""
        for item in (*self._items.values(), *self._contents.values()):
            if item.client == ids.client and ids.start <= item.clock < ids.end:
                raise tools_only()

    def check_complete(self) -> None:
        """Raises if a draft has no content."""
        for block in self._items:
            if block not in self._contents:
                raise denied(f"Draft {block} has no content: create it in the same transaction.")


def _taken(key: str) -> AntiphonError:
    return denied(f"There is already a block {key}: draw another number for a new draft.")


def _beside(item: Struct) -> list[ItemId]:
    """What an item stands beside, whose key it has without saying it."""
    return [one for one in (item.origin, item.right_origin) if one is not None]


def _is_plain(value: object) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, str | bool | int)
