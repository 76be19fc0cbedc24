"""`agent.list` and `agent.set`: the agents of a kernel, and what they offer in a context."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

from antiphon_kernel.contexts import Context
from antiphon_kernel.kernel import Call
from antiphon_kernel.registry import REFERENCES, Params, Result, tool
from antiphon_kernel.turns.runner import runner_of
from antiphon_kernel.types.errors import invalid_params
from antiphon_kernel.types.quoting import join_names, quote
from antiphon_kernel.types.roles import AccessRole, Permission

if TYPE_CHECKING:
    from acp.schema import UsageUpdate

    from antiphon_kernel.turns.agents.session import AgentSession

_MODE: Final = "mode"


class AgentListParams(Params):
    """A context."""

    context: str | None = None
    """Label or id; what agents offer and use is said of their sessions in it."""


class OptionChoice(Result):
    """One value that an option may have."""

    value: str | bool
    name: str


class AgentOption(Result):
    """An option of an agent's session, in its own words."""

    id: str
    """Its id; `mode` of the modes of an agent that has no option for them."""
    name: str
    category: str | None = None
    """Its subject, such as `mode` or `model`, as far as the agent says it."""
    value: str | bool
    choices: list[OptionChoice]
    """Values that it may have."""


class AgentCommand(Result):
    """A command that a message to an agent may begin with, after a slash."""

    name: str
    description: str


class AgentUsage(Result):
    """The use of a session, as the agent says it."""

    used: int
    """Tokens in its window."""
    size: int
    """Tokens that its window has room for."""
    cost: float | None = None
    """Price of its whole session."""
    currency: str | None = None


class AgentInfo(Result):
    """One agent; options and what follows them are of its session in the context."""

    name: str
    """Name in messages, after `@`."""
    username: str
    """Name that it writes under."""
    command: list[str] | None = None
    """Program and arguments; for owners."""
    found: bool
    """It is a known one that was found on PATH, and is not configured."""
    state: Literal["idle", "waiting", "working"]
    """Whether a turn of it is queued or played in the context."""
    options: list[AgentOption]
    """Its mode among them."""
    commands: list[AgentCommand]
    usage: AgentUsage | None = None


class AgentListResult(Result):
    """Agents of the kernel, in order."""

    agents: list[AgentInfo]
    """Those that are configured, then those that were found."""


@tool("agent.list", needs=Permission.READ, errors=REFERENCES[1:])
async def list_agents(call: Call, params: AgentListParams) -> AgentListResult:
    """List the agents that can be asked here over ACP, and what they have said of themselves.

    Of an agent that has had no turn in the context nothing more is known than its command.
    """
    context = await call.context(params.context, is_partial=True)
    agents = runner_of(call.kernel).agents
    return AgentListResult(agents=[await _info(call, context, name) for name in agents])


class AgentSetParams(Params):
    """An agent in a context, and what it is to change."""

    context: str | None = None
    """Label or id."""
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
    agents = runner_of(call.kernel).agents
    if params.agent not in agents:
        raise invalid_params(
            f"There is no agent {quote(params.agent)}; there are: {join_names(agents) or 'none'}.",
            field="agent",
        )
    session = agents.find(context, params.agent)
    if session is None:
        raise invalid_params(
            f"{params.agent} has had no turn here: it starts with the first message to it.",
            field="agent",
        )
    if params.option == _MODE and all(one.id != _MODE for one in session.config_options):
        await session.set_mode(str(params.value))
    else:
        await session.set_option(params.option, params.value)
    return await _info(call, context, params.agent)


async def _info(call: Call, context: Context, name: str) -> AgentInfo:
    runner = runner_of(call.kernel)
    config, works = runner.agents[name], [one for one in runner.works(context) if one.model == name]
    session = runner.agents.find(context, name)
    has_begun = any(not one.waiting for one in works)
    return AgentInfo(
        name=name,
        username=(await runner.principal(name)).username,
        command=list(config.command) if call.role is AccessRole.OWNER else None,
        found=config.is_found,
        state="working" if has_begun else "waiting" if works else "idle",
        options=_options(session) if session is not None else [],
        commands=[
            AgentCommand(name=one.name, description=one.description)
            for one in (session.commands if session is not None else ())
        ],
        usage=_usage(session.usage) if session is not None and session.usage is not None else None,
    )


def _usage(said: UsageUpdate) -> AgentUsage:
    amount, currency = (said.cost.amount, said.cost.currency) if said.cost else (None, None)
    return AgentUsage(used=said.used, size=said.size, cost=amount, currency=currency)


def _options(session: AgentSession) -> list[AgentOption]:
    options = [
        AgentOption(
            id=one.id,
            name=one.name,
            category=one.category if isinstance(one.category, str) else None,
            value=one.current_value,
            choices=_choices(one),
        )
        for one in session.config_options
    ]
    if session.modes is not None and all(one.category != _MODE for one in options):
        modes = [OptionChoice(value=one.id, name=one.name) for one in session.modes.available_modes]
        now = session.modes.current_mode_id
        mode = AgentOption(id=_MODE, name=_MODE, category=_MODE, value=now, choices=modes)
        options.insert(0, mode)
    return options


def _choices(option: Any) -> list[OptionChoice]:
    if option.type == "boolean":
        return [OptionChoice(value=True, name="on"), OptionChoice(value=False, name="off")]
    groups = [getattr(one, "options", None) or [one] for one in option.options]
    return [OptionChoice(value=one.value, name=one.name) for group in groups for one in group]
