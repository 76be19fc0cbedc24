"""Three ways to make the same call: in process, over HTTP, and on the command line."""

from __future__ import annotations

import asyncio
import contextlib
import getpass
import http.client
import json
import os
import signal
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote, urlsplit

from antiphon_kernel.client.address import read_address
from antiphon_kernel.client.discovery import kernel_at
from antiphon_kernel.daemon.run import owner_name
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.server import Server
from antiphon_kernel.turns import TurnRunner, load_models
from antiphon_kernel.types.errors import AntiphonError
from tests.fork_server import SCRIPT, run_process, start_process
from tests.kernel.reference.examples import ALL_TOOLS
from tests.waiting import PATIENCE, until

Answer = dict[str, Any]
"""`{"result": …}` or `{"error": …}`."""


class Door(Protocol):
    """One way in."""

    takes_text: bool
    """Whether calls come as text, which can be no JSON."""

    async def call(self, by: str | None, tool: str, params: Any) -> Answer: ...

    async def send(self, by: str | None, tool: str, text: str) -> Answer: ...


class InProcess:
    """`Kernel.call`, each call in a session of its own."""

    takes_text = False

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel

    async def call(self, by: str | None, tool: str, params: Any) -> Answer:
        kernel = self._kernel
        actor = kernel.open_session(await kernel.principal(by) if by else kernel.owner, "test")
        try:
            return {"result": json.loads(json.dumps(await kernel.call(actor, tool, params)))}
        except AntiphonError as error:
            return {"error": json.loads(json.dumps(error.as_json()))}
        finally:
            await kernel.close_session(actor)

    async def send(self, by: str | None, tool: str, text: str) -> Answer:
        raise NotImplementedError


class OverHttp:
    """POST /call/TOOL."""

    takes_text = True

    def __init__(self, doors: Server) -> None:
        self._place = urlsplit(doors.http).netloc
        self._headers = {"Authorization": f"Bearer {doors.token}"}

    async def call(self, by: str | None, tool: str, params: Any) -> Answer:
        return await self.send(by, tool, json.dumps(params))

    async def send(self, by: str | None, tool: str, text: str) -> Answer:
        return await asyncio.to_thread(self._post, by, tool, text.encode())

    def _post(self, by: str | None, tool: str, body: bytes) -> Answer:
        connection = http.client.HTTPConnection(self._place, timeout=PATIENCE)
        try:
            acting = f"?as={by}" if by else ""
            path = f"/call/{quote(tool, safe='')}{acting}"
            connection.request("POST", path, body, self._headers)
            response = connection.getresponse()
            answer: Any = json.loads(response.read())
            return {"result": answer} if response.status == 200 else answer
        finally:
            connection.close()


class CommandLine:
    """`antiphon call --jsonl`, one process for each caller."""

    takes_text = True

    def __init__(self, project: Path) -> None:
        self._project = project
        self._processes: dict[str | None, subprocess.Popen[bytes]] = {}

    async def call(self, by: str | None, tool: str, params: Any) -> Answer:
        return await self.send(by, tool, json.dumps(params))

    async def send(self, by: str | None, tool: str, text: str) -> Answer:
        line = f'{{"id": 7, "tool": {json.dumps(tool)}, "params": {text}}}\n'
        return await asyncio.wait_for(asyncio.to_thread(self._line, by, line.encode()), PATIENCE)

    def _line(self, by: str | None, line: bytes) -> Answer:
        process = self._processes.get(by)
        if process is None:
            process = self._processes[by] = self._start(by)
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(line)
        process.stdin.flush()
        answer = json.loads(process.stdout.readline())
        assert answer.pop("id") == 7 or answer["error"]["code"] == "invalid_json"
        return answer

    def _start(self, by: str | None) -> subprocess.Popen[bytes]:
        acting = ["--as", by] if by else []
        return start_process(
            [SCRIPT, "call", "--jsonl", *acting],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=self._project,
        )

    def once(self, tool: str, params: Any, *options: str) -> tuple[int, Answer]:
        """One call with a process of its own; its exit code and what it prints with --json."""
        done = run_process(
            [SCRIPT, "call", tool, "-", "--json", *options],
            json.dumps(params).encode(),
            cwd=self._project,
            timeout=PATIENCE,
        )
        answer = json.loads(done.stdout)
        return done.returncode, answer if "error" in answer else {"result": answer}

    async def close(self) -> None:
        for process in self._processes.values():
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.close()
            process.wait(PATIENCE)
            process.stdout.close()
        data = self._project / ".antiphon"
        with contextlib.suppress(AntiphonError, ProcessLookupError):
            os.kill(read_address(data).pid, signal.SIGTERM)
        await until(lambda: kernel_at(data) is None, "the kernel has ended")


@asynccontextmanager
async def in_process(folder: Path) -> AsyncIterator[InProcess]:
    async with _kernel(folder) as kernel:
        yield InProcess(kernel)


@asynccontextmanager
async def over_http(folder: Path) -> AsyncIterator[OverHttp]:
    async with _kernel(folder) as kernel:
        doors = await Server(kernel).start(port=0, socket=folder / "kernel.sock")
        try:
            yield OverHttp(doors)
        finally:
            await doors.close()


@asynccontextmanager
async def on_the_command_line(folder: Path) -> AsyncIterator[CommandLine]:
    (folder / ".git").mkdir(parents=True)
    configured = Path(os.environ["XDG_CONFIG_HOME"], "antiphon", "config.toml")
    configured.write_text('[files]\nautosave = "off"\n')
    line = CommandLine(folder)
    try:
        yield line
    finally:
        await line.close()


@asynccontextmanager
async def _kernel(folder: Path) -> AsyncIterator[Kernel]:
    folder.mkdir()
    owner = owner_name(getpass.getuser())
    kernel = await Kernel.open(folder / "data", folder, registry=ALL_TOOLS, owner=owner)
    kernel.files.saves_itself = False  # or answers depend on how fast the rows are played
    runner = TurnRunner(kernel, load_models((), demo=False, speed=1.0))
    try:
        yield kernel
    finally:
        await runner.close()
        await kernel.close()
