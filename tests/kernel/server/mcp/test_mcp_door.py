"""The door of `/mcp`: admission, limits, and the presence of programs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp.shared.exceptions import MCPError

from antiphon_kernel.server.limits import ServerLimits
from antiphon_kernel.server.mcp import endpoint
from antiphon_kernel.types.enums import PrincipalKind
from antiphon_kernel.types.presence import PresenceState
from tests.kernel.served import ServedKernel, served_kernel
from tests.kernel.server.invited import Answered, answered, invite
from tests.kernel.server.mcp.clients import ERAS, LEGACY, MODERN, connected, done, failed
from tests.waiting import until

INITIALIZE: dict[str, Any] = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "raw", "version": "1"},
    },
}


async def sent(
    served: ServedKernel, message: Any, *, token: str | None = None, **headers: str
) -> Answered:
    """Answer to one message of a client that is none of the library's."""
    body = message if isinstance(message, bytes) else json.dumps(message).encode()
    if token is not None:
        headers["Authorization"] = f"Bearer {token}"
    # The answer is one event: the data is what follows the colon.
    async with httpx2.AsyncClient(timeout=30, verify=False) as client:
        accept = {
            "Accept": "application/json, text/event-stream",
            "Content-Type": "application/json",
        }
        response = await client.post(
            f"{served.doors.http}/mcp", content=body, headers={**accept, **headers}
        )
    text = response.text.partition("data: ")[2] or response.text
    is_json = text.startswith("{")
    return Answered(
        response.status_code, dict(response.headers), json.loads(text) if is_json else text
    )


def leaves(error: BaseException) -> Iterator[BaseException]:
    """Yield what a group of failures is made of."""
    if isinstance(error, BaseExceptionGroup):
        for one in error.exceptions:
            yield from leaves(one)
    else:
        yield error


async def test_only_who_has_a_token_comes_in(served: ServedKernel) -> None:
    metadata = f"{served.doors.http}/.well-known/oauth-protected-resource/mcp"
    for token in (None, "wrong", served.doors.token[:-1]):
        refused = await sent(served, INITIALIZE, token=token)
        assert refused.status == 401
        assert refused.headers["www-authenticate"] == f'Bearer resource_metadata="{metadata}"'
        assert refused.body["error"]["data"]["code"] == "permission_denied"
    for path in ("", "/mcp"):
        where = f"/.well-known/oauth-protected-resource{path}"
        stated = (await answered(served, "GET", where, b"")).body
        assert stated == {
            "resource": f"{served.doors.http}/mcp",
            "resource_name": "antiphon",
            "bearer_methods_supported": ["header"],
        }
    several = [await sent(served, INITIALIZE, token="wrong") for _ in range(20)]
    refused = several[-1]
    assert refused.status == 429
    assert "www-authenticate" not in refused.headers
    with pytest.raises((MCPError, ExceptionGroup)) as wrong:
        async with connected(served, LEGACY, query="?as=amy&kind=agent"):
            pass
    (said,) = [one for one in leaves(wrong.value) if isinstance(one, MCPError)]
    assert "amy is a human and no agent" in said.error.message
    # The owner's app and scripts come over the unix socket, without one.
    socket = httpx2.AsyncHTTPTransport(uds=str(served.doors.socket), verify=False)
    async with httpx2.AsyncClient(transport=socket) as client:
        accept = {"Accept": "application/json, text/event-stream"}
        let_in = await client.post("http://localhost/mcp", json=INITIALIZE, headers=accept)
        assert let_in.status_code == 200


async def test_pages_and_other_names_of_this_machine_are_refused(served: ServedKernel) -> None:
    for headers in ({"Origin": "https://evil.example"}, {"Host": "evil.example:80"}):
        refused = await sent(served, INITIALIZE, token=served.doors.token, **headers)
        assert refused.status == 403
    let_in = await sent(
        served, INITIALIZE, token=served.doors.token, Origin="http://localhost:3000"
    )
    assert let_in.status == 200


async def test_malformed_requests_are_refused_and_the_kernel_goes_on(served: ServedKernel) -> None:
    token = served.doors.token
    assert (await sent(served, b"{" * 1_000, token=token)).status == 400
    assert (await sent(served, b"[" * 60_000, token=token)).status == 400
    assert (await sent(served, [], token=token)).status == 400
    assert (await sent(served, {"jsonrpc": "2.0", "id": 1}, token=token)).status == 400
    deep = b'{"jsonrpc":"2.0","id":1,"method":"x","params":' + b'{"a":' * 5_000 + b"1"
    deep += b"}" * 5_001
    assert (await sent(served, deep, token=token)).status in (400, 404)
    huge = b'{"jsonrpc": "2.0", "x": "' + b"x" * 9_000_000 + b'"}'
    assert (await sent(served, huge, token=token)).status == 413
    for version in ("2099-01-01", "x" * 8_000, "2026-07-28"):
        headers = {"mcp-protocol-version": version}
        assert (await sent(served, INITIALIZE, token=token, **headers)).status in (400, 404)
    assert (await answered(served, "PUT", "/mcp", b"")).status == 405
    assert (await sent(served, INITIALIZE, token=token)).status == 200


async def test_session_is_that_of_the_credential_that_opened_it(served: ServedKernel) -> None:
    cy, bo = [(await invite(served, "editor", name=name))["token"] for name in ("cy", "bo")]
    opened = await sent(served, INITIALIZE, token=cy)
    session = {"mcp-session-id": opened.headers["mcp-session-id"]}
    ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
    for token, status in ((cy, 200), (bo, 404), (served.doors.token, 404), ("wrong", 401)):
        assert (await sent(served, ping, token=token, **session)).status == status
    await served.call("kernel.kick", principal="cy")
    assert (await sent(served, ping, token=cy, **session)).status == 401


async def test_kernel_without_the_library_says_what_to_install(
    served: ServedKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(name: str) -> None:
        raise ModuleNotFoundError(f"No module named {name!r}", name="mcp")

    monkeypatch.setattr(endpoint, "import_module", fail)
    for _ in range(2):
        refused = await sent(served, INITIALIZE, token=served.doors.token)
        assert refused.status == 404
        assert "pip install 'antiphon[agents]'" in refused.body["error"]["message"]
    assert (await sent(served, INITIALIZE)).status == 401
    monkeypatch.undo()
    assert (await sent(served, INITIALIZE, token=served.doors.token)).status == 200


async def test_number_of_a_session_means_nothing_without_sessions(served: ServedKernel) -> None:
    made = await invite(served, "viewer", name="cy")
    call = {"name": "list_contexts", "arguments": {}}
    meta = {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {**call, "_meta": meta}}
    headers = {"Mcp-Protocol-Version": MODERN, "Mcp-Method": "tools/call"}
    headers["Mcp-Name"] = "list_contexts"
    for number in range(3):
        session = {"Mcp-Session-Id": str(number)}
        answer = await sent(served, message, token=made["token"], **headers, **session)
        assert answer.status == 200
    cy = served.kernel.members.find("cy")
    assert len(served.kernel.sessions.of(cy.id)) == 1


@pytest.fixture
async def strict(tmp_path: Path) -> AsyncIterator[ServedKernel]:
    """A kernel with little patience."""
    limits = ServerLimits(
        calls_per_second=50, calls_at_once=5, connections_each=3, connections=6, mcp_idle=0.8
    )
    async with served_kernel(tmp_path, limits) as served:
        yield served


async def test_guest_who_floods_is_slowed_down_and_leaves_room_for_others(
    strict: ServedKernel,
) -> None:
    token = (await invite(strict, "viewer"))["token"]
    loop = asyncio.get_running_loop()
    opened = [await sent(strict, INITIALIZE, token=token) for _ in range(5)]
    assert [one.status for one in opened] == [200, 200, 200, 503, 503]
    assert (await sent(strict, INITIALIZE, token=strict.doors.token)).status == 200
    before = loop.time()
    async with connected(strict, MODERN, token=token) as client:
        for _ in range(25):
            await done(client, "list_contexts")
    assert loop.time() - before > 0.4


async def test_guests_together_leave_room_and_keep_little_with_their_sessions(
    strict: ServedKernel,
) -> None:
    token = (await invite(strict, "viewer"))["token"]
    statuses = []
    for number in range(6):
        secret = {"Antiphon-Client": f"a secret of browser {number}"}
        opened = await sent(strict, INITIALIZE, token=token, **secret)
        statuses.append(opened.status)
    assert statuses == [200, 200, 200, 503, 503, 503]
    large = {**INITIALIZE, "params": {**INITIALIZE["params"], "capabilities": {"x": "y" * 70_000}}}
    for status, message in ((413, large), (200, INITIALIZE)):
        assert (await sent(strict, message, token=strict.doors.token)).status == status


async def present(served: ServedKernel) -> list[PresenceState]:
    """Return the presence of programs."""
    states = (await served.context()).presence.states().values()
    return [one for one in states if one.kind == PrincipalKind.AGENT]


@pytest.mark.parametrize("era", ERAS)
async def test_program_that_edits_is_present_where_it_edits_until_it_goes(
    era: str, strict: ServedKernel
) -> None:
    block = await strict.block("one\ntwo\n", kind="text", status="done")
    replica = await strict.replica()
    async with connected(strict, era, name="codex") as client:
        await done(client, "read_block", block_id=block)
        assert await present(strict) == []
        operations = [{"op": "replace", "start_line": 1, "end_line": 2, "content": "2"}]
        await done(client, "edit", block_id=block, base_version=1, operations=operations)
        (state,) = await present(strict)
        assert (state.username, state.kind, state.block) == ("codex", PrincipalKind.AGENT, block)
        assert state.cursor == len("one\n2")
        await strict.call("block.splice", block_id=block, offset=0, insert="0 ")
        await until(lambda: "codex" in str(replica.awareness.others), "a replica sees it")
        assert (await present(strict))[0].cursor == len("0 one\n2")
        wrote = await done(client, "write_message", context="default", content="I did it.")
        assert (await present(strict))[0].block == wrote["block_id"]
        members = (await strict.context()).document.members()
        colours = {one.username: one.colour for one in members}
        assert colours["codex"] != colours["amy"]
    await until(lambda: "codex" not in str(replica.awareness.others), "it is gone")
    assert await present(strict) == []


async def test_program_of_the_owner_can_be_kicked_by_its_name(served: ServedKernel) -> None:
    async with connected(served, LEGACY, name="codex") as client:
        await done(client, "write_message", context="default", content="I.")
        await served.call("kernel.kick", principal="codex")
        assert await present(served) == []
        with pytest.raises(MCPError, match="codex has been kicked"):
            await client.call_tool("write_message", {"context": "default", "content": "I."})


async def test_change_of_role_holds_for_the_next_call(served: ServedKernel) -> None:
    write = {"context": "default", "content": "I."}
    async with connected(served, MODERN, name="codex") as client:
        await done(client, "write_message", **write)
        await served.call("kernel.role", principal="codex", role="viewer")
        assert "you are codex, a viewer" in await failed(client, "write_message", **write)
        await served.call("kernel.role", principal="codex", role="owner")
        await done(client, "write_message", **write)
