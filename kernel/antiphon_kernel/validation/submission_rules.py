"""Rules for a connected client's submission of a draft: `done` written over the status."""

from __future__ import annotations

from typing import Final

from antiphon_kernel.document.document import Document
from antiphon_kernel.types.enums import Status
from antiphon_kernel.types.records import Actor
from antiphon_kernel.validation.errors import denied, tools_only
from antiphon_kernel.validation.item_index import ItemIndex, ItemLocation
from antiphon_kernel.yjs.id_set import IdRange
from antiphon_kernel.yjs.update import ContentKind, ItemId, Struct

_DONE: Final = (Status.DONE.value,)


class SubmissionRules:
    """The drafts that one update submits."""

    def __init__(self, document: Document, actor: Actor, item_index: ItemIndex) -> None:
        """`item_index`: where everything is that the document holds."""
        self._document = document
        self._actor = actor
        self._item_index = item_index
        self._blocks: dict[str, ItemId | None] = {}
        """By block the status that is replaced; None of a block that is new."""

    @property
    def blocks(self) -> tuple[str, ...]:
        """The submitted ones."""
        return tuple(self._blocks)

    def submits(
        self, item: Struct, place: ItemLocation, statuses: tuple[ItemId, ...], *, is_new: bool
    ) -> bool:
        """Return whether an item in a header submits the block.

        Args:
            statuses: the items that hold the block's status so far.
            is_new: whether the update creates the block; then anything else is a field of a draft.

        Raises:
            AntiphonError: permission_denied if it gives a block that was there before another
                status, or one that is no draft of the actor's.
        """
        block = place.container.block
        if block is None or item.origin not in statuses:
            return False
        is_done = item.kind is ContentKind.ANY and item.content == _DONE
        if is_new:
            if is_done:
                self._blocks[block] = None
            return is_done
        if not is_done or block in self._blocks:
            raise denied(
                f"An update gives block {block} a status: it may set done, once, on a draft of"
                " your own; everything else is for tools."
            )
        self._check_own_draft(block)
        self._blocks[block] = item.origin
        return True

    def confirm(self) -> None:
        """Raises if a draft that was there has got a status meanwhile that is not submitted."""
        for block, origin in self._blocks.items():
            if origin is not None:
                if origin not in self._item_index.statuses(block):
                    raise tools_only()
                self._check_own_draft(block)

    def _check_own_draft(self, block: str) -> None:
        header = self._document.header(block)
        if header.author != self._actor.principal.id or not header.is_draft:
            raise denied(
                f"An update submits block {block}, which is no draft of your own: tools set the"
                " status of others."
            )

    def replaces(self, ids: IdRange, place: ItemLocation) -> bool:
        """Return whether a deletion removes nothing but the status replaced by a submission."""
        block = place.container.block
        if block not in self._blocks:
            return False
        statuses = self._item_index.statuses(block)
        return all(ItemId(ids.client, clock) in statuses for clock in range(ids.start, ids.end))
