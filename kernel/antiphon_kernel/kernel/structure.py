"""Which CRDT items are the structure of a document and not characters of a text.

Block maps, header values and the texts themselves: a connected client may neither delete them nor
put anything in their place. Only the ids are kept, in order, per CRDT client.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable

from antiphon_kernel.wire.id_set import IdRange
from antiphon_kernel.wire.update import ContentKind, ItemId, Struct, decode_update

TEXT_KINDS = frozenset(
    (
        ContentKind.STRING,
        ContentKind.FORMAT,
        ContentKind.DELETED,
        ContentKind.GC,
        ContentKind.SKIP,
    )
)
"""What the items of a text can be."""


def is_structure(item: Struct) -> bool:
    """Whether an item that is in the document belongs to its structure."""
    return item.key is not None or isinstance(item.parent, str) or item.kind not in TEXT_KINDS


class Structure:
    """The structural items of one document, as of the updates it has been shown."""

    def __init__(self) -> None:
        self._all: dict[int, list[int]] = {}
        self._deleted: set[ItemId] = set()

    def follow(self, update: bytes) -> None:
        """Take in an update that has been applied."""
        decoded = decode_update(update)
        for item in decoded.structs:
            if is_structure(item):
                clocks = self._all.setdefault(item.client, [])
                for clock in range(item.clock, item.clock + item.length):
                    insort(clocks, clock)
        self._deleted.update(self._within(decoded.deletions))

    def __contains__(self, item: ItemId) -> bool:
        clocks = self._all.get(item.client, [])
        at = bisect_left(clocks, item.clock)
        return at < len(clocks) and clocks[at] == item.clock

    def hurt_by(self, deletions: Iterable[IdRange]) -> ItemId | None:
        """A structural item that is there and that these deletions would remove."""
        return next((item for item in self._within(deletions) if item not in self._deleted), None)

    def _within(self, ranges: Iterable[IdRange]) -> Iterable[ItemId]:
        for client, start, end in ranges:
            clocks = self._all.get(client, [])
            for at in range(bisect_left(clocks, start), bisect_left(clocks, end)):
                yield ItemId(client, clocks[at])
