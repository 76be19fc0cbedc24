"""Drawing at the right time: at once for keys, a few times a second for streams."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic
from typing import Final

EARLY: Final = 0.002
"""A frame that is due within so many seconds is drawn now."""


@dataclass(eq=False)
class FrameScheduler:
    """Brings wishes to draw together into one frame. Times are in seconds."""

    _draw: Callable[[], None]
    _next_thing: Callable[[Callable[[], None]], object]
    """Calls back when what is being handled is done."""
    _later: Callable[[float, Callable[[], None]], object]
    """Calls back after a time."""
    _now: Callable[[], float] = monotonic
    _drawn_at: float = 0.0
    _due: float | None = None

    def request(self, delay: float = 0) -> None:
        """Draw within `delay`; 0 is as soon as what is being handled is done."""
        due = self._now() + delay
        if self._due is not None and self._due <= due:
            return
        self._due = due
        # A timer of Textual that is late when it begins never calls: a short one may be.
        if delay <= EARLY:
            self._next_thing(self._draw_if_due)
        else:
            self._later(delay, self._draw_if_due)

    def request_throttled(self, interval: float) -> None:
        """Draw as soon as `interval` has passed since the last frame."""
        self.request(max(0.0, self._drawn_at + interval - self._now()))

    def drawn(self) -> None:
        """A frame is being drawn now."""
        self._due = None
        self._drawn_at = self._now()

    def _draw_if_due(self) -> None:
        """Draw, unless the next frame is later: a timer of one that came sooner may still call."""
        if self._due is None:
            return
        early = self._due - self._now()
        if early <= EARLY:
            self._draw()
        else:
            self._later(early, self._draw_if_due)
