"""Hearing of changes in the CRDT, without being told what is known already.

The library makes an object of each event, with its target, its path and its delta. For text that
the document itself has just written that takes longer than writing it did; and a delta takes the
longer, the more pieces the text around it was written in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from pycrdt import Map, Subscription, Text
from pycrdt._base import event_types
from pycrdt._pycrdt import MapEvent, TextEvent


class SharedTypeEvent:
    """A change of one shared type; what it says is computed when it is asked for."""

    __slots__ = ("_doc", "_event", "is_map", "is_text", "path")

    def __init__(self, event: Any, doc: Any) -> None:
        self._event = event
        self._doc = doc
        self.path: Sequence[int | str] = event.path
        self.is_map = isinstance(event, MapEvent)
        self.is_text = isinstance(event, TextEvent)

    @property
    def keys(self) -> Iterable[str]:
        """The keys of a map that have changed."""
        keys: Iterable[str] = self._event.keys
        return keys

    @property
    def delta(self) -> Iterable[Mapping[str, Any]]:
        """The change of a text, in bytes; its cost grows with the pieces of the text."""
        delta: Iterable[Mapping[str, Any]] = self._event.delta
        return delta

    @property
    def target(self) -> Text:
        """The text that has changed."""
        event: Any = event_types[TextEvent](self._event, self._doc)
        target: Text = event.target
        return target


def observe_deep(
    shared: Map[Any],
    is_known: Callable[[Sequence[object]], bool],
    listener: Callable[[list[SharedTypeEvent]], None],
) -> Subscription:
    """Call `listener` with the events of each transaction that changed something below `shared`.

    Args:
        is_known: asked first, with its path, where there is one event only; it must not fail.
    """
    doc = shared.doc

    def told(events: list[Any]) -> None:
        if len(events) == 1 and is_known(events[0].path):
            return
        with doc._read_transaction(events[0].transaction):  # noqa: SLF001  as the library does it
            try:
                listener([SharedTypeEvent(event, doc) for event in events])
            except Exception as error:  # noqa: BLE001  raised where the transaction ends
                doc._exceptions.append(error)  # noqa: SLF001

    subscription: Subscription = shared.integrated.observe_deep(told)
    return subscription
