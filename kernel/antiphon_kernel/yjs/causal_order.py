"""Putting the items of updates into an order in which each builds only on earlier ones."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from math import inf

from antiphon_kernel.yjs.update import ContentKind, ItemId, Struct


class CausalQueue:
    """Holds items back until all that they build on has been taken.

    Linear in the number of items, whatever order they come in.
    """

    __slots__ = ("_missing", "_queues", "_waiting")

    def __init__(self) -> None:
        self._queues: dict[int, deque[Struct]] = {}
        self._waiting: dict[int, list[tuple[int, int]]] = {}
        """CRDT client to those who wait for it: (the clock they wait for, their own client)."""
        self._missing: dict[int, ItemId] = {}

    @property
    def missing(self) -> ItemId | None:
        """An id that something still waits for; None if nothing waits."""
        return next(iter(self._missing.values()), None)

    def ready(self, items: Iterable[Struct], end: Callable[[int], float]) -> Iterator[Struct]:
        """Add items, each client's in the order of its clocks, and give what can be taken now.

        The caller takes each item, so that `end` knows it, before it asks for the next.

        Args:
            end: gives the clock after the last item taken of a client; 0 if there is none.
        """
        queues, taken = self._queues, dict[int, None]()
        for item in items:
            client = item.client
            if item.kind is ContentKind.SKIP:
                continue
            if client in queues:
                queues[client].append(item)
            elif (missing := _lacking(item, end)) is not None:
                queues[client] = deque((item,))
                self._wait(client, missing)
            elif item.clock + item.length > end(client):
                yield item
                taken[client] = None
        work: list[int] = []
        for client in taken if self._waiting else ():
            self._wake(client, work, end)
        while work:
            client = work.pop()
            del self._missing[client]
            queue = queues[client]
            while queue:
                if (missing := _lacking(queue[0], end)) is not None:
                    self._wait(client, missing)
                    break
                item = queue.popleft()
                if item.clock + item.length > end(client):
                    yield item
            else:
                del queues[client]
            self._wake(client, work, end)

    def _wait(self, client: int, missing: ItemId) -> None:
        self._missing[client] = missing
        heapq.heappush(self._waiting.setdefault(missing.client, []), (missing.clock, client))

    def _wake(self, client: int, work: list[int], end: Callable[[int], float]) -> None:
        waiting = self._waiting.get(client)
        if waiting is None:
            return
        upto = end(client)
        while waiting and waiting[0][0] < upto:
            work.append(heapq.heappop(waiting)[1])


def _lacking(item: Struct, end: Callable[[int], float]) -> ItemId | None:
    """Return an id that an item builds on and that has not been taken."""
    if item.clock > end(item.client):
        return ItemId(item.client, item.clock - 1)
    origin, right, parent = item.origin, item.right_origin, item.parent
    if origin is not None and origin.clock >= end(origin.client):
        return origin
    if right is not None and right.clock >= end(right.client):
        return right
    if isinstance(parent, ItemId) and parent.clock >= end(parent.client):
        return parent
    return None


def in_causal_order(structs: Sequence[Struct]) -> Iterator[Struct]:
    """The items of a whole update, which lists them by client.

    What the update does not hold itself is taken to be there already.

    Raises:
        ValueError: if items wait for each other in a circle, which no engine writes.
    """
    ahead: dict[int, deque[int]] = {}
    for one in structs:
        if one.kind is not ContentKind.SKIP:
            ahead.setdefault(one.client, deque()).append(one.clock)
    if len(ahead) < 2:
        yield from structs
        return

    def end(client: int) -> float:
        clocks = ahead.get(client)
        return clocks[0] if clocks else inf

    queue = CausalQueue()
    for item in queue.ready(structs, end):
        ahead[item.client].popleft()
        yield item
    if queue.missing is not None:
        raise ValueError(f"the items of an update wait for each other, one for {queue.missing}")
