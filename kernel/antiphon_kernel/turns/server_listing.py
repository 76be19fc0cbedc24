"""`mcp.list` and `elicitation.answer`: MCP servers of a kernel, and what they ask people."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from antiphon_kernel.access import check_decide
from antiphon_kernel.kernel import Call
from antiphon_kernel.mcp_servers import ServerState
from antiphon_kernel.registry import REFERENCES, Params, Result, tool
from antiphon_kernel.tools._common import BlockResult
from antiphon_kernel.turns.runner import SERVER_SECONDS, runner_of
from antiphon_kernel.types.errors import AntiphonError, ErrorCode, invalid_params
from antiphon_kernel.types.roles import AccessRole, Permission


class ServerListParams(Params):
    """Details of the list."""

    start: bool = False
    """Start the servers that are not there first; for owners."""


class ServerInfo(Result):
    """One MCP server."""

    name: str
    """Name before `__` in those of its tools."""
    state: ServerState
    """State now; one that has ended is started again when it is needed."""
    tools: list[str]
    """Names of its tools for models, as far as it has been asked for them."""
    problem: str | None = None
    """Reason why it or some of its tools are not there; for owners."""


class ServerListResult(Result):
    """MCP servers of the kernel, in order."""

    servers: list[ServerInfo]
    """One entry a server."""


@tool("mcp.list", needs=Permission.READ)
async def list_servers(call: Call, params: ServerListParams) -> ServerListResult:
    """List the MCP servers whose tools models have here; each is started when it is first used."""
    servers, is_owner = runner_of(call.kernel).servers, call.role is AccessRole.OWNER
    if params.start and is_owner:
        await servers.ready(None, SERVER_SECONDS)
    tools = servers.tools()
    return ServerListResult(
        servers=[
            ServerInfo(
                name=one.config.name,
                state=one.state,
                tools=[each.name for each in tools if each.server == one.config.name],
                problem=one.problem if is_owner else None,
            )
            for one in servers
        ]
    )


class AnswerParams(Params):
    """A question of an MCP server, and the answer."""

    block_id: str
    """The call that the server asks about."""
    action: Literal["accept", "decline", "cancel"]
    """`cancel`: the question is put aside without an answer."""
    content: dict[str, Any] = Field(default_factory=dict)
    """With `accept`, by name of a field; nothing where an address was shown."""


class AnswerResult(BlockResult):
    """The call after the answer."""

    context_version: int


@tool(
    "elicitation.answer",
    needs=Permission.WRITE,
    errors=(*REFERENCES, ErrorCode.INVALID_TRANSITION),
)
async def answer_elicitation(call: Call, params: AnswerParams) -> AnswerResult:
    """Answer what an MCP server asks in the middle of a call; only owners may.

    The first answer counts. What is in it goes to the server, and is stored nowhere.
    """
    context, block = await call.block(params.block_id)
    waiting, content = runner_of(call.kernel).questions.waiting.get(block), None
    if waiting is None or waiting.answered.done():
        raise AntiphonError(
            ErrorCode.INVALID_TRANSITION,
            f"No question waits at {block}: it has been answered, or the call has ended.",
            status=str(context.document.header(block).status),
        )
    check_decide(waiting.asker, Permission.OWN, call.actor.principal, call.role)
    if params.action == "accept" and waiting.asked.url is None:
        content = params.content
        try:
            waiting.asked.check(content)
        except ValueError as error:
            said = f"The server does not take this answer: {error}."
            raise invalid_params(said, field="content") from error
    waiting.answered.set_result(((params.action, content), call.actor.principal.username))
    return AnswerResult.of(context, block, context_version=context.seq)
