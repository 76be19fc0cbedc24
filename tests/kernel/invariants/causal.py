"""Any order that is possible: what an update builds on comes before it.

The engine itself loses text when it is shown an update too early (the last test of
test_convergence.py proves it), so nobody may: the kernel refuses what comes too early, connections
keep the order, and a replica that has lost some of it asks for what it lacks.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from antiphon_kernel.yjs.state_vector import decode_state_vector
from antiphon_kernel.yjs.update import ContentKind, ItemId, decode_update


def builds_on_known(update: bytes, state_vector: bytes) -> bool:
    """Whether a replica in this state has everything that an update builds on."""
    reached = decode_state_vector(state_vector)
    decoded = decode_update(update)
    for one in sorted(decoded.structs, key=lambda one: one.clock):
        if one.kind is ContentKind.SKIP:
            continue
        if one.clock > reached.get(one.client, 0):
            return False
        reached[one.client] = max(reached.get(one.client, 0), one.clock + one.length)
    for one in decoded.structs:
        for origin in (one.origin, one.right_origin, one.parent):
            if isinstance(origin, ItemId) and origin.clock >= reached.get(origin.client, 0):
                return False
    return all(item.end <= reached.get(item.client, 0) for item in decoded.deletions)


def deliver(
    updates: Sequence[bytes],
    rng: random.Random,
    apply: Callable[[bytes], object],
    state_vector: Callable[[], bytes],
) -> list[bytes]:
    """Apply updates in a random order, some of them twice; returns those that are too early."""
    waiting = list(updates)
    waiting += [rng.choice(waiting) for _ in range(rng.randint(0, 3)) if waiting]
    rng.shuffle(waiting)
    while True:
        left = []
        for update in waiting:
            if builds_on_known(update, state_vector()):
                apply(update)
            else:
                left.append(update)
        if len(left) == len(waiting):
            return left
        waiting = left
