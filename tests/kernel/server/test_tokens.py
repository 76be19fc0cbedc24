"""Tokens: how they are made, that nothing tells them, and what becomes of wrong ones."""

from __future__ import annotations

import asyncio
import json
import logging

import pytest

from antiphon_kernel.server.peer_credentials import is_own_user, peer_user
from antiphon_kernel.server.rate_limits import BURST, SECONDS_EACH, AuthRateLimit
from tests.clocks import ManualClock
from tests.kernel.served import ServedKernel
from tests.kernel.server.invited import (
    UNAUTHORISED,
    invite,
    post,
    refusal,
    sync_as,
    who,
)


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
    wrong = AuthRateLimit(clock)
    assert [wrong.too_many("a") for _ in range(BURST + 2)] == [False] * BURST + [True] * 2
    assert not wrong.too_many("b")
    clock.ms += round(2_000 * SECONDS_EACH)
    assert [wrong.too_many("a") for _ in range(3)] == [False, False, True]


async def test_unix_sockets_peer_is_this_user(served: ServedKernel) -> None:
    _, writer = await asyncio.open_unix_connection(str(served.doors.socket))
    user = peer_user(writer.get_extra_info("socket"))
    assert is_own_user(user)
    assert user is None or not is_own_user(user + 1)
    writer.close()
    await writer.wait_closed()
