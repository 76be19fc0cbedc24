"""Tool calls, messages and events over WebSocket and HTTP."""

from __future__ import annotations

import asyncio
import http.client
import json
import socket as sockets
from typing import Any
from urllib.parse import urlsplit

import pytest
from websockets.asyncio.client import ClientConnection, connect, unix_connect

from antiphon_kernel.client.tool_client import ToolClient
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.records import Actor
from antiphon_kernel.yjs.close_codes import SHUTTING_DOWN, CloseCode
from tests.errors import raises
from tests.kernel.served import RawClient, ServedKernel
from tests.kernel.server.invited import Answered, answered
from tests.waiting import PATIENCE, until


async def open_calls(served: ServedKernel, query: str = "") -> ClientConnection:
    base = served.doors.http.replace("http", "ws", 1)
    return await connect(f"{base}/call?token={served.doors.token}{query}")


async def ask(socket: ClientConnection, message: str | dict[str, Any]) -> dict[str, Any]:
    await socket.send(message if isinstance(message, str) else json.dumps(message))
    answer: dict[str, Any] = json.loads(await socket.recv())
    return answer


async def post(served: ServedKernel, tool: str, body: bytes) -> tuple[int, Any]:
    """A call with the owner's token."""
    bearer = f"Bearer {served.doors.token}"
    found = await answered(served, "POST", f"/call/{tool}", body, Authorization=bearer)
    return found.status, found.body


NEW = {"role": "user", "kind": "text"}


@pytest.mark.parametrize(
    ("message", "number", "code"),
    [
        ("{", None, "invalid_json"),
        ("[" * 100_000, None, "invalid_json"),
        ("[]", None, "invalid_params"),
        ('{"id": 3}', 3, "invalid_params"),
        ('{"id": "x", "tool": "nope"}', "x", "unknown_tool"),
        ('{"id": 1, "tool": "block.read", "params": []}', 1, "invalid_params"),
        ('{"id": 1, "tool": "block.read", "params": {"block_id": "x.y.1"}}', 1, None),
    ],
)
async def test_bad_call_is_an_error_and_the_next_one_works(
    served: ServedKernel, message: str, number: object, code: str | None
) -> None:
    socket = await open_calls(served)
    answer = await ask(socket, message)
    assert answer["id"] == number
    assert code is None or answer["error"]["code"] == code
    assert answer["error"]["message"]
    assert "result" in await ask(socket, {"id": 2, "tool": "context.list"})
    await socket.close()


async def test_binary_frame_closes_only_that_connection(served: ServedKernel) -> None:
    other, socket = await open_calls(served), await open_calls(served)
    await socket.send(b"\x00")
    assert (await RawClient(socket).closed())[0] == 1003
    assert "result" in await ask(other, {"id": 2, "tool": "context.list"})
    await other.close()


async def test_session_is_one_connection(served: ServedKernel) -> None:
    socket = await open_calls(served, "&as=model")
    params = {"kind": "tool_call", "content": "half "}
    created = await ask(socket, {"id": 1, "tool": "block.create", "params": params})
    block = created["result"]["block_id"]
    append = {"block_id": block, "text": "a sen"}
    await ask(socket, {"id": 2, "tool": "block.append", "params": append})
    document = (await served.context()).document
    assert document.header(block).status == "running"
    await socket.close()
    await until(lambda: document.header(block).status == "error", "the block has ended")
    assert document.header(block).stop_reason == "interrupted"
    assert document.text(block) == "half a sen"


@pytest.mark.parametrize(
    ("tool", "body", "status", "code"),
    [
        ("nope", b"{}", 404, "unknown_tool"),
        ("block.create", b"{", 400, "invalid_json"),
        ("block.create", b"\xff\xfe\x00", 400, "invalid_json"),
        ("block.create", b"[]", 400, "invalid_params"),
        ("block.create", b"{}", 400, "invalid_params"),
        ("block.create", b" " * (9 * 2**20), 413, "too_large"),
        pytest.param("block.create", b"x" * 100_000, 400, "invalid_json", id="words"),
        pytest.param("block.create", b"[" * 99_000, 400, "invalid_json", id="brackets"),
        pytest.param("block.create", b"1e" + b"9" * 4_000, 400, "invalid_json", id="a number"),
    ],
)
async def test_bad_post_says_why_and_is_not_quoted_at_length(
    served: ServedKernel, tool: str, body: bytes, status: int, code: str
) -> None:
    answer = await post(served, tool, body)
    assert (answer[0], answer[1]["error"]["code"]) == (status, code)
    assert status != 400 or len(json.dumps(answer[1])) < 500


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-32-be"])
async def test_body_is_utf_8_with_nothing_in_front_as_frames_are(
    served: ServedKernel, encoding: str
) -> None:
    body = json.dumps({**NEW, "content": "ü"}, ensure_ascii=False).encode(encoding)
    status, answer = await post(served, "block.create", body)
    assert (status, answer["error"]["code"]) == (400, "invalid_json")
    assert not (await served.context()).document.block_ids()
    if encoding == "utf-8-sig":
        assert "byte order mark" in answer["error"]["message"]
        socket = await open_calls(served)
        assert (await ask(socket, body.decode()))["error"] == answer["error"]
        await socket.close()


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("POST", "/call", 404, "unknown_tool"),
        ("POST", "/call/", 404, "unknown_tool"),
        ("POST", "/call/context.list/", 404, "unknown_tool"),
        pytest.param("POST", "/nowhere/" + "x" * 1_000, 404, "unknown_tool", id="a long path"),
        ("GET", "/sync/default/", 404, "unknown_tool"),
        ("GET", "/call/context.list", 405, "invalid_params"),
        ("DELETE", "/health", 405, "invalid_params"),
    ],
)
async def test_http_request_without_call_is_answered_with_call_error(
    served: ServedKernel, method: str, path: str, status: int, code: str
) -> None:
    bearer = f"Bearer {served.doors.token}"
    found = await answered(served, method, path, b"{}", Authorization=bearer)
    error = found.body["error"]
    assert (found.status, error["code"]) == (status, code)
    assert len(error["message"]) < 1_000
    if status == 405:
        assert error["allowed"] == sorted(found.headers["allow"].split(", "))


async def test_a_block_written_by_several_posts_stays_open_between_them(
    served: ServedKernel,
) -> None:
    new = json.dumps({"kind": "tool_call", "content": "one "}).encode()
    _, created = await post(served, "block.create", new)
    append = json.dumps({"block_id": created["block_id"], "text": "two"}).encode()
    assert (await post(served, "block.append", append))[0] == 200
    read = json.dumps({"block_id": created["block_id"]}).encode()
    _, found = await post(served, "block.read", read)
    assert (found["content"], found["status"]) == ("one two", "running")
    assert found["lease"] > found["created"]


async def test_a_block_written_by_one_shot_connections_stays_open_between_them(
    served: ServedKernel,
) -> None:
    socket = await open_calls(served, "&once=1")
    params = {"kind": "tool_call", "content": "one "}
    created = await ask(socket, {"id": 1, "tool": "block.create", "params": params})
    await socket.close()
    block = created["result"]["block_id"]
    await until(lambda: served.kernel.writers.lease_seconds(block) is not None, "a lease")
    socket = await open_calls(served, "&once=1")
    append = {"block_id": block, "text": "two"}
    appended = await ask(socket, {"id": 1, "tool": "block.append", "params": append})
    await socket.close()
    assert "result" in appended
    header = (await served.context()).document.header(block)
    assert (header.status, header.stop_reason) == ("running", None)


@pytest.mark.parametrize("kind", ["model", "agent", "source"])
async def test_the_owner_acts_as_a_model_an_agent_or_a_source(
    served: ServedKernel, kind: str
) -> None:
    socket = await open_calls(served, f"&as=robot&kind={kind}")
    answer = await ask(socket, {"id": 1, "tool": "session.whoami"})
    assert (answer["result"]["kind"], answer["result"]["role"]) == (kind, "agent")
    await socket.close()
    other = await open_calls(served, "&as=robot&kind=human")
    assert "human" in ((await RawClient(other).closed())[1] or "")


@pytest.mark.parametrize("query", ["&kind=model", "&as=robot&kind=system", "&as=robot&kind=shell"])
async def test_nobody_acts_as_a_kind_that_is_not_given_away(
    served: ServedKernel, query: str
) -> None:
    socket = await open_calls(served, query)
    assert "human, model, agent, source" in ((await RawClient(socket).closed())[1] or "")
    assert "robot" not in served.kernel.members


@pytest.mark.parametrize(("role", "kind"), [("agent", "agent"), ("source", "source")])
async def test_an_agent_or_a_source_is_invited_by_name(
    served: ServedKernel, role: str, kind: str
) -> None:
    socket = await open_calls(served)
    nameless = {"id": 1, "tool": "kernel.invite", "params": {"role": role}}
    assert (await ask(socket, nameless))["error"]["field"] == "name"
    invite = {"id": 2, "tool": "kernel.invite", "params": {"role": role, "name": "robot"}}
    made = (await ask(socket, invite))["result"]
    await socket.close()
    base = served.doors.http.replace("http", "ws", 1)
    guest = await connect(f"{base}/call?token={made['token']}")
    found = (await ask(guest, {"id": 1, "tool": "session.whoami"}))["result"]
    assert (found["username"], found["kind"], found["role"]) == ("robot", kind, "agent")
    await guest.close()


TEXT = [{"type": "text", "text": "And then?"}]
CALL = [{"type": "tool-use", "id": "c1", "name": "calc", "parameters": {}}]


async def request(served: ServedKernel, method: str, path: str, body: object = None) -> Answered:
    sent = b"" if body is None else json.dumps(body).encode()
    return await answered(served, method, path, sent, Authorization=f"Bearer {served.doors.token}")


@pytest.fixture
async def first(served: ServedKernel) -> str:
    return await served.block("Hello", status="done")


async def test_messages_are_read_appended_and_edited(served: ServedKernel, first: str) -> None:
    for content in ("And then?", TEXT):
        made = await request(served, "POST", f"/messages/{first}/append", {"content": content})
        assert (made.status, made.body["label"]) == (200, "default")
    edited = await request(served, "PUT", f"/messages/{first}/content", {"content": "Hallo"})
    assert (edited.status, edited.body["forked"]) == (200, True)
    paths = [
        "/messages",
        f"/messages?context={edited.body['label']}",
        f"/messages/{first}/path",
        f"/messages/{first}/children",
        f"/messages/{first}/siblings",
    ]
    texts = []
    for path in paths:
        found = await request(served, "GET", path)
        assert found.status == 200
        texts.append([one["message"]["content"][0]["text"] for one in found.body["messages"]])
    both = ["Hello", "And then?"]
    assert texts == [both, ["Hallo"], both[:1], both[1:], ["Hello", "Hallo"]]


@pytest.mark.parametrize("path", ["/messages/{}/append", "/messages/{}/content"])
@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({}, 400, "invalid_params"),
        ({"content": None}, 400, "invalid_params"),
        ({"content": 7}, 400, "invalid_params"),
        ({"content": "  "}, 400, "invalid_params"),
        ({"content": []}, 400, "invalid_params"),
        ({"content": CALL}, 400, "invalid_params"),
        ({"content": [{"type": "video"}]}, 400, "invalid_params"),
        ({"content": TEXT, "role": "assistant"}, 400, "invalid_params"),
        ({"content": TEXT}, 404, "block_not_found"),
    ],
)
async def test_content_is_checked_before_a_missing_message_is_404(
    served: ServedKernel, path: str, body: dict[str, Any], status: int, code: str
) -> None:
    method = "POST" if path.endswith("append") else "PUT"
    found = await request(served, method, path.format("default.amy.99"), body)
    assert (found.status, found.body["error"]["code"]) == (status, code)


async def test_message_is_named_by_a_path_of_the_layout(served: ServedKernel, first: str) -> None:
    shown = (await served.call("context.layout"))["items"]
    path = next(one["path"] for one in shown if one["block_id"] == first and "path" in one)
    for name in (path, f"default/{path}", f"default%2F{path}"):
        found = await request(served, "GET", f"/messages/{name}/path")
        assert (found.status, found.body["messages"][0]["message_id"]) == (200, first)
    edited = await request(served, "PUT", f"/messages/default/{path}/content", {"content": "Hello"})
    assert (edited.status, edited.body["message_id"]) == (200, first)


@pytest.mark.parametrize("path", ["/{}/path?message=default.amy.2", "?context=default&context=x"])
async def test_parameter_that_is_named_twice_is_refused(
    served: ServedKernel, first: str, path: str
) -> None:
    found = await request(served, "GET", "/messages" + path.format(first))
    assert (found.status, found.body["error"]["code"]) == (400, "invalid_params")


async def test_messages_are_read_page_by_page(served: ServedKernel, first: str) -> None:
    await request(served, "POST", f"/messages/{first}/append", {"content": "And then?"})
    page = await request(served, "GET", "/messages?limit=1")
    assert (len(page.body["messages"]), page.body["truncated"]) == (1, True)
    rest = await request(served, "GET", f"/messages?after_message={page.body['next']}")
    assert [one["message"]["content"] for one in rest.body["messages"]] == [TEXT]
    for limit in ("0", "many", "9" * 30):
        assert (await request(served, "GET", f"/messages?limit={limit}")).status == 400


async def send(socket: ClientConnection, number: int, tool: str, **params: Any) -> None:
    await socket.send(json.dumps({"id": number, "tool": tool, "params": params}))


async def receive(socket: ClientConnection) -> dict[str, Any]:
    message: dict[str, Any] = json.loads(await asyncio.wait_for(socket.recv(), PATIENCE))
    return message


async def splice(served: ServedKernel, block: str, insert: str) -> None:
    await served.call("block.splice", block_id=block, offset=0, insert=insert)


def caller(served: ServedKernel) -> Actor:
    """Return the session that came in last."""
    return served.kernel.sessions.of(served.kernel.owner.id)[-1]


def has_subscription(served: ServedKernel, actor: Actor, identity: str) -> bool:
    try:
        served.kernel.subscriptions.find(actor, identity)
    except AntiphonError:
        return False
    return True


async def test_events_come_behind_their_answer_and_all_before_the_end(served: ServedKernel) -> None:
    block = await served.block("x")
    socket = await open_calls(served)
    await send(socket, 1, "block.subscribe", from_versions=[])
    for number in range(2, 22):
        await send(socket, number, "block.splice", block_id=block, offset=0, insert=f"{number} ")
    answer = await receive(socket)
    assert answer["id"] == 1
    subscription = answer["result"]["subscription"]
    answers: list[int] = []
    events: list[dict[str, Any]] = []

    async def until_answered(number: int) -> None:
        while number not in answers:
            message = await receive(socket)
            if "id" in message:
                assert "result" in message
                answers.append(message["id"])
            else:
                assert message["subscription"] == subscription
                events.append(message["event"])

    await until_answered(21)
    await splice(served, block, "last ")
    await send(socket, 22, "block.unsubscribe", subscription=subscription)
    await until_answered(22)
    assert answers == list(range(2, 23))
    assert events[0]["kind"] == "resync"
    versions = [event["version"] for event in events]
    assert versions == list(range(versions[0], 23))
    assert [event["origin"] for event in events[1:]][-1] == "other"
    await splice(served, block, "unheard ")
    await send(socket, 23, "context.list")
    assert (await receive(socket))["id"] == 23
    await socket.close()


async def test_socket_that_never_reads_holds_nobody_up_and_is_let_go(served: ServedKernel) -> None:
    block = await served.block("x")
    socket = (await served.slow_reader("/call")).socket
    await send(socket, 1, "block.subscribe")
    subscription = (await receive(socket))["result"]["subscription"]
    subscriber = caller(served)
    assert has_subscription(served, subscriber, subscription)
    length = 1
    for number in range(40):
        insert = f"{number:04}" * 50_000
        params = {"block_id": block, "offset": 0, "delete_count": length, "insert": insert}
        await served.kernel.call(served.me, "block.splice", params)
        length = len(insert)
    kinds = []
    while "resync" not in kinds:
        kinds.append((await receive(socket))["event"]["kind"])
    assert len(kinds) < 40
    socket.transport.abort()
    await until(lambda: not has_subscription(served, subscriber, subscription), "it is gone")


async def test_post_is_answered_with_lines_for_as_long_as_it_is_read(served: ServedKernel) -> None:
    block = await served.block("x")
    connection = http.client.HTTPConnection(urlsplit(served.doors.http).netloc, timeout=PATIENCE)
    headers = {"Authorization": f"Bearer {served.doors.token}"}

    def begin() -> http.client.HTTPResponse:
        connection.request("POST", "/call/block.subscribe", b"{}", headers)
        return connection.getresponse()

    response = await asyncio.to_thread(begin)
    assert response.status == 200
    first = json.loads(await asyncio.to_thread(response.readline))
    subscriber, subscription = caller(served), first["subscription"]
    assert has_subscription(served, subscriber, subscription)
    for number in range(3):
        await splice(served, block, f"{number}")
        line = json.loads(await asyncio.to_thread(response.readline))
        assert line["subscription"] == subscription
        assert line["event"]["splices"] == [{"offset": 0, "delete_count": 0, "insert": f"{number}"}]
    response.close()
    connection.close()
    await splice(served, block, "x" * 100)
    await until(lambda: not has_subscription(served, subscriber, subscription), "it is gone")


async def test_client_is_told_when_the_kernel_goes_away_and_follows_the_next_one(
    served: ServedKernel,
) -> None:
    block = await served.block("x")
    calls = ToolClient(served.locate)
    pushed: list[dict[str, Any]] = []
    calls.on_push = pushed.append
    subscription = (await calls.call("block.subscribe", {}))["subscription"]
    await splice(served, block, "one ")
    await until(lambda: len(pushed) == 1, "an event")
    await served.stop()
    await until(lambda: len(pushed) == 2, "the end")
    assert pushed[1]["subscription"] == subscription
    assert pushed[1]["error"]["code"] == "no_kernel"
    await served.start()
    with raises(ErrorCode.INVALID_PARAMS):
        await calls.call("block.unsubscribe", {"subscription": subscription})
    known = [[block, pushed[0]["event"]["version"]]]
    await calls.call("block.subscribe", {"from_versions": known})
    await splice(served, block, "two ")
    await until(lambda: len(pushed) == 3, "an event of the next kernel")
    assert pushed[2]["event"]["from_version"] == known[0][1]
    await calls.close()


async def test_call_that_crosses_the_goodbye_of_an_ending_kernel_is_known_as_not_made(
    served: ServedKernel,
) -> None:
    socket = await unix_connect(str(served.doors.socket), "ws://localhost/call")
    await ask(socket, {"id": 1, "tool": "context.list"})
    socket.transport.pause_reading()
    ending = asyncio.create_task(served.doors.close())
    await asyncio.wait({ending}, timeout=0.2)

    await socket.send('{"id": 2, "tool": "context.list"}')
    socket.transport.resume_reading()
    await socket.wait_closed()
    await ending

    assert (socket.close_code, socket.close_reason) == (CloseCode.RESTART, SHUTTING_DOWN)


async def test_client_that_comes_while_the_kernel_ends_hears_that_no_call_is_made(
    served: ServedKernel,
) -> None:
    block = await served.block("x" * 5_000_000)
    slow = await open_calls(served)
    with sockets.socket(sockets.AF_UNIX) as way:
        way.connect(str(served.doors.socket))
        await until(lambda: served.doors.connections.strangers, "it has been accepted")
        slow.transport.pause_reading()
        await slow.send(json.dumps({"id": 1, "tool": "block.read", "params": {"block_id": block}}))
        await asyncio.sleep(0.1)
        ending = asyncio.create_task(served.doors.close())
        await asyncio.sleep(0)

        late = await connect("ws://localhost/call", sock=way)
        await late.wait_closed()

    assert not ending.done()
    slow.transport.resume_reading()
    await ending
    assert (late.close_code, late.close_reason) == (CloseCode.RESTART, SHUTTING_DOWN)
