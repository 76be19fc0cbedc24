"""Events over the calls door: after their answer, in order, and never in the way of it."""

from __future__ import annotations

import asyncio
import http.client
import json
from typing import Any
from urllib.parse import urlsplit

import pytest
from websockets.asyncio.client import ClientConnection, connect

from antiphon_kernel.client.tool_client import ToolClient
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.records import Actor
from tests.errors import raises
from tests.kernel.served import ServedKernel
from tests.waiting import PATIENCE, until


async def open_calls(served: ServedKernel, query: str = "", **options: Any) -> ClientConnection:
    base = served.doors.http.replace("http", "ws", 1)
    return await connect(f"{base}/call?token={served.doors.token}{query}", **options)


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
    socket = await open_calls(served, max_queue=1, compression=None)
    await send(socket, 1, "block.subscribe")
    subscription = (await receive(socket))["result"]["subscription"]
    subscriber = caller(served)
    assert has_subscription(served, subscriber, subscription)
    length = 1
    for number in range(150):
        insert = f"{number:04}" * 50_000
        params = {"block_id": block, "offset": 0, "delete_count": length, "insert": insert}
        await served.kernel.call(served.me, "block.splice", params)
        length = len(insert)
    kinds = []
    while "resync" not in kinds:
        kinds.append((await receive(socket))["event"]["kind"])
    assert len(kinds) < 150
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


@pytest.mark.parametrize("params", [b'{"block_ids": ["default.amy.9"]}', b'{"colour": 1}'])
async def test_post_that_follows_nothing_is_an_error(served: ServedKernel, params: bytes) -> None:
    connection = http.client.HTTPConnection(urlsplit(served.doors.http).netloc, timeout=PATIENCE)
    headers = {"Authorization": f"Bearer {served.doors.token}"}

    def ask() -> tuple[int, Any]:
        connection.request("POST", "/call/block.subscribe", params, headers)
        response = connection.getresponse()
        return response.status, json.loads(response.read())

    status, answer = await asyncio.to_thread(ask)
    assert status in (400, 404)
    assert answer["error"]["code"] in ("block_not_found", "invalid_params")
    connection.close()


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
