"""Standard input and output without threads: waiting for either can be interrupted."""

from __future__ import annotations

import asyncio
import os
import select
from collections.abc import AsyncIterator, Callable
from io import BufferedWriter, FileIO
from typing import BinaryIO, Final

from antiphon_kernel.client.standard_streams import reading_input


class Printer:
    """Writes to a file, pipe or terminal in pieces that it has room for.

    Printing raises BrokenPipeError if nobody reads any more, NoReaderError if that is standard
    output.
    """

    def __init__(self, sink: BinaryIO | BufferedWriter | FileIO) -> None:
        """Nothing may wait in the buffer of `sink`, if it has one."""
        self._sink = sink.raw if isinstance(sink, BufferedWriter) else sink
        self._file = sink.fileno()
        self._rest = bytearray()

    async def print(self, text: str) -> None:
        """Print `text`; returns when it has been taken."""
        self._rest += text.encode("utf-8")
        while self._rest:
            if not self._has_room():
                loop = asyncio.get_running_loop()
                await _event(loop.add_writer, loop.remove_writer, self._file)
            self._write()

    def print_final(self, text: str) -> None:
        """Print what is left, and `text`, as far as there is room for it now."""
        self._rest += text.encode("utf-8")
        while self._rest and self._has_room():
            self._write()

    def _write(self) -> None:
        # A pipe that has room at all has room for this much.
        del self._rest[: self._sink.write(self._rest[: select.PIPE_BUF])]

    def _has_room(self) -> bool:
        return bool(select.select((), (self._file,), (), 0)[1])


async def _event(
    when_ready: Callable[..., None], no_more: Callable[[int], bool], file: int
) -> None:
    """Wait until the loop says that a file is ready: `add_reader` and its opposite, or writers."""
    ready = asyncio.Event()
    when_ready(file, ready.set)
    try:
        await ready.wait()
    finally:
        no_more(file)


_PIECE: Final = 65_536


async def lines(source: BinaryIO) -> AsyncIterator[bytes]:
    """Lines as they arrive, without their newlines, to the end of a file, pipe or terminal.

    Nothing may have been read from `source` itself.

    Raises:
        StandardStreamError: if it cannot be read.
    """
    begun = bytearray()
    while piece := await _next(source.fileno()):
        *whole, rest = piece.split(b"\n")
        for line in whole:
            yield bytes(begun + line)
            begun.clear()
        begun += rest
    if begun:
        yield bytes(begun)


async def _next(file: int) -> bytes:
    """Bytes to read, once there are some; empty at the end."""
    if not select.select((file,), (), (), 0)[0]:
        loop = asyncio.get_running_loop()
        await _event(loop.add_reader, loop.remove_reader, file)
    with reading_input():
        return os.read(file, _PIECE)
