"""The check of one piece of text in a text that is there: what nearly every update brings.

All that `UpdateValidator` checks of such an update, without what it needs for any other.
"""

from __future__ import annotations

from collections.abc import Mapping

from antiphon_kernel.access import check_update
from antiphon_kernel.document.document import Document
from antiphon_kernel.limits import Limits
from antiphon_kernel.types.records import Actor
from antiphon_kernel.validation.content_rules import ContentRules
from antiphon_kernel.validation.item_index import ItemIndex
from antiphon_kernel.yjs.update import ContentKind, DecodedUpdate


def place_typed_text(
    document: Document,
    actor: Actor,
    decoded: DecodedUpdate,
    owners: Mapping[int, str],
    item_index: ItemIndex,
    limits: Limits,
) -> ItemIndex | None:
    """Return the index of the item that an update brings, as `ValidatedUpdate.placed`.

    None if it brings anything else than the next text of a client of the actor's, at a place that
    is known, or if it may have to be refused for what it builds on.

    Raises:
        AntiphonError: as `validate`.
    """
    if decoded.deletions or len(decoded.structs) != 1:
        return None
    [item] = decoded.structs
    client, clock, after = item.client, item.clock, item.right_origin
    beside = item.origin or after
    if item.kind is not ContentKind.STRING or beside is None:
        return None
    if owners.get(client) != actor.principal.id or item_index.end(client) != clock:
        return None
    place = item_index.place(beside)
    container = place.container
    if not container.is_text or place is container.frame:
        return None
    splits = item_index.splits_surrogates
    if item.origin is not None and splits(beside.client, beside.clock + 1):
        return None
    if after is not None:
        if item_index.place(after).container is not container or splits(after.client, after.clock):
            return None
    check_update(actor.principal, actor.role)
    content = ContentRules(document, actor, item_index, limits)
    content.check_item(item, container.value, clock)
    if not item_index.order.fits(item):
        return None
    content.confirm()
    placed = ItemIndex(item_index)
    placed.add(item, container.value)
    return placed
