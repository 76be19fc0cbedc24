"""Hearing of changes in the CRDT, without being told what is known already.

The library makes an object of each event, with its target, its path and its delta. For text that
the document itself has just written that takes longer than writing it did.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pycrdt import Map, Subscription
from pycrdt._base import observe_deep_callback


def observe_deep(
    shared: Map[Any],
    is_known: Callable[[Sequence[object]], bool],
    listener: Callable[[list[Any]], None],
) -> Subscription:
    """Call `listener` with the events of each transaction that changed something below `shared`.

    Args:
        is_known: asked first, with its path, where there is one event only; it must not fail.
    """
    doc = shared.doc

    def told(events: list[Any]) -> None:
        if len(events) > 1 or not is_known(events[0].path):
            observe_deep_callback(listener, doc, 1, events)

    subscription: Subscription = shared.integrated.observe_deep(told)
    return subscription
