"""Clients of one kernel in contexts of another, over real sockets and a real Postgres."""

from __future__ import annotations

import asyncio
import http.client
import json
import logging
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from websockets.asyncio.client import connect, unix_connect

from antiphon_kernel.client.address import KernelAddress
from antiphon_kernel.client.local_replica import ReplicaState
from antiphon_kernel.client.tool_client import ToolClient
from antiphon_kernel.client.transfers import export_context
from antiphon_kernel.server.forwarding import SessionCalls
from antiphon_kernel.server.limits import ServerLimits
from antiphon_kernel.types.enums import Activity
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.yjs.close_codes import SHUTTING_DOWN, CloseCode
from tests.errors import raises
from tests.fork_server import start_process
from tests.kernel.access.test_ssh_keys import fingerprint, key_of
from tests.kernel.served import CuttableProxy, ServedKernel, served_kernel
from tests.kernel.server.invited import (
    KICKED,
    REFUSED,
    REVOKED,
    answered,
    as_invited,
    call_socket,
    calls_of,
    closing,
    invite,
    sync_as,
)
from tests.kernel.server.mcp.clients import LEGACY, MODERN, connected, done
from tests.kernel.server.test_stock_client import stock_client
from tests.waiting import PATIENCE, until

MOVED = 4501


@dataclass
class Pair:
    """Two kernels on one database."""

    owner: ServedKernel
    """Has the default context."""
    other: ServedKernel
    """Forwards to it."""


def owns(served: ServedKernel, label: str = "default") -> bool:
    cluster, contexts = served.kernel.cluster, served.kernel.contexts
    assert cluster is not None
    return cluster.ownership.owns(contexts.root(contexts[contexts.find(label)].number))


@pytest.fixture
async def pair(tmp_path: Path, store: str) -> AsyncIterator[Pair]:
    async with served_kernel(tmp_path / "owner", store=store) as owner:
        await owner.context()
        async with served_kernel(tmp_path / "other", store=store) as other:
            yield Pair(owner, other)


# Replicas


async def test_people_at_any_kernel_write_in_a_context_and_see_each_other(pair: Pair) -> None:
    block = await pair.owner.block("hello")
    ann, ben = await pair.other.replica("ann"), await pair.owner.replica("ben")
    cem = await pair.other.replica("cem")
    assert ann.document.text(block) == "hello"

    ann.document.append(block, " from afar")
    await ann.saved()
    await pair.owner.call("block.append", block_id=block, text=", and back")
    await until(lambda: ann.document.text(block) == "hello from afar, and back")
    blame = await pair.owner.call("block.blame", block_id=block)
    assert [one["username"] for one in blame["runs"]] == ["amy", "ann", "amy"]
    assert not pair.other.kernel.open_contexts.ids()

    ann.awareness.publish(block, 2, None, Activity.TYPING)
    for one, others in ((ann, "ben cem"), (ben, "ann cem"), (cem, "ann ben")):
        await until(
            lambda one=one, others=others: (
                sorted(  # type: ignore[misc]
                    other.username for other in one.awareness.others.values()
                )
                == others.split()
            )
        )
    await until(lambda: 2 in {one.cursor for one in ben.awareness.others.values()})
    await ann.close()
    await until(lambda: len(ben.awareness.others) == len(cem.awareness.others) == 1)

    token = (await invite(pair.owner, "viewer"))["token"]
    async with calls_of(pair.other, token) as calls:
        with raises(ErrorCode.PERMISSION_DENIED):
            await calls.call("block.append", {"block_id": block, "text": "!"})
        read = await calls.call("block.read", {"block_id": block})
    viewer = await pair.other.replica(locate=lambda: as_invited(pair.other, token))
    viewer.document.append(block, "!")
    await until(lambda: viewer.rejection_code == REFUSED)
    text = (await pair.owner.context()).document.text(block)
    assert text == read["content"] == "hello from afar, and back"


async def test_stock_client_of_a_forwarded_context_notices_nothing(
    modules: Path, pair: Pair
) -> None:
    block = await pair.owner.block("hello 漢字😀")
    context = await pair.owner.context()
    ben = await pair.owner.replica("ben")
    proxy = CuttableProxy(pair.other.doors.port)
    await proxy.start()
    async with stock_client(modules, pair.other, block, proxy.port) as client:
        assert client.last("text") == "hello 漢字😀"
        client.tell(presence={"user": {"name": "eve"}})
        await until(lambda: [one.username for one in ben.awareness.others.values()] == ["amy"])
        client.tell(insert=[10, "!👩‍👩‍👧"])
        await until(lambda: context.document.text(block) == "hello 漢字😀!👩‍👩‍👧")

        proxy.cut()
        client.tell(delete=[0, 6])
        await pair.owner.call("block.append", block_id=block, text=" and back")

        await until(lambda: client.last("text") == "漢字😀!👩‍👩‍👧 and back")
        await until(lambda: context.document.text(block) == "漢字😀!👩‍👩‍👧 and back")
        client.tell(leave=True)
        await until(lambda: not ben.awareness.others)
    await proxy.close()


async def test_dismissal_at_any_kernel_ends_what_is_forwarded(pair: Pair) -> None:
    block = await pair.owner.block("hello")
    read = {"id": 1, "tool": "block.read", "params": {"block_id": block}}
    for kernel, how, code in (
        (pair.owner, "kernel.kick", KICKED),
        (pair.other, "kernel.revoke", REVOKED),
    ):
        made = await invite(pair.owner, name=f"gus{code}")
        sync = await sync_as(pair.other, made["token"])
        calls = await call_socket(pair.other, made["token"])
        await sync.join()
        await calls.send(json.dumps(read))
        assert "result" in json.loads(await calls.recv())

        await kernel.call(how, principal=made["username"])

        assert (await sync.closed())[0] == (await closing(calls))[0] == code
        gus = pair.owner.kernel.members[made["username"]]
        await until(lambda gus=gus: not pair.owner.kernel.sessions.of(gus.id))  # type: ignore[misc]


async def test_slow_reader_does_not_fill_the_memory_of_the_kernel_between(
    tmp_path: Path, store: str
) -> None:
    limits = ServerLimits(unread=256 * 1024)
    async with (
        served_kernel(tmp_path / "owner", limits, store=store) as owner,
        served_kernel(tmp_path / "other", limits, store=store) as other,
    ):
        block = await owner.block()
        slow = await other.slow_reader()
        await slow.join()
        most = 0
        for _ in range(100):
            await owner.call("block.append", block_id=block, text="x" * 70_000)
            most = max(most, sum(one.transport.get_write_buffer_size() for one in _lines(other)))
        context = await owner.context()

        assert most < 2 * 2**20
        quick = await other.replica("quick")
        await until(lambda: quick.document.text(block) == context.document.text(block))


def _lines(served: ServedKernel) -> list[Any]:
    opened = served.doors.connections._open  # noqa: SLF001
    return [one for one in opened if one.has_session and one.via == "tcp"]


async def test_context_that_moves_takes_its_replicas_along(pair: Pair) -> None:
    block = await pair.owner.block("")
    ann, ben = await pair.owner.replica("ann"), await pair.other.replica("ben")
    states: list[ReplicaState] = []
    for one in (ann, ben):
        one.state_changed.listen(lambda one=one: states.append(one.state))  # type: ignore[misc]

    written = ""
    for number in range(20):
        if number % 7 == 3:  # a kernel's own work fetches the context
            there = pair.other if owns(pair.owner) else pair.owner
            await there.call("block.read", block_id=block)
        (ann if number % 2 else ben).document.append(block, f"{number};")
        written += f"{number};"
        await asyncio.gather(ann.saved(), ben.saved())
        await until(lambda: ann.document.text(block) == ben.document.text(block))
        assert ann.document.text(block) == written

    assert ReplicaState.REFUSED not in states
    assert owns(pair.owner) is not owns(pair.other)
    await pair.owner.call("block.read", block_id=block)


# Kernels that end


@contextmanager
def kernel_process(data: Path, store: str) -> Iterator[subprocess.Popen[str]]:
    """A kernel on a store in a process of its own, once it answers; killed at the end."""
    command = [sys.executable, "-m", "antiphon_kernel", "serve", "--json", "--data", str(data)]
    command += ["--project", str(data.parent)]
    environment = os.environ | {"ANTIPHON_STORE": store}
    with start_process(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline()
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
async def test_owner_that_is_gone_takes_nothing_along_that_was_acknowledged(
    tmp_path: Path, store: str, how: signal.Signals
) -> None:
    with kernel_process(tmp_path / "owner", store) as process:
        async with served_kernel(tmp_path / "other", store=store) as other:
            calls = ToolClient(other.locate)
            new = {"kind": "file", "content": ""}
            block = (await calls.call("block.create", new))["block_id"]
            ann = await other.replica("ann")
            assert not owns(other)

            for number in range(100):
                ann.document.append(block, f"{number};")
                await asyncio.sleep(0)
            process.send_signal(how)
            asked = asyncio.create_task(calls.call("block.list", {}))
            for number in range(100, 300):
                ann.document.append(block, f"{number};")
                await asyncio.sleep(0)
            await ann.saved()

            with suppress(AntiphonError):  # it may have begun at the kernel that was killed
                await asked
            read = await calls.call("block.read", {"block_id": block})
            assert read["content"] == "".join(f"{one};" for one in range(300))
            assert owns(other)
            await calls.close()


async def test_person_behind_a_proxy_writes_on_while_kernels_are_restarted(pair: Pair) -> None:
    block = await pair.owner.block("")
    token = (await invite(pair.owner, name="gus"))["token"]
    proxy = CuttableProxy(pair.owner.doors.port)
    await proxy.start()
    address = KernelAddress(
        pid=0,
        kernel="",
        sync=f"ws://127.0.0.1:{proxy.port}/sync",
        http=f"http://127.0.0.1:{proxy.port}",
        token=token,
        client="a secret of this program",
    )
    gus = await pair.owner.replica(locate=lambda: address)
    written, errors = "", set[str | None]()
    gus.state_changed.listen(lambda: errors.add(gus.kernel_error or gus.rejection))
    for turn in range(4):
        leaving, staying = (pair.owner, pair.other) if turn % 2 == 0 else (pair.other, pair.owner)
        proxy.turn_to(staying.doors.port)
        stopping = asyncio.create_task(leaving.stop())
        while not stopping.done():
            gus.document.append(block, f"{len(written)};")
            written += f"{len(written)};"
            await asyncio.sleep(0.01)
        await stopping
        await gus.saved()
        await leaving.start()
    assert (await pair.owner.call("block.read", block_id=block))["content"] == written
    assert errors == {None}
    await proxy.close()


# Calls


async def test_calls_go_to_the_kernels_that_have_their_contexts(pair: Pair) -> None:
    calls = ToolClient(pair.other.locate)
    await calls.call("context.create", {"label": "here"})
    new = {"kind": "file", "content": "x"}
    blocks = [
        (await calls.call("block.create", {**new, "context": one}))["block_id"]
        for one in ("default", "here", "default")
    ]

    listed = [await calls.call("block.list", {"context": one}) for one in ("default", "here")]

    assert [[one["block_id"] for one in page["blocks"]] for page in listed] == [
        [blocks[0], blocks[2]],
        [blocks[1]],
    ]
    assert owns(pair.owner, "default") and owns(pair.other, "here")
    with raises(ErrorCode.CONTEXT_NOT_FOUND):
        await calls.call("block.list", {"context": "nowhere"})
    with raises(ErrorCode.LINE_OUT_OF_RANGE):
        await calls.call("block.read", {"block_id": blocks[0], "range": {"start": 5, "end": 9}})

    # The second context of a call is fetched by the kernel that has the first.
    await calls.call("block.status", {"block_id": blocks[1], "status": "done"})
    pushed = await calls.call("drift.push", {"blocks": [blocks[1]], "to": "default"})
    assert pushed["state"] == "delivered"
    assert owns(pair.owner, "default") and owns(pair.owner, "here")

    # A running block lives as long as the session that was forwarded.
    new = {"kind": "tool_call", "content": "some"}
    block = (await calls.call("block.create", new))["block_id"]
    await calls.call("block.append", {"block_id": block, "text": " words"})
    document = (await pair.owner.context()).document
    assert document.header(block).status == "running"
    await calls.close()
    await until(lambda: document.header(block).stop_reason == "interrupted")
    assert document.text(block) == "some words"


async def test_call_that_an_ending_kernel_does_not_make_is_known_as_not_made(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def let_go_slowly(_: SessionCalls) -> None:
        await asyncio.sleep(1)  # the other kernel does not close at once

    monkeypatch.setattr(SessionCalls, "aclose", let_go_slowly)
    await pair.other.call("context.create", label="here")
    async with unix_connect(str(pair.other.doors.socket), "ws://localhost/call") as socket:
        await pair.other.kernel.open_contexts.hand_over_all()

        await socket.send('{"id": 1, "tool": "block.list", "params": {"context": "here"}}')
        await asyncio.sleep(0.1)  # it has been read
        await pair.other.doors.close()
        await socket.wait_closed()

    assert (socket.close_code, socket.close_reason) == (CloseCode.RESTART, SHUTTING_DOWN)


async def test_events_are_forwarded_behind_the_answer_over_a_socket_and_http(pair: Pair) -> None:
    block = await pair.owner.block("")
    base = pair.other.doors.http.replace("http", "ws", 1)
    socket = await connect(f"{base}/call?token={pair.other.doors.token}")

    async def ask(number: int, tool: str, **params: Any) -> None:
        await socket.send(json.dumps({"id": number, "tool": tool, "params": params}))

    await ask(1, "block.subscribe", block_ids=[block], from_versions=[[block, 0]])
    await ask(2, "block.append", block_id=block, text="mine")
    said = [json.loads(await socket.recv()) for _ in range(4)]

    subscription = said[0]["result"]["subscription"]
    assert [list(one) for one in said[:2]] == [["id", "result"], ["subscription", "event"]]
    assert {one.get("id") for one in said[1:]} == {None, 2}
    events = [one["event"] for one in said if "event" in one]
    assert [one["kind"] for one in events] == ["resync", "edited"]
    assert events[1]["origin"] == "own"
    assert all(one["subscription"] == subscription for one in said if "event" in one)

    await pair.owner.call("block.append", block_id=block, text="yours")
    await ask(3, "block.unsubscribe", subscription=subscription)
    said = [json.loads(await socket.recv()) for _ in range(2)]
    assert said[0]["event"]["origin"] == "other"
    assert said[1] == {"id": 3, "result": {"subscription": subscription}}
    await ask(4, "block.unsubscribe", subscription=subscription)
    assert json.loads(await socket.recv())["error"]["code"] == "invalid_params"
    await socket.close()

    connection = http.client.HTTPConnection(
        urlsplit(pair.other.doors.http).netloc, timeout=PATIENCE
    )
    headers = {"Authorization": f"Bearer {pair.other.doors.token}"}

    def begin() -> http.client.HTTPResponse:
        connection.request("POST", "/call/block.subscribe", b"{}", headers)
        return connection.getresponse()

    response = await asyncio.to_thread(begin)
    subscription = json.loads(await asyncio.to_thread(response.readline))["subscription"]
    await pair.owner.call("block.append", block_id=block, text="x")
    line = json.loads(await asyncio.to_thread(response.readline))
    assert line["subscription"] == subscription
    assert [one["insert"] for one in line["event"]["splices"]] == ["x"]
    response.close()
    connection.close()
    await pair.owner.call("block.append", block_id=block, text="x")
    await until(lambda: not pair.owner.kernel.subscriptions._all)  # noqa: SLF001


async def test_requests_and_exports_are_answered_as_by_the_owner(pair: Pair) -> None:
    block = await pair.owner.block("one\ntwo")
    body = json.dumps({"block_id": block}).encode()
    wrong = json.dumps({"block_id": f"{block}9"}).encode()
    asked = [
        ("POST", "/call/block.read", body),
        ("POST", "/call/block.read", wrong),
        ("GET", "/messages?context=default", b""),
        ("GET", "/messages?context=default&limit=x", b""),
    ]
    for method, path, sent in asked:
        here, there = [
            await answered(one, method, path, sent, Authorization=f"Bearer {one.doors.token}")
            for one in (pair.owner, pair.other)
        ]
        assert (here.status, here.body) == (there.status, there.body)
        assert here.headers["content-type"] == there.headers["content-type"]

    await pair.owner.block("😀" * 300_000, status="done")

    def export(address: KernelAddress) -> bytes:
        return b"".join(export_context(address, {"context": "default"}))

    exported, forwarded = [
        (await asyncio.to_thread(export, one.locate_tcp())).splitlines()
        for one in (pair.owner, pair.other)
    ]
    assert forwarded[1:] == exported[1:] and len(forwarded) == len(exported)


@pytest.mark.filterwarnings("ignore:resources.* is removed as of 2026-07-28")
async def test_program_over_mcp_works_in_a_forwarded_context(pair: Pair) -> None:
    block = await pair.owner.block("hello")
    for era in (LEGACY, MODERN):
        async with connected(pair.other, era) as client:
            read = await done(client, "read_block", block_id=block)
            assert read["content"].endswith("hello"), era
            await done(client, "append", block_id=block, insert=" there")
        blame = await pair.owner.call("block.blame", block_id=block)
        assert [one["username"] for one in blame["runs"]] == ["amy", "claude-code"], era
        await pair.owner.call("block.splice", block_id=block, offset=5, delete_count=6, insert="")

    uri, heard = "antiphon://default/amy.1", asyncio.Queue[Any]()
    async with connected(pair.other, LEGACY, heard=heard) as client:
        await client.subscribe_resource(uri)
        await pair.owner.call("block.append", block_id=block, text="!")
        told = await asyncio.wait_for(heard.get(), PATIENCE)
        assert str(told.params.uri) == uri
        await client.unsubscribe_resource(uri)
        await until(lambda: not pair.owner.kernel.subscriptions._all)  # noqa: SLF001


async def test_guest_over_ssh_works_in_a_forwarded_context(pair: Pair) -> None:
    block = await pair.owner.block("hello")
    await pair.owner.call("key.add", key=key_of("gus"), name="gus", role="editor")
    other = pair.other
    opened = await other.call("ssh.open", host=other.me.session, fingerprint=fingerprint("gus"))
    gus = await other.replica(locate=lambda: as_invited(other, opened["token"]))

    gus.document.append(block, "!")
    await gus.saved()

    (there,) = pair.owner.kernel.sessions.of(pair.owner.kernel.members["gus"].id)
    assert (there.via, there.within) == ("ssh", opened["session"])
    await other.call("session.end", session=opened["session"])
    await until(lambda: gus.rejection_code == KICKED)
    await until(lambda: not pair.owner.kernel.sessions.of(there.principal.id))
    assert (await pair.owner.context()).document.text(block) == "hello!"


# Who is believed


async def test_only_who_shows_the_secret_speaks_for_others(
    pair: Pair, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    for shown in ("wrong", pair.owner.doors.token, "", None):
        await _speak_in_vain(pair, shown)
    assert owns(pair.owner)
    (secret,) = (await pair.owner.kernel.journal.settings("cluster_secret")).values()
    assert secret not in caplog.text


async def _speak_in_vain(pair: Pair, shown: str | None) -> None:
    headers = {"antiphon-speaks-for": json.dumps(["amy", "human", "tcp", None, True, None])}
    if shown is not None:
        headers["Authorization"] = f"Bearer {shown}"
    found = await answered(pair.owner, "POST", "/call/session.whoami", b"", **headers)
    assert found.status == 401
    base = pair.owner.doors.http.replace("http", "ws", 1)
    async with connect(f"{base}/peer/hand-over/1", additional_headers=headers) as asking:
        assert json.loads(await asking.recv())["error"]["code"] == "permission_denied"
    socket = await connect(f"{base}/sync/default", additional_headers=headers)
    assert (await closing(socket))[0] == 4401
