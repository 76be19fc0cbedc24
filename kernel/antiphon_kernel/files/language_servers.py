"""The language servers of a project, by the commands that are configured."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from antiphon_kernel.files.findings import SourceActors
from antiphon_kernel.files.language_server import LanguageServer, path_of
from antiphon_kernel.files.open_file import OpenFile, language_of
from antiphon_kernel.types.errors import invalid_params
from antiphon_kernel.types.quoting import quote


class LanguageServers:
    """One process for each command, as long as a file is open for it."""

    def __init__(self, project: Path, sources: SourceActors) -> None:
        self.commands: Mapping[str, str] = {}
        """By the ending of the names of files, without the dot."""
        self._project, self._sources = project.resolve(), sources
        self._servers: dict[str, LanguageServer] = {}
        self._ending: set[asyncio.Task[None]] = set()

    def opened(self, file: OpenFile) -> None:
        """Have a file followed by the server for its kind, if there is one."""
        command = self.commands.get(language_of(file.path) or "")
        if command is not None:
            if command not in self._servers:
                self._servers[command] = LanguageServer(command, self._project, self._sources)
            self._servers[command].open(file)

    def closed(self, file: OpenFile) -> None:
        """Follow a file no more; the server of the last one is ended."""
        server = self._of(file)
        if server is None:
            return
        server.close(file)
        if server.is_idle:
            del self._servers[server.command]
            task = asyncio.create_task(server.end(), name=f"ending {server.command}")
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)

    async def close(self) -> None:
        """End all servers."""
        await asyncio.gather(*(one.end() for one in self._servers.values()), *self._ending)

    def _of(self, file: OpenFile) -> LanguageServer | None:
        return next((one for one in self._servers.values() if one.follows(file)), None)

    async def ask(self, file: OpenFile, what: str, line: int, column: int) -> tuple[Any, str]:
        """Ask the server of a file about a place in it.

        Args:
            what: name of the request, behind `textDocument/`.

        Returns:
            its answer, and the text before the place in its line.

        Raises:
            AntiphonError: invalid_params, if there is no server, or it does not answer.
        """
        server = self._of(file)
        if server is None:
            raise invalid_params(
                f"No language server is there for {quote(file.path.shown)}: `language_servers` in"
                " config.toml names one by the ending of a file's name.",
                field="path",
                found=file.path.shown,
            )
        return await server.ask(file, what, line, column)

    def now(self, uri: str, line: int, units: int) -> tuple[Path, int]:
        """Return the file of a place that a server names, and the line where it is now."""
        place = path_of(uri)
        lines = (one.line_now(place, line, units) for one in self._servers.values())
        return place, next((one for one in lines if one is not None), line)
