"""One connection to an MCP server by the library's client; imports it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, suppress
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
from mcp.shared.exceptions import MCPError, UrlElicitationRequiredError
from mcp_types import (
    URL_ELICITATION_REQUIRED,
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

from antiphon_kernel.mcp_servers.elicitation import Elicitation, ElicitationAnswer
from antiphon_kernel.mcp_servers.server_config import McpServerConfig
from antiphon_kernel.mcp_servers.server_tools import MOST_TOOLS
from antiphon_kernel.mcp_servers.stdio import LONGEST_LINE, stdio_streams
from antiphon_kernel.shell import ErrorLog

Ask = Callable[[Elicitation], Awaitable[ElicitationAnswer]]
"""Asks people on behalf of a call."""

_LISTEN_AGAIN: Final = 5.0
"""Seconds until it is listened to again."""
_LONGEST_QUESTION: Final = 100_000
"""Bytes of a question that people are asked: its schema is checked while others wait."""
_PAGES: Final = 50
"""Pages of a list of tools that are asked for."""

_asking: ContextVar[Ask | None] = ContextVar("_asking", default=None)
"""The call in whose name something is asked; a server on a pipe does not say in whose."""


@dataclass(eq=False)
class Connection:
    """A server that is spoken to; belongs to the task that has opened it, and is used by all."""

    config: McpServerConfig
    project: Path
    ended: Callable[[str], None]
    """Told once the server is there no more."""
    changed: Callable[[], None]
    """Told when it says that its tools have changed."""
    _running: list[Ask] = field(default_factory=list)
    """Calls that run, in the order in which they began."""

    @asynccontextmanager
    async def open(self, log: ErrorLog) -> AsyncIterator[Connection]:
        """Connect, and end the process or the session afterwards."""
        async with AsyncExitStack() as stack:
            if self.config.url is None:
                transport = stdio_streams(self.config, self.project, log, self.ended)
            else:
                http = await stack.enter_async_context(
                    httpx2.AsyncClient(
                        headers=dict(self.config.headers),
                        transport=_BoundedTransport(),
                        timeout=httpx2.Timeout(30.0, read=None),
                    )
                )
                transport = streamable_http_client(
                    self.config.url, http_client=http, max_sse_event_size=LONGEST_LINE
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
        """Wait for news of the tools, of a server that has to be asked for them."""
        tools = self.client.server_capabilities.tools
        is_modern = self.client.session.discover_result is not None
        while is_modern and tools is not None and tools.list_changed:
            with suppress(MCPError, SubscriptionLost):
                async with self.client.listen(tools_list_changed=True) as events:
                    async for _ in events:
                        self.changed()
            await asyncio.sleep(_LISTEN_AGAIN)
            self.changed()

    async def tools(self) -> list[Tool]:
        """Return its tools; of a server that has too many, the first ones and one more."""
        found: list[Tool] = []
        cursor: str | None = None
        if self.client.server_capabilities.tools is None:
            return found
        for _ in range(_PAGES):
            page = await self.client.list_tools(cursor=cursor)
            found += page.tools
            cursor = page.next_cursor
            if cursor is None or len(found) > MOST_TOOLS:
                break
        return found[: MOST_TOOLS + 1]

    async def call(
        self, tool: str, arguments: dict[str, Any], progress: ProgressFnT, ask: Ask
    ) -> CallToolResult:
        """Call a tool; when cancelled, the server is told."""
        self._running.append(ask)
        token = _asking.set(ask)
        try:
            return await self.client.call_tool(tool, arguments, progress_callback=progress)
        except MCPError as error:
            if error.code != URL_ELICITATION_REQUIRED:
                raise
            for one in UrlElicitationRequiredError.from_error(error.error).elicitations:
                if (await ask(self._asked(one))).action != "accept":
                    raise
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
        answer = await ask(self._asked(params))
        return ElicitResult(action=answer.action, content=answer.content)

    def _asked(self, params: ElicitRequestParams) -> Elicitation:
        if isinstance(params, ElicitRequestFormParams):
            return Elicitation(self.config.name, params.message, dict(params.requested_schema))
        return Elicitation(self.config.name, params.message, url=params.url)

    async def _roots(self, context: ClientRequestContext) -> ListRootsResult | ErrorData:
        uri = self.project.resolve().as_uri()
        return ListRootsResult.model_validate({"roots": [{"uri": uri, "name": self.project.name}]})

    async def _note(self, message: IncomingMessage) -> None:
        if isinstance(message, ToolListChangedNotification):
            self.changed()


class _BoundedTransport(httpx2.AsyncHTTPTransport):
    """Transport of which no answer as a whole is larger than a message may be."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        response = await super().handle_async_request(request)
        if response.headers.get("content-type", "").startswith("text/event-stream"):
            return response
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        data = bytearray()
        async with aclosing(response.stream):
            async for part in response.stream:
                data += part
                if len(data) > LONGEST_LINE:
                    raise httpx2.ReadError(f"an answer has more than {LONGEST_LINE:,} bytes")
        response.stream = httpx2.ByteStream(bytes(data))
        return response
