"""A connection to a database that tests cut, or hold up."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from urllib.parse import urlsplit


class DatabaseLink:
    """A relay on loopback in front of a server; `url` is the database's behind it."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        assert parts.hostname is not None and parts.port is not None
        self._target = parts.hostname, parts.port
        self._server: asyncio.Server | None = None
        self._pipes: set[asyncio.Task[None]] = set()
        self._passing = asyncio.Event()
        self._passing.set()
        self._parts = parts
        self.url = url

    async def open(self) -> None:
        """Take connections."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        port = self._server.sockets[0].getsockname()[1]
        user = f"{self._parts.username}@" if self._parts.username else ""
        self.url = self._parts._replace(netloc=f"{user}127.0.0.1:{port}").geturl()

    def hold(self) -> None:
        """Let nothing pass, in either direction; it is kept."""
        self._passing.clear()

    def let_pass(self) -> None:
        """Let everything pass again, what was kept first."""
        self._passing.set()

    async def cut(self) -> None:
        """End every connection, and take none any more."""
        if self._server is not None:
            self._server.close()
        for pipe in self._pipes:
            pipe.cancel()
        if self._pipes:
            await asyncio.wait(self._pipes)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        to_server = await asyncio.open_connection(*self._target)
        for source, target in ((reader, to_server[1]), (to_server[0], writer)):
            pipe = asyncio.create_task(self._pass_on(source, target))
            self._pipes.add(pipe)
            pipe.add_done_callback(self._pipes.discard)

    async def _pass_on(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        try:
            with suppress(OSError):
                while data := await source.read(65_536):
                    await self._passing.wait()
                    target.write(data)
                    await target.drain()
        finally:
            target.close()
