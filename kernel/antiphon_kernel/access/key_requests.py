"""People with unknown SSH keys who wait for an owner to let them in."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Final

from antiphon_kernel.types.clock import Clock
from antiphon_kernel.types.errors import AntiphonError, ErrorCode, invalid_params
from antiphon_kernel.types.public_keys import PublicKey
from antiphon_kernel.types.quoting import quote
from antiphon_kernel.types.roles import AccessRole
from antiphon_kernel.types.signal import News

WAITING_AT_ONCE: Final = 8
"""Requests that wait; more are turned away, so that nobody fills an owner's screen."""


@dataclass(slots=True)
class KeyRequest:
    """A key whose owner wants to join."""

    number: int
    """Counts from 1."""
    key: PublicKey
    name: str
    """Username that they would like; a claim, and no more."""
    asked: int
    """Milliseconds since the epoch."""
    answer: asyncio.Future[AccessRole | None]
    askers: int = 0
    """How many wait for the answer."""


class KeyRequests:
    """The requests that wait, one for each key, and who waits to hear of new ones."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._waiting: dict[int, KeyRequest] = {}
        self.last = 0
        """Number of the latest request; 0 if there was none."""
        self._news = News()

    def waiting(self) -> list[KeyRequest]:
        """Return the requests that wait, oldest first."""
        return list(self._waiting.values())

    async def ask(self, key: PublicKey, name: str, seconds: float) -> AccessRole | None:
        """Wait for the decision about a key; None if it is no, or does not come in time.

        Raises:
            AntiphonError: rate_limited if too many others wait.
        """
        same = (one for one in self.waiting() if one.key.fingerprint == key.fingerprint)
        request = next((one for one in same if not one.answer.done()), None)
        request = request or self._add(key, name)
        request.askers += 1
        try:
            async with asyncio.timeout(seconds):
                return await asyncio.shield(request.answer)
        except TimeoutError:
            return None
        finally:
            request.askers -= 1
            if not request.askers:
                self._waiting.pop(request.number, None)

    def _add(self, key: PublicKey, name: str) -> KeyRequest:
        if len(self._waiting) >= WAITING_AT_ONCE:
            raise AntiphonError(
                ErrorCode.RATE_LIMITED,
                f"{WAITING_AT_ONCE} others wait to be let in already: come back later.",
            )
        self.last += 1
        answer = asyncio.get_running_loop().create_future()
        added = KeyRequest(self.last, key, name, self._clock.now_ms(), answer)
        self._waiting[self.last] = added
        self.wake_waiters()
        return added

    def take(self, number: int) -> KeyRequest:
        """Take a request out of those that wait: whoever gets it decides.

        Raises:
            AntiphonError: invalid_params if it does not wait, or no longer.
        """
        waiting = self._waiting.get(number)
        if waiting is None or waiting.answer.done():
            raise invalid_params(
                f"No request {quote(number)} waits: it has been decided, or its sender has gone."
                " key.requests lists those that do.",
                found=number,
            )
        return waiting

    def answer(self, number: int, role: AccessRole | None) -> None:
        """Tell whoever asked; None is no."""
        waiting = self._waiting.pop(number, None)
        if waiting is not None and not waiting.answer.done():
            waiting.answer.set_result(role)

    async def since(self, number: int, seconds: float) -> list[KeyRequest]:
        """Return the requests that wait with a higher number; if there are none, wait for one."""
        if number > self.last:
            number = 0
        if not any(one.number > number for one in self.waiting()):
            await self._news.wait(seconds)
        return [one for one in self.waiting() if one.number > number]

    def wake_waiters(self) -> None:
        """Let whoever waits for news look: there is some, or the kernel is closing."""
        self._news.announce()
