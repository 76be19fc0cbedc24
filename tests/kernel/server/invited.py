"""People who were invited, at every door."""

from __future__ import annotations

import asyncio
import http.client
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from antiphon_kernel.client.address import KernelAddress
from antiphon_kernel.client.tool_client import ToolClient
from antiphon_kernel.types.errors import AntiphonError
from tests.kernel.served import RawClient, ServedKernel
from tests.waiting import PATIENCE

REVOKED, KICKED, ROLE_CHANGED, REFUSED, UNAUTHORISED = 4410, 4411, 4500, 4403, 4401


async def invite(served: ServedKernel, role: str = "editor", **params: Any) -> dict[str, Any]:
    return await served.call("kernel.invite", role=role, **params)


def as_invited(served: ServedKernel, token: str, secret: str | None = None) -> KernelAddress:
    """Return the kernel's address for somebody with this token; `secret` is the client's own."""
    return served.locate_tcp().model_copy(update={"token": token, "client": secret})


@dataclass(frozen=True)
class Answered:
    """Answer to one request."""

    status: int
    headers: dict[str, str]
    body: Any


async def answered(
    served: ServedKernel, method: str, path: str, body: bytes, **headers: str
) -> Answered:
    def request() -> Answered:
        connection = http.client.HTTPConnection(
            urlsplit(served.doors.http).netloc, timeout=PATIENCE
        )
        try:
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            said = {name.lower(): value for name, value in response.getheaders()}
            return Answered(response.status, said, json.loads(response.read()))
        finally:
            connection.close()

    return await asyncio.to_thread(request)


@asynccontextmanager
async def calls_of(
    served: ServedKernel, token: str, secret: str | None = None, as_name: str | None = None
) -> AsyncIterator[ToolClient]:
    calls = ToolClient(lambda: as_invited(served, token, secret), as_name=as_name)
    try:
        yield calls
    finally:
        await calls.close()


async def who(served: ServedKernel, token: str, secret: str | None = None) -> tuple[str, str]:
    """Name and role of whoever comes with a token."""
    async with calls_of(served, token, secret) as calls:
        told = await calls.call("session.whoami", {})
        return told["username"], told["role"]


async def refusal(served: ServedKernel, token: str, secret: str | None = None) -> str:
    """Why whoever comes with a token is not let in."""
    with pytest.raises(AntiphonError) as refused:
        await who(served, token, secret)
    return refused.value.message


async def sync_as(served: ServedKernel, token: str) -> RawClient:
    base = served.doors.http.replace("http", "ws", 1)
    return RawClient(await connect(f"{base}/sync/default?token={token}", compression=None))


async def call_socket(served: ServedKernel, token: str) -> ClientConnection:
    base = served.doors.http.replace("http", "ws", 1)
    return await connect(f"{base}/call?token={token}", compression=None)


async def closing(socket: ClientConnection) -> tuple[int | None, str | None]:
    with suppress(ConnectionClosed):
        while True:
            await asyncio.wait_for(socket.recv(), PATIENCE)
    return socket.close_code, socket.close_reason


async def post(
    served: ServedKernel, token: str, tool: str, params: object
) -> tuple[int, dict[str, Any]]:
    """A call over HTTP: status and answer."""
    body, bearer = json.dumps(params).encode(), f"Bearer {token}"
    found = await answered(served, "POST", f"/call/{tool}", body, Authorization=bearer)
    return found.status, found.body
