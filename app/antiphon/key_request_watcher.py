"""People with unknown SSH keys who wait for an owner, as the kernel reports them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from antiphon.join_watcher import WAIT_SECONDS
from antiphon.options import AppOptions
from antiphon_kernel.types.errors import AntiphonError


@dataclass(frozen=True, slots=True)
class WaitingKey:
    """Somebody who wants to join with a key that the kernel does not know."""

    request: int
    fingerprint: str
    name: str
    """The username that they would like."""

    @property
    def words(self) -> str:
        """A sentence without a full stop."""
        return f"{self.fingerprint} wants to join as {self.name}"


class KeyRequestWatcher:
    """Asks on a line of its own, since calls on one line wait for each other."""

    def __init__(self, options: AppOptions, tell: Callable[[WaitingKey], None]) -> None:
        """`tell` is called once for each request."""
        self._options = options
        self._tell = tell
        self._last = 0
        self._waiting: dict[int, WaitingKey] = {}

    @property
    def first(self) -> WaitingKey | None:
        """Return the oldest request that has not been decided here."""
        return next(iter(self._waiting.values()), None)

    def forget(self, request: int) -> None:
        self._waiting.pop(request, None)

    async def run(self) -> None:
        """Tell of every request, until the kernel goes away or does not say any more."""
        try:
            async with self._options.connect() as calls:
                while True:
                    asked = {"after": self._last, "wait": WAIT_SECONDS}
                    answer = await calls.call("key.requests", asked)
                    self._last = int(answer["last"])
                    for one in answer["requests"]:
                        self._add(one)
        except AntiphonError:
            # Asked again when the connection is back, from the beginning: numbers start anew.
            self._last = 0

    def _add(self, stated: dict[str, Any]) -> None:
        one = WaitingKey(int(stated["request"]), str(stated["fingerprint"]), str(stated["name"]))
        is_new = self._waiting.get(one.request) != one
        self._waiting[one.request] = one
        if is_new:
            self._tell(one)
