"""The door of `/mcp`: who comes in, as at every other endpoint; the library is imported by then."""

from __future__ import annotations

import asyncio
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from antiphon_kernel.kernel import Kernel
from antiphon_kernel.server.authentication import Authenticator
from antiphon_kernel.server.forwarding import Forwarder
from antiphon_kernel.server.limits import ServerLimits
from antiphon_kernel.server.mcp.clients import McpClients
from antiphon_kernel.server.rpc import refusal
from antiphon_kernel.types.errors import AntiphonError, ErrorCode

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

PATH: Final = "/mcp"
METADATA_PATH: Final = "/.well-known/oauth-protected-resource"

_SERVICE: Final = "antiphon_kernel.server.mcp.service"
_INVALID_REQUEST: Final = -32600
_INSTALL: Final = "pip install 'antiphon[agents]'"


class McpEndpoint:
    """Requests of both eras of MCP: with sessions (2025-11-25) and without (2026-07-28)."""

    def __init__(
        self, kernel: Kernel, access: Authenticator, forwarder: Forwarder, limits: ServerLimits
    ) -> None:
        self._clients = McpClients(kernel, forwarder, limits.mcp_idle)
        self._kernel = kernel
        self._access = access
        self._limits = limits
        self._starting = asyncio.Lock()
        self._service: tuple[ModuleType, StreamableHTTPSessionManager] | None = None
        self._serving: asyncio.Task[None] | None = None
        self._closing = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            async with self._access.session(scope) as visit:
                await self._access.before_call(visit)
                service, manager = await self._start()
                scope[service.VISIT], scope["user"] = visit, service.user_of(visit)
                await manager.handle_request(scope, receive, send)
                return
        except AntiphonError as error:
            status, headers = refusal(error).status_code, {}
            if status == 401:
                where = f"{Request(scope).base_url}{METADATA_PATH[1:]}{PATH}"
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
        await self._clients.stop()
        self._closing.set()
        if self._serving is not None:
            await self._serving

    async def _start(self) -> tuple[ModuleType, StreamableHTTPSessionManager]:
        """Return what serves the sessions; raises AntiphonError if its library is not there."""
        async with self._starting:
            if self._service is None:
                try:
                    # It takes a second or so, in which people go on typing.
                    self._service = await asyncio.to_thread(self._make)
                except ModuleNotFoundError as error:
                    said = f"This kernel serves no MCP ({error}): run  {_INSTALL}  where it runs."
                    raise AntiphonError(ErrorCode.UNKNOWN_TOOL, said) from error
                started = asyncio.Event()
                serving = self._run(self._service[1], started)
                self._serving = asyncio.create_task(serving, name="MCP")
                await started.wait()
            return self._service

    def _make(self) -> tuple[ModuleType, StreamableHTTPSessionManager]:
        service = import_module(_SERVICE)
        server = service.make_server(self._kernel, self._clients)
        return service, service.SessionManager(server, self._clients, self._limits)

    async def _run(self, manager: StreamableHTTPSessionManager, started: asyncio.Event) -> None:
        async with manager.run():
            started.set()
            await self._closing.wait()
