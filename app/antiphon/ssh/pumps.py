"""Bytes between an SSH channel and files, never more of them in memory than a little."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress
from typing import Final

_PIECE: Final = 32_768


class FileSource:
    """Passes on what comes out of a file, as long as there is room for it."""

    def __init__(self, file: int, take: Callable[[bytes], None], ended: Callable[[], None]) -> None:
        """`ended` is called once, when nothing more will come."""
        os.set_blocking(file, False)
        self._file = file
        self._take = take
        self._ended = ended
        self._reads = False
        self.has_ended = False
        """Whether nothing more will come."""
        self.resume()

    def pause(self) -> None:
        """Leave what comes where it is."""
        if self._reads:
            self._reads = False
            asyncio.get_running_loop().remove_reader(self._file)

    def resume(self) -> None:
        """Go on after a pause."""
        if self._file >= 0 and not self._reads and not self.has_ended:
            self._reads = True
            asyncio.get_running_loop().add_reader(self._file, self._ready)

    def close(self) -> None:
        """Close the file; calling it again does nothing."""
        self.pause()
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _ready(self) -> None:
        try:
            data = os.read(self._file, _PIECE)
        except BlockingIOError:
            return
        except OSError:  # of a terminal that no process has open any more
            data = b""
        if data:
            self._take(data)
            return
        self.pause()
        self.has_ended = True
        self._ended()


class FileSink:
    """Writes into a file, and asks for no more before what came is in it."""

    def __init__(self, file: int, pause: Callable[[], None], resume: Callable[[], None]) -> None:
        """`pause` and `resume` stop and start whoever calls `write`."""
        os.set_blocking(file, False)
        self._file = file
        self._pause = pause
        self._resume = resume
        self._rest = bytearray()
        self._ends = False

    @property
    def waiting(self) -> int:
        """Return how many bytes are not in the file yet."""
        return len(self._rest)

    def write(self, data: bytes) -> None:
        """Write, now or as soon as there is room."""
        if self._file < 0:
            return
        empty = not self._rest
        self._rest += data
        if empty:
            self._flush()
            if self._rest:
                self._pause()
                asyncio.get_running_loop().add_writer(self._file, self._ready)

    def control(self, change: Callable[[int], None]) -> None:
        """Call `change` with the file, unless it is closed."""
        if self._file >= 0:
            change(self._file)

    def end(self) -> None:
        """Close the file when everything is in it."""
        self._ends = True
        if not self._rest:
            self.close()

    def close(self) -> None:
        """Close the file at once; calling it again does nothing."""
        if self._file < 0:
            return
        if self._rest:
            asyncio.get_running_loop().remove_writer(self._file)
            self._rest.clear()
        os.close(self._file)
        self._file = -1

    def _ready(self) -> None:
        self._flush()
        if not self._rest and self._file >= 0:
            asyncio.get_running_loop().remove_writer(self._file)
            self._resume()
            if self._ends:
                self.close()

    def _flush(self) -> None:
        try:
            while self._rest:
                with memoryview(self._rest) as rest, rest[:_PIECE] as piece:
                    written = os.write(self._file, piece)
                del self._rest[:written]
        except BlockingIOError:
            pass
        except OSError:  # nobody reads it any more: it comes to nothing
            self._rest.clear()


def close_all(files: list[int]) -> None:
    """Close files that may be closed already."""
    for file in files:
        with suppress(OSError):
            os.close(file)
