"""Messages of Textual's nodes: whether one has any."""

from __future__ import annotations

from typing import Any

from textual.message_pump import MessagePump


def is_waiting(node: MessagePump) -> bool:
    """Return whether a node waits for a message: it handles none, and none is on its way.

    To find out by a message of one's own takes as long as all else that is done for a key.
    """
    ready: Any = node._message_queue.ready_event  # noqa: SLF001
    return not ready.is_set() and bool(ready._waiters)  # noqa: SLF001
