"""Language servers: one process for each configured command, as long as files are open for it.

Messages are JSON-RPC over its standard input and output. A server that ends, or says what is no
message, is begun again a few times; then its files say that it does not run, and why.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
from asyncio.subprocess import Process
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, Final

from antiphon_kernel.contexts.commit_types import Applied
from antiphon_kernel.files.findings import SourceActors, store_findings
from antiphon_kernel.files.open_file import CHECKED, OpenFile, language_of
from antiphon_kernel.shell import run_service
from antiphon_kernel.tasks import BackgroundTasks
from antiphon_kernel.text.findings import CheckFinding, Severity
from antiphon_kernel.text.language_answers import diagnosed, path_of, units
from antiphon_kernel.types.errors import AntiphonError, invalid_params
from antiphon_kernel.types.ids import as_name
from antiphon_kernel.types.quoting import quote
from antiphon_kernel.types.records import Actor

PAUSE_SECONDS: Final = 0.2
"""How long nobody has written in a file when its server is told the text."""

ANSWER_SECONDS: Final = 10.0
"""Time for an answer; three times as long for a server to be ready."""

_STARTS: Final = 3
"""How often a server is begun that ends; anew after it has run for long."""

_LONG_SECONDS: Final = 600.0

_MOST_BYTES: Final = 64_000_000
"""Of one message of a server, and of those that it leaves unread."""

_CAPABILITIES: Final = {
    "general": {"positionEncodings": ["utf-32", "utf-16"]},
    "textDocument": {
        "publishDiagnostics": {"versionSupport": True},
        "hover": {"contentFormat": ["plaintext"]},
    },
}

_LANGUAGES: Final = dict(
    zip(
        "py js jsx ts tsx rs rb sh cs md yml".split(),
        "python javascript javascriptreact typescript typescriptreact rust ruby shellscript csharp"
        " markdown yaml".split(),
        strict=True,
    )
)
"""Names of languages, where they are not the endings of files."""

_NONSENSE: Final = (
    *(ValueError, LookupError, TypeError, AttributeError, RecursionError),
    asyncio.LimitOverrunError,
)
"""Raised where a message is read that is none."""

_log = logging.getLogger(__name__)


class LanguageServers:
    """The servers that run, by their commands."""

    def __init__(self, project: Path, sources: SourceActors) -> None:
        self.commands: Mapping[str, str] = {}
        """By the ending of the names of files, without the dot."""
        self._project, self._sources = project, sources
        self._servers: dict[str, LanguageServer] = {}
        self._tasks = BackgroundTasks(_log)
        self.close = self._tasks.close

    def opened(self, file: OpenFile) -> None:
        """Have a file followed by the server for its kind, if there is one."""
        command = self.commands.get(language_of(file.path) or "")
        if command is None:
            return
        if command not in self._servers:
            server = LanguageServer(command, self._project, self._sources, self._tasks)
            self._servers[command] = server
        self._servers[command].open(file)

    def closed(self, file: OpenFile) -> None:
        """Follow a file no more; the server of the last one is ended."""
        for command, server in tuple(self._servers.items()):
            if server.close(file):
                del self._servers[command]
                server.running.cancel()

    async def ask(self, file: OpenFile, what: str, line: int, column: int) -> tuple[Any, str, str]:
        """Ask the server of a file about a place in it.

        Args:
            what: name of the request, behind `textDocument/`.

        Returns:
            its answer, the text before the place in its line, and the encoding of positions.

        Raises:
            AntiphonError: invalid_params, if there is no server, or it does not answer.
        """
        for server in self._servers.values():
            if file in server.files:
                return await server.ask(file, what, line, column)
        raise invalid_params(
            f"No language server is there for {quote(file.path.shown)}: `language_servers` in"
            " config.toml names one by the ending of a file's name.",
            field="path",
            found=file.path.shown,
        )


@dataclass(slots=True)
class _Followed:
    """A file as its server knows it."""

    uri: str
    stops: Sequence[Callable[[], None]]
    text: str = ""
    version: int = 0
    timer: asyncio.TimerHandle | None = None
    """It is going to be told another text."""


class LanguageServer:
    """One command, and the files that it follows."""

    def __init__(
        self, command: str, project: Path, sources: SourceActors, tasks: BackgroundTasks
    ) -> None:
        self.files: dict[OpenFile, _Followed] = {}
        self.running = tasks.start(self._run(), f"language server {command}")
        self._command, self._project, self._sources = command, project.resolve(), sources
        self._actor: Actor
        self._process: Process | None = None
        self._encoding = "utf-16"
        self._problem = ""
        """Why it does not run any more."""
        self._is_settled = asyncio.Event()
        """It is ready, or does not run any more."""
        self._ids = count(1)
        self._waiting: dict[int, asyncio.Future[Mapping[str, Any]]] = {}

    # What it is told

    def open(self, file: OpenFile) -> None:
        """Follow a file."""
        stops = (
            file.context.applied.listen(partial(self._changed, file)),
            file.written.listen(partial(self._saved, file)),
        )
        self.files[file] = _Followed(file.path.place.as_uri(), stops)
        self._introduce(file)

    def close(self, file: OpenFile) -> bool:
        """Follow a file no more; return whether it was the last one."""
        if file not in self.files:
            return False
        followed = self.files.pop(file)
        for stop in followed.stops:
            stop()
        if followed.timer is not None:
            followed.timer.cancel()
        self._notify("didClose", followed)
        return not self.files

    def _introduce(self, file: OpenFile) -> None:
        followed, ending = self.files[file], file.path.name.rpartition(".")[2]
        followed.text, followed.version = file.now()
        document = {"languageId": _LANGUAGES.get(ending, ending), "text": followed.text}
        self._notify("didOpen", followed, document | {"version": followed.version})
        if self._problem:
            text = f"The language server {quote(self._command)} does not run: it {self._problem}."
            self._store(file, [CheckFinding("", 0, Severity.NOTE, text)])

    def _changed(self, file: OpenFile, change: Applied) -> None:
        followed, loop = self.files[file], asyncio.get_running_loop()
        if change.operation != CHECKED:
            if followed.timer is not None:
                followed.timer.cancel()
            followed.timer = loop.call_later(PAUSE_SECONDS, self._tell, file)

    def _saved(self, file: OpenFile) -> None:
        self._tell(file)
        self._notify("didSave", self.files[file])

    def _tell(self, file: OpenFile) -> None:
        """Tell the text, if it is going to be told."""
        followed = self.files[file]
        if followed.timer is not None:
            followed.timer.cancel()
            followed.timer = None
            followed.text, followed.version = file.now()
            changes = [{"text": followed.text}]
            version = {"version": followed.version}
            self._notify("didChange", followed, version, contentChanges=changes)

    def _notify(
        self, what: str, followed: _Followed, document: Mapping[str, Any] = {}, **params: Any
    ) -> None:
        if self._is_settled.is_set():
            params["textDocument"] = {"uri": followed.uri, **document}
            self._send(method=f"textDocument/{what}", params=params)

    def _send(self, **message: Any) -> None:
        process = self._process
        if process is not None and process.stdin is not None and not process.stdin.is_closing():
            body = json.dumps({"jsonrpc": "2.0"} | message).encode()
            process.stdin.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
            if process.stdin.transport.get_write_buffer_size() > _MOST_BYTES:
                process.kill()

    # What it is asked

    async def ask(self, file: OpenFile, what: str, line: int, column: int) -> tuple[Any, str, str]:
        """Ask about a place; see `LanguageServers.ask`."""
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                await self._is_settled.wait()
                self._tell(file)
                before = "".join(self.files[file].text.split("\n")[line : line + 1])[:column]
                params = {
                    "textDocument": {"uri": self.files[file].uri},
                    "position": {"line": line, "character": units(before, self._encoding)},
                }
                answer = await self._request(f"textDocument/{what}", params)
                return answer, before, self._encoding
        except TimeoutError:
            problem = f"has not answered for {ANSWER_SECONDS:g} s"
        except _RequestFailed as error:
            problem = str(error)
        raise invalid_params(
            f"The language server {quote(self._command)} {problem}. Ask again, or see to the"
            " command in config.toml.",
            problem=problem,
        )

    async def _request(self, method: str, params: Mapping[str, Any]) -> Any:
        if self._process is None:
            raise _RequestFailed(self._problem)
        number, answer = next(self._ids), asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        try:
            self._send(id=number, method=method, params=params)
            said = await answer
        except asyncio.CancelledError:
            self._send(method="$/cancelRequest", params={"id": number})
            raise
        finally:
            del self._waiting[number]
        if "error" in said:
            raise _RequestFailed(f"refuses: {said['error']!s:.200}")
        return said.get("result")

    # Its process

    async def _run(self) -> None:
        program = as_name(Path(self._command.partition(" ")[0]).name)
        self._actor = await self._sources(program or "language-server")
        loop, starts, problem = asyncio.get_running_loop(), 0, ""
        while starts < _STARTS:
            began = loop.time()
            try:
                problem = await self._serve()
            except (OSError, ValueError) as error:
                problem = f"cannot be started: {error}"
            starts = 1 if loop.time() - began > _LONG_SECONDS else starts + 1
            _log.warning("the language server %s %s", self._command, problem)
        self._problem = problem
        self._is_settled.set()
        for file in self.files:
            self._introduce(file)

    async def _serve(self) -> str:
        """Run the server once; return how it has ended."""
        async with run_service(self._command, self._project) as self._process:
            assert self._process.stdout is not None and self._process.stderr is not None
            printed = asyncio.create_task(_last_words(self._process.stderr))
            reading = asyncio.create_task(self._read(self._process.stdout))
            try:
                async with asyncio.timeout(3 * ANSWER_SECONDS):
                    told = await self._request("initialize", self._introduction())
                    encoding = told["capabilities"].get("positionEncoding", "utf-16")
                    self._encoding = {"utf-32": "utf-32"}.get(encoding, "utf-16")
                self._send(method="initialized", params={})
                self._is_settled.set()
                for file in self.files:
                    self._introduce(file)
                problem = await reading
            except TimeoutError:
                problem = f"was not ready after {3 * ANSWER_SECONDS:g} s"
            except _NONSENSE as error:
                problem = f"has introduced itself wrongly: {error}"
            except _RequestFailed as error:
                problem = await reading if reading.done() else str(error)
            finally:
                process, self._process = self._process, None
                self._is_settled.clear()
                reading.cancel()
        return problem or f"has ended with exit code {process.returncode}: {await printed}"

    def _introduction(self) -> Mapping[str, Any]:
        folder = {"uri": self._project.as_uri(), "name": self._project.name}
        return {
            "processId": os.getpid(),
            "rootUri": folder["uri"],
            "workspaceFolders": [folder],
            "capabilities": _CAPABILITIES,
        }

    async def _read(self, output: asyncio.StreamReader) -> str:
        """Take in what the server says; return what is wrong with it, empty if it has ended."""
        try:
            while True:
                head = await output.readuntil(b"\r\n\r\n")
                length = re.search(rb"(?i)\bcontent-length: *(\d{1,10})\r\n", head)
                if length is None or int(length[1]) > _MOST_BYTES:
                    return f"has sent no message, or too long a one: {_excerpt(head)}"
                self._take(json.loads(await output.readexactly(int(length[1]))))
        except EOFError:
            return ""
        except _NONSENSE as error:
            return f"has sent what is no message: {error}"
        finally:
            for answer in self._waiting.values():
                if not answer.done():
                    answer.set_exception(_RequestFailed("has ended and is begun again"))

    def _take(self, message: Any) -> None:
        match message:
            case {
                "method": "textDocument/publishDiagnostics",
                "params": {"uri": str(uri), "diagnostics": [*found], **more},
            }:
                for file, followed in self.files.items():
                    # What is found in an older text is followed by what is found in this one.
                    is_now = more.get("version") in (None, followed.version)
                    if is_now and followed.timer is None and file.path.place == path_of(uri):
                        self._store(file, list(diagnosed(found, followed.text, self._encoding)))
            case {"method": _, "id": number}:
                self._send(id=number, result=None)
            case {"id": int(number)} if number in self._waiting:
                if not self._waiting[number].done():
                    self._waiting[number].set_result(message)

    def _store(self, file: OpenFile, found: Sequence[CheckFinding]) -> None:
        try:
            store_findings(file, self._actor, found)
        except AntiphonError as error:
            _log.warning("what %s has found is not stored: %s", self._command, error)


class _RequestFailed(Exception):
    """A server gives no answer; the message goes on from its name."""


async def _last_words(errors: asyncio.StreamReader) -> str:
    """Read all that a process prints; return the end of it."""
    last = b""
    while some := await errors.read(4_096):
        last = (last + some)[-200:]
    return _excerpt(last)


def _excerpt(data: bytes) -> str:
    return quote(" ".join(data[-200:].decode(errors="replace").split()))
