"""The standard input and output of a server's process as streams of the library."""

from __future__ import annotations

import asyncio
import shlex
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
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
        assert process.stdin is not None
        hand_on, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        outgoing, to_write = anyio.create_memory_object_stream[SessionMessage](0)
        async with hand_on, incoming, outgoing, to_write, anyio.create_task_group() as tasks:
            tasks.start_soon(_read, process, hand_on, log, ended)
            tasks.start_soon(_write, process.stdin, to_write)
            try:
                yield incoming, outgoing
            finally:
                tasks.cancel_scope.cancel()


async def _read(
    process: Process,
    hand_on: MemoryObjectSendStream[SessionMessage | Exception],
    log: ErrorLog,
    ended: Callable[[str], None],
) -> None:
    """Hand on every line that is a message; others are left out."""
    why = "its process has ended"
    async with hand_on:
        try:
            async for line in read_lines(process):
                try:
                    message = jsonrpc_message_adapter.validate_json(line, by_name=False)
                except ValueError:
                    if line.strip():
                        shown = line[:200].decode("utf-8", "replace")
                        log.last.append(f"no message on standard output: {shown}")
                    continue
                await hand_on.send(SessionMessage(message))
        except ValueError as error:
            why = f"it has sent {error}"
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            return  # we are ending it
        ended(why)


async def _write(
    target: asyncio.StreamWriter, messages: MemoryObjectReceiveStream[SessionMessage]
) -> None:
    async for one in messages:
        data = one.message.model_dump_json(by_alias=True, exclude_unset=True)
        with suppress(OSError):  # the end of its output says so
            target.write(data.encode() + b"\n")
            await target.drain()
