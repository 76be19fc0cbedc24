"""All endpoints as one ASGI application."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.types import ASGIApp

from antiphon_kernel.kernel import Kernel
from antiphon_kernel.server.connection_guard import with_connection_guard
from antiphon_kernel.server.rpc import MESSAGE_TOOLS, Endpoint, RpcEndpoint
from antiphon_kernel.server.sync.endpoint import SyncEndpoint
from antiphon_kernel.server.transfers import Transfers
from antiphon_kernel.types.errors import AntiphonError, ErrorCode, invalid_params
from antiphon_kernel.types.quoting import quote, truncate


def routes(
    kernel: Kernel, calls: RpcEndpoint, sync: SyncEndpoint, transfers: Transfers
) -> list[Route | WebSocketRoute]:
    """Return every endpoint: documents, tool calls, exports and imports, and `/health`."""

    async def health(_: Request) -> Response:
        return JSONResponse({"kernel": kernel.id})

    return [
        WebSocketRoute("/sync/{context}", sync),
        WebSocketRoute("/call", calls.socket),
        Route("/call/{tool:path}", Endpoint(calls.post), methods=["POST"]),
        *(Route(path, Endpoint(calls.message), methods=[method]) for method, path in MESSAGE_TOOLS),
        Route("/export", Endpoint(transfers.export), methods=["GET"]),
        Route("/import", Endpoint(transfers.import_), methods=["POST"]),
        Route("/health", health),
    ]


def build_application(
    kernel: Kernel, calls: RpcEndpoint, sync: SyncEndpoint, transfers: Transfers
) -> ASGIApp:
    """Return all endpoints as one application."""
    application = Starlette(
        exception_handlers={404: _not_here, 405: _not_so},
        routes=routes(kernel, calls, sync, transfers),
    )
    # What comes to another path is refused: a redirected call would be answered by no error.
    application.router.redirect_slashes = False
    return with_connection_guard(application)


def _not_here(request: Request, _: Exception) -> Response:
    return _refusal(
        404,
        AntiphonError(
            ErrorCode.UNKNOWN_TOOL,
            f"Nothing answers at {quote(request.url.path)}: POST the parameters of a tool to"
            " /call/TOOL.",
            tool=truncate(request.url.path),
        ),
    )


def _not_so(request: Request, error: Exception) -> Response:
    headers = error.headers if isinstance(error, HTTPException) else None
    allowed = (headers or {}).get("Allow", "")
    refusal = invalid_params(
        f"{quote(request.url.path)} does not take {truncate(request.method)}: use {allowed}.",
        allowed=sorted(allowed.split(", ")),
    )
    return _refusal(405, refusal, headers)


def _refusal(
    status: int, error: AntiphonError, headers: Mapping[str, str] | None = None
) -> Response:
    return JSONResponse({"error": error.as_json()}, status, headers)
