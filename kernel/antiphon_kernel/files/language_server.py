"""One language server: its process, the files that it follows, what it is asked and finds.

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
from urllib.parse import unquote, urlsplit

from antiphon_kernel.contexts.commit_types import Applied
from antiphon_kernel.files.findings import SourceActors, store_findings
from antiphon_kernel.files.open_file import CHECKED, OpenFile
from antiphon_kernel.shell import run_service
from antiphon_kernel.text.findings import CheckFinding, Severity
from antiphon_kernel.text.language_answers import SentText
from antiphon_kernel.types.errors import AntiphonError, invalid_params
from antiphon_kernel.types.ids import as_name
from antiphon_kernel.types.quoting import quote

PAUSE_SECONDS: Final = 0.2
"""How long nobody has written in a file when its server is told the text."""

ANSWER_SECONDS: Final = 10.0
"""How long an answer may take."""

_START_SECONDS: Final = 30.0
"""How long a server may take until it is ready."""

_STARTS: Final = 3
"""How often a server that ends is begun."""

_LONG_LIFE_SECONDS: Final = 600.0
"""How long a server has run when its earlier ends do not count any more."""

_MESSAGE_BYTES: Final = 16_000_000
"""Size of one message of a server."""

_UNREAD_BYTES: Final = 64_000_000
"""What a server may leave unread."""

_LAST_WORDS: Final = 200
"""Bytes of what a server has printed that its end is told with."""

_CAPABILITIES: Final[Mapping[str, Any]] = {
    "textDocument": {
        "synchronization": {"didSave": True},
        "publishDiagnostics": {"versionSupport": True},
        "hover": {"contentFormat": ["plaintext"]},
        "definition": {"linkSupport": True},
        "completion": {"completionItem": {"snippetSupport": False}},
    },
    "workspace": {"workspaceFolders": True, "configuration": True},
}

_LANGUAGES: Final[Mapping[str, str]] = {
    "py": "python",
    "pyi": "python",
    "js": "javascript",
    "jsx": "javascriptreact",
    "ts": "typescript",
    "tsx": "typescriptreact",
    "rs": "rust",
    "rb": "ruby",
    "sh": "shellscript",
    "h": "c",
    "cc": "cpp",
    "hpp": "cpp",
    "cs": "csharp",
    "md": "markdown",
    "yml": "yaml",
}
"""Names that servers have for languages, where these are not the endings of files."""

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Followed:
    """A file as its server knows it."""

    file: OpenFile
    place: Path
    text: str = ""
    version: int = 0
    timer: asyncio.TimerHandle | None = None
    stops: Sequence[Callable[[], None]] = ()


class LanguageServer:
    """One command, and the files that it follows."""

    def __init__(self, command: str, project: Path, sources: SourceActors) -> None:
        self.command = command
        self._project, self._sources = project, sources
        self._files: dict[Path, _Followed] = {}
        self._process: Process | None = None
        """The one that runs."""
        self._problem = ""
        """Why it does not run any more."""
        self._news = asyncio.Event()
        """It is ready, or does not run any more."""
        self._ids = count(1)
        self._waiting: dict[int, asyncio.Future[Mapping[str, Any]]] = {}
        self._stores: set[asyncio.Task[None]] = set()
        self._running = asyncio.create_task(self._run(), name=f"language server {command}")

    async def end(self) -> None:
        """End its process."""
        self._running.cancel()
        await asyncio.wait([self._running, *self._stores])

    # What it is told

    def open(self, file: OpenFile) -> None:
        """Follow a file."""
        followed = self._files[file.path.place] = _Followed(file, file.path.place)
        followed.stops = (
            file.context.applied.listen(partial(self._changed, followed)),
            file.written.listen(partial(self._saved, followed)),
        )
        self._introduce(followed)

    def close(self, file: OpenFile) -> None:
        """Follow a file no more."""
        followed = self._files.pop(file.path.place)
        for stop in followed.stops:
            stop()
        if followed.timer is not None:
            followed.timer.cancel()
        self._notify("didClose", followed)

    def follows(self, file: OpenFile) -> bool:
        found = self._files.get(file.path.place)
        return found is not None and found.file is file

    @property
    def is_idle(self) -> bool:
        """Whether it follows no file."""
        return not self._files

    def _introduce(self, followed: _Followed) -> None:
        if self._problem:
            text = f"The language server {quote(self.command)} does not run: it {self._problem}."
            self._store(followed, [CheckFinding("", 0, Severity.NOTE, text)])
        followed.text, followed.version = followed.file.now()
        ending = followed.place.suffix[1:]
        item = {"languageId": _LANGUAGES.get(ending, ending), "version": followed.version}
        self._notify("didOpen", followed, item | {"text": followed.text})

    def _changed(self, followed: _Followed, change: Applied) -> None:
        if change.operation != CHECKED:
            if followed.timer is not None:
                followed.timer.cancel()
            loop = asyncio.get_running_loop()
            followed.timer = loop.call_later(PAUSE_SECONDS, self._tell, followed)

    def _saved(self, followed: _Followed) -> None:
        self._tell(followed)
        self._notify("didSave", followed)

    def _tell(self, followed: _Followed) -> None:
        now = followed.file.now()
        if now.text != followed.text:
            followed.text, followed.version = now
            item, changes = {"version": now.version}, [{"text": now.text}]
            self._notify("didChange", followed, item, contentChanges=changes)

    def _notify(
        self, what: str, followed: _Followed, item: Mapping[str, Any] = {}, **more: Any
    ) -> None:
        document = {"uri": followed.place.as_uri(), **item}
        if self._news.is_set():
            self._send(method=f"textDocument/{what}", params={"textDocument": document, **more})

    def _send(self, **message: Any) -> None:
        process = self._process
        if process is not None and process.stdin is not None and not process.stdin.is_closing():
            body = json.dumps({"jsonrpc": "2.0"} | message).encode()
            process.stdin.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
            if process.stdin.transport.get_write_buffer_size() > _UNREAD_BYTES:
                process.kill()

    # What it is asked

    async def ask(self, file: OpenFile, what: str, line: int, column: int) -> tuple[Any, str]:
        """Ask about a place; see `LanguageServers.ask`."""
        followed = self._files[file.path.place]
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                await self._news.wait()
                if self._process is None:
                    raise EOFError
                self._tell(followed)
                sent = SentText(followed.text, followed.text)
                position = {"line": line, "character": sent.units(line, column)}
                document = {"uri": followed.place.as_uri()}
                params = {"textDocument": document, "position": position}
                return await self._request(f"textDocument/{what}", params), sent.before(
                    line, column
                )
        except TimeoutError:
            problem = f"has not answered for {ANSWER_SECONDS:g} s"
        except EOFError:
            problem = self._problem or "has ended and is begun again"
        except _RequestFailed as error:
            problem = f"refuses: {error}"
        raise invalid_params(
            f"The language server {quote(self.command)} {problem}. Ask again, or see to the command"
            " in config.toml.",
            problem=problem,
        )

    def line_now(self, place: Path, line: int, units: int) -> int | None:
        """Return where a line of a file is now; None if it follows no such file."""
        followed = self._files.get(place)
        return None if followed is None else self._sent(followed).place(line, units)[0]

    def _sent(self, followed: _Followed) -> SentText:
        return SentText(followed.text, followed.file.now().text)

    async def _request(self, method: str, params: Mapping[str, Any]) -> Any:
        number = next(self._ids)
        self._waiting[number] = asyncio.get_running_loop().create_future()
        try:
            self._send(id=number, method=method, params=params)
            answer = await self._waiting[number]
        except asyncio.CancelledError:
            self._send(method="$/cancelRequest", params={"id": number})
            raise
        finally:
            del self._waiting[number]
        if "error" in answer:
            raise _RequestFailed(answer["error"])
        return answer.get("result")

    # Its process

    async def _run(self) -> None:
        loop, starts, problem = asyncio.get_running_loop(), 0, ""
        while starts < _STARTS:
            began = loop.time()
            try:
                problem = await self._serve()
            except (OSError, ValueError) as error:
                problem = f"cannot be started: {error}"
            starts = 1 if loop.time() - began > _LONG_LIFE_SECONDS else starts + 1
            _log.warning("the language server %s %s", self.command, problem)
        self._problem = problem
        self._news.set()
        for followed in self._files.values():
            self._introduce(followed)

    async def _serve(self) -> str:
        """Run the server once; return how it has ended."""
        async with run_service(self.command, self._project) as process:
            assert process.stdout is not None and process.stderr is not None
            printed = asyncio.create_task(_last_words(process.stderr))
            reading = asyncio.create_task(self._read(process.stdout))
            try:
                self._process = process
                async with asyncio.timeout(_START_SECONDS):
                    await self._request("initialize", self._introduction())
                self._send(method="initialized", params={})
                self._news.set()
                for followed in self._files.values():
                    self._introduce(followed)
                problem = await reading
            except EOFError:
                problem = await reading
            except TimeoutError:
                problem = f"was not ready after {_START_SECONDS:g} s"
            except _RequestFailed as error:
                problem = f"refuses to begin: {error}"
            finally:
                self._process = None
                self._news.clear()
                reading.cancel()
        return problem or f"has ended with exit code {process.returncode}{await printed}"

    def _introduction(self) -> Mapping[str, Any]:
        folder = {"uri": self._project.as_uri(), "name": self._project.name}
        return {
            "processId": os.getpid(),
            "clientInfo": {"name": "antiphon"},
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
                if length is None or int(length[1]) > _MESSAGE_BYTES:
                    return f"has sent no message, or too long a one: {_excerpt(head)}"
                self._take(json.loads(await output.readexactly(int(length[1]))))
        except EOFError:
            return ""
        except (ValueError, RecursionError, asyncio.LimitOverrunError) as error:
            return f"has sent what is no message: {error}"
        finally:
            for waiting in self._waiting.values():
                if not waiting.done():
                    waiting.set_exception(EOFError())

    def _take(self, message: Any) -> None:
        match message:
            case {
                "method": "textDocument/publishDiagnostics",
                "params": {"uri": str(uri), "diagnostics": [*rows], **more},
            }:
                followed = self._files.get(path_of(uri))
                # Findings in an older text are followed by those in this one.
                if followed and more.get("version") in (None, followed.version):
                    self._store(followed, list(self._sent(followed).findings(rows)))
            case {"method": "workspace/configuration", "id": number, "params": {"items": [*items]}}:
                self._send(id=number, result=[None] * len(items))  # it reads files of its own
            case {"method": _, "id": number}:
                self._send(id=number, result=None)
            case {"id": int(number)} if number in self._waiting:
                if not self._waiting[number].done():
                    self._waiting[number].set_result(message)

    def _store(self, followed: _Followed, found: Sequence[CheckFinding]) -> None:
        task = asyncio.create_task(self._write(followed, found))
        self._stores.add(task)
        task.add_done_callback(self._stores.discard)

    async def _write(self, followed: _Followed, found: Sequence[CheckFinding]) -> None:
        program = as_name(Path(self.command.partition(" ")[0]).name) or "language-server"
        try:
            await store_findings(followed.file, await self._sources(program), found)
        except AntiphonError as error:
            _log.warning("findings of %s are not stored: %s", self.command, error)


class _RequestFailed(Exception):
    """A server has answered with an error."""


def path_of(uri: str) -> Path:
    """Return the path of a file that a server names."""
    return Path(unquote(urlsplit(uri).path))


async def _last_words(errors: asyncio.StreamReader) -> str:
    """Read all that a process prints; return the end of it as a part of a sentence."""
    last = b""
    while some := await errors.read(4_096):
        last = (last + some)[-_LAST_WORDS:]
    return f": {_excerpt(last)}" if last else ""


def _excerpt(data: bytes) -> str:
    return quote(" ".join(data.decode(errors="replace").split()))
