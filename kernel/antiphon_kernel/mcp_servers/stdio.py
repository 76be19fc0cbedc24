"""The standard input and output of a server's process as streams of the library."""

from __future__ import annotations

import shlex
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import anyio
from anyio.abc import ObjectStream
from mcp.client._transport import TransportStreams
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from antiphon_kernel.mcp_servers.server_config import McpServerConfig
from antiphon_kernel.shell import ErrorLog, read_lines, run_service


@asynccontextmanager
async def stdio_streams(
    config: McpServerConfig, folder: Path, log: ErrorLog, ended: Callable[[str], None]
) -> AsyncIterator[TransportStreams]:
    """Run a server's process, and end all of its processes afterwards.

    Args:
        ended: is told why the process says nothing more.
    """
    async with run_service(shlex.join(config.command), folder, config.env, log) as process:
        pipes = _Pipes(process, log, ended)
        yield pipes, pipes


class _Pipes(ObjectStream[SessionMessage]):
    """Messages, each of them a line; the pipes are closed with the process."""

    def __init__(self, process: Process, log: ErrorLog, ended: Callable[[str], None]) -> None:
        self._process, self._log, self._ended = process, log, ended
        self._lines = read_lines(process)

    async def receive(self) -> SessionMessage:
        """Return the next line that is a message; others are left out."""
        why = "its process has ended"
        try:
            async for line in self._lines:
                try:
                    return SessionMessage(
                        jsonrpc_message_adapter.validate_json(line, by_name=False)
                    )
                except ValueError:
                    if line.strip():
                        shown = line[:200].decode("utf-8", "replace")
                        self._log.last.append(f"no message on standard output: {shown}")
        except ValueError as error:
            why = f"it has sent {error}"
        self._ended(why)
        raise anyio.EndOfStream

    async def send(self, item: SessionMessage) -> None:
        """Send a message; if the process has ended, the end of its output says so."""
        assert self._process.stdin is not None
        data = item.message.model_dump_json(by_alias=True, exclude_unset=True)
        with suppress(OSError):
            self._process.stdin.write(data.encode() + b"\n")
            await self._process.stdin.drain()

    async def send_eof(self) -> None:
        """Do nothing."""

    async def aclose(self) -> None:
        """Do nothing."""
