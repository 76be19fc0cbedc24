"""Timers of cells that change by themselves: new text that ages, and running calls."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from textual.timer import Timer

from antiphon.widgets.block_list.cell_model import CellModel

_TICK: Final = 0.4
"""Seconds between two pictures of a running tool call."""


class CellTimers:
    """Has cells drawn again while something in them changes with time."""

    def __init__(
        self,
        source: CellModel,
        shown: Callable[[], Iterable[str]],
        set_timer: Callable[[float, Callable[[], None]], Timer],
    ) -> None:
        """`shown` returns the cells of the last frame."""
        self._source = source
        self._shown = shown
        self._set_timer = set_timer
        self._fading: Timer | None = None
        """Runs while somebody's cursor has moved a moment ago, or text is new."""
        self._ticking: Timer | None = None
        """Runs while a tool call on the screen is carried out."""

    def start(self) -> None:
        """Start those timers that the last frame needs."""
        seconds = self._source.next_fade
        if self._fading is None and seconds is not None:
            self._fading = self._set_timer(seconds, self._fade)
        if self._ticking is None and any(map(self._source.is_call_running, self._shown())):
            self._ticking = self._set_timer(_TICK, self._tick)

    def _fade(self) -> None:
        self._fading = None
        self._source.fade()
        self.start()

    def _tick(self) -> None:
        self._ticking = None
        self._source.tick(filter(self._source.is_call_running, self._shown()))
