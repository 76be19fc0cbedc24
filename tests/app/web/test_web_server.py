"""The web server and its sessions, with a kernel, and terminals that no app runs in."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import struct
import termios
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Self, cast

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidStatus

from antiphon.hosts.guest_processes import Ended, GuestProcesses, GuestRequest
from antiphon.hosts.host import HostListener
from antiphon.hosts.host_address import HostOptions
from antiphon.hosts.kernel_link import KernelLink
from antiphon.hosts.session import SessionContext
from tests.kernel.served import ServedKernel, served_kernel
from tests.kernel.server.invited import invite, who
from tests.waiting import PATIENCE, until

pytest.importorskip("textual_serve", reason="textual-serve is not installed: pip install .[web]")


class EchoProcess:
    """A terminal that writes down what comes, and ends when it is hung up."""

    def __init__(self, request: GuestRequest, terminal: int, ended: Ended) -> None:
        self.request = request
        self.terminal = os.dup(terminal)
        self.ended = False
        self.typed = b""
        attributes = termios.tcgetattr(self.terminal)
        attributes[3] &= ~(termios.ICANON | termios.ECHO)
        termios.tcsetattr(self.terminal, termios.TCSANOW, attributes)
        os.set_blocking(self.terminal, False)
        self._tell = ended
        asyncio.get_running_loop().add_reader(self.terminal, self._read)

    @property
    def size(self) -> tuple[int, int]:
        rows, columns = struct.unpack(
            "HHHH", fcntl.ioctl(self.terminal, termios.TIOCGWINSZ, b"\0" * 8)
        )[:2]
        return columns, rows

    def _read(self) -> None:
        data = b""
        with suppress(OSError):
            data = os.read(self.terminal, 65_536)
        self.typed += data
        if not data:
            loop = asyncio.get_running_loop()
            loop.remove_reader(self.terminal)
            loop.call_later(0.05, self.end, 0)

    def kill(self) -> None:
        self.end(-9)

    def end(self, code: int) -> None:
        if not self.ended:
            self.ended = True
            asyncio.get_running_loop().remove_reader(self.terminal)
            os.close(self.terminal)
            self._tell(code)


class EchoProcesses:
    """Starts such processes in place of apps."""

    def __init__(self) -> None:
        self.all: list[EchoProcess] = []

    async def start(self, request: GuestRequest, files: list[int], ended: Ended) -> EchoProcess:
        self.all.append(EchoProcess(request, files[0], ended))
        return self.all[-1]


class WebGuests:
    """A web server, and pages that come to it."""

    def __init__(self, served: ServedKernel, folder: Path) -> None:
        self.processes = EchoProcesses()
        self._link = KernelLink(served.locate)
        self._folder = folder
        self._listener: HostListener
        self._watching: asyncio.Task[str]

    @property
    def port(self) -> int:
        return self._listener.port

    async def __aenter__(self) -> Self:
        from antiphon.web.server import listen

        await self._link.start()
        processes = cast(GuestProcesses, self.processes)
        context = SessionContext(self._link, processes, self._folder, ask=False)
        options = HostOptions(kind="web", bind="127.0.0.1", port=0, url="https://doc.example/there")
        self._listener = await listen(context, options)
        self._watching = asyncio.create_task(self._link.watch(context.dismissed))
        return self

    async def __aexit__(self, *_: object) -> None:
        self._watching.cancel()
        self._listener.close()
        for process in self.processes.all:
            process.end(0)
        await self._link.close()

    async def page(self, token: str, secret: str = "a" * 32) -> ClientConnection:
        socket = await connect(f"ws://127.0.0.1:{self.port}/session")
        await socket.send(json.dumps(["join", token, secret]))
        return socket

    async def opened(
        self, token: str, secret: str = "a" * 32
    ) -> tuple[ClientConnection, EchoProcess]:
        """Return a page that was let in, and its process."""
        before = len(self.processes.all)
        socket = await self.page(token, secret)
        await until(lambda: len(self.processes.all) > before, "the process")
        return socket, self.processes.all[-1]


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[ServedKernel]:
    async with served_kernel(tmp_path) as one:
        yield one


@pytest.fixture
async def guests(served: ServedKernel, tmp_path: Path) -> AsyncIterator[WebGuests]:
    async with WebGuests(served, tmp_path) as one:
        yield one


async def over(socket: ClientConnection) -> str:
    """Return the sentence with which a session ends."""
    said = ""
    async for message in socket:
        if isinstance(message, str):
            kind, said = json.loads(message)
            assert kind == "over"
    assert socket.close_code == 1000
    return said


async def answer(port: int, path: str, **headers: str) -> tuple[int, str, bytes]:
    """Return status, header and body of the answer to a request."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    lines = [f"GET {path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
    writer.write("\r\n".join([*lines, "", ""]).encode())
    head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    writer.close()
    return int(head.split()[1]), head.decode(), body


async def test_page_is_served_to_its_own_names_and_origin_only(guests: WebGuests) -> None:
    own = f"127.0.0.1:{guests.port}"
    for path, host, origin, status in (
        ("/", own, None, 200),
        ("/page.js", f"localhost:{guests.port}", None, 200),
        ("/textual.js?x", f"[::1]:{guests.port}", None, 200),
        ("/", "doc.example", "https://doc.example", 200),
        ("/../page.js", own, None, 404),
        ("/", "evil.example", None, 403),
        ("/", f"evil.example:{guests.port}", f"http://evil.example:{guests.port}", 403),
        ("/", "", None, 403),
        ("/", own, "http://evil.example", 403),
        ("/", own, "null", 403),
        ("/session", own, "http://127.0.0.1:1", 403),
        ("/session", "evil.example", None, 403),
        ("/", own, "http://[", 403),
        ("http://[", own, None, 403),
        ("/", f"{own}\r\nHost: evil.example", None, 403),
    ):
        headers = {"Host": host} | ({"Origin": origin} if origin is not None else {})
        assert (await answer(guests.port, path, **headers))[0] == status, (path, host, origin)
    for origin, status in (("http://evil.example", 403), (f"http://localhost:{guests.port}", 403)):
        with pytest.raises(InvalidStatus) as refused:
            await connect(f"ws://{own}/session", additional_headers={"Origin": origin})
        assert refused.value.response.status_code == status


async def test_page_asks_nobody_else_and_lets_no_other_script_run(guests: WebGuests) -> None:
    for path in ("/", "/page.js"):
        _, head, _ = await answer(guests.port, path, Host="localhost")
        assert "default-src 'none'; script-src 'self';" in head
        assert "Referrer-Policy: no-referrer" in head
    import antiphon.web

    for name in ("page.html", "page.js"):
        assert "//" not in (Path(antiphon.web.__file__).parent / name).read_text().replace(
            "// ", ""
        )


async def test_link_that_lets_nobody_in_says_why(
    guests: WebGuests, served: ServedKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    once = (await invite(served, "viewer", uses=1))["token"]
    await guests.opened(once)
    revoked = await invite(served, "viewer")
    await served.call("kernel.revoke", invitation=revoked["invitation"])
    expired = (await invite(served, "viewer", minutes=5))["token"]
    now = served.kernel.clock.now_ms()
    said = {
        "The token is not one of this kernel's": "wrong",
        "The invitation, for 1, is used up": once,
        "The invitation was revoked at": revoked["token"],
    }
    for words, token in said.items():
        assert (await over(await guests.page(token, "b" * 32))).startswith(words)
    monkeypatch.setattr(served.kernel.clock, "now_ms", lambda: now + 5 * 60_000)
    assert (await over(await guests.page(expired, "b" * 32))).startswith("The invitation expired")
    assert len(guests.processes.all) == 1


async def test_app_comes_in_as_whom_the_link_is_for_and_the_session_is_listed(
    guests: WebGuests, served: ServedKernel
) -> None:
    token = (await invite(served, "viewer", name="vera"))["token"]
    _, process = await guests.opened(token)
    assert process.request.environment["TERM"] == "xterm-256color"
    assert await who(served, process.request.address.token or "") == ("vera", "viewer")
    listed = {one["username"]: one for one in (await served.call("kernel.members"))["members"]}
    (session,) = [one for one in listed["vera"]["sessions"] if "within" not in one]
    assert session["via"] == "web"
    assert token not in repr(process.request)


async def test_browser_that_comes_again_is_the_same_guest(
    guests: WebGuests, served: ServedKernel
) -> None:
    token = (await invite(served, "editor", uses=2))["token"]
    first, one = await guests.opened(token)
    await guests.opened(token, "b" * 32)
    first.transport.abort()
    await until(lambda: one.ended, "the end of the process")
    await guests.opened(token)
    names = [Path(each.request.folder).name for each in guests.processes.all]
    assert names == ["guest", "guest2", "guest"]


async def test_twenty_browsers_watch_at_once_by_one_link(
    guests: WebGuests, served: ServedKernel
) -> None:
    token = (await invite(served, "viewer"))["token"]
    for number in range(20):
        await guests.opened(token, f"{number:032d}")
    assert not any(process.ended for process in guests.processes.all)


async def test_link_with_as_many_sessions_as_it_may_have_locks_nobody_else_out(
    guests: WebGuests, served: ServedKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("antiphon.web.server.SESSIONS", 1)
    token, other = [(await invite(served, "viewer", uses=3))["token"] for _ in range(2)]
    first, process = await guests.opened(token)
    refused = await over(await guests.page(token, "b" * 32))
    assert refused == "This link has 1 sessions already: close one of them."
    await guests.opened(other)
    first.transport.abort()
    await until(lambda: process.ended, "the end of the process")
    await guests.opened(token, "b" * 32)


@pytest.mark.parametrize("way", ["kick", "revoke", "leave", "fail"])
async def test_page_is_told_of_the_end(guests: WebGuests, served: ServedKernel, way: str) -> None:
    made = await invite(served, "editor", name="bo")
    socket, process = await guests.opened(made["token"])
    if way == "kick":
        await served.call("kernel.kick", principal="bo", reason="enough")
    elif way == "revoke":
        await served.call("kernel.revoke", invitation=made["invitation"])
    else:
        process.end(0 if way == "leave" else -11)
    words = {
        "kick": "amy kicked bo: enough.",
        "revoke": "amy revoked the invitation.",
        "leave": "",
        "fail": "The session has been ended by a failure",
    }
    assert (await over(socket)).startswith(words[way])
    assert process.ended

    async def gone() -> bool:
        listed = (await served.call("kernel.members"))["members"]
        return not next(one for one in listed if one["username"] == "bo")["sessions"]

    while not await gone():
        await asyncio.sleep(0.01)


async def test_terminal_gets_what_is_typed_and_its_size_and_nothing_of_what_is_no_message(
    guests: WebGuests, served: ServedKernel
) -> None:
    socket, process = await guests.opened((await invite(served, "editor"))["token"])
    pasted = "ü€👩 line\n" * 9_000
    for message in (
        "[", "[" * 100_000, "{}", "[]", b"\xff", '["stdin", 1]', '["focus"]',
        '["resize", {"width": "x", "height": "y"}]',
        '["stdin", "\\ud800"]', '["resize", {"width": 1e99, "height": true}]',
        '["resize", {"width": 99999999999999999999, "height": -5}]',
    ):  # fmt: skip
        await socket.send(message)
    await until(lambda: process.size == (1_000, 2), "the largest size")
    await socket.send(json.dumps(["resize", {"width": 100, "height": 30}]))
    await socket.send(json.dumps(["stdin", pasted]))
    await until(lambda: process.typed == b"?" + pasted.encode(), "all that was typed")
    assert process.size == (100, 30)
    os.write(process.terminal, b"drawn")
    assert await socket.recv() == b"drawn"


async def test_page_that_reads_nothing_fills_no_memory(
    guests: WebGuests, served: ServedKernel
) -> None:
    socket, process = await guests.opened((await invite(served, "editor"))["token"])
    socket.transport.pause_reading()
    written, idle = 0, 0
    while idle < 20:
        try:
            written += os.write(process.terminal, b"x" * 65_536)
            idle = 0
        except BlockingIOError:
            idle += 1
        await asyncio.sleep(0.005)
    assert written < 10_000_000
    for typed in (*[["ping", "x"]] * 20, ["stdin", "y"]):
        await socket.send(json.dumps(typed))
    await until(lambda: process.typed == b"y", "what was typed")
    socket.transport.resume_reading()
    heard = list[str | bytes]()
    while sum(len(one) for one in heard if isinstance(one, bytes)) < written:
        heard.append(await socket.recv())
    assert len([one for one in heard if isinstance(one, str)]) <= 1
    socket.transport.abort()
    await until(lambda: process.ended, "the end of the process")


async def test_connections_that_show_nothing_lock_nobody_out(
    guests: WebGuests, served: ServedKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("antiphon.web.server.STRANGERS", 5)
    token = (await invite(served))["token"]

    async def flood() -> list[asyncio.StreamReader]:
        opened = [await asyncio.open_connection("127.0.0.1", guests.port) for _ in range(9)]
        return [reader for reader, _ in opened]

    before = await flood()
    page, process = await guests.opened(token)
    silent = await connect(f"ws://127.0.0.1:{guests.port}/session")
    after = await flood()
    await asyncio.wait_for(silent.wait_closed(), PATIENCE)
    for reader in (*before, *after[:4]):  # at once, not when its time is over
        with suppress(ConnectionError):
            assert await asyncio.wait_for(reader.read(), 5) == b""
    await page.send(json.dumps(["stdin", "on"]))
    await until(lambda: process.typed == b"on", "the page that was let in goes on")


async def test_connection_that_shows_nothing_is_closed(
    guests: WebGuests, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("antiphon.web.server.JOIN_SECONDS", 0.05)
    silent = await connect(f"ws://127.0.0.1:{guests.port}/session")
    others: list[Any] = []
    for first in ("[]", '["join", "x", "short"]', '["stdin", "x"]'):
        socket = await connect(f"ws://127.0.0.1:{guests.port}/session")
        await socket.send(first)
        others.append(socket)
    for socket in (silent, *others):
        await socket.wait_closed()
    assert guests.processes.all == []
