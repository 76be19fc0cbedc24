"""The structs of one update in an order in which each comes after what it builds on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from antiphon_kernel.wire.update import ItemId, Struct


def causal_order(structs: Sequence[Struct]) -> Iterator[Struct]:
    """An update lists its structs by client; one may build on those of a client that comes later.

    What an update does not hold itself is taken to be there already.
    """
    queues: dict[int, list[Struct]] = {}
    for one in structs:
        queues.setdefault(one.client, []).append(one)
    if len(queues) < 2:
        yield from structs
        return
    done = dict.fromkeys(queues, 0)
    for client in queues:
        waiting = [client]
        while waiting:
            at = waiting[-1]
            if done[at] == len(queues[at]):
                waiting.pop()
                continue
            item = queues[at][done[at]]
            needed = _missing(item, queues, done)
            if needed is not None and needed not in waiting:
                waiting.append(needed)
                continue
            done[at] += 1
            yield item


def _missing(item: Struct, queues: dict[int, list[Struct]], done: dict[int, int]) -> int | None:
    """The client of another queue that has to go on first."""
    for needed in (item.origin, item.right_origin, item.parent):
        if not isinstance(needed, ItemId) or needed.client == item.client:
            continue
        queue = queues.get(needed.client)
        if queue is None:
            continue
        at = done[needed.client]
        if at < len(queue) and queue[at].clock <= needed.clock < queue[-1].clock + queue[-1].length:
            return needed.client
    return None
