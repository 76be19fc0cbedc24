"""Long work on the event loop in short slices."""

from __future__ import annotations

import asyncio
import time
from typing import Final

_SECONDS: Final = 0.008


class TimeSlice:
    """Lets the rest of the program work again and again during a long task."""

    def __init__(self) -> None:
        self._ends = time.perf_counter() + _SECONDS

    async def pause(self) -> None:
        """Yield to the event loop if a slice has been used up since the last time."""
        if time.perf_counter() >= self._ends:
            await asyncio.sleep(0)
            self._ends = time.perf_counter() + _SECONDS
