"""Permission for the tool calls of models: asked of people where the policy says so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from antiphon_kernel.turns.asker import Asker


@dataclass(frozen=True, slots=True)
class PermissionRequest:
    """A call that a model wants to be run, whose block is there and pending."""

    context_id: str
    call_block: str
    model: str
    """Id of the model's principal."""
    tool: str
    """Name of the tool for models."""
    arguments: Mapping[str, Any]
    """Arguments, valid for the tool's schema."""
    asker: Asker
    """Author of the message that is answered: the call has their rights, and they may decide."""


@dataclass(frozen=True, slots=True)
class PermissionDecision:
    """Whether a call may run."""

    is_allowed: bool
    reason: str = ""
    """The reason of a refusal, as the model is told it."""


class PermissionDesk:
    """Decides by the policy whether a call may run, and asks people where it says so."""

    async def decide(self, request: PermissionRequest) -> PermissionDecision:
        """Return the decision on a call; waits for a person where one has to decide.

        When cancelled, the request is withdrawn: nobody can decide it any more.
        """
        return PermissionDecision(is_allowed=True)
