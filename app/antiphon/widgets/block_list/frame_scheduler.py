"""Drawing at the right time: at once for keys, a few times a second for streams and timers."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import Final

from textual.timer import Timer
from textual.widget import Widget

from antiphon.widgets.block_list.cell_model import CellModel
from antiphon.widgets.block_list.cell_presenter import FrameBuffer

EARLY: Final = 0.002
"""A frame that is due within so many seconds is drawn now."""


class FrameScheduler:
    """Brings wishes to draw together into one frame. Times are in seconds."""

    def __init__(
        self,
        draw: Callable[[], None],
        next_thing: Callable[[Callable[[], None]], object],
        later: Callable[[float, Callable[[], None]], object],
        now: Callable[[], float] = monotonic,
    ) -> None:
        """`next_thing` calls back when what is being handled is done, `later` after a time."""
        self._draw = draw
        self._next_thing = next_thing
        self._later = later
        self._now = now
        self._drawn_at = 0.0
        self._due: float | None = None
        self.frames = 0
        """Frames drawn; for measuring."""

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
        self.frames += 1

    def _draw_if_due(self) -> None:
        """Draw, unless the next frame is later: a timer of one that came sooner may still call."""
        if self._due is None:
            return
        early = self._due - self._now()
        if early <= EARLY:
            self._draw()
        else:
            self._later(early, self._draw_if_due)


_TICK: Final = 0.4
"""Seconds between two pictures of a running tool call."""


class CellTimers:
    """Has cells drawn again while something in them changes with time."""

    def __init__(self, source: CellModel, rows: FrameBuffer, widget: Widget) -> None:
        self._source = source
        self._rows = rows
        self._widget = widget
        self._fading: Timer | None = None
        """Runs while somebody's cursor has moved a moment ago, or text is new."""
        self._ticking: Timer | None = None
        """Runs while a tool call on the screen is carried out."""

    def start(self) -> None:
        """Start those timers that the last frame needs."""
        if self._source.in_replay:
            return
        seconds = self._source.next_fade
        if self._fading is None and seconds is not None:
            self._fading = self._widget.set_timer(seconds, self._fade)
        if self._ticking is None and any(map(self._source.is_call_running, self._rows.cells)):
            self._ticking = self._widget.set_timer(_TICK, self._tick)

    def _fade(self) -> None:
        self._fading = None
        self._source.fade()
        self.start()

    def _tick(self) -> None:
        self._ticking = None
        self._source.tick(filter(self._source.is_call_running, self._rows.cells))
