"""Authentication: the identity of a client, and its rejection."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from websockets.asyncio.client import connect, unix_connect

from antiphon_kernel.client.tool_client import ToolClient
from antiphon_kernel.types.errors import AntiphonError
from antiphon_kernel.yjs.frames import SyncStep1, SyncStep2
from tests.kernel.served import RawClient, ServedKernel, served_kernel


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


async def test_owner_may_act_as_somebody_else(served: ServedKernel) -> None:
    calls = ToolClient(served.locate_tcp, as_name="ben")
    who = await calls.call("session.whoami", {})
    assert "ben" in str(who)
    await calls.close()


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
