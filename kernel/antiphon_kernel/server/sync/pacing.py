"""Pauses between batches, where a pause collects something."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

_TRIAL: Final = 8
"""Batches of one in quick succession before it is tried whether a pause collects more."""

_LAST_TRIAL: Final = 1_024
"""The most batches between two trials."""


@dataclass(eq=False)
class BatchPause:
    """Decides how long to wait after a batch, from what the pauses before have collected.

    Work on several things together costs little more than on one, so under a steady stream a pause
    saves most of it. Somebody who waits for the outcome of each thing sends nothing meanwhile: a
    pause would only make them slower. Which of the two it is shows in what a pause brings, and so
    does how long one has to be: whoever sends much at once is not kept waiting when it is here.
    """

    length: float
    """Seconds of the longest pause."""
    enough: int
    """Things in a batch from which on there is no pause."""
    clock: Callable[[], float]
    """Monotonic time in seconds."""
    _last: float = float("-inf")
    _has_waited: bool = False
    _quick: int = 0
    _wanted: int = _TRIAL

    def __post_init__(self) -> None:
        self._pause = self.length

    def after(self, size: int) -> float:
        """Return the seconds to wait after a batch of `size` things; 0 for none."""
        now = self.clock()
        is_quick = now - self._last < self.length
        self._last = now
        waited = self._pause if self._has_waited else 0.0
        if waited:
            self._pause = min(self.length, waited * self.enough / size)
        if size > 1:
            self._quick, self._wanted = 0, _TRIAL
            self._has_waited = size < self.enough
        elif not waited:
            self._quick = self._quick + 1 if is_quick else 0
            self._has_waited = self._quick >= self._wanted
        elif waited == self.length:  # a shorter pause says nothing
            self._has_waited = False
            self._quick, self._wanted = 0, min(2 * self._wanted, _LAST_TRIAL)
        return self._pause if self._has_waited else 0.0
