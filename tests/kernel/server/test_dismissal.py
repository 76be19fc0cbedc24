"""Rights that end, which end at once, at every door."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from antiphon_kernel.client.address import KernelAddress
from antiphon_kernel.client.state import ReplicaState
from antiphon_kernel.document.document import Document
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.yjs.frames import PermissionDenied, SyncStep2, SyncUpdate
from tests.errors import raises
from tests.kernel.served import ServedKernel
from tests.kernel.server.invited import (
    KICKED,
    REFUSED,
    REVOKED,
    ROLE_CHANGED,
    as_invited,
    call_socket,
    calls_of,
    closing,
    invite,
    post,
    refusal,
    sync_as,
    who,
)
from tests.waiting import until


async def test_viewer_reads_and_does_not_write_through_any_door(served: ServedKernel) -> None:
    block = await served.block("text")
    token = (await invite(served, "viewer"))["token"]
    edit = {"block_id": block, "operations": [{"type": "delete", "start_line": 0, "end_line": 1}]}
    async with calls_of(served, token) as calls:
        assert (await calls.call("block.read", {"block_id": block}))["content"] == "text"
        with raises(ErrorCode.PERMISSION_DENIED):
            await calls.call("block.edit", edit)
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
    bystander = await served.joined()
    ended = await served.call(tool, **params)
    assert ended["ended"] == 2
    for found in (await sync.closed(), await closing(calls)):
        assert found[0] == code
        assert words in (found[1] or "")
    await bystander.send(SyncUpdate(b"\x00\x00"))
    assert bystander.socket.close_code is None


async def test_dismissed_client_edits_are_rejected(served: ServedKernel) -> None:
    block = await served.block("text")
    made = await invite(served, name="ed")
    replica = await served.replica(locate=lambda: as_invited(served, made["token"]))
    await until(lambda: block in replica.document, "the block is there")
    calls = await call_socket(served, made["token"])
    replica.document.splice(block, 0, 0, "late ")
    await calls.send(json.dumps({"id": 1, "tool": "session.whoami"}))
    # What was typed and asked is on its way when the invitation is taken back.
    await served.call("kernel.revoke", invitation=made["invitation"])
    await closing(calls)
    await until(lambda: replica.state is ReplicaState.REFUSED, "refused")
    assert "revoked" in (replica.rejection or "")
    assert (await served.context()).document.text(block) == "text"


async def test_client_that_does_not_read_its_goodbye_is_cut(served: ServedKernel) -> None:
    made = await invite(served, name="ed")
    token = made["token"]
    calls = await call_socket(served, token)
    calls.transport.pause_reading()
    await until(lambda: len(served.kernel.sessions.of(made["principal"])) == 1, "in")
    await served.call("kernel.kick", principal="ed")
    await until(lambda: not served.kernel.sessions.of(made["principal"]), "cut")
    calls.transport.abort()


async def test_kicked_user_is_admitted_after_ban(
    served: ServedKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = (await invite(served, name="vera"))["token"]
    await served.call("kernel.kick", principal="vera", minutes=3)
    assert "kicked" in await refusal(served, token)
    client = await served.raw(query="as=vera")
    assert (await client.closed())[0] == KICKED
    now = served.kernel.clock.now_ms()
    monkeypatch.setattr(served.kernel.clock, "now_ms", lambda: now + 3 * 60_000)
    assert (await who(served, token))[0] == "vera"


async def test_kick_of_no_minutes_only_hangs_up(served: ServedKernel) -> None:
    token = (await invite(served, name="vera"))["token"]
    sync = await sync_as(served, token)
    await sync.join()
    await served.call("kernel.kick", principal="vera", minutes=0)
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
    await served.call("kernel.kick", principal="ed", minutes=0, reason="cut")
    await until(lambda: replica.state is not ReplicaState.LIVE, "cut off")
    again = await served.joined(query="as=ed")
    replica.document.splice(block, 0, 0, "offline ")
    offline = replica.document.update_since()
    await served.call("kernel.role", principal="ed", role="viewer")
    assert (await again.closed())[0] == ROLE_CHANGED
    back = await served.joined(query="as=ed")
    await back.send(SyncStep2(offline))
    assert (await back.next(PermissionDenied)).reason.startswith("permission_denied")
    assert (await back.closed())[0] == REFUSED
    assert (await served.context()).document.text(block) == "text"


async def test_role_in_awareness_is_the_kernels(served: ServedKernel) -> None:
    token = (await invite(served, "viewer", name="vera"))["token"]
    replica = await served.replica(locate=lambda: as_invited(served, token))
    await until(lambda: replica.awareness.me is not None, "known")
    assert replica.awareness.me is not None and replica.awareness.me.role == "viewer"
