"""`session.whoami` and `kernel.tools`: what a newcomer asks first."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from antiphon_kernel.kernel import Call
from antiphon_kernel.registry import NoParams, Params, Result, tool
from antiphon_kernel.tools.json_schema import described_schema
from antiphon_kernel.tools.kernel import SHOWN
from antiphon_kernel.types.ids import NAME_LENGTH
from antiphon_kernel.types.roles import Permission


class WhoamiResult(Result):
    """Identity of the caller in the kernel."""

    principal: str
    """Id of the caller."""
    username: str
    """Name of the caller."""
    display_name: str
    """How the caller wants to be called; the username unless it was set."""
    kind: str
    """Kind of the caller: `human`, `model`, ..."""
    session: str
    """Id of this connection."""
    role: str
    """`owner`, `editor`, `agent` or `viewer`."""
    kernel: str
    """Id of the kernel."""


class ToolInfo(Result):
    """One tool."""

    name: str
    """Name of the tool."""
    description: str
    """Purpose of the tool."""
    parameters: dict[str, Any]
    """JSON Schema of the parameters."""
    needs: str
    """Permission that the caller must have: `read`, `write` or `own`."""
    errors: list[str]
    """Every code it can fail with."""


class ToolsResult(Result):
    """Every tool of this kernel."""

    tools: list[ToolInfo]
    """By name."""


@tool("session.whoami", needs=Permission.READ)
async def whoami(call: Call, params: NoParams) -> WhoamiResult:
    """Say who the caller is and what role it has."""
    principal = call.kernel.members.find(call.actor.principal.id)
    return WhoamiResult(
        principal=principal.id,
        username=principal.username,
        display_name=principal.display_name or principal.username,
        kind=principal.kind,
        session=call.actor.session,
        role=call.role,
        kernel=call.kernel.id,
    )


class SessionNameParams(Params):
    """The caller's new display name."""

    display_name: str = Field(min_length=1, max_length=NAME_LENGTH, pattern=SHOWN)
    """At most 64 code points, without control characters."""


class SessionNameResult(Result):
    """The caller's names."""

    username: str
    """Name of the caller."""
    display_name: str
    """How the caller wants to be called."""


@tool("session.name", needs=Permission.READ)
async def set_display_name(call: Call, params: SessionNameParams) -> SessionNameResult:
    """Say how one wants to be called. The username, which ids and commands use, stays."""
    await call.kernel.members.set_display_name(call.actor.principal, params.display_name)
    return SessionNameResult(
        username=call.actor.principal.username, display_name=params.display_name
    )


@tool("kernel.tools", needs=Permission.READ)
async def tools(call: Call, params: NoParams) -> ToolsResult:
    """List the tools with their parameters."""
    registry = call.kernel.registry
    found = [registry[name] for name in registry.names]
    return ToolsResult(
        tools=[
            ToolInfo(
                name=one.name,
                description=one.doc,
                parameters=described_schema(one.params),
                needs=one.needs,
                errors=[str(code) for code in one.errors],
            )
            for one in found
        ]
    )
