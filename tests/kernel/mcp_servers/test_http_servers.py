"""MCP servers over Streamable HTTP, of the newer era: headers, questions, changed lists."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated

import uvicorn
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.resolve import Elicit, Resolve
from pydantic import BaseModel
from starlette.types import Receive, Scope, Send

from antiphon_kernel.mcp_servers import McpServerConfig, ServerState
from tests.kernel.mcp_servers.served_stage import ServedStage
from tests.waiting import until


class Name(BaseModel):
    name: str


def ask() -> Elicit[Name]:
    return Elicit("Who are you?", Name)


def made() -> MCPServer:
    server = MCPServer("made")

    @server.tool()
    async def greet(who: Annotated[Name, Resolve(ask)]) -> str:
        return f"Hello {who.name}."

    @server.tool()
    async def grow(ctx: Context) -> str:
        server.add_tool(lambda: "New.", name="fresh", description="A new one.")
        await ctx.notify_tools_changed()
        return "There is one more."

    @server.tool()
    async def step(ctx: Context) -> str:
        await ctx.report_progress(1, 2, "half")
        await asyncio.sleep(0.1)
        return "z" * 17_000_000

    return server


@asynccontextmanager
async def serving(tokens: list[str | None]) -> AsyncIterator[str]:
    """Serve on a free port; keeps the `Authorization` of every request."""
    app = made().streamable_http_app()

    async def noting(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            token = dict(scope["headers"]).get(b"authorization")
            tokens.append(None if token is None else token.decode())
        await app(scope, receive, send)

    config = uvicorn.Config(noting, port=0, log_config=None, timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    task = asyncio.create_task(server.serve())
    await until(lambda: server.started)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        server.should_exit = True
        await task


async def test_server_over_http(tmp_path: Path) -> None:
    tokens: list[str | None] = []
    async with serving(tokens) as url:
        said = McpServerConfig("web", url="${WHERE}", headers={"Authorization": "Bearer ${KEY}"})
        config = said.expanded({"WHERE": url, "KEY": "secret"})
        assert "secret" not in repr(config)
        stage = await ServedStage.open(tmp_path, config)
        await stage.begin("web__greet")
        block = await stage.asked()
        accept = {"block_id": block, "action": "accept", "content": {"name": "amy"}}
        await stage.call("elicitation.answer", **accept)
        await stage.runner.wait_idle()
        assert "Hello amy." in stage.results()[-1]
        assert set(tokens) == {"Bearer secret"}
        await stage.run("web__grow")
        assert "web__fresh" not in stage.told()
        server = stage.runner.servers["web"]
        assert await stage.run("web__fresh") == "New."
        result = await stage.run("web__step")
        assert "17" not in result and "has answered with an error" in result
    assert server.state is ServerState.READY
    result = await stage.run("web__fresh")
    assert result.startswith("The MCP server web has answered with an error"), result
    await stage.play("Go on.")
    last = str(stage.provider.prompts[-1].conversation.messages[-1])
    assert "[TOOLS MISSING] web: " in last
    await stage.close()
