"""Keys that our own server adds to ASGI scopes."""

from __future__ import annotations

from collections.abc import Callable
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

CUT_EXTENSION: Final = "antiphon.cut"
"""Extension of our server; `cut` in it is a function that drops the connection at once."""

SEND_EXTENSION: Final = "antiphon.send"
"""Extension of our server; `send_now` in it is a function that takes a whole WebSocket message as
it goes over the connection, and answers whether it was sent: not if it would have to wait."""

RECEIVE_EXTENSION: Final = "antiphon.receive"
"""Extension of our server; `deliver_to` in it takes a `Deliver`, which gets binary messages ahead
of the queue while that is empty, and `hold` reads nothing more for some seconds."""

WAITING_EXTENSION: Final = "antiphon.waiting"
"""Extension of our server; `waiting` in it is a function that says how many messages are here."""

Deliver = Callable[[list[bytes]], int]
"""Takes in messages; how many of them, from the first on, it has taken: the rest has to wait."""


def hide_token(scope: Scope) -> None:
    """Take the token out of the address, so that whatever logs an address logs no token."""
    query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
    tokens = [value for name, value in query if name == "token"]
    if tokens:
        scope[TOKEN] = tokens[-1]
        kept = urlencode([pair for pair in query if pair[0] != "token"])
        scope["query_string"] = kept.encode("ascii")
