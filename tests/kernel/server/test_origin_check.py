"""Host and Origin: a page in a browser reaches the loopback interface, and is not answered."""

from __future__ import annotations

import json

import pytest
from websockets.asyncio.client import connect, unix_connect
from websockets.exceptions import InvalidStatus
from websockets.typing import Origin

from tests.kernel.served import ServedKernel
from tests.kernel.server.test_rpc import answered

FOREIGN: list[dict[str, str]] = [
    {"Host": "evil.example"},
    {"Host": "evil.example:80"},
    {"Host": "localhost.evil.example"},
    {"Host": "127.0.0.1.evil.example"},
    {"Host": "127.0.0.1@evil.example"},
    {"Host": "10.0.0.1"},
    {"Host": "0.0.0.0"},
    {"Host": "[::2]:80"},
    {"Host": ""},
    {"Origin": "https://evil.example"},
    {"Origin": "http://localhost.evil.example"},
    {"Origin": "http://localhost@evil.example"},
    {"Origin": "null"},
    {"Origin": "file://"},
    {"Origin": ""},
    {"Origin": "tauri://localhost"},
    {"Origin": "chrome-extension://localhost"},
    {"Origin": "//localhost"},
]
OWN: list[dict[str, str]] = [
    {},
    {"Host": "localhost"},
    {"Host": "LocalHost:8123"},
    {"Host": "127.0.0.1:1"},
    {"Host": "127.1.2.3:8123"},
    {"Host": "[::1]:8123"},
    {"Origin": "http://localhost:3000"},
    {"Origin": "https://127.0.0.1"},
    {"Origin": "http://[::1]:3000"},
]
PATHS = [("GET", "/health"), ("POST", "/call/session.whoami"), ("GET", "/nowhere")]


def bearer(served: ServedKernel, headers: dict[str, str]) -> dict[str, str]:
    return {"Authorization": f"Bearer {served.doors.token}", **headers}


@pytest.mark.parametrize("headers", FOREIGN, ids=str)
async def test_request_from_elsewhere_is_refused_at_every_path(
    served: ServedKernel, headers: dict[str, str]
) -> None:
    for method, path in PATHS:
        found = await answered(served, method, path, b"{}", **bearer(served, headers))
        assert (found.status, found.body["error"]["code"]) == (403, "permission_denied")
        assert served.kernel.id not in json.dumps(found.body)


@pytest.mark.parametrize("headers", OWN, ids=str)
async def test_request_from_this_machine_is_answered(
    served: ServedKernel, headers: dict[str, str]
) -> None:
    statuses = [
        (await answered(served, method, path, b"{}", **bearer(served, headers))).status
        for method, path in PATHS
    ]
    assert statuses == [200, 200, 404]


@pytest.mark.parametrize("path", ["/call", "/sync/default"])
async def test_websocket_from_elsewhere_is_refused_in_the_handshake(
    served: ServedKernel, path: str
) -> None:
    port, token = served.doors.port, served.doors.token
    uri = f"ws://127.0.0.1:{port}{path}?token={token}"
    with pytest.raises(InvalidStatus) as refused:
        await connect(uri, origin=Origin("https://evil.example"))
    response = refused.value.response
    assert response.status_code == 403
    error = json.loads(response.body or b"")["error"]
    assert error["code"] == "permission_denied" and "evil.example" in error["message"]
    assert token not in str(error)
    with pytest.raises(InvalidStatus, match="403"):
        await connect(uri.replace("127.0.0.1", "evil.example"), host="127.0.0.1", port=port)
    async with connect(uri, origin=Origin("http://localhost:3000")):
        pass


async def test_unix_socket_is_answered_under_any_name(served: ServedKernel) -> None:
    path = str(served.doors.socket)
    async with unix_connect(path, "ws://anything.example/call", compression=None) as socket:
        await socket.send('{"id": 1, "tool": "session.whoami"}')
        assert "result" in json.loads(await socket.recv())


async def test_token_in_the_address_of_a_request_is_not_taken(served: ServedKernel) -> None:
    path = f"/call/session.whoami?token={served.doors.token}"
    found = await answered(served, "POST", path, b"{}")
    assert (found.status, found.body["error"]["code"]) == (401, "permission_denied")
    assert "Authorization: Bearer" in found.body["error"]["message"]
    found = await answered(served, "POST", path, b"{}", **bearer(served, {}))
    assert found.status == 200, "beside the header it does no harm"
