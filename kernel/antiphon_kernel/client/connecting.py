"""Opening a WebSocket to a kernel, over its unix socket or TCP."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any, Final
from urllib.parse import quote, urlencode, urlsplit

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus, InvalidURI

from antiphon_kernel.client.address import KernelAddress
from antiphon_kernel.types.errors import AntiphonError, ErrorCode, permission_denied

CLOSE_SECONDS: Final = 1.0


class _Socket(ClientConnection):
    async def close(self, code: int = 1000, reason: str = "") -> None:
        """Close the connection; one over which nothing can be said is dropped."""
        timer = self.loop.call_later(2 * CLOSE_SECONDS, self.transport.abort)
        try:
            await super().close(code, reason)
        finally:
            timer.cancel()


class CallNotMade(AntiphonError):
    """The kernel cannot be reached, or has ended before it began with the call."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.NO_KERNEL, message)


async def open_socket(
    address: KernelAddress, path: tuple[str, ...], *, as_name: str | None, **query: str
) -> ClientConnection:
    """Connect to the endpoint at `path`, acting as `as_name` (by default as the owner).

    Raises:
        AntiphonError: CallNotMade if nothing answers there; `permission_denied` if the kernel does
            not answer under that name.
    """
    if as_name is not None:
        query["as"] = as_name
    socket = address.reachable_socket
    if socket is None and address.socket is not None and address.token is None:
        raise CallNotMade(f"There is no connection to {address.http} at the moment.")
    target = "/" + "/".join(quote(part, safe="") for part in path)
    if query:
        target += "?" + urlencode(query)
    parts = urlsplit(address.http)
    scheme = "wss" if parts.scheme == "https" else "ws"
    base = f"{scheme}://{parts.netloc}{parts.path.rstrip('/')}"
    way: dict[str, Any] = {"additional_headers": address.headers}
    if socket is not None:
        base, way = "ws://localhost", {"unix": True, "path": str(socket)}
    try:
        return await connect(
            base + target,
            create_connection=_Socket,
            compression=None,
            max_size=None,
            close_timeout=CLOSE_SECONDS,
            **way,
            **address.options,
        )
    except InvalidStatus as error:
        response = error.response
        with suppress(ValueError, TypeError, KeyError):
            reason = str(json.loads(response.body or b"")["error"]["message"])
            raise permission_denied(reason) from error
        raise CallNotMade(
            f"No kernel answers at {address.http} (status {response.status_code}). Is it running?"
        ) from error
    except (OSError, EOFError, InvalidHandshake, InvalidURI, ConnectionClosed) as error:
        raise CallNotMade(
            f"No kernel answers at {socket or address.http} ({error}). Is it running?"
        ) from error
