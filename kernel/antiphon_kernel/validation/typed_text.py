"""The check of text that goes into texts that are there: what nearly every update brings.

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
    """Return the index of the items that an update brings, as `ValidatedUpdate.placed`.

    None if it brings anything else than the next text of one client of the actor's, at places that
    are known, or if it has to be refused for what it builds on.

    Raises:
        AntiphonError: as `validate`.
    """
    structs = decoded.structs
    if decoded.deletions or not structs or len(structs) > limits.update_structs:
        return None
    client, end = structs[0].client, structs[0].clock
    if owners.get(client) != actor.principal.id or item_index.end(client) != end:
        return None
    check_update(actor.principal, actor.role)
    content = ContentRules(document, actor, item_index, limits)
    placed = ItemIndex(item_index)
    for item in structs:
        if item.kind is not ContentKind.STRING or item.client != client or item.clock != end:
            return None
        if not placed.add_typed(item):
            return None
        end += item.length
    for container, added in placed.grown.items():
        content.check_growth(container, added)
    content.confirm()
    return placed if item_index.order.fit(placed.staged) else None
