"""Calls of models that wait for people's decisions, and the rules that their decisions made."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from antiphon_kernel.storage import AuthStore, ToolPermission
from antiphon_kernel.types.clock import Clock
from antiphon_kernel.types.ids import ContextId, PrincipalId
from antiphon_kernel.types.records import Actor


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
        self._undecided: dict[str, ToolPermission] = {}
        """By block of the call."""
        self._rules: dict[int, ToolPermission] = {}
        """By number."""

    async def load(self) -> None:
        """Read what is stored."""
        for one in await self._auth.records(ToolPermission):
            if one.decided_by is None:
                self._undecided[one.call] = one
            else:
                self._rules[one.number] = one

    def is_undecided(self, call: str) -> bool:
        """Return whether a block is a call that somebody may still decide about."""
        return call in self._undecided

    def of(self, call: str) -> ToolPermission | None:
        """Return the call of a block, if it waits."""
        return self._undecided.get(call)

    def undecided(self) -> list[ToolPermission]:
        """Return the calls that wait, oldest first."""
        return list(self._undecided.values())

    def rules(self) -> list[ToolPermission]:
        """Return the rules in force, oldest first."""
        return list(self._rules.values())

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
        self._undecided[call] = asked
        return asked

    def take(self, call: str) -> ToolPermission | None:
        """Take a call out of those that wait: whoever gets it decides. None if it does not wait."""
        return self._undecided.pop(call, None)

    async def allow_always(self, taken: ToolPermission, by: PrincipalId) -> None:
        """Make a call that has been taken a rule."""
        rule = replace(taken, decided_by=by, decided=self._clock.now_ms())
        self._rules[rule.number] = rule
        await self._auth.change(rule, "decided_by", "decided")

    async def forget(self, permission: ToolPermission) -> None:
        """Forget a call that has been taken, or end a rule."""
        self._rules.pop(permission.number, None)
        await self._auth.remove(permission)
