"""`session.whoami` and `kernel.tools`: what a newcomer asks first."""

from __future__ import annotations

from typing import Any

from antiphon_kernel.kernel.kernel import Call
from antiphon_kernel.kernel.registry import Params, Result, tool
from antiphon_kernel.types.access import Right


class NoParams(Params):
    """Nothing to say."""


class WhoamiResult(Result):
    """Who the kernel takes the caller for."""

    principal: str
    username: str
    kind: str
    session: str
    role: str
    """`owner`, `editor`, `agent` or `viewer`."""
    kernel: str


class ToolInfo(Result):
    """One tool."""

    name: str
    description: str
    parameters: dict[str, Any]
    """JSON Schema of the parameters."""


class ToolsResult(Result):
    """Every tool of this kernel."""

    tools: list[ToolInfo]


@tool("session.whoami", needs=Right.READ)
async def whoami(call: Call, params: NoParams) -> WhoamiResult:
    """Say who the caller is and what role it has."""
    principal = call.actor.principal
    return WhoamiResult(
        principal=principal.id,
        username=principal.username,
        kind=principal.kind,
        session=call.actor.session,
        role=call.role,
        kernel=call.kernel.id,
    )


@tool("kernel.tools", needs=Right.READ)
async def tools(call: Call, params: NoParams) -> ToolsResult:
    """List the tools with their parameters."""
    registry = call.kernel.registry
    found = [registry[name] for name in registry.names]
    return ToolsResult(
        tools=[
            ToolInfo(name=one.name, description=one.doc, parameters=one.params.model_json_schema())
            for one in found
        ]
    )
