"""`agent.list` and `agent.set`: the agents of a kernel, and what they offer in a context."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from antiphon_kernel.contexts import Context
from antiphon_kernel.kernel import Call
from antiphon_kernel.registry import REFERENCES, ContextParams, Result, tool
from antiphon_kernel.turns.runner import runner_of
from antiphon_kernel.types.errors import invalid_params
from antiphon_kernel.types.quoting import quote
from antiphon_kernel.types.roles import AccessRole, Permission

if TYPE_CHECKING:
    from antiphon_kernel.turns.agents.session import AgentSession


class AgentInfo(Result):
    """One agent; options and what follows them are of its session in the context, as it says them
    over ACP."""

    name: str
    """Name in messages, after `@`."""
    username: str
    """Name that it writes under."""
    command: list[str] | None = None
    """Program and arguments; for owners."""
    options: list[dict[str, Any]]
    """Objects like `SessionConfigOption` of ACP. `mode` has the modes of an agent that has no
    option for them."""
    commands: list[dict[str, Any]]
    """Beginnings of messages to it, after a slash: objects like `AvailableCommand`."""
    usage: dict[str, Any] | None = None
    """An object like `UsageUpdate`."""


class AgentListResult(Result):
    """Agents of the kernel, in order."""

    agents: list[AgentInfo]
    """Those that are configured, then those that were found."""


@tool("agent.list", needs=Permission.READ, errors=REFERENCES[1:])
async def list_agents(call: Call, params: ContextParams) -> AgentListResult:
    """List the agents that can be asked here over ACP, with what they say about themselves.

    Of an agent that has had no turn in the context nothing more is known than its command.
    """
    context = await call.context(params.context, is_partial=True)
    agents = runner_of(call.kernel).agents.configs
    return AgentListResult(agents=[await _info(call, context, name) for name in agents])


class AgentSetParams(ContextParams):
    """An agent in a context, and what it is to change."""

    agent: str
    """Name of the agent."""
    option: str
    """Id of an option."""
    value: str | bool
    """Value that it is to have."""


@tool("agent.set", needs=Permission.OWN, errors=REFERENCES[1:])
async def set_agent(call: Call, params: AgentSetParams) -> AgentInfo:
    """Change an option of an agent's session in a context.

    Only owners may: a mode can let it work without asking.
    """
    context = await call.context(params.context, is_partial=True)
    session = runner_of(call.kernel).agents.find(context, params.agent)
    if session is None:
        raise invalid_params(
            f"No agent {quote(params.agent)} has had a turn here: agents start with the first"
            " message to them, and agent.list names them.",
            field="agent",
        )
    await session.choose(params.option, params.value)
    return await _info(call, context, params.agent)


async def _info(call: Call, context: Context, name: str) -> AgentInfo:
    runner = runner_of(call.kernel)
    config, session = runner.agents.configs[name], runner.agents.find(context, name)
    return AgentInfo(
        name=name,
        username=(await runner.principal(name)).username,
        command=list(config.command) if call.role is AccessRole.OWNER else None,
        options=_options(session) if session is not None else [],
        commands=[_said(one) for one in session.commands] if session is not None else [],
        usage=_said(session.usage) if session is not None and session.usage is not None else None,
    )


def _options(session: AgentSession) -> list[dict[str, Any]]:
    options = [_said(one) for one in session.config_options]
    if session.modes is not None and all(one.get("category") != "mode" for one in options):
        said = _said(session.modes)
        choices = [{**one, "value": one["id"]} for one in said["availableModes"]]
        mode = {"id": "mode", "name": "mode", "category": "mode", "type": "select"}
        options.insert(0, {**mode, "currentValue": said["currentModeId"], "options": choices})
    return options


def _said(one: Any) -> dict[str, Any]:
    """Return an object of the agent's as ACP writes it."""
    found: dict[str, Any] = one.model_dump(mode="json", by_alias=True, exclude_none=True)
    return found
