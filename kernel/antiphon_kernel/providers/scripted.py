"""A model that plays recordings: one a turn, at their own pace or faster."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence

from antiphon_kernel.providers.events import End, TurnEvent
from antiphon_kernel.providers.provider import RoundRequest
from antiphon_kernel.providers.recording import Recording
from antiphon_kernel.types.ids import ContextId

MIN_SPEED = 0.1
MAX_SPEED = 1000.0


class ScriptedProvider:
    """Plays its recordings in each context, the next one with each turn, and then again.

    `speed` divides all waiting; infinity means none.
    """

    def __init__(
        self,
        recordings: Sequence[Recording],
        *,
        speed: float = 1.0,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        if not recordings:
            raise ValueError("a scripted model needs at least one recording")
        if not (MIN_SPEED <= speed <= MAX_SPEED or speed == math.inf):
            raise ValueError(f"speed is {MIN_SPEED} to {MAX_SPEED:.0f} or inf, not {speed}")
        self._recordings = tuple(recordings)
        self._speed = speed
        self._sleep = sleep
        self._turns: dict[ContextId, int] = {}

    async def stream(self, request: RoundRequest) -> AsyncGenerator[TurnEvent, None]:
        """One round of the recording that this turn plays."""
        if request.round == 0:
            self._turns[request.context_id] = self._turns.get(request.context_id, -1) + 1
        turn = self._turns.get(request.context_id, 0)
        rounds = self._recordings[turn % len(self._recordings)].rounds
        if request.round >= len(rounds):
            yield End("end_turn")
            return
        for step in rounds[request.round]:
            # Also without waiting the others get their turn between two events.
            await self._sleep(step.wait_ms / 1000 / self._speed)
            yield step.event
