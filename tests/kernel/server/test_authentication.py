"""Authentication: the identity of a client, its rejection, and the tokens that it shows."""

from __future__ import annotations

import asyncio
import json
import logging
import stat
from pathlib import Path

import pytest
from websockets.asyncio.client import connect, unix_connect

from antiphon_kernel.client.tool_client import ToolClient
from antiphon_kernel.server.http import is_own_user, peer_user
from antiphon_kernel.server.rate_limits import ADDRESSES, BURST, SECONDS_EACH, Rates
from antiphon_kernel.types.errors import AntiphonError
from antiphon_kernel.yjs.frames import SyncStep1, SyncStep2
from tests.clocks import ManualClock
from tests.kernel.served import RawClient, ServedKernel, served_kernel
from tests.kernel.server.invited import (
    UNAUTHORISED,
    invite,
    post,
    refusal,
    sync_as,
    who,
)


def base(served: ServedKernel) -> str:
    return served.doors.http.replace("http", "ws", 1)


async def test_connection_as_system_is_denied(served: ServedKernel) -> None:
    for path in ("/sync/default", "/call"):
        client = await served.raw(path, query="as=system")
        code, reason = await client.closed()
        assert code == 4401
        assert reason is not None and "kernel itself" in reason


@pytest.mark.parametrize("path", ["/sync/default", "/call"])
@pytest.mark.parametrize("query", ["", "?token=wrong", "?token="])
async def test_tcp_needs_the_token(served: ServedKernel, path: str, query: str) -> None:
    client = RawClient(await connect(base(served) + path + query))
    code, reason = await client.closed()
    assert code == 4401
    assert reason is not None and "token" in reason


async def test_token_may_stand_in_a_header(served: ServedKernel) -> None:
    headers = {"Authorization": f"Bearer {served.doors.token}"}
    client = RawClient(await connect(base(served) + "/sync/default", additional_headers=headers))
    await client.join()
    await client.socket.close()


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


async def test_unknown_context_is_named_in_the_close_frame(served: ServedKernel) -> None:
    client = await served.raw("/sync/nowhere")
    code, reason = await client.closed()
    assert code == 4404
    assert reason is not None and "context_not_found" in reason


async def test_context_is_found_by_label_and_by_id(served: ServedKernel) -> None:
    context = await served.context()
    for reference in (context.label, context.id):
        client = await served.raw(f"/sync/{reference}")
        await client.send(SyncStep1(b"\x00"))
        assert (await client.next(SyncStep2)).update


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
        await asyncio.to_thread(post, served, token, "session.whoami", {})
    _, answer = await asyncio.to_thread(post, served, wrong, "session.whoami", {})
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
    status, answer = await asyncio.to_thread(post, served, "wrong", "session.whoami", {})
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
