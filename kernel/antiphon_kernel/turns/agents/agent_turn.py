"""One turn of one agent."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from antiphon_kernel.providers import ToolPermit
from antiphon_kernel.turns.block_writer import CallBlocks
from antiphon_kernel.turns.permission import PermissionRequest
from antiphon_kernel.turns.turn import BaseTurn
from antiphon_kernel.types.errors import permission_denied


@dataclass(eq=False, slots=True)
class AgentCall:
    """A call of the agent, from the first word of it to its result."""

    block: str
    output: str = ""
    """Its result, as the agent has said it."""
    result: CallBlocks | None = None
    has_ended: bool = False


@dataclass(eq=False)
class AgentTurn(BaseTurn):
    """One turn of one agent, while it is played."""

    calls: dict[str, AgentCall] = field(default_factory=dict)
    """Each of its tool calls, by the agent's id of it."""
    read: dict[str, str] = field(default_factory=dict)
    """Text of each file as the agent has last read or written it, by path; kept by its session."""
    permitted: set[tuple[str, str]] = field(default_factory=set)
    """Files and commands that calls name which a person has allowed in this turn: each with the
    tool of models that would do it."""

    def request(
        self, tool: str, arguments: Mapping[str, str], changes: Collection[str] = ()
    ) -> PermissionRequest:
        """Return what is decided about a call, which has no block yet."""
        context, agent = self.writer.context, self.writer.actor.principal.id
        return PermissionRequest(context, "", agent, tool, arguments, self.asker, changes)

    async def may(self, request: PermissionRequest) -> bool:
        """Return whether nobody is asked: by the policy, or since a person has allowed the call
        that it is part of."""
        is_permitted = (request.tool, *request.arguments.values()) in self.permitted
        return is_permitted or await self.desk.permit(request) is ToolPermit.ALLOW

    async def open_call(self, request: PermissionRequest, text: str) -> CallBlocks:
        """Open the blocks of a call by way of the kernel, once it is allowed.

        Raises:
            AntiphonError: permission_denied if it is not; people see it, too.
        """
        writer, tool = self.writer, request.tool
        call = await writer.begin_call(self.prompt, tool, text, 0)
        writer.describe(call, input=json.dumps(request.arguments))
        request.call_block, request.shown = call, writer.context.document.text(call)
        refusal = None if await self.may(request) else await self.desk.decide(request)
        blocks = await writer.open_result(call)
        if refusal is not None:
            await blocks.fail(f"Not run: {refusal}")
            raise permission_denied(refusal)
        return blocks
