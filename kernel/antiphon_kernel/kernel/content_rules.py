"""What a connected client may write into the content of a block."""

from __future__ import annotations

from antiphon_kernel.document.document import Document
from antiphon_kernel.kernel.placement import Container, Place
from antiphon_kernel.kernel.refusals import denied
from antiphon_kernel.types.records import Actor
from antiphon_kernel.wire.update import ContentKind, SharedType, Struct

_ALLOWED = {
    SharedType.TEXT: (ContentKind.STRING, ContentKind.FORMAT, ContentKind.DELETED),
    SharedType.ARRAY: (ContentKind.ANY, ContentKind.JSON, ContentKind.DELETED),
    SharedType.MAP: (ContentKind.ANY, ContentKind.JSON, ContentKind.DELETED),
}


class ContentRules:
    """Characters into texts, JSON values into lists and fields, and nothing that is read-only."""

    def __init__(self, document: Document, actor: Actor) -> None:
        self._document = document
        self._actor = actor
        self._writable: set[Container] = set()

    def check_item(self, item: Struct, place: Place) -> None:
        """Raises if the item may not be written there."""
        shared = place.container.shared
        if shared is None or item.kind not in _ALLOWED.get(shared, ()):
            raise denied(
                f"An update puts {item.kind.name.lower()} into block {place.container.block},"
                " which takes characters in texts and JSON values elsewhere."
            )
        self._check(place)

    def check_deletion(self, place: Place) -> None:
        """Raises if what is there may not be deleted."""
        self._check(place)

    def _check(self, place: Place) -> None:
        container = place.container
        if container in self._writable:
            return
        self._writable.add(container)
