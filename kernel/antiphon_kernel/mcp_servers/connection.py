"""One connection to an MCP server by the library's client; imports it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import httpx2
from mcp.client import Client, ClientRequestContext, IncomingMessage
from mcp.client.streamable_http import streamable_http_client
from mcp.client.subscriptions import SubscriptionLost
from mcp.shared.dispatcher import ProgressFnT
from mcp.shared.exceptions import MCPError
from mcp_types import (
    CallToolResult,
    ElicitRequestFormParams,
    ElicitRequestParams,
    ElicitResult,
    ErrorData,
    Implementation,
    ListRootsResult,
    Tool,
    ToolListChangedNotification,
)

from antiphon_kernel.mcp_servers.elicitation import Answer, Elicitation
from antiphon_kernel.mcp_servers.json_schema import is_quick
from antiphon_kernel.mcp_servers.server_config import McpServerConfig
from antiphon_kernel.mcp_servers.server_tools import MOST_TOOLS
from antiphon_kernel.mcp_servers.stdio import stdio_streams
from antiphon_kernel.shell import LINE_BYTES, ErrorLog

Ask = Callable[[Elicitation], Awaitable[Answer]]
"""Asks people on behalf of a call."""

_LISTEN_AGAIN: Final = 5.0
"""Seconds until it is listened to again."""

_LONGEST_QUESTION: Final = 100_000
"""Bytes of a question that people are asked: its schema is checked while others wait."""

_asking: ContextVar[Ask | None] = ContextVar("_asking", default=None)
"""The call in whose name something is asked; a server on a pipe does not say in whose."""


@dataclass(eq=False)
class Connection:
    """A server that is spoken to; belongs to the task that has opened it, and is used by all."""

    config: McpServerConfig
    project: Path
    ended: Callable[[str], None]
    """Told once the server is there no more."""
    changes: int = 0
    """How often its tools may have changed, as far as it has said."""
    _running: list[Ask] = field(default_factory=list)
    """Calls that run, in the order in which they began."""

    @asynccontextmanager
    async def open(self, log: ErrorLog) -> AsyncIterator[Connection]:
        """Connect, and end the process or the session afterwards."""
        config = self.config
        async with AsyncExitStack() as stack:
            if config.url is None:
                transport = stdio_streams(config, self.project, log, self.ended)
            else:
                timeout = httpx2.Timeout(30.0, read=None)  # a call has a time of its own
                http = httpx2.AsyncClient(headers=dict(config.headers), timeout=timeout)
                await stack.enter_async_context(http)
                transport = streamable_http_client(
                    config.url, http_client=http, max_sse_event_size=LINE_BYTES
                )
            self.client = await stack.enter_async_context(
                Client(
                    transport,
                    client_info=Implementation(name="antiphon", version=version("antiphon")),
                    elicitation_callback=self._elicit,
                    list_roots_callback=self._roots,
                    message_handler=self._note,
                    cache=None,
                )
            )
            yield self

    async def watch(self) -> None:
        """Wait for news of the tools, for ever; some servers have to be asked for them."""
        tools = self.client.server_capabilities.tools
        is_modern = self.client.session.discover_result is not None
        if not is_modern or tools is None or not tools.list_changed:
            await asyncio.Event().wait()
        while True:
            with suppress(MCPError, SubscriptionLost):
                async with self.client.listen(tools_list_changed=True) as events:
                    async for _ in events:
                        self.changes += 1
            await asyncio.sleep(_LISTEN_AGAIN)
            self.changes += 1

    async def tools(self) -> list[Tool]:
        """Return its tools; of a server that has too many, the first ones and one more."""
        if self.client.server_capabilities.tools is None:
            return []
        page = await self.client.list_tools()
        found = page.tools
        while page.next_cursor is not None and len(found) <= MOST_TOOLS:
            page = await self.client.list_tools(cursor=page.next_cursor)
            found += page.tools
        for tool in found:
            if tool.output_schema is not None and not is_quick(tool.output_schema):
                tool.output_schema.clear()  # the library checks results against it
        return found[: MOST_TOOLS + 1]

    async def call(
        self, tool: str, arguments: dict[str, Any], progress: ProgressFnT, ask: Ask
    ) -> CallToolResult:
        """Call a tool; when cancelled, the server is told."""
        self._running.append(ask)
        token = _asking.set(ask)
        try:
            return await self.client.call_tool(tool, arguments, progress_callback=progress)
        finally:
            _asking.reset(token)
            self._running.remove(ask)

    async def _elicit(
        self, context: ClientRequestContext, params: ElicitRequestParams
    ) -> ElicitResult | ErrorData:
        ask = _asking.get() or (self._running[-1] if self._running else None)
        if ask is None or len(params.model_dump_json()) > _LONGEST_QUESTION:
            return ElicitResult(action="cancel")
        if isinstance(params, ElicitRequestFormParams):
            asked = Elicitation(self.config.name, params.message, params.requested_schema)
        else:
            asked = Elicitation(self.config.name, params.message, url=params.url)
        action, content = await ask(asked)
        return ElicitResult(action=action, content=content)

    async def _roots(self, context: ClientRequestContext) -> ListRootsResult | ErrorData:
        uri = self.project.resolve().as_uri()
        return ListRootsResult.model_validate({"roots": [{"uri": uri, "name": self.project.name}]})

    async def _note(self, message: IncomingMessage) -> None:
        if isinstance(message, ToolListChangedNotification):
            self.changes += 1
