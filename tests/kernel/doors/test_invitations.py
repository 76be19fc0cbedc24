"""Whoever is invited comes in as somebody; whoever has to go, goes at once, through every door."""

from __future__ import annotations

import asyncio
import http.client
import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from antiphon_kernel.client.address import KernelAddress
from antiphon_kernel.client.calls import KernelCalls
from antiphon_kernel.client.standing import ReplicaState
from antiphon_kernel.document.document import Document
from antiphon_kernel.doors.peer import is_own_user, peer_user
from antiphon_kernel.doors.wrong_tokens import BURST, SECONDS_EACH, WrongTokens
from antiphon_kernel.kernel.kernel import Kernel
from antiphon_kernel.kernel.limits import Limits
from antiphon_kernel.kernel.registry import Registry
from antiphon_kernel.kernel.tools.catalogue import KERNEL_TOOLS
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.wire.frames import PermissionDenied, SyncStep2, SyncUpdate
from tests.clocks import ManualClock
from tests.kernel.served import RawClient, ServedKernel
from tests.waiting import until

REVOKED, KICKED, ROLE_CHANGED, REFUSED, UNAUTHORISED = 4410, 4411, 4500, 4403, 4401


async def own(served: ServedKernel, tool: str, **params: Any) -> dict[str, Any]:
    return await served.kernel.call(served.me, tool, params)


async def invite(served: ServedKernel, role: str = "editor", **params: Any) -> dict[str, Any]:
    return await own(served, "kernel.invite", role=role, **params)


def as_invited(served: ServedKernel, token: str, secret: str | None = None) -> KernelAddress:
    return served.locate_tcp().model_copy(update={"token": token, "client": secret})


@asynccontextmanager
async def calls_of(
    served: ServedKernel, token: str, secret: str | None = None, as_name: str | None = None
) -> AsyncIterator[KernelCalls]:
    calls = KernelCalls(lambda: as_invited(served, token, secret), as_name=as_name)
    try:
        yield calls
    finally:
        await calls.close()


async def who(served: ServedKernel, token: str, secret: str | None = None) -> tuple[str, str]:
    async with calls_of(served, token, secret) as calls:
        told = await calls.call("session.whoami", {})
        return told["username"], told["role"]


async def refusal(served: ServedKernel, token: str, secret: str | None = None) -> str:
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
            await asyncio.wait_for(socket.recv(), 10)
    return socket.close_code, socket.close_reason


def post(served: ServedKernel, token: str, tool: str, params: object) -> tuple[int, dict[str, Any]]:
    parts = urlsplit(served.doors.http)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=10)
    headers = {"Authorization": f"Bearer {token}"}
    connection.request("POST", f"/call/{tool}", json.dumps(params), headers)
    answer = connection.getresponse()
    return answer.status, json.loads(answer.read())


# Coming in


async def test_an_invited_person_is_somebody_with_the_role_of_the_invitation(
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


async def test_a_named_invitation_is_for_one_person_on_many_machines(
    served: ServedKernel,
) -> None:
    token = (await invite(served, name="ed"))["token"]
    assert {(await who(served, token, secret * 32))[0] for secret in "abc"} == {"ed"}


async def test_uses_count_clients_not_connections(served: ServedKernel) -> None:
    token = (await invite(served, uses=2))["token"]
    for secret in ("a" * 32, "a" * 32, "b" * 32, "b" * 32):
        await who(served, token, secret)
    assert "used up" in await refusal(served, token, "c" * 32)
    assert (await who(served, token, "a" * 32))[0] == "guest"


async def test_who_does_not_say_who_it_is_uses_an_invitation_with_each_connection(
    served: ServedKernel,
) -> None:
    token = (await invite(served, uses=2))["token"]
    for _ in range(2):
        await who(served, token)
    assert "used up" in await refusal(served, token)


async def test_two_that_come_at_once_do_not_share_the_last_use(served: ServedKernel) -> None:
    token = (await invite(served, uses=2))["token"]
    await who(served, token, "z" * 32)
    found = await asyncio.gather(
        *(who(served, token, secret * 32) for secret in "abcdef"), return_exceptions=True
    )
    assert sum(not isinstance(one, BaseException) for one in found) == 1


async def test_an_expired_invitation_lets_nobody_in(
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


async def test_only_the_owner_acts_as_somebody_else(served: ServedKernel) -> None:
    token = (await invite(served, name="ed"))["token"]
    async with calls_of(served, token, as_name="amy") as calls:
        with pytest.raises(AntiphonError, match="acts as somebody else"):
            await calls.call("session.whoami", {})
    async with calls_of(served, token, as_name="ed") as calls:
        assert (await calls.call("session.whoami", {}))["username"] == "ed"


async def test_the_owner_is_told_of_joins_while_waiting(served: ServedKernel) -> None:
    made = await invite(served, "viewer", name="vera")
    before = (await own(served, "kernel.joins"))["last"]
    waiting = asyncio.create_task(own(served, "kernel.joins", after=before, wait=10))
    await who(served, made["token"])
    (join,) = (await waiting)["joins"]
    assert (join["username"], join["role"]) == ("vera", "viewer")
    assert join["invitation"] == made["invitation"]


async def test_who_comes_with_every_call_joins_once(
    served: ServedKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = (await invite(served, name="ed"))["token"]
    now = served.kernel.clock.now_ms()
    for minute in (0, 0.5, 1, 1.5, 10, 10.5):
        at = now + int(minute * 60_000)
        monkeypatch.setattr(served.kernel.clock, "now_ms", lambda at=at: at)
        await who(served, token)
    assert len((await own(served, "kernel.joins", after=0))["joins"]) == 2


async def test_waiting_for_joins_does_not_hold_up_the_end(served: ServedKernel) -> None:
    calls = KernelCalls(served.locate)
    waiting = asyncio.create_task(calls.call("kernel.joins", {"wait": 600}))
    await until(lambda: len(served.kernel.sessions.of(served.kernel.owner.id)) == 2, "waits")
    began = asyncio.get_running_loop().time()
    await served.stop()
    assert asyncio.get_running_loop().time() - began < 1.5
    with suppress(AntiphonError):
        await waiting
    await calls.close()
    await served.start()


async def test_an_invitation_for_any_number_has_a_limit_all_the_same(tmp_path: Path) -> None:
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
            await kernel.invitations.admit(token, secret)
        with pytest.raises(AntiphonError, match="used up"):
            await kernel.invitations.admit(token, "c" * 32)
    finally:
        await kernel.close()


# What a viewer may do, door by door


async def test_a_viewer_reads_and_does_not_write_through_any_door(served: ServedKernel) -> None:
    block = await served.block("text")
    token = (await invite(served, "viewer"))["token"]
    edit = {"block_id": block, "operations": [{"type": "delete", "start_line": 0, "end_line": 1}]}
    async with calls_of(served, token) as calls:
        assert (await calls.call("block.read", {"block_id": block}))["content"] == "text"
        with pytest.raises(AntiphonError) as refused:
            await calls.call("block.edit", edit)
        assert refused.value.code is ErrorCode.PERMISSION_DENIED
    read = await asyncio.to_thread(post, served, token, "block.read", {"block_id": block})
    assert read[0] == 200
    status, answer = await asyncio.to_thread(post, served, token, "block.edit", edit)
    assert (status, answer["error"]["code"]) == (403, "permission_denied")
    reader = await sync_as(served, token)
    own_copy = Document(client_id=4242)
    own_copy.apply_update((await reader.join()).update)
    before = own_copy.state_vector()
    own_copy.splice(block, 0, 0, "never ")
    await reader.send(SyncUpdate(own_copy.update_since(before)))
    denied = await reader.next(PermissionDenied)
    assert denied.reason.startswith("permission_denied") and "viewer" in denied.reason
    assert (await reader.closed())[0] == REFUSED
    assert (await served.context()).document.text(block) == "text"


# Going


@pytest.mark.parametrize(
    ("tool", "params", "code", "words"),
    [
        ("kernel.kick", {"principal": "vera", "reason": "lunch"}, KICKED, "lunch"),
        ("kernel.revoke", {"principal": "vera"}, REVOKED, "revoked"),
        ("kernel.revoke", {"invitation": 1}, REVOKED, "revoked"),
        ("kernel.role", {"principal": "vera", "role": "viewer"}, ROLE_CHANGED, "a viewer"),
    ],
)
async def test_open_connections_end_at_once_with_code_and_reason(
    served: ServedKernel, tool: str, params: dict[str, Any], code: int, words: str
) -> None:
    token = (await invite(served, name="vera"))["token"]
    sync, calls = await sync_as(served, token), await call_socket(served, token)
    await sync.join()
    bystander = await served.raw()
    await bystander.join()
    ended = await own(served, tool, **params)
    assert ended["ended"] == 2
    for found in (await sync.closed(), await closing(calls)):
        assert found[0] == code
        assert words in (found[1] or "")
    await bystander.send(SyncUpdate(b"\x00\x00"))
    assert bystander.socket.close_code is None


async def test_nothing_of_a_dismissed_client_is_taken_any_more(served: ServedKernel) -> None:
    block = await served.block("text")
    made = await invite(served, name="ed")
    replica = await served.replica(locate=lambda: as_invited(served, made["token"]))
    await until(lambda: block in replica.document, "the block is there")
    calls = await call_socket(served, made["token"])
    replica.document.splice(block, 0, 0, "late ")
    await calls.send(json.dumps({"id": 1, "tool": "session.whoami"}))
    # What was typed and asked is on its way when the invitation is taken back.
    await own(served, "kernel.revoke", invitation=made["invitation"])
    await closing(calls)
    await until(lambda: replica.state is ReplicaState.REFUSED, "refused")
    assert "revoked" in (replica.refusal or "")
    assert (await served.context()).document.text(block) == "text"


async def test_a_client_that_does_not_read_its_goodbye_is_cut(served: ServedKernel) -> None:
    made = await invite(served, name="ed")
    token = made["token"]
    calls = await call_socket(served, token)
    calls.transport.pause_reading()
    await until(lambda: len(served.kernel.sessions.of(made["principal"])) == 1, "in")
    await own(served, "kernel.kick", principal="ed")
    await until(lambda: not served.kernel.sessions.of(made["principal"]), "cut")
    calls.transport.abort()


async def test_who_is_kicked_comes_back_when_it_is_time(
    served: ServedKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = (await invite(served, name="vera"))["token"]
    await own(served, "kernel.kick", principal="vera", minutes=3)
    assert "kicked" in await refusal(served, token)
    client = await served.raw(query="as=vera")
    assert (await client.closed())[0] == KICKED
    now = served.kernel.clock.now_ms()
    monkeypatch.setattr(served.kernel.clock, "now_ms", lambda: now + 3 * 60_000)
    assert (await who(served, token))[0] == "vera"


async def test_a_kick_of_no_minutes_only_hangs_up(served: ServedKernel) -> None:
    token = (await invite(served, name="vera"))["token"]
    sync = await sync_as(served, token)
    await sync.join()
    await own(served, "kernel.kick", principal="vera", minutes=0)
    assert (await sync.closed())[0] == KICKED
    assert (await who(served, token))[0] == "vera"


async def test_offline_edits_of_somebody_demoted_meanwhile_are_refused(
    served: ServedKernel,
) -> None:
    block = await served.block("text")
    up = True

    def locate() -> KernelAddress:
        if not up:
            raise AntiphonError(ErrorCode.NO_KERNEL, "offline")
        return served.locate()

    replica = await served.replica("ed", locate=locate)
    await until(lambda: block in replica.document, "the block is there")
    up = False
    await own(served, "kernel.kick", principal="ed", minutes=0, reason="cut")
    await until(lambda: replica.state is not ReplicaState.LIVE, "cut off")
    again = await served.raw(query="as=ed")
    await again.join()
    replica.document.splice(block, 0, 0, "offline ")
    offline = replica.document.update_since()
    await own(served, "kernel.role", principal="ed", role="viewer")
    assert (await again.closed())[0] == ROLE_CHANGED
    back = await served.raw(query="as=ed")
    await back.join()
    await back.send(SyncStep2(offline))
    assert (await back.next(PermissionDenied)).reason.startswith("permission_denied")
    assert (await back.closed())[0] == REFUSED
    assert (await served.context()).document.text(block) == "text"


async def test_the_role_in_awareness_is_the_kernels(served: ServedKernel) -> None:
    token = (await invite(served, "viewer", name="vera"))["token"]
    replica = await served.replica(locate=lambda: as_invited(served, token))
    await until(lambda: replica.me is not None, "known")
    assert replica.me is not None and replica.me.role == "viewer"


# Tokens


async def test_a_token_is_long_random_and_only_its_hash_is_kept(served: ServedKernel) -> None:
    tokens = [(await invite(served))["token"] for _ in range(3)]
    assert len(set(tokens)) == 3 and all(len(token) == 43 for token in tokens)
    folder = served.kernel.project
    for path in folder.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            assert not any(token.encode() in content for token in tokens), path
    listed = await own(served, "kernel.invites")
    assert not any(token in json.dumps(listed) for token in tokens)


async def test_no_log_line_and_no_error_holds_a_token(
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
    await own(served, "kernel.revoke", invitation=made["invitation"])
    await refusal(served, made["token"])
    assert "ed joined" in caplog.text and "[accepted]" in caplog.text
    for token in (made["token"], wrong, served.doors.token):
        assert token not in caplog.text


async def test_wrong_tokens_are_limited_and_right_ones_are_not(served: ServedKernel) -> None:
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


def test_the_limit_of_wrong_tokens_is_for_each_address_and_time_lifts_it() -> None:
    clock = ManualClock()
    wrong = WrongTokens(clock)
    assert [wrong.too_many("a") for _ in range(BURST + 2)] == [False] * BURST + [True] * 2
    assert not wrong.too_many("b")
    clock.ms += round(2_000 * SECONDS_EACH)
    assert [wrong.too_many("a") for _ in range(3)] == [False, False, True]


async def test_the_unix_sockets_peer_is_this_user(served: ServedKernel) -> None:
    _, writer = await asyncio.open_unix_connection(str(served.doors.socket))
    user = peer_user(writer.get_extra_info("socket"))
    assert is_own_user(user)
    assert user is None or not is_own_user(user + 1)
    writer.close()
    await writer.wait_closed()
