"""The standard input and output of a server's process as streams of the library."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client._transport import TransportStreams
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from antiphon_kernel.service_process import ServiceProcess

LONGEST_LINE: Final = 16 * 1024 * 1024
"""Bytes of one message; a server that sends a longer one is ended."""


@asynccontextmanager
async def stdio_streams(
    process: ServiceProcess, ended: Callable[[str], None]
) -> AsyncIterator[TransportStreams]:
    """Read and write the lines of a process; `ended` is told why it says nothing more."""
    hand_on, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outgoing, to_write = anyio.create_memory_object_stream[SessionMessage](0)
    async with hand_on, incoming, outgoing, to_write, anyio.create_task_group() as tasks:
        tasks.start_soon(_read, process, hand_on, ended)
        tasks.start_soon(_write, process, to_write)
        try:
            yield incoming, outgoing
        finally:
            tasks.cancel_scope.cancel()


async def _read(
    process: ServiceProcess,
    hand_on: MemoryObjectSendStream[SessionMessage | Exception],
    ended: Callable[[str], None],
) -> None:
    """Hand on every line that is a message; the library leaves out others."""
    rest, why = bytearray(), ""
    async with hand_on:
        while not why and (data := await process.read()):
            *lines, last = data.split(b"\n")
            if lines:
                lines[0] = bytes(rest) + lines[0]
                rest.clear()
            rest += last
            if len(rest) > LONGEST_LINE:
                why = f"it has sent a line of more than {LONGEST_LINE:,} bytes"
            for line in lines:
                try:
                    message = jsonrpc_message_adapter.validate_json(line, by_name=False)
                    await hand_on.send(SessionMessage(message))
                except ValueError as error:
                    await hand_on.send(error)
        await process.end()
        ended(why or f"its process {process.how_it_ended()}")


async def _write(
    process: ServiceProcess, messages: MemoryObjectReceiveStream[SessionMessage]
) -> None:
    async for one in messages:
        data = one.message.model_dump_json(by_alias=True, exclude_unset=True)
        await process.write(data.encode() + b"\n")
