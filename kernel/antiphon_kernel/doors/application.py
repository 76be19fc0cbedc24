"""All doors as one ASGI application."""

from __future__ import annotations

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.types import ASGIApp

from antiphon_kernel.doors.calls import Calls
from antiphon_kernel.doors.leash import on_leashes
from antiphon_kernel.doors.sync.server import SyncDoor
from antiphon_kernel.kernel.kernel import Kernel


def build_application(kernel: Kernel, calls: Calls, sync: SyncDoor) -> ASGIApp:
    """Routes `/sync/{context}`, `/call`, `/call/{tool}` and `/health`."""

    async def health(_: Request) -> Response:
        return JSONResponse({"kernel": kernel.id})

    application = Starlette(
        routes=[
            WebSocketRoute("/sync/{context}", sync),
            WebSocketRoute("/call", calls.socket),
            Route("/call/{tool:path}", calls.post, methods=["POST"]),
            Route("/health", health),
        ]
    )
    return on_leashes(application)
