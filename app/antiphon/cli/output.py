"""Printing without standing still: waiting for a slow reader is a wait that can be interrupted."""

from __future__ import annotations

import asyncio
import select
from io import BufferedWriter, FileIO
from typing import BinaryIO


class Printer:
    """Writes to a file, pipe or terminal in pieces that it has room for."""

    def __init__(self, sink: BinaryIO | BufferedWriter | FileIO) -> None:
        """Nothing may wait in the buffer of `sink`, if it has one."""
        self._sink = sink.raw if isinstance(sink, BufferedWriter) else sink
        self._file = sink.fileno()
        self._rest = bytearray()

    async def print(self, text: str) -> None:
        """Print `text`; returns when it has been taken.

        Raises:
            BrokenPipeError: if nobody reads what is printed any more; `NoReaderError` if that is
                standard output.
        """
        self._rest += text.encode("utf-8")
        while self._rest:
            await self._room()
            self._write()

    def print_final(self, text: str) -> None:
        """Print what is left, and `text`, as far as there is room for it now.

        Raises:
            BrokenPipeError: if nobody reads what is printed any more; `NoReaderError` if that is
                standard output.
        """
        self._rest += text.encode("utf-8")
        while self._rest and self._has_room():
            self._write()

    def _write(self) -> None:
        # A pipe that has room at all has room for this much.
        del self._rest[: self._sink.write(self._rest[: select.PIPE_BUF])]

    def _has_room(self) -> bool:
        return bool(select.select((), (self._file,), (), 0)[1])

    async def _room(self) -> None:
        if self._has_room():
            return
        loop, room = asyncio.get_running_loop(), asyncio.Event()
        loop.add_writer(self._file, room.set)
        try:
            await room.wait()
        finally:
            loop.remove_writer(self._file)
