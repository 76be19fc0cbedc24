"""Every door, every way to have to go, in every state: nothing more is delivered, nothing taken.

Doors come from the routes and tools from the registry, so that a new one is here too: whoever is
kicked uses all of them, whoever goes for another reason one tool of each door. Below the table are
what people are told, and what becomes of edits on their way.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import ConfigDict
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed

from antiphon_kernel.client.address import KernelAddress
from antiphon_kernel.client.local_replica import ReplicaState
from antiphon_kernel.document.document import Document
from antiphon_kernel.kernel import Call
from antiphon_kernel.registry import Params, Result, Tool
from antiphon_kernel.server import connection_guard
from antiphon_kernel.server.limits import ServerLimits
from antiphon_kernel.server.rpc import MESSAGE_TOOLS
from antiphon_kernel.tools.all_tools import KERNEL_TOOLS
from antiphon_kernel.turns import TURN_TOOLS
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.records import Principal
from antiphon_kernel.types.roles import AccessRole
from antiphon_kernel.yjs.frames import PermissionDenied, SyncStep2, SyncUpdate, encode_frame
from tests.kernel.served import ServedKernel, served_kernel
from tests.kernel.server.invited import (
    KICKED,
    REFUSED,
    REVOKED,
    ROLE_CHANGED,
    UNAUTHORISED,
    as_invited,
    call_socket,
    closing,
    invite,
    refusal,
    sync_as,
    who,
)
from tests.waiting import PATIENCE, until

TOOLS = (*KERNEL_TOOLS, *TURN_TOOLS)
NAMES = [tool.name for tool in TOOLS]
STREAMING = [
    tool.name
    for tool in TOOLS
    if "subscription" in tool.result.model_fields and "subscription" not in tool.params.model_fields
]
MINUTE = 60_000
LARGE = 8
"""Millions of code points that a reader leaves in the kernel."""
LIMITS = ServerLimits(connections=2_000, connections_each=1_000, strangers=1_000)
SECRET = "written after the dismissal"
LATE = "sent after the dismissal"
WORDS = {"role": "user", "kind": "text", "content": LATE}


@dataclass
class World:
    """A kernel with somebody who was invited, is an owner, and will have to go."""

    served: ServedKernel
    guest: Principal
    token: str
    number: int
    now: list[int]
    """The clock of the kernel."""
    verb: Verb

    def some(self, tools: Sequence[str]) -> Sequence[str]:
        """Return the tools that are asked for at one door."""
        return tools if self.verb is World.kick else tools[:1]

    async def demote(self) -> int:
        gate = self.served.kernel.access
        await gate.change_role(self.guest, AccessRole.VIEWER, self.served.kernel.owner)
        return ROLE_CHANGED

    async def kick(self) -> int:
        await self.served.kernel.access.kick(self.guest, 0, "lunch", self.served.kernel.owner)
        return KICKED

    async def revoke(self) -> int:
        await self.served.kernel.access.revoke([self.number], self.served.kernel.owner)
        return REVOKED

    async def expire(self) -> int:
        self.now[0] += MINUTE
        self.served.kernel.access.end_expired()
        return UNAUTHORISED

    async def post(self, tool: str, body: bytes, length: int | None = None) -> Posted:
        return await self.request(f"POST /call/{tool}", body, length)

    async def request(
        self, target: str, body: bytes = b"", length: int | None = None, headers: str = ""
    ) -> Posted:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.served.doors.port)
        head = (
            f"{target} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {self.token}"
            f"\r\nContent-Length: {len(body) if length is None else length}\r\n{headers}\r\n"
        )
        writer.write(head.encode() + body)
        return Posted(reader, writer)


@dataclass
class Posted:
    """A request over HTTP whose answer is still to come, or goes on."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def rest(self) -> bytes:
        """All that comes until the connection is closed, or the answer is complete."""
        data = b""
        with contextlib.suppress(ConnectionError):
            while not data.endswith(b"0\r\n\r\n"):
                chunk = await asyncio.wait_for(self.reader.read(65_536), PATIENCE)
                if not chunk:
                    break
                data += chunk
        self.writer.close()
        return data

    async def has_begun(self) -> None:
        await asyncio.wait_for(self.reader.readuntil(b"subscription"), PATIENCE)


Verb = Callable[[World], Awaitable[int]]

VERBS: list[Verb] = [World.demote, World.kick, World.revoke, World.expire]


@contextlib.asynccontextmanager
async def world(
    folder: Path, monkeypatch: pytest.MonkeyPatch, verb: Verb, tools: Iterable[Tool] = KERNEL_TOOLS
) -> AsyncIterator[World]:
    async with served_kernel(folder, LIMITS, tools) as served:
        kernel, now = served.kernel, [served.kernel.clock.now_ms()]
        monkeypatch.setattr(kernel.clock, "now_ms", lambda: now[0])
        # These clients read one after the other, on a busy machine later than the kernel waits.
        monkeypatch.setattr(connection_guard, "GOODBYE_SECONDS", PATIENCE)
        issued = await kernel.invitations.invite(
            AccessRole.EDITOR, name="vera", expires=now[0] + MINUTE, uses=None
        )
        await kernel.members.give_role(issued.principal, AccessRole.OWNER)
        number = issued.credential.number
        yield World(served, issued.principal, issued.token, number, now, verb)


def close_code_of(answer: bytes) -> int:
    """The code with which an HTTP answer says that the session is over, as its last line."""
    start = answer.rindex(b'{"type": "error"')
    end = answer.index(b"\n", start)
    return int(json.loads(answer[start:end])["error"]["close_code"])


Opened = Callable[[int], Awaitable[None]]
Driver = Callable[[World], Awaitable[list[Opened]]]
"""Opens a door; each function that it returns checks, after the dismissal, what came of it."""


# A stream is open


async def follow_by_sync(world: World) -> list[Opened]:
    client = await sync_as(world.served, world.token)
    await client.join()

    async def check(code: int) -> None:
        assert (await client.closed())[0] == code
        assert not any(SECRET.encode() in encode_frame(frame) for frame in client.received)

    return [check]


def each(names: Sequence[str], open_one: Callable[[World, str], Awaitable[Opened]]) -> Driver:
    async def open_all(world: World) -> list[Opened]:
        return [await open_one(world, name) for name in world.some(names)]

    return open_all


async def follow_over_socket(world: World, tool: str) -> Opened:
    socket = await call_socket(world.served, world.token)
    await socket.send(json.dumps({"id": 1, "tool": tool, "params": {}}))
    assert "subscription" in json.loads(await socket.recv())["result"]

    async def check(code: int) -> None:
        told: list[str | bytes] = []
        with contextlib.suppress(ConnectionClosed):
            while True:
                told.append(await asyncio.wait_for(socket.recv(), PATIENCE))
        assert socket.close_code == code
        assert not any(SECRET in str(message) for message in told)

    return check


async def follow_over_http(world: World, tool: str) -> Opened:
    posted = await world.post(tool, b"{}")
    await posted.has_begun()

    async def check(code: int) -> None:
        answer = await posted.rest()
        assert close_code_of(answer) == code
        assert SECRET.encode() not in answer

    return check


async def follow_an_export(world: World) -> list[Opened]:
    if world.verb is not World.kick:
        return []
    for _ in range(LARGE):
        await world.served.block("a line that nobody reads\n" * 40_000, status="done")
    posted = await world.request("GET /export")
    await asyncio.wait_for(posted.reader.readuntil(b"context_id"), PATIENCE)

    async def check(code: int) -> None:
        answer = await posted.rest()
        assert close_code_of(answer) == code
        assert SECRET.encode() not in answer and b'"type": "end"' not in answer

    return [check]


# A body is held back


async def hold_back_an_update(world: World) -> list[Opened]:
    client = await sync_as(world.served, world.token)
    document = Document(client_id=4242)
    document.apply_update((await client.join()).update)
    block = document.block_ids()[0]
    before = document.state_vector()
    document.splice(block, 0, 0, LATE)
    update = encode_frame(SyncUpdate(document.update_since(before)))
    return [await hold_back(client.socket, update[:5], update[5:])]


async def hold_back_a_frame(world: World) -> list[Opened]:
    call = json.dumps({"id": 1, "tool": "block.create", "params": WORDS})
    return [await hold_back(await call_socket(world.served, world.token), call[:9], call[9:])]


async def hold_back(socket: ClientConnection, first: str | bytes, rest: str | bytes) -> Opened:
    dismissed, begun = asyncio.Event(), asyncio.Event()

    async def parts() -> AsyncIterator[str | bytes]:
        yield first
        begun.set()
        await dismissed.wait()
        yield rest

    async def send() -> None:
        with contextlib.suppress(ConnectionClosed):
            await socket.send(parts())

    sending = asyncio.create_task(send())
    await begun.wait()

    async def check(code: int) -> None:
        dismissed.set()
        await sending
        assert (await closing(socket))[0] == code

    return check


async def hold_back_a_body(world: World) -> list[Opened]:
    body = json.dumps(WORDS).encode()
    return [await hold_back_rest(world, "POST /call/block.create", body)]


async def hold_back_an_import(world: World) -> list[Opened]:
    line = {"type": "context", "format": 2, "context_id": "x", "label": LATE, "version": 1}
    return [await hold_back_rest(world, "POST /import", json.dumps(line).encode())]


async def hold_back_rest(world: World, target: str, body: bytes) -> Opened:
    posted = await world.request(target, body[:9], len(body))

    async def check(code: int) -> None:
        with contextlib.suppress(ConnectionError):
            posted.writer.write(body[9:])
            await posted.writer.drain()
        answer = await posted.rest()
        assert b" 403 " in answer.split(b"\r\n")[0] and close_code_of(answer) == code

    return check


# A call is under way


class AnyParams(Params):
    """Whatever is said."""

    model_config = ConfigDict(extra="allow", frozen=True)


@dataclass
class UnderWay:
    """Tools that begin and do not end by themselves."""

    begun: list[str] = field(default_factory=list)
    running: int = 0

    def hanging(self, tool: Tool) -> Tool:
        async def handler(call: Call, params: AnyParams) -> Result:
            self.begun.append(call.tool.name)
            self.running += 1
            try:
                await asyncio.Event().wait()
            finally:
                self.running -= 1
            raise AssertionError("it went on")

        return replace(tool, params=AnyParams, handler=handler)


async def call_over_socket(world: World, tool: str) -> Opened:
    socket = await call_socket(world.served, world.token)
    await socket.send(json.dumps({"id": 1, "tool": tool}))

    async def check(code: int) -> None:
        assert (await closing(socket))[0] == code

    return check


async def call_over_http(world: World, tool: str) -> Opened:
    return answered_by(await world.post(tool, b"{}"))


def answered_by(posted: Posted) -> Opened:
    async def check(code: int) -> None:
        assert close_code_of(await posted.rest()) == code

    return check


async def nothing(world: World) -> list[Opened]:
    """Of a door that lets nobody in, or has no calls."""
    return []


def message_door(method: str, path: str) -> tuple[Driver, Driver, Driver]:
    target = f"{method} {re.sub('{[^}]*}', 'x', path)}"

    async def hold_back_a_message(world: World) -> list[Opened]:
        return [await hold_back_rest(world, target, b'{"content": "late"}')]

    async def ask(world: World) -> list[Opened]:
        return [answered_by(await world.request(target, b'{"content": "x"}'))]

    return nothing, nothing if method == "GET" else hold_back_a_message, ask


# Programs that speak MCP, with a session and without one

MCP_META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
MCP_OPENING: dict[str, Any] = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "codex", "version": "1"},
}


async def ask_mcp(world: World, method: str, session: str | None = None, **params: Any) -> Posted:
    headers = "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
    if session is None and method != "initialize":
        params["_meta"] = MCP_META
        headers += f"MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: {method}\r\n"
        headers += f"Mcp-Name: {params['name']}\r\n" if "name" in params else ""
    elif session:
        headers += f"Mcp-Session-Id: {session}\r\n"
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return await world.request("POST /mcp", json.dumps(message).encode(), headers=headers)


async def open_mcp_session(world: World) -> str:
    answer = await (await ask_mcp(world, "initialize", **MCP_OPENING)).rest()
    found = re.search(rb"mcp-session-id: (\w+)", answer)
    assert found is not None, answer
    return found[1].decode()


def cut_off(posted: Posted) -> Opened:
    async def check(code: int) -> None:
        answer = await posted.rest()
        assert SECRET.encode() not in answer
        assert not any(one in answer for one in (b"result", b"resources/updated", b"0\r\n\r\n"))

    return check


async def follow_by_mcp(world: World) -> list[Opened]:
    await world.served.block("followed")
    uri = "antiphon://default/amy.1"
    wanted: Any = {"resourceSubscriptions": [uri]}
    listening = await ask_mcp(world, "subscriptions/listen", notifications=wanted)
    begun = listening.reader.readuntil(b"acknowledged")
    await asyncio.wait_for(begun, PATIENCE)
    session = await open_mcp_session(world)
    headers = f"Mcp-Session-Id: {session}\r\nAccept: text/event-stream\r\n"
    streaming = await world.request("GET /mcp", headers=headers)
    await asyncio.wait_for(streaming.reader.readuntil(b"\r\n\r\n"), PATIENCE)
    await (await ask_mcp(world, "resources/subscribe", session, uri=uri)).rest()
    return [cut_off(listening), cut_off(streaming)]


async def hold_back_a_message_of_mcp(world: World) -> list[Opened]:
    return [await hold_back_rest(world, "POST /mcp", json.dumps(MCP_OPENING).encode())]


MCP_CALLS: dict[str, tuple[str, dict[str, Any]]] = {
    "list_contexts": ("context.list", {}),
    "read_context": ("context.layout", {"context": "default"}),
    "read_block": ("block.read", {}),
    "search": ("kernel.search", {}),
    "write_message": ("block.create", {"context": "default", "content": LATE}),
    "append": ("block.splice", {"insert": LATE}),
    "edit": ("block.edit", {"base_version": 1}),
    "apply_patch": ("block.apply_patch", {}),
    "blame": ("block.blame", {}),
    "list_files": ("file.status", {}),
    "read_file": ("file.read", {}),
    "edit_file": ("file.edit", {}),
    "undo_mine": ("block.undo", {"context": "default"}),
}
"""By tool of MCP, the registry's that does it, and arguments without which it does not begin."""


async def call_by_mcp(world: World) -> list[Opened]:
    session, opened = await open_mcp_session(world), []
    for name in world.some([*MCP_CALLS]):
        call: dict[str, Any] = {"name": name, "arguments": MCP_CALLS[name][1]}
        opened.append(answered_by(await ask_mcp(world, "tools/call", **call)))
        opened.append(cut_off(await ask_mcp(world, "tools/call", session, **call)))
    return opened


DOORS: dict[str, tuple[Driver, Driver, Driver]] = {
    "/sync/{context}": (follow_by_sync, hold_back_an_update, nothing),
    "/call": (
        each(STREAMING, follow_over_socket),
        hold_back_a_frame,
        each(NAMES, call_over_socket),
    ),
    "/call/{tool:path}": (
        each(STREAMING, follow_over_http),
        hold_back_a_body,
        each(NAMES, call_over_http),
    ),
    "/export": (follow_an_export, nothing, nothing),
    "/import": (nothing, hold_back_an_import, nothing),
    "/health": (nothing, nothing, nothing),
    **{path: message_door(method, path) for method, path in MESSAGE_TOOLS},
    "/mcp": (follow_by_mcp, hold_back_a_message_of_mcp, call_by_mcp),
    "/.well-known/oauth-protected-resource": (nothing, nothing, nothing),
    "/.well-known/oauth-protected-resource/mcp": (nothing, nothing, nothing),
}
"""By path, how a stream is opened, how a body is held back, and how all tools are called."""


async def open_at_every_door(world: World, state: int) -> list[Opened]:
    paths = [route.path for route in world.served.doors.routes]
    assert sorted(paths) == sorted(DOORS), "each door has its row in this table"
    return [opened for path in paths for opened in await DOORS[path][state](world)]


async def dismiss(world: World) -> int:
    assert world.served.kernel.sessions.of(world.guest.id)
    code = await world.verb(world)
    assert not world.served.kernel.sessions.of(world.guest.id)
    return code


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.__name__)
async def test_dismissal_while_a_stream_is_open_delivers_nothing_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: Verb
) -> None:
    async with world(tmp_path, monkeypatch, verb) as here:
        opened = await open_at_every_door(here, 0)
        assert len(opened) == 3 + (verb is World.kick) + 2 * len(here.some(STREAMING))
        code = await dismiss(here)
        await here.served.block(SECRET)
        for check in opened:
            await check(code)
        await until(lambda: here.served.doors.connections.members == 0, "every session is over")


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.__name__)
async def test_dismissal_while_a_body_is_held_back_takes_nothing_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: Verb
) -> None:
    async with world(tmp_path, monkeypatch, verb) as here:
        block = await here.served.block("before")
        opened = await open_at_every_door(here, 1)
        assert len(opened) == 7
        await until(lambda: here.served.doors.connections.members == 7, "all are in")
        code = await dismiss(here)
        for check in opened:
            await check(code)
        await until(lambda: here.served.doors.connections.members == 0, "every session is over")
        document = (await here.served.context()).document
        assert document.block_ids() == [block] and document.text(block) == "before"


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.__name__)
async def test_dismissal_while_any_tool_is_under_way_ends_the_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: Verb
) -> None:
    under_way = UnderWay()
    async with world(tmp_path, monkeypatch, verb, map(under_way.hanging, TOOLS)) as here:
        opened = await open_at_every_door(here, 2)
        await until(lambda: under_way.running == len(opened), "all calls are under way")
        tools = [*here.some(NAMES), *(MCP_CALLS[one][0] for one in here.some([*MCP_CALLS]))]
        tools = [*(2 * tools), *MESSAGE_TOOLS.values()]
        assert sorted(under_way.begun) == sorted(tools)
        code = await dismiss(here)
        for check in opened:
            await check(code)
        await until(lambda: under_way.running == 0, "no call goes on")
        await until(lambda: here.served.doors.connections.members == 0, "every session is over")


async def test_expiry_ends_a_session_at_its_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with world(tmp_path, monkeypatch, World.expire) as here:
        here.now[0] += MINUTE - 5
        client = await sync_as(here.served, here.token)
        await client.join()
        here.now[0] += 5
        code, reason = await client.closed()
        assert code == UNAUTHORISED and "expired" in (reason or "")
        assert not here.served.kernel.sessions.of(here.guest.id)


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


@pytest.mark.sqlite
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
