"""Questions of agents: whether a call of theirs may run, in the agent's own words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from antiphon_kernel.turns.agents.agent_turn import AgentTurn

if TYPE_CHECKING:
    from acp.schema import (
        AllowedOutcome,
        DeniedOutcome,
        PermissionOption,
        ToolCallUpdate,
    )


async def ask(
    turn: AgentTurn, tool_call: ToolCallUpdate, options: Sequence[PermissionOption]
) -> AllowedOutcome | DeniedOutcome:
    """Return the option that the policy or a person has chosen for a call of an agent."""
    raise NotImplementedError
