"""Reading standard input while other things go on: no thread that Ctrl+C would have to wait for."""

from __future__ import annotations

import asyncio
import os
import select
from collections.abc import AsyncIterator
from typing import BinaryIO, Final

from antiphon_kernel.client.standard_streams import reading_input

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
    """What there is to read, once there is something; nothing at the end."""
    if not select.select((file,), (), (), 0)[0]:
        loop, something = asyncio.get_running_loop(), asyncio.Event()
        loop.add_reader(file, something.set)
        try:
            await something.wait()
        finally:
            loop.remove_reader(file)
    with reading_input():
        return os.read(file, _PIECE)
