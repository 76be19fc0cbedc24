"""Invitations and the principals that come in with them."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path

import pytest

from antiphon_kernel.client.tool_client import ToolClient
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.limits import Limits
from antiphon_kernel.registry import Registry
from antiphon_kernel.tools.all_tools import KERNEL_TOOLS
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from tests.kernel.served import ServedKernel
from tests.kernel.server.invited import (
    calls_of,
    invite,
    refusal,
    who,
)
from tests.waiting import until


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
