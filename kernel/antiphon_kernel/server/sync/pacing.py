"""Pauses between batches, where a pause collects something."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

_TRIAL: Final = 8
"""Batches of one in quick succession before it is tried whether a pause collects more."""

_LAST_TRIAL: Final = 1_024
"""The most batches between two trials."""


class BatchPause:
    """Decides how long to wait after a batch, from what the pauses before have collected.

    Work on several things together costs little more than on one, so under a steady stream a pause
    saves most of it. Somebody who waits for the outcome of each thing sends nothing meanwhile: a
    pause would only make them slower. Which of the two it is shows in what a pause brings, and so
    does how long one has to be: whoever sends much at once is not kept waiting when it is here.
    """

    def __init__(self, length: float, enough: int, clock: Callable[[], float]) -> None:
        """
        Args:
            length: seconds of the longest pause.
            enough: things in a batch from which on there is no pause.
            clock: monotonic time in seconds.
        """
        self._length = self._pause = length
        self._enough = enough
        self._clock = clock
        self._last = float("-inf")
        self._has_waited = False
        self._quick = 0
        self._wanted = _TRIAL

    def after(self, size: int) -> float:
        """Return the seconds to wait after a batch of `size` things; 0 for none."""
        now = self._clock()
        is_quick = now - self._last < self._length
        self._last = now
        waited = self._pause if self._has_waited else 0.0
        if waited:
            self._pause = min(self._length, waited * self._enough / size)
        if size > 1:
            self._quick, self._wanted = 0, _TRIAL
            self._has_waited = size < self._enough
        elif not waited:
            self._quick = self._quick + 1 if is_quick else 0
            self._has_waited = self._quick >= self._wanted
        elif waited == self._length:  # a shorter pause says nothing
            self._has_waited = False
            self._quick, self._wanted = 0, min(2 * self._wanted, _LAST_TRIAL)
        return self._pause if self._has_waited else 0.0
