"""Tool calls over WebSocket and HTTP."""

from __future__ import annotations

import asyncio
import http.client
import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import pytest
from websockets.asyncio.client import ClientConnection, connect

from tests.kernel.served import RawClient, ServedKernel
from tests.waiting import PATIENCE, until


async def open_calls(served: ServedKernel, query: str = "") -> ClientConnection:
    base = served.doors.http.replace("http", "ws", 1)
    return await connect(f"{base}/call?token={served.doors.token}{query}")


async def ask(socket: ClientConnection, message: str | dict[str, Any]) -> dict[str, Any]:
    await socket.send(message if isinstance(message, str) else json.dumps(message))
    answer: dict[str, Any] = json.loads(await socket.recv())
    return answer


@dataclass(frozen=True)
class Answered:
    """Answer to one request."""

    status: int
    headers: dict[str, str]
    body: Any


async def answered(
    served: ServedKernel, method: str, path: str, body: bytes, **headers: str
) -> Answered:
    def request() -> Answered:
        connection = http.client.HTTPConnection(
            urlsplit(served.doors.http).netloc, timeout=PATIENCE
        )
        try:
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            said = {name.lower(): value for name, value in response.getheaders()}
            return Answered(response.status, said, json.loads(response.read()))
        finally:
            connection.close()

    return await asyncio.to_thread(request)


async def post(served: ServedKernel, tool: str, body: bytes) -> tuple[int, Any]:
    """A call with the owner's token."""
    bearer = f"Bearer {served.doors.token}"
    found = await answered(served, "POST", f"/call/{tool}", body, Authorization=bearer)
    return found.status, found.body


async def test_calls_are_answered_in_the_order_in_which_they_came(served: ServedKernel) -> None:
    socket = await open_calls(served)
    block = (await ask(socket, {"id": "a", "tool": "block.create", "params": NEW}))["result"]
    for number in range(20):
        params = {"block_id": block["block_id"], "text": f"{number} "}
        await socket.send(json.dumps({"id": number, "tool": "block.append", "params": params}))
    answers = [json.loads(await socket.recv()) for _ in range(20)]
    assert [answer["id"] for answer in answers] == list(range(20))
    read = {"id": 0, "tool": "block.read", "params": {"block_id": block["block_id"]}}
    text = (await ask(socket, read))["result"]["content"]
    assert text == "".join(f"{number} " for number in range(20))
    await socket.close()


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


async def test_call_can_be_posted(served: ServedKernel) -> None:
    status, created = await post(served, "block.create", json.dumps(NEW).encode())
    assert status == 200
    assert created["block_id"] in (await served.context()).document
    assert (await post(served, "context.list", b""))[0] == 200


@pytest.mark.parametrize(
    ("tool", "body", "status", "code"),
    [
        ("nope", b"{}", 404, "unknown_tool"),
        ("block.create", b"{", 400, "invalid_json"),
        ("block.create", b"\xff\xfe\x00", 400, "invalid_json"),
        ("block.create", b"[]", 400, "invalid_params"),
        ("block.create", b"{}", 400, "invalid_params"),
        ("block.create", b" " * (9 * 2**20), 413, "too_large"),
    ],
)
async def test_bad_post_says_why(
    served: ServedKernel, tool: str, body: bytes, status: int, code: str
) -> None:
    answer = await post(served, tool, body)
    assert (answer[0], answer[1]["error"]["code"]) == (status, code)


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
    "body",
    [b"x" * 100_000, b"[" * 99_000, b"1e" + b"9" * 4_000],
    ids=["words", "brackets", "a number"],
)
async def test_body_that_is_no_call_is_not_quoted_at_length(
    served: ServedKernel, body: bytes
) -> None:
    status, answer = await post(served, "block.create", body)
    assert status == 400
    assert len(json.dumps(answer)) < 500


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


async def test_post_without_the_token_is_unauthorised(served: ServedKernel) -> None:
    found = await answered(served, "POST", "/call/context.list", b"{}")
    assert found.status == 401
    assert "token" in found.body["error"]["message"]


async def test_a_block_written_by_several_posts_stays_open_between_them(
    served: ServedKernel,
) -> None:
    new = json.dumps({"kind": "tool_call", "content": "zero "}).encode()
    _, created = await post(served, "block.create", new)
    block = created["block_id"]
    for text in ("one ", "two"):
        append = json.dumps({"block_id": block, "text": text}).encode()
        assert (await post(served, "block.append", append))[0] == 200
    read = json.dumps({"block_id": block}).encode()
    _, found = await post(served, "block.read", read)
    assert (found["content"], found["status"]) == ("zero one two", "running")
    assert found["lease"] > found["created"]
    done = json.dumps({"block_id": block, "status": "done"}).encode()
    assert (await post(served, "block.status", done))[0] == 200
    assert "lease" not in (await post(served, "block.read", read))[1]


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


@pytest.mark.parametrize("kind", ["model", "source"])
async def test_the_owner_acts_as_a_model_or_a_source(served: ServedKernel, kind: str) -> None:
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
    assert "human, model, source" in ((await RawClient(socket).closed())[1] or "")
    assert "robot" not in served.kernel.members


@pytest.mark.parametrize(("role", "kind"), [("agent", "model"), ("source", "source")])
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
