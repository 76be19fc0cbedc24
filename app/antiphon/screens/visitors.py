"""People who want to come in, or have come: watched for the owner of the kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from textual.app import App
from textual.worker import WorkType

from antiphon.join_watcher import JoinWatcher
from antiphon.key_request_watcher import KeyRequestWatcher, WaitingKey
from antiphon.screens.kernel_calls import Hint, KernelCalls
from antiphon.screens.modals import KeyModal
from antiphon.widgets.status import HintBar

WATCHES: Final = ("joins", "key requests")
"""Work in the background that goes on for as long as the screen is shown."""


class Visitors:
    """Tells of people who join or wait, and lets the owner decide about a key."""

    def __init__(self, kernel: KernelCalls, hint: Hint, notice: HintBar) -> None:
        self._kernel = kernel
        self._hint = hint
        self._notice = notice
        self._joins = JoinWatcher(kernel.session.options, hint)
        self._key_requests = KeyRequestWatcher(kernel.session.options, self._key_waits)

    @property
    def wait(self) -> bool:
        """Somebody waits to be let in."""
        return self._key_requests.first is not None

    def watch(self, run_last_of: Callable[[str, WorkType[None]], None]) -> None:
        if self._kernel.session.user.is_owner and self._kernel.session.is_live:
            joins, key_requests = WATCHES
            run_last_of(joins, self._joins.run)
            run_last_of(key_requests, self._key_requests.run)

    def _key_waits(self, key: WaitingKey) -> None:
        """Tell that somebody waits; nothing is asked while the person may be typing."""
        self._hint(f"{key.words}: <key:palette>, Let somebody in who waits.", weighty=True)

    async def decide(self, app: App[None]) -> None:
        """Ask about the oldest key that waits, and tell the kernel."""
        key = self._key_requests.first
        if key is None:
            return
        self._notice.clear_hint()  # which tells of it
        role = await app.push_screen_wait(KeyModal(key.words))
        if role is None:
            return
        self._key_requests.forget(key.request)
        asked = {"request": key.request, "role": role}
        decided = await self._kernel.call("key.decide", asked)
        if decided is not None:
            name = decided.get("username")
            self._hint(f"{name} may come in as {role}." if name else "Turned away.")
