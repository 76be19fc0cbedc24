"""What `/mcp` serves, made with the library: imported when the first program comes."""

from __future__ import annotations

import asyncio
import json
import logging
from importlib.metadata import version
from typing import Any, Final

from mcp.server import Server
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser, AuthorizationContext
from mcp.server.auth.provider import AccessToken
from mcp.server.context import ServerRequestContext
from mcp.server.streamable_http import StreamableHTTPServerTransport
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import SUBSCRIPTION_ID_META_KEY
from mcp_types import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    CallToolRequestParams,
    CallToolResult,
    EmptyResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    ResourceUpdatedNotification,
    ResourceUpdatedNotificationParams,
    SubscribeRequestParams,
    SubscriptionFilter,
    SubscriptionsAcknowledgedNotification,
    SubscriptionsAcknowledgedNotificationParams,
    SubscriptionsListenRequestParams,
    SubscriptionsListenResult,
    TextContent,
    TextResourceContents,
    UnsubscribeRequestParams,
)

from antiphon_kernel.kernel import Kernel
from antiphon_kernel.layout import is_path
from antiphon_kernel.server.authentication import AuthenticatedSession
from antiphon_kernel.server.limits import ServerLimits
from antiphon_kernel.server.mcp.clients import McpClient, McpClients
from antiphon_kernel.server.mcp.resource_feed import ResourceFeed
from antiphon_kernel.server.mcp.tools import McpTools, explained
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.quoting import quote
from antiphon_kernel.types.records import Actor

_Context = ServerRequestContext[Any, Any]

_SCHEME: Final = "antiphon://"

_INSTRUCTIONS: Final = (
    "antiphon is an editor in which people and models write in the same documents at the same time."
    " A context is a conversation and a document: blocks in order. Others write while you do: read"
    " a block before you edit it, and give its version. What you write carries your name."
)

_logger: Final = logging.getLogger("antiphon.mcp")


def user_of(visit: AuthenticatedSession) -> AuthenticatedUser:
    """Return whom a session of MCP belongs to: nobody else comes into it with its number."""
    by = visit.actor
    subject = None if by.credential is None else f"{by.credential} {by.within}"
    return AuthenticatedUser(
        AccessToken(token="", client_id=by.principal.id, scopes=[], subject=subject)
    )


def make_manager(server: Server[Any], limits: ServerLimits) -> StreamableHTTPSessionManager:
    """Return what keeps the sessions of a server."""
    return _SessionManager(
        server,
        limits.connections_each,
        session_idle_timeout=limits.mcp_session,
        max_request_body_size=limits.request,
        max_sessions=limits.connections,
    )


class _SessionManager(StreamableHTTPSessionManager):
    """The sessions of all clients, so many of each guest."""

    def __init__(self, server: Server[Any], each: int, **options: Any) -> None:
        super().__init__(server, **options)
        self._each = each

    def _admit_session(
        self, requestor: AuthorizationContext | None
    ) -> StreamableHTTPServerTransport | None:
        is_guest = requestor is not None and requestor["subject"] is not None
        held = sum(one == requestor for one in self._session_owners.values()) if is_guest else 0
        return super()._admit_session(requestor) if held < self._each else None


def make_server(kernel: Kernel, clients: McpClients) -> Server[Any]:
    """Return a server with the tools and the resources of a kernel."""
    made = McpService(kernel, clients)
    return Server(
        "antiphon",
        version=version("antiphon"),
        instructions=_INSTRUCTIONS,
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
        self._tools = McpTools(kernel)
        self._telling: set[asyncio.Task[None]] = set()

    async def list_tools(self, _: _Context, __: PaginatedRequestParams | None) -> ListToolsResult:
        """List all tools, to everybody: what one may not do is said when it is called."""
        return ListToolsResult(tools=self._tools.listed)

    async def call_tool(self, ctx: _Context, params: CallToolRequestParams) -> CallToolResult:
        """Call a tool; what it fails with is a result that a model can read."""
        if params.name not in self._tools:
            names = ", ".join(one.name for one in self._tools.listed)
            said = f"Unknown tool: {quote(params.name)}; there are: {names}."
            raise MCPError(INVALID_PARAMS, said)
        client = await self._client(ctx)
        try:
            result = await self._tools.call(client.actor, params.name, params.arguments or {})
        except AntiphonError as error:
            return CallToolResult(content=[TextContent(text=explained(error))], is_error=True)
        text = json.dumps(result, ensure_ascii=False)
        return CallToolResult(content=[TextContent(text=text)], structured_content=result)

    async def list_resources(
        self, ctx: _Context, params: PaginatedRequestParams | None
    ) -> ListResourcesResult:
        """List the blocks of the contexts, some of one context at a time."""
        actor = (await self._client(ctx)).actor
        cursor = (params.cursor if params is not None else None) or ""
        context, _, after = cursor.partition(" ")
        listed = await self._kernel.call(actor, "context.list", {})
        ids = [one["context_id"] for one in listed["contexts"] if "damaged" not in one]
        if context and context not in ids:
            raise MCPError(INVALID_PARAMS, f"Unknown cursor {quote(cursor)}: list anew.")
        for here in ids[ids.index(context) if context else 0 :]:
            place = {"after_block": after} if after and here == context else {}
            page = await self._call(actor, "block.list", {"context": here, **place}, cursor)
            at = f"{here} {page['next']}" if page["truncated"] else _following(ids, here)
            if page["blocks"] or at is None:
                found = [_resource(one) for one in page["blocks"]]
                return ListResourcesResult(resources=found, next_cursor=at)
        return ListResourcesResult(resources=[])

    async def list_templates(
        self, _: _Context, __: PaginatedRequestParams | None
    ) -> ListResourceTemplatesResult:
        """Say how the URI of a block is made."""
        template = ResourceTemplate(
            name="block",
            uri_template=f"{_SCHEME}{{context}}/{{+block}}",
            description="A block: label of its context, and AUTHOR.NUMBER or its path.",
            mime_type="text/markdown",
        )
        return ListResourceTemplatesResult(resource_templates=[template])

    async def read_resource(
        self, ctx: _Context, params: ReadResourceRequestParams
    ) -> ReadResourceResult:
        """Read a block as text."""
        actor, uri = (await self._client(ctx)).actor, params.uri
        found = await self._call(actor, "block.render", {"block_id": _reference(uri)}, uri)
        text = TextResourceContents(uri=uri, mime_type="text/markdown", text=found["text"])
        return ReadResourceResult(contents=[text])

    async def subscribe(self, ctx: _Context, params: SubscribeRequestParams) -> EmptyResult:
        """Tell of changes of a block on the stream of the session (2025-11-25)."""
        client, uri = await self._client(ctx), params.uri
        feed = ResourceFeed(self._kernel, client.actor)
        try:
            await feed.follow(uri, _reference(uri))
        except AntiphonError as error:
            raise _not_found(uri, error) from error
        if (before := client.feeds.pop(uri, None)) is not None:
            before.close()
        client.feeds[uri] = feed

        async def tell() -> None:
            async for one in feed.changes():
                await ctx.session.send_resource_updated(one)

        telling = asyncio.create_task(tell(), name=f"updates of {uri}")
        self._telling.add(telling)
        telling.add_done_callback(self._has_told)
        return EmptyResult()

    async def unsubscribe(self, ctx: _Context, params: UnsubscribeRequestParams) -> EmptyResult:
        """Tell of it no more."""
        if (feed := (await self._client(ctx)).feeds.pop(params.uri, None)) is not None:
            feed.close()
        return EmptyResult()

    async def listen(
        self, ctx: _Context, params: SubscriptionsListenRequestParams
    ) -> SubscriptionsListenResult:
        """Tell of changes of blocks for as long as the answer is read (2026-07-28).

        Blocks that are not there, or that the caller may not read, are left out of what is
        acknowledged.
        """
        client = await self._client(ctx)
        feed, honoured = ResourceFeed(self._kernel, client.actor), list[str]()
        meta: dict[str, Any] = {SUBSCRIPTION_ID_META_KEY: ctx.request_id}
        try:
            with self._clients.streaming(client.actor.session):
                for uri in dict.fromkeys(params.notifications.resource_subscriptions or ()):
                    try:
                        await feed.follow(uri, _reference(uri))
                    except (AntiphonError, MCPError):
                        continue
                    honoured.append(uri)
                acknowledged = SubscriptionsAcknowledgedNotificationParams(
                    notifications=SubscriptionFilter(resource_subscriptions=honoured or None),
                    _meta=meta,
                )
                await ctx.session.send_notification(
                    SubscriptionsAcknowledgedNotification(params=acknowledged), ctx.request_id
                )
                async for uri in feed.changes():
                    updated = ResourceUpdatedNotificationParams(uri=uri, _meta=meta)
                    await ctx.session.send_notification(
                        ResourceUpdatedNotification(params=updated), ctx.request_id
                    )
        finally:
            feed.close()
        return SubscriptionsListenResult(_meta=meta)

    async def _client(self, ctx: _Context) -> McpClient:
        assert ctx.request is not None
        said = ctx.session.client_params
        name = said.client_info.name if said is not None else None
        try:
            return await self._clients.acting(ctx.request.scope, name)
        except AntiphonError as error:
            raise MCPError(INVALID_REQUEST, error.message) from error

    async def _call(
        self, actor: Actor, tool: str, params: dict[str, Any], uri: str
    ) -> dict[str, Any]:
        try:
            return await self._kernel.call(actor, tool, params)
        except AntiphonError as error:
            raise _not_found(uri, error) from error

    def _has_told(self, telling: asyncio.Task[None]) -> None:
        self._telling.discard(telling)
        if not telling.cancelled() and (error := telling.exception()) is not None:
            _logger.error("a program could not be told of a change", exc_info=error)


def _following(ids: list[str], one: str) -> str | None:
    at = ids.index(one) + 1
    return ids[at] if at < len(ids) else None


def _resource(block: dict[str, Any]) -> Resource:
    label, _, rest = block["name"].partition(".")
    return Resource(
        uri=f"{_SCHEME}{label}/{rest}",
        name=block["name"],
        title=block["summary"] or block["name"],
        description=f"{block['kind']} of {rest.partition('.')[0]}",
        mime_type="text/markdown",
    )


def _reference(uri: str) -> str:
    """Return the block of a URI as tools take it.

    Raises:
        MCPError: if it is none of ours.
    """
    context, slash, block = uri.removeprefix(_SCHEME).partition("/")
    if not uri.startswith(_SCHEME) or not slash or not context or not block:
        raise MCPError(
            INVALID_PARAMS,
            f"Unknown resource {quote(uri)}: expected {_SCHEME}CONTEXT/BLOCK, as resources/list"
            " shows them.",
            {"uri": uri},
        )
    return f"{context}/{block}" if is_path(block) else f"{context}.{block}"


def _not_found(uri: str, error: AntiphonError) -> MCPError:
    missing = error.code in (ErrorCode.BLOCK_NOT_FOUND, ErrorCode.CONTEXT_NOT_FOUND)
    said = f"Unknown resource {quote(uri)}" if missing else quote(uri)
    return MCPError(INVALID_PARAMS, f"{said}: {explained(error)}", {"uri": uri})
