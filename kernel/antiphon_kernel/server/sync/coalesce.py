"""Coalescing of a client's messages sent at once into as few pieces as possible."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from antiphon_kernel.yjs.merge import MergedUpdate, merge_insertions
from antiphon_kernel.yjs.primitives import Reader

_RUN: Final = 100
"""Updates that become one."""

_LARGE: Final = 1_000
"""Bytes of a message that is taken in for itself."""

_UPDATE: Final = b"\x00\x02"
"""How the frame of an update begins."""


@dataclass(frozen=True, slots=True)
class UpdateBatch:
    """Messages that belong together."""

    messages: Sequence[bytes]
    merged: MergedUpdate | None = None
    """All of them as one update; None if it is one message that is large or no update."""


def coalesce(messages: Sequence[bytes]) -> Iterator[UpdateBatch]:
    """All of `messages`, in order; a run of typing is one bundle, anything else one each."""
    if len(messages) == 1:
        update = _update(messages[0])
        yield UpdateBatch(messages, MergedUpdate(update) if update is not None else None)
        return
    updates = [_update(message) for message in messages]
    at = 0
    while at < len(messages):
        run: list[bytes] = []
        for update in updates[at : at + _RUN]:
            if update is None:
                break
            run.append(update)
        merged = merge_insertions(run) if run else None
        count = merged.updates if merged is not None else 1
        yield UpdateBatch(messages[at : at + count], merged)
        at += count


def _update(message: bytes) -> bytes | None:
    """The update in a message; None if it has none or is large."""
    if not message.startswith(_UPDATE) or len(message) > _LARGE:
        return None
    reader = Reader(message)
    reader.at = len(_UPDATE)
    try:
        update = reader.block()
    except ValueError:
        return None
    return None if reader.remaining else update
