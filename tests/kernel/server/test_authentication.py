"""Authentication: from where clients come, who they are, tokens that they show, invitations."""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
import stat
from contextlib import suppress
from pathlib import Path

import pytest
from websockets.asyncio.client import connect, unix_connect
from websockets.exceptions import InvalidStatus
from websockets.typing import Origin

from antiphon_kernel.client.tool_client import ToolClient
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.limits import Limits
from antiphon_kernel.registry import Registry
from antiphon_kernel.server.http import is_own_user, peer_user
from antiphon_kernel.server.rate_limits import ADDRESSES, BURST, SECONDS_EACH, Rates
from antiphon_kernel.tools.all_tools import KERNEL_TOOLS
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from tests.clocks import ManualClock
from tests.kernel.served import RawClient, ServedKernel, served_kernel
from tests.kernel.server.invited import (
    UNAUTHORISED,
    answered,
    calls_of,
    invite,
    post,
    refusal,
    sync_as,
    who,
)
from tests.waiting import until


def base(served: ServedKernel) -> str:
    return served.doors.http.replace("http", "ws", 1)


async def test_connection_as_system_is_denied(served: ServedKernel) -> None:
    for path in ("/sync/default", "/call"):
        client = await served.raw(path, query="as=system")
        code, reason = await client.closed()
        assert code == 4401
        assert reason is not None and "kernel itself" in reason


async def test_tcp_needs_the_token(served: ServedKernel) -> None:
    queries = ("", "?token=wrong", "?token=")
    for path, query in itertools.product(("/sync/default", "/call"), queries):
        client = RawClient(await connect(base(served) + path + query))
        code, reason = await client.closed()
        assert code == 4401
        assert reason is not None and "token" in reason


async def test_unix_socket_needs_no_token_and_is_private(served: ServedKernel) -> None:
    path = served.doors.socket
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    client = RawClient(await unix_connect(str(path), "ws://localhost/sync/default"))
    await client.join()
    await client.socket.close()


async def test_long_socket_path_moves_to_a_short_one(tmp_path: Path) -> None:
    folder = tmp_path / ("long" * 30)
    async with served_kernel(folder) as served:
        assert len(str(served.doors.socket)) < 100
        assert (await served.replica()).document.context is not None
        place = served.doors.socket.parent
    assert not place.exists()


async def test_name_that_cannot_be_one_is_refused(served: ServedKernel) -> None:
    calls = ToolClient(served.locate, as_name="Not A Name")
    with pytest.raises(AntiphonError, match="username"):
        await calls.call("session.whoami", {})
    await calls.close()


async def test_token_is_long_random_and_only_its_hash_is_kept(served: ServedKernel) -> None:
    assert len(served.doors.token) == 43
    tokens = [(await invite(served))["token"] for _ in range(3)]
    assert len(set(tokens)) == 3 and all(len(token) == 43 for token in tokens)
    folder = served.kernel.project
    for path in folder.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            assert not any(token.encode() in content for token in tokens), path
    listed = await served.call("kernel.invites")
    assert not any(token in json.dumps(listed) for token in tokens)


async def test_logs_and_errors_contain_no_token(
    served: ServedKernel, caplog: pytest.LogCaptureFixture
) -> None:
    made = await invite(served, name="ed")
    caplog.set_level(logging.INFO)
    for name in ("", "uvicorn", "uvicorn.error", "uvicorn.access", "antiphon_kernel"):
        logging.getLogger(name).setLevel(logging.INFO)
    wrong = "w" * 43
    for token in (made["token"], wrong):
        sync = await sync_as(served, token)
        if token is wrong:
            reason = (await sync.closed())[1]
            assert wrong not in (reason or "")
        else:
            await sync.join()
        await post(served, token, "session.whoami", {})
    _, answer = await post(served, wrong, "session.whoami", {})
    assert answer["error"]["code"] == "permission_denied" and wrong not in json.dumps(answer)
    await served.call("kernel.revoke", invitation=made["invitation"])
    await refusal(served, made["token"])
    assert "ed joined" in caplog.text and "[accepted]" in caplog.text
    for token in (made["token"], wrong, served.doors.token):
        assert token not in caplog.text


async def test_wrong_tokens_are_rate_limited_and_right_ones_are_not(served: ServedKernel) -> None:
    token = (await invite(served))["token"]
    codes = []
    for number in range(BURST + 5):
        client = await sync_as(served, f"wrong{number}")
        codes.append((await client.closed())[0])
    assert codes == [UNAUTHORISED] * BURST + [4429] * 5
    assert (await who(served, token))[1] == "editor"
    assert (await who(served, served.doors.token))[1] == "owner"
    status, answer = await post(served, "wrong", "session.whoami", {})
    assert (status, answer["error"]["code"]) == (429, "rate_limited")


def test_limit_of_wrong_tokens_is_for_each_address_and_time_lifts_it() -> None:
    clock = ManualClock()
    wrong = Rates(1 / SECONDS_EACH, BURST, clock.monotonic, ADDRESSES)
    assert [wrong.take("a", 0) for _ in range(BURST + 2)] == [0] * BURST + [None] * 2
    assert wrong.take("b", 0) == 0
    clock.ms += round(2_000 * SECONDS_EACH)
    assert [wrong.take("a", 0) for _ in range(3)] == [0, 0, None]


async def test_unix_sockets_peer_is_this_user(served: ServedKernel) -> None:
    _, writer = await asyncio.open_unix_connection(str(served.doors.socket))
    user = peer_user(writer.get_extra_info("socket"))
    assert is_own_user(user)
    assert user is None or not is_own_user(user + 1)
    writer.close()
    await writer.wait_closed()


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


async def test_request_from_elsewhere_is_refused_at_every_path(served: ServedKernel) -> None:
    for headers, (method, path) in itertools.product(FOREIGN, PATHS):
        found = await answered(served, method, path, b"{}", **bearer(served, headers))
        assert (found.status, found.body["error"]["code"]) == (403, "permission_denied"), headers
        assert served.kernel.id not in json.dumps(found.body)


async def test_request_from_this_machine_is_answered(served: ServedKernel) -> None:
    for headers, (method, path) in itertools.product(OWN, PATHS):
        found = await answered(served, method, path, b"{}", **bearer(served, headers))
        assert found.status == (404 if path == "/nowhere" else 200), headers


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


async def test_invited_person_is_somebody_with_the_role_of_the_invitation(
    served: ServedKernel,
) -> None:
    made = await invite(served, "viewer", name="vera")
    assert await who(served, made["token"]) == ("vera", "viewer")
    assert made["join"] == f"antiphon join {served.doors.sync}?token={made['token']}"
    async with calls_of(served, made["token"]) as calls:
        told = await calls.call("session.whoami", {})
    assert told["principal"] == made["principal"] != served.kernel.owner.id


async def test_every_client_of_an_open_invitation_has_a_name_of_its_own(
    served: ServedKernel,
) -> None:
    token = (await invite(served))["token"]
    found = [await who(served, token, secret * 32) for secret in ("a", "b", "c", "b", "a")]
    assert [name for name, _ in found] == ["guest", "guest2", "guest3", "guest2", "guest"]
    assert {role for _, role in found} == {"editor"}


async def test_named_invitation_is_for_one_person_on_many_machines(served: ServedKernel) -> None:
    token = (await invite(served, name="ed"))["token"]
    assert {(await who(served, token, secret * 32))[0] for secret in "abc"} == {"ed"}


async def test_uses_count_clients_not_connections(served: ServedKernel) -> None:
    token = (await invite(served, uses=2))["token"]
    for secret in ("a" * 32, "a" * 32, "b" * 32, "b" * 32):
        await who(served, token, secret)
    assert "used up" in await refusal(served, token, "c" * 32)
    assert (await who(served, token, "a" * 32))[0] == "guest"


async def test_anonymous_connection_uses_invitation_each_time(served: ServedKernel) -> None:
    token = (await invite(served, uses=2))["token"]
    for _ in range(2):
        await who(served, token)
    assert "used up" in await refusal(served, token)


async def test_invitation_last_use_is_not_shared_by_concurrent_clients(
    served: ServedKernel,
) -> None:
    token = (await invite(served, uses=2))["token"]
    await who(served, token, "z" * 32)
    found = await asyncio.gather(
        *(who(served, token, secret * 32) for secret in "abcdef"), return_exceptions=True
    )
    assert sum(not isinstance(one, BaseException) for one in found) == 1


async def test_expired_invitation_lets_nobody_in(
    served: ServedKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = (await invite(served, minutes=5))["token"]
    await who(served, token)
    now = served.kernel.clock.now_ms()
    monkeypatch.setattr(served.kernel.clock, "now_ms", lambda: now + 5 * 60_000)
    assert "expired" in await refusal(served, token)


async def test_invitations_outlive_the_kernel(served: ServedKernel) -> None:
    token = (await invite(served, "viewer", name="vera", uses=1))["token"]
    await who(served, token, "a" * 32)
    await served.stop()
    await served.start()
    assert await who(served, token, "a" * 32) == ("vera", "viewer")
    assert "used up" in await refusal(served, token, "b" * 32)


async def test_connection_as_another_user_is_allowed_to_owner_only(served: ServedKernel) -> None:
    token = (await invite(served, name="ed"))["token"]
    async with calls_of(served, token, as_name="amy") as calls:
        with pytest.raises(AntiphonError, match="acts as somebody else"):
            await calls.call("session.whoami", {})
    async with calls_of(served, token, as_name="ed") as calls:
        assert (await calls.call("session.whoami", {}))["username"] == "ed"


async def test_invitation_by_second_owner_for_present_user_is_denied(served: ServedKernel) -> None:
    made = await invite(served, name="co")
    await invite(served, name="ed")
    await served.call("kernel.role", principal="co", role="owner")
    async with calls_of(served, made["token"]) as calls:
        with pytest.raises(AntiphonError, match="ed is here already") as caught:
            await calls.call("kernel.invite", {"role": "editor", "name": "ed"})
        assert caught.value.code is ErrorCode.PERMISSION_DENIED
        assert (await calls.call("kernel.invite", {"role": "editor", "name": "new"}))["token"]
    assert (await invite(served, name="ed"))["username"] == "ed"


async def test_owner_is_told_of_joins_while_waiting(served: ServedKernel) -> None:
    made = await invite(served, "viewer", name="vera")
    before = (await served.call("kernel.joins"))["last"]
    waiting = asyncio.create_task(served.call("kernel.joins", after=before, wait=10))
    await who(served, made["token"])
    (join,) = (await waiting)["joins"]
    assert (join["username"], join["role"]) == ("vera", "viewer")
    assert join["invitation"] == made["invitation"]


async def test_script_connecting_per_call_joins_once(
    served: ServedKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = (await invite(served, name="ed"))["token"]
    now = served.kernel.clock.now_ms()
    for minute in (0, 0.5, 1, 1.5, 10, 10.5):
        at = now + int(minute * 60_000)
        monkeypatch.setattr(served.kernel.clock, "now_ms", lambda at=at: at)
        await who(served, token)
    assert len((await served.call("kernel.joins", after=0))["joins"]) == 2


async def test_kernel_joins_wait_does_not_delay_close(served: ServedKernel) -> None:
    calls = ToolClient(served.locate)
    waiting = asyncio.create_task(calls.call("kernel.joins", {"wait": 600}))
    await until(lambda: len(served.kernel.sessions.of(served.kernel.owner.id)) == 2, "waits")
    began = asyncio.get_running_loop().time()
    await served.stop()
    assert asyncio.get_running_loop().time() - began < 1.5
    with suppress(AntiphonError):
        await waiting
    await calls.close()
    await served.start()


async def test_invitation_for_any_number_has_a_limit_all_the_same(tmp_path: Path) -> None:
    kernel = await Kernel.open(
        tmp_path / "data",
        tmp_path,
        registry=Registry(KERNEL_TOOLS),
        limits=Limits(clients_per_invitation=2),
    )
    try:
        owner = kernel.open_session(kernel.owner, "test")
        token = (await kernel.call(owner, "kernel.invite", {"role": "viewer"}))["token"]
        for secret in ("a" * 32, "b" * 32, "a" * 32):
            await kernel.invitations.authenticate(token, secret)
        with pytest.raises(AntiphonError, match="used up"):
            await kernel.invitations.authenticate(token, "c" * 32)
    finally:
        await kernel.close()
