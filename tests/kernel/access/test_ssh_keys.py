"""SSH keys, requests of unknown ones, the sessions that an SSH host opens, and who is half made.

Somebody who is being made when something breaks is made later, as what they were to be.
"""

from __future__ import annotations

import asyncio
import sqlite3
from base64 import b64encode
from collections.abc import AsyncIterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from antiphon_kernel.client.tool_client import ToolClient
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.maintenance.audit_log import audit_log
from antiphon_kernel.types.enums import PrincipalKind
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.public_keys import PublicKeyError, parse_public_key
from antiphon_kernel.types.roles import AccessRole
from tests.errors import raises
from tests.kernel.kernel.calls import OpenKernel
from tests.kernel.served import ServedKernel, served_kernel
from tests.kernel.server.invited import KICKED, REVOKED, ROLE_CHANGED, call_socket, closing, who
from tests.waiting import until


def key_of(seed: str) -> str:
    blob = b"\0\0\0\x0bssh-ed25519\0\0\0 " + sha256(seed.encode()).digest()
    return f"ssh-ed25519 {b64encode(blob).decode()} {seed}@laptop"


def fingerprint(seed: str) -> str:
    return parse_public_key(key_of(seed)).fingerprint


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[ServedKernel]:
    async with served_kernel(tmp_path) as one:
        yield one


async def open_session(served: ServedKernel, seed: str = "bo") -> dict[str, Any]:
    return await served.call("ssh.open", host=served.me.session, fingerprint=fingerprint(seed))


async def test_key_of_a_guest_opens_a_session_as_its_principal(served: ServedKernel) -> None:
    await served.call("key.add", key=key_of("bo"), name="bo", role="viewer")
    opened = await open_session(served)
    assert await who(served, opened["token"]) == ("bo", "viewer")
    listed = {one["username"]: one for one in (await served.call("kernel.members"))["members"]}
    (session,) = [one for one in listed["bo"]["sessions"] if "within" not in one]
    assert (session["session"], session["via"]) == (opened["session"], "ssh")
    (join,) = (await served.call("kernel.joins", after=0))["joins"]
    assert (join["username"], join["role"]) == ("bo", "viewer")


@pytest.mark.parametrize("seed", ["eve", "gone"])
async def test_unknown_or_revoked_key_opens_no_session(served: ServedKernel, seed: str) -> None:
    await served.call("key.add", key=key_of("gone"), name="gus")
    await served.call("key.revoke", fingerprint=fingerprint("gone"))
    with pytest.raises(AntiphonError) as refused:
        await open_session(served, seed)
    assert refused.value.code is ErrorCode.PERMISSION_DENIED


@pytest.mark.parametrize("way", ["kick", "revoke", "end", "close", "host"])
async def test_end_of_a_session_over_ssh_ends_its_app_and_its_token(
    served: ServedKernel, way: str
) -> None:
    await served.call("key.add", key=key_of("bo"), name="bo")
    host = served.kernel.open_session(served.kernel.owner, "unix")
    opened = await served.call("ssh.open", host=host.session, fingerprint=fingerprint("bo"))
    socket = await call_socket(served, opened["token"])
    waiting = asyncio.create_task(served.kernel.call(host, "ssh.ended", {"wait": 60}))
    await asyncio.sleep(0)
    if way == "kick":
        await served.call("kernel.kick", principal="bo", minutes=0)
    elif way == "revoke":
        await served.call("key.revoke", principal="bo")
    elif way == "end":
        await served.call("session.end", session=opened["session"])
    elif way == "close":
        await served.call("ssh.close", host=host.session, session=opened["session"])
    else:
        await served.kernel.close_session(host)
    assert (await closing(socket))[0] == (REVOKED if way == "revoke" else KICKED)
    with pytest.raises(AntiphonError):
        await who(served, opened["token"])
    ended = (await waiting)["ended"]
    assert [one["session"] for one in ended] == [opened["session"]]


async def test_session_over_ssh_goes_on_with_another_role(served: ServedKernel) -> None:
    await served.call("key.add", key=key_of("bo"), name="bo")
    opened = await open_session(served)
    socket = await call_socket(served, opened["token"])
    await served.call("kernel.role", principal="bo", role="viewer")
    assert (await closing(socket))[0] == ROLE_CHANGED
    assert await who(served, opened["token"]) == ("bo", "viewer")
    assert (await served.call("ssh.ended"))["ended"] == []
    await served.call("kernel.kick", principal="bo", minutes=0)
    with pytest.raises(AntiphonError):
        await who(served, opened["token"])


async def test_open_session_with_a_host_of_somebody_else_is_refused(served: ServedKernel) -> None:
    await served.call("key.add", key=key_of("bo"), name="bo")
    bo = served.kernel.open_session(await served.kernel.principal("bo"), "tcp")
    with pytest.raises(AntiphonError, match="no open session of yours"):
        await served.call("ssh.open", host=bo.session, fingerprint=fingerprint("bo"))


async def test_key_for_somebody_known_needs_the_founder_to_say_so(served: ServedKernel) -> None:
    await served.kernel.principal("cleo")
    with pytest.raises(AntiphonError, match="known here already"):
        await served.call("key.add", key=key_of("eve"), name="cleo")
    with pytest.raises(AntiphonError, match="is an owner already"):
        await served.call("key.add", key=key_of("eve"), name="amy", role="editor", known=True)
    owner = await served.kernel.principal("olga")
    await served.call("kernel.role", principal="olga", role="owner")
    second = served.kernel.open_session(owner, "tcp")
    asked = {"key": key_of("eve"), "name": "amy", "known": True}
    with pytest.raises(AntiphonError, match="only amy, whose kernel it is"):
        await served.kernel.call(second, "key.add", asked)
    made = await served.kernel.call(second, "key.add", {"key": key_of("pat"), "name": "pat"})
    assert made["role"] == "editor"
    added = await served.call("key.add", key=key_of("cleo"), name="cleo", known=True)
    assert (added["username"], added["state"]) == ("cleo", "good")


async def test_revoked_key_that_is_added_again_lets_in_again(served: ServedKernel) -> None:
    await served.call("key.add", key=key_of("bo"), name="bo")
    await served.call("key.revoke", principal="bo")
    await served.call("key.add", key=key_of("bo"), name="bo")
    await served.stop()
    await served.start()
    assert (await open_session(served))["username"] == "bo"


@pytest.mark.parametrize(("answer", "role"), [("editor", "editor"), ("no", None)])
async def test_request_of_an_unknown_key_is_decided_by_an_owner(
    served: ServedKernel, answer: str, role: str | None
) -> None:
    calls, asking = ToolClient(served.locate), ToolClient(served.locate)
    asked = asyncio.create_task(
        asking.call("key.ask", {"key": key_of("bo"), "name": "Amy", "wait": 60})
    )
    (one,) = (await calls.call("key.requests", {"wait": 60}))["requests"]
    assert (one["fingerprint"], one["name"]) == (fingerprint("bo"), "amy")
    decided = await calls.call("key.decide", {"request": one["request"], "role": answer})
    assert (await asked).get("role") == role
    assert decided.get("username") == ("amy2" if role else None)
    assert (await calls.call("key.requests", {}))["requests"] == []
    with pytest.raises(AntiphonError, match="has been decided"):
        await calls.call("key.decide", {"request": one["request"], "role": "viewer"})
    await asking.close()
    await calls.close()


async def test_request_whose_sender_has_gone_waits_no_longer(served: ServedKernel) -> None:
    asking = asyncio.create_task(served.call("key.ask", key=key_of("bo"), name="bo"))
    await until(served.kernel.key_requests.waiting, "the request waits")
    asking.cancel()
    await until(lambda: not served.kernel.key_requests.waiting(), "it waits no longer")


async def test_requests_beyond_the_most_are_turned_away(served: ServedKernel) -> None:
    asking = [
        asyncio.create_task(served.call("key.ask", key=key_of(str(number)), name="bo"))
        for number in range(8)
    ]
    await until(lambda: len(served.kernel.key_requests.waiting()) == 8, "eight wait")
    with pytest.raises(AntiphonError) as refused:
        await served.call("key.ask", key=key_of("ninth"), name="bo")
    assert refused.value.code is ErrorCode.RATE_LIMITED
    for one in asking:
        one.cancel()


async def test_decisions_about_access_are_in_the_log(served: ServedKernel, tmp_path: Path) -> None:
    await served.call("key.add", key=key_of("bo"), name="bo")
    opened = await open_session(served)
    await served.call("session.end", session=opened["session"])
    await served.call("kernel.role", principal="bo", role="viewer")
    await served.call("kernel.kick", principal="bo", minutes=0)
    await served.call("key.revoke", principal="bo")
    events = await audit_log(tmp_path / "data")
    decided = [one.what for one in events if one.kind == "decided"]
    assert decided == [
        f"added the key {fingerprint('bo')} of bo, an editor",
        "ended a session of bo",
        "made bo a viewer",
        "kicked bo",
        f"revoked the key {fingerprint('bo')} of bo",
    ]
    joined = [(one.username, one.what) for one in events if one.kind == "joined"]
    assert ("bo", "ssh") in joined


@pytest.mark.parametrize(
    "line",
    [
        "",
        "ssh-ed25519",
        "ssh-dss AAAAB3NzaC1kc3M=",
        "ssh-ed25519 not-base64",
        "ssh-ed25519 AAAA",
        'command="x" ' + key_of("bo"),
        key_of("bo").replace("ssh-ed25519", "ssh-rsa", 1),
        "ssh-rsa " + b64encode(b"\0\0\0\x07ssh-rsa\0\0\0\x01\x03\0\0\0\x02\x01\x01").decode(),
    ],
)
def test_line_that_is_no_key_is_refused(line: str) -> None:
    with pytest.raises(PublicKeyError):
        parse_public_key(line)


ALL_KINDS = [kind for kind in PrincipalKind if kind is not PrincipalKind.SYSTEM]


def in_journal(data: Path, sql: str) -> None:
    journal = sqlite3.connect(data / "journal.db")
    journal.executescript(sql)
    journal.close()


@pytest.mark.sqlite
@pytest.mark.parametrize("kind", ALL_KINDS)
async def test_principal_half_created_at_crash_returns_with_same_kind(
    open_kernel: OpenKernel, data: Path, kind: PrincipalKind
) -> None:
    kernel = await open_kernel()
    before = await kernel.principal("aria", kind)
    role = kernel.members.role_of(before)
    await kernel.close()
    # The role is on disk before the name is.
    in_journal(data, "DELETE FROM sessions; DELETE FROM principals WHERE username = 'aria'")
    kernel = await open_kernel()
    assert kernel.members.find("aria") == before
    assert kernel.members.role_of(before) is role


@pytest.mark.sqlite
@pytest.mark.parametrize("kind", ALL_KINDS)
async def test_principal_that_failed_to_store_can_be_created_later(
    kernel: Kernel, data: Path, kind: PrincipalKind
) -> None:
    full = "CREATE TRIGGER full BEFORE INSERT ON principals BEGIN SELECT raise(ABORT, 'full'); END"
    in_journal(data, full)
    with raises(ErrorCode.STORAGE_FAILED):
        await kernel.members.principal("aria", kind, AccessRole.VIEWER)
    assert "aria" not in kernel.members
    in_journal(data, "DROP TRIGGER full")
    other = await kernel.members.create_guest("aria", AccessRole.EDITOR)
    assert other.username == "aria2", "the name is given to somebody"
    made = await kernel.principal("aria", PrincipalKind.HUMAN)
    assert (made.kind, kernel.members.role_of(made)) == (kind, AccessRole.VIEWER)


async def test_call_that_is_cancelled_leaves_nobody_half_made(
    kernel: Kernel, open_kernel: OpenKernel
) -> None:
    for steps in range(12):
        asked = asyncio.create_task(kernel.principal(f"m{steps}", PrincipalKind.MODEL))
        for _ in range(steps):
            await asyncio.sleep(0)
        asked.cancel()
        await asyncio.wait({asked})
        made = await kernel.principal(f"m{steps}", PrincipalKind.MODEL)
        assert made.kind is PrincipalKind.MODEL
    everybody = list(kernel.members)
    await kernel.close()
    assert list((await open_kernel()).members) == everybody
