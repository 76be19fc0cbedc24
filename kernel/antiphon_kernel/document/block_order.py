"""The order of a document's blocks: by order key, then by id."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence
from sys import intern


class BlockOrder:
    """A sorted index of (order key, block id), kept up to date block by block."""

    def __init__(self) -> None:
        self._sorted: list[tuple[str, str]] = []
        self._keys: dict[str, str] = {}
        self._ids: list[str] | None = None

    def __contains__(self, block: object) -> bool:
        return block in self._keys

    def __len__(self) -> int:
        return len(self._sorted)

    def ids(self) -> Sequence[str]:
        """Every block in order; the same object until something changes."""
        if self._ids is None:
            self._ids = [block for _, block in self._sorted]
        return self._ids

    def index(self, block: str) -> int:
        """Return the index of a block, counting from 0; raises KeyError if it is not known."""
        return bisect_left(self._sorted, (self._keys[block], block))

    def at(self, index: int) -> str:
        """The block that stands there; raises IndexError."""
        return self._sorted[index][1]

    def key(self, block: str) -> tuple[str, str]:
        """Return the sort key of a block; raises KeyError if it is not known."""
        return self._keys[block], block

    def add(self, blocks: Iterable[tuple[str, str]]) -> None:
        """New blocks as (id, order key); those that are known already stay where they are."""
        # One string for all who keep the id of a block: each takes 120 bytes.
        new = [(order, intern(block)) for block, order in blocks if block not in self._keys]
        if not new:
            return
        self._ids = None
        self._keys.update((block, order) for order, block in new)
        if len(new) == 1:
            insort(self._sorted, new[0])
        else:
            self._sorted += new
            self._sorted.sort()

    def move(self, block: str, order: str) -> None:
        """Take over the key that a block has now; nothing if the block is not known."""
        old = self._keys.get(block)
        if old is None or old == order:
            return
        del self._sorted[bisect_left(self._sorted, (old, block))]
        insort(self._sorted, (order, block))
        self._keys[block] = order
        self._ids = None
