"""People who want to come in, or have come: watched for the owner of the kernel."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from antiphon.screens.action_scope import ActionScope, Controller
from antiphon.screens.modals import KeyModal
from antiphon_kernel.types.errors import AntiphonError

WATCHES: Final = ("joins", "key requests")
"""Work in the background that goes on for as long as the screen is shown."""

SHOWN_PROBLEMS: Final = 3
"""Problems of configuration files that are told one by one."""

WAIT_SECONDS: Final = 60
"""How long one question waits for somebody to come.

The kernel keeps one that was dropped for as long, with its connection.
"""


class Visitors(Controller):
    """Tells of people who join or wait, and lets the owner decide about a key.

    Each is asked about on a line of its own, since calls on one line wait for each other.
    """

    def __init__(self, scope: ActionScope) -> None:
        super().__init__(scope)
        self._options = scope.session.options
        self._last_join: int | None = None
        self._last_request = 0
        self.waiting: dict[int, str] = {}
        """Sentences without a full stop, of who wants to join with a key that the kernel does not
        know, by request."""

    def watch(self) -> None:
        session, run_last_of = self._scope.session, self._scope.host.run_last_of
        if session.user.is_owner and session.is_live:
            joins, key_requests = WATCHES
            run_last_of(joins, self._tell_joins)
            run_last_of(key_requests, self._tell_key_requests)

    async def _tell_joins(self) -> None:
        """Tell of everybody who joins, until the kernel goes away or does not say any more.

        Begins with what is wrong in configuration files.
        """
        with suppress(AntiphonError):  # asked again when the connection is back
            async with self._options.connect() as calls:
                if self._last_join is None:
                    with suppress(AntiphonError):  # of a kernel that knows no such tool
                        listed = await calls.call("model.list", {"published": False})
                        problems = listed["problems"]
                        for one in problems[:SHOWN_PROBLEMS]:
                            place = one["file"] + (f":{one['line']}" if "line" in one else "")
                            self._hint(f"{place}: {one['message']}")
                        if more := len(problems[SHOWN_PROBLEMS:]):
                            self._hint(f"{more} more problems: `antiphon models` lists them.")
                    self._last_join = int((await calls.call("kernel.joins", {}))["last"])
                while True:
                    asked = {"after": self._last_join, "wait": WAIT_SECONDS}
                    answer = await calls.call("kernel.joins", asked)
                    self._last_join = int(answer["last"])
                    for join in answer["joins"]:
                        article = "an" if str(join["role"])[:1] in "aeo" else "a"
                        joined = f"{join['username']} has joined as {article} {join['role']}."
                        self._hint(joined)

    async def _tell_key_requests(self) -> None:
        """Tell of every request, until the kernel goes away or does not say any more."""
        try:
            async with self._options.connect() as calls:
                while True:
                    asked = {"after": self._last_request, "wait": WAIT_SECONDS}
                    answer = await calls.call("key.requests", asked)
                    self._last_request = int(answer["last"])
                    for one in answer["requests"]:
                        request, fingerprint = one["request"], one["fingerprint"]
                        words = f"{fingerprint} wants to join as {one['name']}"
                        if self.waiting.get(request) != words:
                            # Nothing is asked while the person may be typing.
                            self.waiting[request] = words
                            told = f"{words}: <key:palette>, Let somebody in who waits."
                            self._hint(told, weighty=True)
        except AntiphonError:
            # Asked again when the connection is back, from the beginning: numbers start anew.
            self._last_request = 0

    async def action_decide_key(self) -> None:
        """Ask about the oldest key that waits, and tell the kernel."""
        if not self.waiting:
            return
        request, words = next(iter(self.waiting.items()))
        self._scope.frame.notice.clear_hint()  # which tells of it
        role = await self._scope.host.app.push_screen_wait(KeyModal(words))
        if role is None:
            return
        self.waiting.pop(request, None)
        asked = {"request": request, "role": role}
        decided = await self._scope.call("key.decide", asked)
        if decided is not None:
            name = decided.get("username")
            self._hint(f"{name} may come in as {role}." if name else "Turned away.")
