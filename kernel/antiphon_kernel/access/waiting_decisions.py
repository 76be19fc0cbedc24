"""Requests that wait for decisions: keys of people who want to join, and calls of models.

Decisions about calls make rules, which are kept here too.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from antiphon_kernel.storage import AuthStore, ToolPermission
from antiphon_kernel.types.clock import Clock
from antiphon_kernel.types.errors import AntiphonError, ErrorCode, invalid_params
from antiphon_kernel.types.ids import ContextId, PrincipalId
from antiphon_kernel.types.public_keys import PublicKey
from antiphon_kernel.types.quoting import quote
from antiphon_kernel.types.records import Actor
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
        self.news = News()
        """Announced when there is a new one, and when the kernel is closing."""

    def waiting(self) -> list[KeyRequest]:
        """Return the requests that wait, oldest first."""
        return list(self._waiting.values())

    async def ask(self, key: PublicKey, name: str, seconds: float) -> AccessRole | None:
        """Wait for the decision about a key; None if it is no, or does not come in time.

        Raises AntiphonError rate_limited if too many others wait.
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
        self.news.announce()
        return added

    def take(self, number: int) -> KeyRequest:
        """Return a request for whoever decides; raises invalid_params if it waits no longer."""
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
            await self.news.wait(seconds)
        return [one for one in self.waiting() if one.number > number]


def canonical_arguments(arguments: Mapping[str, Any]) -> str:
    """Return the JSON of arguments; the same text for equal ones only."""
    return json.dumps(arguments, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


class ToolPermissions:
    """Every undecided call and every rule of a kernel, stored.

    Changes are in effect at once. Which call waits is decided here alone, never by a document: that
    can be a copy, or come from a backup.
    """

    def __init__(self, auth: AuthStore, clock: Clock) -> None:
        self._auth = auth
        self._clock = clock
        self.undecided: dict[str, ToolPermission] = {}
        """Calls that wait, oldest first, by block of the call. Whoever takes one out decides."""
        self.rules: dict[int, ToolPermission] = {}
        """Rules in force, oldest first, by number."""
        self._reading = asyncio.Lock()

    async def load(self, is_here: Callable[[ContextId], bool] = lambda _: False) -> None:
        """Read what is stored, also by other kernels: nobody else decides where one `is_here`."""
        async with self._reading:
            stored = await self._auth.records(ToolPermission)
            found = [one for one in stored if not is_here(one.context)]
            known = [*self.undecided.values(), *self.rules.values()]
            found += [one for one in known if is_here(one.context)]
            found.sort(key=lambda one: one.number)
            self.undecided = {one.call: one for one in found if one.decided_by is None}
            self.rules = {one.number: one for one in found if one.decided_by is not None}

    def leave(self, context: ContextId) -> None:
        """Decide no more about the calls of a context, which stay stored."""
        for call in [call for call, one in self.undecided.items() if one.context == context]:
            del self.undecided[call]

    async def ask(
        self,
        context: ContextId,
        call: str,
        model: PrincipalId,
        tool: str,
        arguments: Mapping[str, Any],
        asker: Actor,
    ) -> ToolPermission:
        """Store a call that waits from now on."""
        asked = await self._auth.add(
            ToolPermission(
                number=0,
                context=context,
                call=call,
                model=model,
                tool=tool,
                arguments=canonical_arguments(arguments),
                asker=asker.principal.id,
                credential=asker.credential,
                asked=self._clock.now_ms(),
            )
        )
        self.undecided[call] = asked
        return asked

    async def allow_always(self, taken: ToolPermission, by: PrincipalId) -> None:
        """Make a call that has been taken a rule."""
        rule = replace(taken, decided_by=by, decided=self._clock.now_ms())
        self.rules[rule.number] = rule
        await self._auth.change(rule, "decided_by", "decided")

    async def forget(self, permission: ToolPermission) -> None:
        """Forget a call that has been taken, or end a rule."""
        self.rules.pop(permission.number, None)
        await self._auth.remove(permission)
