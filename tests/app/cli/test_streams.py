"""Reading and printing while other things go on."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import pytest

from antiphon.cli.stdio import Printer, lines
from tests.waiting import PATIENCE, until


@dataclass
class Pipe:
    source: BinaryIO
    sink: BinaryIO


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb", 0) as source, os.fdopen(writing, "wb", 0) as sink:
        yield Pipe(source, sink)


async def test_lines_come_when_they_are_whole(pipe: Pipe) -> None:
    read: list[bytes] = []

    async def read_all() -> None:
        async for line in lines(pipe.source):
            read.append(line)

    reading = asyncio.create_task(read_all())
    pipe.sink.write(b"one\ntw")
    await until(lambda: read == [b"one"])
    pipe.sink.write(b"o\n\nthree\nunfinished")
    await until(lambda: read == [b"one", b"two", b"", b"three"])
    pipe.sink.close()
    await reading
    assert read[4:] == [b"unfinished"]


@pytest.mark.parametrize("text", [b"", b"\n", b"a\nb", b"x" * 200_000 + b"\n" + b"y" * 70_000])
async def test_file_is_read_to_its_end(tmp_path: Path, text: bytes) -> None:
    path = tmp_path / "input"
    path.write_bytes(text)
    with path.open("rb") as source:
        assert [line async for line in lines(source)] == text.splitlines()


async def test_stdin_lines_of_null_device_are_empty() -> None:
    with Path(os.devnull).open("rb") as source:
        assert [line async for line in lines(source)] == []


async def test_stdin_lines_waiting_can_be_cancelled(pipe: Pipe) -> None:
    reading = asyncio.ensure_future(anext(lines(pipe.source)))
    await asyncio.sleep(0)
    reading.cancel()
    await asyncio.wait({reading}, timeout=PATIENCE)
    assert reading.cancelled()
    pipe.sink.write(b"later\n")
    assert await anext(lines(pipe.source)) == b"later"


async def test_slow_reader_gets_everything_in_order(pipe: Pipe) -> None:
    text = "".join(f"{number} é 🌍\n" for number in range(40_000))
    printer = Printer(pipe.sink)

    async def print_all() -> None:
        await printer.print(text[:100_001])
        await printer.print(text[100_001:])
        pipe.sink.close()

    printing = asyncio.create_task(print_all())
    read = bytearray()
    while piece := await asyncio.to_thread(os.read, pipe.source.fileno(), 10_000):
        read += piece
    await printing
    assert read.decode() == text


async def test_printer_waiting_for_reader_can_be_cancelled(pipe: Pipe) -> None:
    printer = Printer(pipe.sink)
    printing = asyncio.create_task(printer.print("x" * 1_000_000))
    await asyncio.wait({printing}, timeout=0.05)
    assert not printing.done()
    printing.cancel()
    await asyncio.wait({printing}, timeout=PATIENCE)
    assert printing.cancelled()
    printer.print_final("what does not fit is left out")


async def test_printer_print_final_prints_if_pipe_has_room(pipe: Pipe, tmp_path: Path) -> None:
    Printer(pipe.sink).print_final("last")
    assert os.read(pipe.source.fileno(), 100) == b"last"
    with (tmp_path / "output").open("wb") as output:
        await Printer(output).print("to a ")
        Printer(output).print_final("file")
    assert (tmp_path / "output").read_text() == "to a file"


async def test_printer_waiting_on_closed_pipe_raises(pipe: Pipe) -> None:
    printer = Printer(pipe.sink)
    printing = asyncio.create_task(printer.print("x" * 1_000_000))
    await asyncio.wait({printing}, timeout=0.05)
    pipe.source.close()
    with pytest.raises(BrokenPipeError):
        await printing
    with pytest.raises(BrokenPipeError):
        printer.print_final("last")
