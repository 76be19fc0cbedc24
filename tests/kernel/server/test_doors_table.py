"""Every way in, at every endpoint, with every tool, for every role and for who is let in nowhere.

Rows come from the code: modules that take connections, kinds of host, routes, tools. What is new
and has no row fails here, with a sentence that says what to do.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import re
import socket as sockets
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, get_args

import pytest
from starlette.routing import Route
from websockets.asyncio.client import connect, unix_connect
from websockets.exceptions import ConnectionClosed

from antiphon.hosts.host_address import HostKind
from antiphon_kernel.document.document import Document
from antiphon_kernel.server.limits import ServerLimits
from antiphon_kernel.server.mcp.tools import OFFERS
from antiphon_kernel.server.peers import PEER_HEADER, PeerAddress
from antiphon_kernel.server.rpc import MESSAGE_TOOLS
from antiphon_kernel.tools.all_tools import KERNEL_TOOLS
from antiphon_kernel.turns import TURN_TOOLS
from antiphon_kernel.types.ids import IdSource
from antiphon_kernel.types.roles import AccessRole, Permission
from antiphon_kernel.yjs.frames import PermissionDenied, SyncStep1, SyncStep2, SyncUpdate
from tests.kernel.access.test_roles import ALLOWED
from tests.kernel.access.test_ssh_keys import fingerprint, key_of
from tests.kernel.served import RawClient, ServedKernel, served_kernel
from tests.waiting import PATIENCE

ROOT: Final = Path(__file__).parents[3]
TOOLS: Final = {tool.name: tool for tool in (*KERNEL_TOOLS, *TURN_TOOLS)}
LIMITS: Final = ServerLimits(calls_at_once=1e6, connects_at_once=1e6, connections_each=1_000)
ROLES: Final = (AccessRole.OWNER, AccessRole.EDITOR, AccessRole.AGENT, AccessRole.VIEWER)
SECRET: Final = "a secret of this browser"
UNKNOWN: Final = {"unknown": 0}
"""No tool takes it: a call is denied for its role or, having reached its tool, refused for this."""
REACHED, DENIED, REFUSED, OPEN = "invalid_params", "permission_denied", "refused", "open"
"""Outcomes of a call, of somebody who is not let in, and of what is for everybody."""

# Modules

_TAKES_CONNECTIONS: Final = re.compile(
    r"create_(unix_)?server\b|start_(unix_)?server\b|create_datagram_endpoint|socketserver"
    r"|http\.server|asyncio\.server import|run_agent|ClientSideConnection|elicitation_callback"
)
PLACES: Final = {
    "kernel/antiphon_kernel/server/serving.py": "tests/kernel/server/test_doors_table.py",
    "app/antiphon/ssh/server.py": "tests/e2e/test_ssh_security.py",
    "app/antiphon/web/server.py": "tests/app/web/test_web_server.py",
    "app/antiphon/acp_agent/agent.py": "tests/app/acp_agent/test_acp_agent.py",
    "kernel/antiphon_kernel/turns/agents/connection.py": "tests/kernel/agents/test_agent_files.py",
    "kernel/antiphon_kernel/mcp_servers/connection.py": (
        "tests/kernel/mcp_servers/test_faulty_servers.py"
    ),
}
"""By module that takes connections, or requests of a program that it starts, its own tests."""


def test_every_module_that_takes_connections_has_its_place() -> None:
    sources = (one for top in ("app", "kernel") for one in (ROOT / top).rglob("*.py"))
    taking = {
        str(one.relative_to(ROOT))
        for one in sources
        if _TAKES_CONNECTIONS.search(one.read_text("utf-8"))
    }
    assert sorted(taking - PLACES.keys()) == [], (
        "these take connections: test each with every role and with wrong credentials, promise so"
        " in docs/security.md, and name the test in PLACES"
    )
    assert sorted(PLACES.keys() - taking) == [], "these take none any more: delete their lines"
    assert [one for one in PLACES.values() if not (ROOT / one).exists()] == []


# Visitors


@dataclass
class Visitor:
    """Somebody who comes: what they show, and what they are known as."""

    served: ServedKernel
    role: AccessRole | None
    """None: they are let in nowhere."""
    headers: Mapping[str, str] = field(default_factory=dict)
    over_unix: bool = False
    in_address: bool = False
    """The token is in the address, which only WebSockets take."""
    is_peer: bool = False
    """They show the secret of the cluster."""
    asks_all: bool = False
    """Whether they ask for each tool at each endpoint."""
    is_owner: bool = False
    """Programs that they use over MCP act as agents."""

    def socket(self, path: str) -> connect:
        headers, query = dict(self.headers), ""
        if self.in_address:
            query = f"?token={headers.pop('Authorization').removeprefix('Bearer ')}"
        address = f"ws://localhost:{self.served.doors.port}{path}{query}"
        if self.over_unix:
            return unix_connect(str(self.served.doors.socket), address, additional_headers=headers)
        return connect(address, additional_headers=headers, host="127.0.0.1")

    def some(self, tools: Iterable[str]) -> list[str]:
        """Return one tool of each right; all for somebody whom an invitation lets in."""
        return [*(tools if self.asks_all else {TOOLS[one].needs: one for one in tools}.values())]

    async def requests(self, *asked: Request) -> list[tuple[int, str]]:
        """Status and body of each answer, over one connection."""
        return await asyncio.to_thread(self._requests, asked)

    def _requests(self, asked: Iterable[Request]) -> list[tuple[int, str]]:
        place = http.client.HTTPConnection("localhost")
        found = []
        try:
            for method, path, body, headers in asked:
                if place.sock is None:
                    place.sock = self._connected()
                place.request(method, path, json.dumps(body), {**self.headers, **headers})
                response = place.getresponse()
                found.append((response.status, response.read().decode()))
        finally:
            place.close()
        return found

    def _connected(self) -> sockets.socket:
        if not self.over_unix:
            found = sockets.create_connection(("127.0.0.1", self.served.doors.port), PATIENCE)
            found.setsockopt(sockets.IPPROTO_TCP, sockets.TCP_NODELAY, 1)
            return found
        found = sockets.socket(sockets.AF_UNIX)
        found.connect(str(self.served.doors.socket))
        return found


Request = tuple[str, str, object, Mapping[str, str]]
"""Method, path, body, and headers beside those of the visitor."""


async def issued(
    served: ServedKernel, role: AccessRole, name: str, uses: int | None = None, minutes: int = 9
) -> str:
    """The token of an invitation of somebody with a role."""
    expires = served.kernel.clock.now_ms() + minutes * 60_000
    made = await served.kernel.invitations.invite(
        AccessRole.EDITOR, name=name, expires=expires, uses=uses
    )
    await served.kernel.members.give_role(made.principal, role)
    return made.token


def showing(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


async def by_unix_socket(served: ServedKernel, role: AccessRole) -> Visitor:
    return Visitor(served, role, over_unix=True, is_owner=True)


async def by_own_token(served: ServedKernel, role: AccessRole) -> Visitor:
    return Visitor(served, role, showing(served.doors.token), is_owner=True)


async def by_invitation(served: ServedKernel, role: AccessRole) -> Visitor:
    shown = showing(await issued(served, role, f"gus-{role}"))
    return Visitor(served, role, shown, asks_all=True)


async def by_invitation_in_address(served: ServedKernel, role: AccessRole) -> Visitor:
    return replace(await by_invitation(served, role), in_address=True)


async def by_ssh(served: ServedKernel, role: AccessRole) -> Visitor:
    name = f"sue-{role}"
    await served.call("key.add", key=key_of(name), name=name)
    await served.kernel.members.give_role(served.kernel.members[name], role)
    opened = await served.call("ssh.open", host=served.me.session, fingerprint=fingerprint(name))
    return Visitor(served, role, showing(opened["token"]))


async def by_browser(served: ServedKernel, role: AccessRole) -> Visitor:
    shown = {"invitation": await issued(served, role, f"wes-{role}"), "client": SECRET}
    opened = await served.call("ssh.open", host=served.me.session, **shown)
    return Visitor(served, role, showing(opened["token"]))


async def by_peer(served: ServedKernel, role: AccessRole) -> Visitor:
    kernel, name = served.kernel, f"pia-{role}"
    await issued(served, role, name)
    secret = (await kernel.journal.settings("cluster_secret"))["cluster_secret"]
    guest = kernel.open_session(kernel.members[name], "tcp")
    return Visitor(served, role, PeerAddress.of("", secret, guest).headers, is_peer=True)


Way = Callable[[ServedKernel, AccessRole], Awaitable[Visitor]]
HOSTS: Final[dict[str, Way]] = {"ssh": by_ssh, "web": by_browser}
WAYS: Final[tuple[tuple[Way, tuple[AccessRole, ...]], ...]] = (
    (by_unix_socket, (AccessRole.OWNER,)),
    (by_own_token, (AccessRole.OWNER,)),
    (by_invitation, ROLES),
    (by_invitation_in_address, ROLES),
    *((way, ROLES) for way in HOSTS.values()),
)
"""Ways to a kernel with files, and the roles that come by them."""


def test_every_kind_of_host_has_a_way() -> None:
    assert sorted(get_args(HostKind)) == sorted(HOSTS), (
        "give each kind of host its way: how it opens a session for somebody with a role"
    )


# Who is let in nowhere


async def strangers(served: ServedKernel) -> dict[str, Visitor]:
    """By what is wrong with what they show."""
    kernel, editor = served.kernel, AccessRole.EDITOR
    used = await issued(served, editor, "used", uses=1)
    await kernel.invitations.authenticate(used, SECRET)
    shown = {
        "a wrong token": "wrong",
        "half a token": served.doors.token[:20],
        "one that has expired": await issued(served, editor, "late", minutes=-1),
        "one that is used up": used,
        "one that was revoked": await issued(served, editor, "past"),
        "somebody kicked": await issued(served, editor, "kai"),
        "an author": await issued(served, AccessRole.AUTHOR, "ari"),
    }
    await served.call("kernel.revoke", principal="past")
    await served.call("kernel.kick", principal="kai", minutes=9)
    found = {name: Visitor(served, None, showing(token)) for name, token in shown.items()}
    for host, way in HOSTS.items():
        found[f"an ended session of {host}"] = ended = await way(served, editor)
        token = ended.headers["Authorization"].removeprefix("Bearer ")
        actor = kernel.ssh.find(token)
        assert actor is not None
        await served.call("session.end", session=actor.session)
        ended.role = None
    found["no token"] = Visitor(served, None)
    deep = {PEER_HEADER: "[" * 4_000}
    found["a claim to be another kernel"] = Visitor(
        served, None, showing(served.doors.token) | deep
    )
    return found


async def peers_not_believed(served: ServedKernel) -> dict[str, Visitor]:
    kernel = served.kernel
    right = await by_peer(served, AccessRole.EDITOR)
    made = await kernel.invitations.invite(AccessRole.EDITOR, name="past", expires=None, uses=None)
    guest = kernel.open_session(made.principal, "tcp", credential=made.credential.number)
    secret = right.headers["Authorization"].removeprefix("Bearer ")
    revoked = PeerAddress.of("", secret, guest).headers
    await served.call("kernel.revoke", principal="past")
    shown = {
        "no secret": {**right.headers, "Authorization": ""},
        "the owner's token": {**right.headers, **showing(served.doors.token)},
        "a wrong secret": {**right.headers, **showing(secret[:-1])},
    }
    found = {name: Visitor(served, None, headers) for name, headers in shown.items()}
    found["the secret, and nobody to speak for"] = Visitor(
        served, None, showing(secret), is_peer=True
    )
    found["one that was revoked"] = Visitor(served, None, revoked, is_peer=True)
    return found


# Endpoints

Outcomes = dict[str, str]
"""By tool, or by what else is asked for."""
Ask = Callable[[Visitor], Awaitable[Outcomes]]


def outcome_of(status: int, text: str) -> str:
    """Return what has become of a call over HTTP."""
    if status in (401, 429):
        return REFUSED
    code = json.loads(text).get("error", {"code": "done"})["code"]
    # Beside unknown parameters, messages are refused for a parent that is not there.
    return REACHED if code in ("block_not_found", "ambiguous_id") else str(code)


async def call_over_socket(visitor: Visitor) -> Outcomes:
    names, found = visitor.some(TOOLS), dict[str, str]()
    try:
        async with visitor.socket("/call") as socket:
            for name in names:
                await socket.send(json.dumps({"id": name, "tool": name, "params": UNKNOWN}))
            while len(found) < len(names):
                answer = json.loads(await asyncio.wait_for(socket.recv(), PATIENCE))
                found[answer["id"]] = answer.get("error", {"code": "done"})["code"]
    except ConnectionClosed:
        return dict.fromkeys(names, REFUSED)
    return found


def requesting(method: str, paths: Mapping[str, str]) -> Ask:
    """Asks for tools by a path of each."""
    body = {"content": "x"} if "/messages" in str(paths) else UNKNOWN

    async def ask(visitor: Visitor) -> Outcomes:
        asked = [(method, path, body, dict[str, str]()) for path in paths.values()]
        answers = await visitor.requests(*asked)
        return {tool: outcome_of(*one) for tool, one in zip(paths, answers, strict=True)}

    return ask


async def call_over_http(visitor: Visitor) -> Outcomes:
    paths = {name: f"/call/{name}" for name in visitor.some(TOOLS)}
    return await requesting("POST", paths)(visitor)


async def call_by_mcp(visitor: Visitor) -> Outcomes:
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    asked: list[Request] = []
    offered = {offer.tool: (name, offer) for name, offer in OFFERS.items()}
    tools = visitor.some(offered)
    for name, offer in map(offered.__getitem__, tools):
        arguments = {**UNKNOWN, **dict.fromkeys(offer.required, "")}
        params = {"_meta": meta, "name": name, "arguments": arguments}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        headers = {"Content-Type": "application/json", "MCP-Protocol-Version": "2026-07-28"}
        headers |= {"Accept": "application/json, text/event-stream"}
        asked.append(
            ("POST", "/mcp", message, headers | {"Mcp-Method": "tools/call", "Mcp-Name": name})
        )
    found = {}
    for tool, (status, text) in zip(tools, await visitor.requests(*asked), strict=True):
        answer = json.loads(text.partition("data: ")[2] or text)
        said = answer["result"]["content"][0]["text"] if status == 200 else ""
        found[tool] = said.partition(":")[0] if status == 200 else REFUSED
        assert status in (200, 401, 429), text
    return found


async def synchronise(visitor: Visitor) -> Outcomes:
    """Read a document, and write a line into its first block."""
    try:
        async with visitor.socket("/sync/default") as socket:
            client, document = RawClient(socket), Document(IdSource().client_id())
            document.apply_update((await client.join()).update)
            before = document.state_vector()
            document.splice(document.block_ids()[0], 0, 0, f"{visitor.role}\n")
            await client.send(SyncUpdate(document.update_since(before)), SyncStep1(b"\x00"))
            while not isinstance(frame := await client.any(), SyncStep2 | PermissionDenied):
                pass
    except ConnectionClosed:
        return {READING: REFUSED, WRITING: REFUSED}
    wrote = REACHED if isinstance(frame, SyncStep2) else DENIED
    return {READING: REACHED, WRITING: wrote}


async def ask_for_a_tree(visitor: Visitor) -> Outcomes:
    async with visitor.socket("/peer/hand-over/999") as socket:
        answer = json.loads(await asyncio.wait_for(socket.recv(), PATIENCE))
    return {HAND_OVER: answer.get("error", {"code": REACHED})["code"]}


def open_to_all(path: str) -> Ask:
    async def ask(visitor: Visitor) -> Outcomes:
        ((status, _),) = await visitor.requests(("GET", path, None, {}))
        return {path: OPEN if status == 200 else str(status)}

    return ask


READING, WRITING, HAND_OVER = "sync (reading)", "sync (writing)", "hand over"
METADATA: Final = "/.well-known/oauth-protected-resource"
ENDPOINTS: Final[dict[str, Ask]] = {
    "/sync/{context}": synchronise,
    "/call": call_over_socket,
    "/call/{tool:path}": call_over_http,
    "/export": requesting("GET", {"context.export": "/export?unknown=0"}),
    "/import": requesting("POST", {"context.import": "/import?unknown=0"}),
    **{
        f"{method} {path}": requesting(method, {tool: f"{re.sub('{.*?}', 'x', path)}?unknown=0"})
        for (method, path), tool in MESSAGE_TOOLS.items()
    },
    "/mcp": call_by_mcp,
    **{path: open_to_all(path) for path in ("/health", METADATA, f"{METADATA}/mcp")},
    "/peer/hand-over/{root:int}": ask_for_a_tree,
}
"""By path (of messages with its method), how all that it reaches is asked for."""

NEEDS: Final = {READING: Permission.READ, WRITING: Permission.WRITE} | {
    name: tool.needs for name, tool in TOOLS.items()
}


def named(route: Any) -> list[str]:
    """The rows of a route."""
    of_messages = [f"{method} {path}" for method, path in MESSAGE_TOOLS if path == route.path]
    return of_messages or [route.path]


def expected(visitor: Visitor, path: str, tool: str) -> str:
    if path.startswith(("/health", METADATA)):
        return OPEN
    if tool == HAND_OVER:
        return REACHED if visitor.is_peer else DENIED
    if visitor.role is None:
        return REFUSED
    role = AccessRole.AGENT if visitor.is_owner and path == "/mcp" else visitor.role
    return REACHED if NEEDS[tool] in ALLOWED[role] else DENIED


async def check(visitors: Mapping[str, Visitor]) -> None:
    """Ask for everything at every endpoint of a kernel as everybody."""
    wrong, written = [], ""
    for who, visitor in visitors.items():
        for route in visitor.served.doors.routes:
            if visitor.in_address and isinstance(route, Route):
                continue
            for path in named(route):
                assert path in ENDPOINTS, (
                    f"{path} is a new endpoint: give it its row in ENDPOINTS, which asks for all"
                    " that it reaches, and one in tests/kernel/server/test_dismissal_table.py"
                )
                for tool, found in (await ENDPOINTS[path](visitor)).items():
                    if found != expected(visitor, path, tool):
                        wanted = expected(visitor, path, tool)
                        wrong.append(f"{who} at {path}: {tool} is {found}, expected {wanted}")
        if visitor.role is not None and Permission.WRITE in ALLOWED[visitor.role]:
            written = f"{visitor.role}\n{written}"
    assert wrong == []
    document = (await visitor.served.context()).document
    assert document.text(document.block_ids()[0]) == written


@asynccontextmanager
async def written_kernel(folder: Path, store: str | None = None) -> AsyncIterator[ServedKernel]:
    """A kernel with every tool, and a document with one empty block."""
    async with served_kernel(folder, LIMITS, TOOLS.values(), store=store) as served:
        await served.block("")
        yield served


@pytest.mark.parametrize(("way", "roles"), WAYS, ids=lambda one: getattr(one, "__name__", ""))
async def test_role_reaches_the_tools_of_its_rights_by_every_way(
    tmp_path: Path, way: Way, roles: tuple[AccessRole, ...]
) -> None:
    async with written_kernel(tmp_path) as served:
        await check({f"{way.__name__} as {role}": await way(served, role) for role in roles})


async def test_who_shows_nothing_good_reaches_nothing_at_any_endpoint(tmp_path: Path) -> None:
    async with written_kernel(tmp_path) as served:
        await check(await strangers(served))


async def test_peer_reaches_what_the_role_of_whom_it_speaks_for_reaches(
    tmp_path: Path, store: str
) -> None:
    async with written_kernel(tmp_path, store) as served:
        await check({f"a peer for {role}": await by_peer(served, role) for role in ROLES})
        assert sorted(one for route in served.doors.routes for one in named(route)) == sorted(
            ENDPOINTS
        ), "these rows are of no endpoint any more: delete them"


async def test_peer_that_is_not_believed_reaches_nothing(tmp_path: Path, store: str) -> None:
    async with written_kernel(tmp_path, store) as served:
        await check(await peers_not_believed(served))
