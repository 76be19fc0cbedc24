"""The door of `/mcp`: who comes in, as at every other endpoint; the library is imported by then."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import nullcontext
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import Message, Receive, Scope, Send

from antiphon_kernel.kernel import Kernel
from antiphon_kernel.server.authentication import Authenticator
from antiphon_kernel.server.limits import ServerLimits
from antiphon_kernel.server.mcp.clients import SESSION_HEADER, VISIT, McpClients
from antiphon_kernel.server.rpc import refusal
from antiphon_kernel.types.errors import AntiphonError, ErrorCode

if TYPE_CHECKING:
    from mcp.server import Server
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

PATH: Final = "/mcp"
METADATA_PATH: Final = "/.well-known/oauth-protected-resource"

_SERVICE: Final = "antiphon_kernel.server.mcp.service"
_INVALID_REQUEST: Final = -32600
_INSTALL: Final = "pip install 'antiphon[agents]'"

_logger: Final = logging.getLogger("antiphon.mcp")


class McpEndpoint:
    """Requests of both eras of MCP: with sessions (2025-11-25) and without (2026-07-28)."""

    make_server: Callable[[Kernel, McpClients], Server[Any]] | None = None
    """Maker of the server; the tools and resources of the kernel if None."""

    def __init__(self, kernel: Kernel, access: Authenticator, limits: ServerLimits) -> None:
        self.clients = McpClients(kernel, limits)
        self._kernel = kernel
        self._access = access
        self._limits = limits
        self._starting = asyncio.Lock()
        self._service: tuple[ModuleType, StreamableHTTPSessionManager] | None = None
        self._serving: asyncio.Task[None] | None = None
        self._closing = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope)
        try:
            async with self._access.session(scope) as visit:
                await self._access.before_call(visit)
                service, manager = await self._start()
                scope[VISIT], scope["user"] = visit, service.user_of(visit)
                await self._serve(manager, request, receive, send)
                return
        except AntiphonError as error:
            status, headers = refusal(error).status_code, {}
            if isinstance(error.__cause__, ModuleNotFoundError):
                status = 501
            elif status == 401:
                where = f"{request.base_url}{METADATA_PATH[1:]}{PATH}"
                headers["WWW-Authenticate"] = f'Bearer resource_metadata="{where}"'
            # As an answer of the protocol, whose message clients show.
            data = {"code": str(error.code)}
            said = {"code": _INVALID_REQUEST, "message": error.message, "data": data}
            answer = {"jsonrpc": "2.0", "id": None, "error": said}
            await JSONResponse(answer, status, headers)(scope, receive, send)

    async def metadata(self, request: Request) -> Response:
        """Say how one gets in here (RFC 9728): with a token that the owner hands out."""
        return JSONResponse(
            {
                "resource": f"{request.base_url}{PATH[1:]}",
                "resource_name": "antiphon",
                "bearer_methods_supported": ["header"],
            }
        )

    async def stop(self) -> None:
        """End every session and stream."""
        await self.clients.end()
        self._closing.set()
        if self._serving is not None:
            await self._serving

    async def _serve(
        self, manager: StreamableHTTPSessionManager, request: Request, receive: Receive, send: Send
    ) -> None:
        session, status = request.headers.get(SESSION_HEADER, ""), 0

        async def watch(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        is_stream = request.method == "GET" and session
        with self.clients.streaming(session) if is_stream else nullcontext():
            await manager.handle_request(request.scope, receive, watch)
        if request.method == "DELETE" and status == 200:
            await self.clients.end(session)

    async def _start(self) -> tuple[ModuleType, StreamableHTTPSessionManager]:
        """Return what serves the sessions, begun when the first client comes.

        Raises:
            AntiphonError: if the library is not installed.
        """
        async with self._starting:
            if self._service is None:
                try:
                    # It takes a second or so, in which people go on typing.
                    service, server = await asyncio.to_thread(self._make)
                except ModuleNotFoundError as error:
                    said = f"This kernel serves no MCP ({error}): run  {_INSTALL}  where it runs."
                    raise AntiphonError(ErrorCode.UNKNOWN_TOOL, said) from error
                manager = service.SessionManager(server, self._limits)
                started = asyncio.Event()
                self._serving = asyncio.create_task(self._run(manager, started), name="MCP")
                await started.wait()
                self._service = service, manager
            return self._service

    def _make(self) -> tuple[ModuleType, Server[Any]]:
        service = import_module(_SERVICE)
        make = self.make_server or service.make_server
        return service, make(self._kernel, self.clients)

    async def _run(self, manager: StreamableHTTPSessionManager, started: asyncio.Event) -> None:
        try:
            async with manager.run():
                started.set()
                await self._closing.wait()
        except Exception:
            _logger.exception("the sessions of MCP have failed")
