"""Keys that our own server adds to ASGI scopes."""

from __future__ import annotations

from typing import Final
from urllib.parse import parse_qsl, urlencode

from starlette.types import Scope

VIA: Final = "antiphon.via"
"""The key of the transport a request came over, `unix` or `tcp`."""

TOKEN: Final = "antiphon.token"
"""The key of `?token=` in the address of a request; absent if it showed none."""

GUARD: Final = "antiphon.guard"
"""The `ConnectionGuard` of a WebSocket or of a request."""

CONNECTION: Final = "antiphon.connection"
"""The `TrackedProtocol` that a WebSocket or request came over."""


def hide_token(scope: Scope) -> None:
    """Take the token out of the address, so that whatever logs an address logs no token."""
    query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
    tokens = [value for name, value in query if name == "token"]
    if tokens:
        scope[TOKEN] = tokens[-1]
        kept = urlencode([pair for pair in query if pair[0] != "token"])
        scope["query_string"] = kept.encode("ascii")
