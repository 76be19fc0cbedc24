"""Presence of others in the context, and this replica's own."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any, Final

from antiphon_kernel.types.enums import Activity
from antiphon_kernel.types.presence import PresenceState, TextPlace
from antiphon_kernel.yjs.frames import (
    AwarenessEntry,
    AwarenessUpdate,
    encode_awareness,
    encode_frame,
)

SEND_INTERVAL: Final = 0.05
"""Seconds between two messages about oneself while the cursor keeps moving."""

RENEWAL_INTERVAL: Final = 15.0
"""Seconds after which the same is said again: Yjs clients forget who has been silent for 30."""


class ClientAwareness:
    """The presence of everyone in one context, from one replica's point of view."""

    def __init__(self, client: int, wake: asyncio.Event) -> None:
        """`wake` is set when there is something to say."""
        self._client = client
        self._wake = wake
        self.others: dict[int, PresenceState] = {}
        """Everyone but this replica, by awareness client id."""
        self._clocks: dict[int, int] = {}
        self._own: dict[str, Any] = {"activity": Activity.IDLE.value}
        self._own_clock = 0
        self._changed = True
        self._sent_at = float("-inf")
        self.me: PresenceState | None = None
        """This replica as the kernel knows it; None until it has been connected."""

    def start_connection(self) -> bool:
        """A new connection: nobody is known on it yet. Whether that changed anything."""
        changed = bool(self.others)
        self.others.clear()
        self._clocks.clear()
        self._changed = True
        self._sent_at = float("-inf")
        return changed

    def receive(self, entries: Iterable[AwarenessEntry]) -> bool:
        """Take in what the kernel says; whether anything changed."""
        changed = False
        for client, clock, state in entries:
            parsed = PresenceState.parse(state) if state is not None else None
            if client == self._client:
                # The echo says as whom the kernel knows me; a clock ahead is not let stand.
                self._own_clock = max(self._own_clock, clock)
                if parsed is not None and parsed != self.me:
                    self.me, changed = parsed, True
                continue
            known = self._clocks.get(client, -1)
            if clock < known or (clock == known and state is not None):
                continue
            self._clocks[client] = clock
            if parsed is None:
                changed = self.others.pop(client, None) is not None or changed
            elif self.others.get(client) != parsed:
                self.others[client] = parsed
                changed = True
        return changed

    def publish(
        self,
        block: str | None,
        cursor: int | None,
        anchor: int | None,
        activity: Activity,
        *,
        view: TextPlace | None = None,
        pointer: TextPlace | None = None,
        gathers: bool = False,
    ) -> None:
        """Say what this replica is about; the last of several in quick succession is sent."""
        said = {
            "activity": activity.value,
            "view": view and asdict(view),
            "pointer": pointer and asdict(pointer),
            "gathers": gathers or None,
            "block": block,
            "cursor": cursor,
            "anchor": anchor,
        }
        state = {key: value for key, value in said.items() if value is not None}
        if state != self._own:
            self._own = state
            self.republish()

    def republish(self) -> None:
        """Say the same again."""
        self._changed = True
        self._wake.set()

    def delay(self) -> float:
        """Seconds until something is to be sent: news soon, the same again now and then."""
        interval = SEND_INTERVAL if self._changed else RENEWAL_INTERVAL
        return max(0.0, self._sent_at + interval - time.monotonic())

    def take(self) -> bytes:
        """The frame that says the last state."""
        self._changed = False
        self._sent_at = time.monotonic()
        self._own_clock += 1
        entry = AwarenessEntry(self._client, self._own_clock, self._own)
        return encode_frame(AwarenessUpdate(encode_awareness([entry])))
