"""The server behind `/mcp`, made with the library: imported when the first program comes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from importlib.metadata import version
from typing import Any, Final

import mcp_types as types
from mcp.server import Server
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser, AuthorizationContext
from mcp.server.auth.provider import AccessToken
from mcp.server.context import ServerRequestContext
from mcp.server.streamable_http import MCP_SESSION_ID_HEADER, StreamableHTTPServerTransport
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourceUpdated
from mcp.server.transport_security import RequestBodyLimitMiddleware
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from antiphon_kernel.kernel import Kernel
from antiphon_kernel.layout import is_path
from antiphon_kernel.server.authentication import AuthenticatedSession
from antiphon_kernel.server.limits import ServerLimits
from antiphon_kernel.server.mcp.clients import McpClient, McpClients
from antiphon_kernel.server.mcp.tools import OFFERS, call_tool, explained, listed_tools
from antiphon_kernel.types.errors import AntiphonError
from antiphon_kernel.types.quoting import quote

_Context = ServerRequestContext[Any, Any]
_Page = types.PaginatedRequestParams | None

_SCHEME: Final = "antiphon://"
_TEXT: Final = "text/markdown"

_OPENING_BYTES: Final = 64 * 2**10
"""A program's account of itself, which is kept for as long as its session."""

_PAUSE_SECONDS: Final = 0.2
"""A block that is being written is told of no more often than this."""

VISIT: Final = "antiphon.visit"
"""The key of the `AuthenticatedSession` of a request in its scope."""

_INSTRUCTIONS: Final = (
    "antiphon is an editor in which people and models write in the same documents at the same time."
    " A context is a conversation and a document: blocks in order. Others write while you do: read"
    " a block before you edit it, and give its version. What you write carries your name."
)


def user_of(visit: AuthenticatedSession) -> AuthenticatedUser:
    """Return whom a session of MCP belongs to: nobody else comes into it with its number."""
    by = visit.actor
    subject = f"{by.credential} {by.within}" if visit.is_guest else None
    token = AccessToken(token="", client_id=by.principal.id, scopes=[], subject=subject)
    return AuthenticatedUser(token)


class SessionManager(StreamableHTTPSessionManager):
    """The sessions of all clients, so many of each guest; guests leave as many for the others."""

    def __init__(self, server: Server[Any], clients: McpClients, limits: ServerLimits) -> None:
        super().__init__(
            server, max_request_body_size=limits.request, max_sessions=limits.connections
        )
        self._clients, self._limits = clients, limits

    async def _handle_stateful_request(self, scope: Scope, receive: Receive, send: Send) -> None:
        handle: ASGIApp = super()._handle_stateful_request
        if MCP_SESSION_ID_HEADER not in Headers(scope=scope):
            handle = RequestBodyLimitMiddleware(handle, _OPENING_BYTES)
        await handle(scope, receive, send)

    def _admit_session(
        self, requestor: AuthorizationContext | None
    ) -> StreamableHTTPServerTransport | None:
        if requestor is not None and requestor["subject"] is not None:
            guests = [one for one in self._session_owners.values() if one["subject"] is not None]
            each = self._limits.connections_each
            if guests.count(requestor) >= each or len(guests) >= self._limits.connections - each:
                return None
        return super()._admit_session(requestor)

    async def _discard_session(
        self, session_id: str, transport: StreamableHTTPServerTransport
    ) -> None:
        self._clients.end(session_id)
        await super()._discard_session(session_id, transport)


def make_server(kernel: Kernel, clients: McpClients) -> Server[Any]:
    """Return a server with the tools and the resources of a kernel."""
    made = McpService(kernel, clients)
    return Server(
        "antiphon",
        version=version("antiphon"),
        instructions=_INSTRUCTIONS,
        get_tool_input_schema=lambda _: None,  # no parameter is repeated in a header
        on_list_tools=made.list_tools,
        on_call_tool=made.call_tool,
        on_list_resources=made.list_resources,
        on_list_resource_templates=made.list_templates,
        on_read_resource=made.read_resource,
        on_subscribe_resource=made.subscribe,
        on_unsubscribe_resource=made.unsubscribe,
        on_subscriptions_listen=made.listen,
    )


class McpService:
    """The requests of MCP that are about a kernel."""

    def __init__(self, kernel: Kernel, clients: McpClients) -> None:
        self._kernel = kernel
        self._clients = clients

    async def list_tools(self, _: _Context, __: _Page) -> types.ListToolsResult:
        """List all tools, to everybody: what one may not do is said when it is called."""
        # It takes a while the first time, in which people go on typing.
        tools = await asyncio.to_thread(listed_tools, self._kernel.registry)
        return types.ListToolsResult(tools=tools)

    async def call_tool(
        self, ctx: _Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        """Call a tool; what it fails with is a result that a model can read."""
        if params.name not in OFFERS:
            said = f"Unknown tool: {quote(params.name)}; there are: {', '.join(OFFERS)}."
            raise MCPError(types.INVALID_PARAMS, said)
        client, structured = await self._client(ctx), None
        call = call_tool(client.caller, params.name, params.arguments or {})
        try:
            structured = await client.run(call)
            text = json.dumps(structured, ensure_ascii=False)
        except AntiphonError as error:
            text = explained(error)
        return types.CallToolResult(
            content=[types.TextContent(text=text)],
            structured_content=structured,
            is_error=structured is None,
        )

    async def list_resources(self, ctx: _Context, params: _Page) -> types.ListResourcesResult:
        """List the blocks of the contexts, page by page.

        A cursor is the block to go on behind, or the context to go on with.
        """
        client = await self._client(ctx)
        cursor = params.cursor if params is not None and params.cursor else ""
        listed = (await self._call(client, "context.list", {}, cursor))["contexts"]
        ids = [one["context_id"] for one in listed if "damaged" not in one]
        here = cursor.partition(".")[0] or ids[0]
        if here not in ids:
            raise MCPError(types.INVALID_PARAMS, f"Unknown cursor {quote(cursor)}: list anew.")
        place = {"after_block": cursor} if "." in cursor else {}
        page = await self._call(client, "block.list", {"context": here, **place}, cursor)
        following = ids[ids.index(here) + 1 :]
        return types.ListResourcesResult(
            resources=[_resource(one) for one in page["blocks"]],
            next_cursor=page["next"] if page["truncated"] else next(iter(following), None),
        )

    async def list_templates(self, _: _Context, __: _Page) -> types.ListResourceTemplatesResult:
        """Say how the URI of a block is made."""
        template = types.ResourceTemplate(
            name="block",
            uri_template=f"{_SCHEME}{{context}}/{{+block}}",
            description="A block: label of its context, and AUTHOR.NUMBER or its path.",
            mime_type=_TEXT,
        )
        return types.ListResourceTemplatesResult(resource_templates=[template])

    async def read_resource(
        self, ctx: _Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        """Read a block as text."""
        client, uri = await self._client(ctx), params.uri
        found = await self._call(client, "block.render", {"block_id": _reference(uri)}, uri)
        text = types.TextResourceContents(uri=uri, mime_type=_TEXT, text=found["text"])
        return types.ReadResourceResult(contents=[text])

    async def subscribe(
        self, ctx: _Context, params: types.SubscribeRequestParams
    ) -> types.EmptyResult:
        """Tell of changes of a block on the stream of the session (2025-11-25)."""
        client, uri = await self._client(ctx), params.uri
        telling = await self._telling(client, uri, ctx.session.send_resource_updated)
        await self.unsubscribe(ctx, params)
        client.telling[uri] = telling
        return types.EmptyResult()

    async def unsubscribe(
        self, ctx: _Context, params: types.SubscribeRequestParams | types.UnsubscribeRequestParams
    ) -> types.EmptyResult:
        """Tell of it no more."""
        if (telling := (await self._client(ctx)).telling.pop(params.uri, None)) is not None:
            telling.cancel()
        return types.EmptyResult()

    async def listen(
        self, ctx: _Context, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        """Tell of changes of blocks for as long as the answer is read (2026-07-28).

        Blocks that are not there, or that the caller may not read, are left out of what is
        acknowledged.
        """
        client, bus = await self._client(ctx), InMemorySubscriptionBus()
        handler, telling = ListenHandler(bus), dict[str, asyncio.Task[None]]()

        async def publish(uri: str) -> None:
            await bus.publish(ResourceUpdated(uri=uri))

        try:
            for uri in dict.fromkeys(params.notifications.resource_subscriptions or ()):
                with suppress(MCPError):
                    telling[uri] = await self._telling(client, uri, publish)
            every = asyncio.gather(*telling.values(), return_exceptions=True)
            ended = every if telling else client.gone
            ended.add_done_callback(lambda _: handler.close())
            told = types.SubscriptionFilter(resource_subscriptions=list(telling))
            return await handler(ctx, types.SubscriptionsListenRequestParams(notifications=told))
        finally:
            for one in telling.values():
                one.cancel()

    async def _telling(
        self, client: McpClient, uri: str, tell: Callable[[str], Awaitable[None]]
    ) -> asyncio.Task[None]:
        """Tell of changes of a block until nobody wants to hear of it any more."""
        subscribe = {"block_ids": [_reference(uri)]}
        begun = await self._call(client, "block.subscribe", subscribe, uri)
        subscriptions = self._kernel.subscriptions
        subscriptions.claim(client.actor.session)
        followed = subscriptions.find(client.actor, begun["subscription"])

        async def follow() -> None:
            try:
                async for _ in followed:
                    followed.skip()
                    await tell(uri)
                    await asyncio.sleep(_PAUSE_SECONDS)
            except AntiphonError:
                pass  # whoever reads the block again is told why
            finally:
                with suppress(AntiphonError):  # it has ended with its session, or its kernel
                    await client.caller.call("block.unsubscribe", {"subscription": followed.id})
                subscriptions.end(followed)

        return asyncio.create_task(follow())

    async def _client(self, ctx: _Context) -> McpClient:
        assert ctx.request is not None
        said = ctx.session.client_params
        name = said.client_info.name if said is not None else ""
        is_stateless = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
        session = "" if is_stateless else ctx.request.headers[MCP_SESSION_ID_HEADER]
        try:
            return await self._clients.acting(ctx.request.scope[VISIT], session, name)
        except AntiphonError as error:
            raise MCPError(types.INVALID_REQUEST, error.message) from error

    async def _call(
        self, client: McpClient, tool: str, params: dict[str, Any], uri: str
    ) -> dict[str, Any]:
        try:
            return await client.caller.call(tool, params)
        except AntiphonError as error:
            said = f"{quote(uri)}: {explained(error)}"
            raise MCPError(types.INVALID_PARAMS, said, {"uri": uri}) from error


def _resource(block: dict[str, Any]) -> types.Resource:
    label, _, rest = block["name"].partition(".")
    return types.Resource(
        uri=f"{_SCHEME}{label}/{rest}",
        name=block["name"],
        title=block["summary"] or block["name"],
        description=f"{block['kind']} of {block['username']}",
        mime_type=_TEXT,
    )


def _reference(uri: str) -> str:
    """Return the block of a URI as tools take it; raises MCPError if it is none of ours."""
    context, _, block = uri.removeprefix(_SCHEME).partition("/")
    if not uri.startswith(_SCHEME) or not context or not block:
        said = f"Unknown resource {quote(uri)}: resources/list shows those that there are."
        raise MCPError(types.INVALID_PARAMS, said, {"uri": uri})
    return f"{context}/{block}" if is_path(block) else f"{context}.{block}"
