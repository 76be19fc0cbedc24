"""Order keys of blocks among their neighbours.

Call these inside a transaction: neighbours that concurrency has given the same key, or whose keys
leave no room, are re-keyed. The cost does not depend on how many blocks there are.
"""

from __future__ import annotations

from antiphon_kernel.document.document import Document
from antiphon_kernel.text.fractional_index import NoKeyBetweenError, key_between


def order_at_end(document: Document, without: str | None = None) -> str:
    """The order key for a block that comes last, not counting the block `without`."""
    return orders_at(document, len(document), without=without)[0]


def order_after(document: Document, block: str, without: str | None = None) -> str:
    """The order key for a block that comes right after `block`, not counting `without`."""
    return orders_at(document, document.order.index(block) + 1, without=without)[0]


def order_before(document: Document, block: str, without: str | None = None) -> str:
    """The order key for a block that comes right before `block`, not counting `without`."""
    return orders_at(document, document.order.index(block), without=without)[0]


def orders_at(
    document: Document, place: int, count: int = 1, *, without: str | None = None
) -> list[str]:
    """The order keys for blocks that come before the one that stands at `place` now, not counting
    the block `without`.
    """
    left = _Side(document, range(place - 1, -1, -1), without)
    right = _Side(document, range(place, len(document)), without)
    while True:
        low, high = left.key, right.key
        last, keys = low, list[str]()
        try:
            for _ in range(len(left.passed) + count + len(right.passed)):
                last = key_between(last, high)
                keys.append(last)
        except NoKeyBetweenError:
            if high is None or (low is not None and not _can_follow(low)):
                left.advance()
            else:
                right.advance()
            continue
        begin = len(left.passed)
        own = keys[begin : begin + count]
        del keys[begin : begin + count]
        for neighbour, key in zip([*reversed(left.passed), *right.passed], keys, strict=True):
            document.set_fields(neighbour, order=key)
        return own


class _Side:
    """The blocks on one side of a place, nearest first."""

    def __init__(self, document: Document, places: range, without: str | None) -> None:
        self._document = document
        self._others = (one for one in map(document.order.at, places) if one != without)
        self._block = next(self._others, None)
        self.passed: list[str] = []
        """Blocks that have to be re-keyed."""

    @property
    def key(self) -> str | None:
        """Of the nearest block that keeps its key; None at the end."""
        block = self._block
        return self._document.order.key(block)[0] if block is not None else None

    def advance(self) -> None:
        """The nearest block has to be re-keyed too."""
        assert self._block is not None, "between two open ends there is always a key"
        self.passed.append(self._block)
        self._block = next(self._others, None)


def _can_follow(key: str) -> bool:
    """Whether a key can be followed by another at all: what is stored may be anything."""
    try:
        key_between(key, None)
    except NoKeyBetweenError:
        return False
    return True
