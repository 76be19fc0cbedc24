"""Reading, printing and Ctrl+C while other things go on."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import subprocess
import sys
from collections.abc import Coroutine, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from antiphon.cli.signals import default_sigint, run
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


@pytest.mark.parametrize("closes", [False, True])
async def test_printer_that_waits_can_be_cancelled_and_notices_that_nobody_reads(
    pipe: Pipe, *, closes: bool
) -> None:
    printer = Printer(pipe.sink)
    printing = asyncio.create_task(printer.print("x" * 1_000_000))
    await asyncio.wait({printing}, timeout=0.05)
    assert not printing.done()
    if closes:
        pipe.source.close()
        with pytest.raises(BrokenPipeError):
            await printing
        with pytest.raises(BrokenPipeError):
            printer.print_final("last")
        return
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


# A signal whose handler runs in another thread interrupts no system call of the main one: so it is
# with one that comes in the moment before the loop goes to sleep.
ASLEEP = """
import asyncio, os, signal, threading, time
from antiphon.cli.signals import run

def interrupt():
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    time.sleep(0.2)
    os.kill(os.getpid(), signal.SIGINT)

async def work():
    threading.Thread(target=interrupt).start()
    await asyncio.Event().wait()

signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
try:
    run(work)
except KeyboardInterrupt:
    print("interrupted")
"""

STUCK = """
import asyncio, os, sys, time
from antiphon.cli.signals import run

async def work():
    print("stuck", flush=True)
    while True:
        time.sleep(1000)

run(work)
"""


@pytest.fixture(autouse=True)
def python_handles_the_signal() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def test_run_returns_the_result_or_raises_the_error_and_restores_the_handler() -> None:
    async def work(*, fails: bool, is_interrupted: bool = False) -> int:
        await asyncio.sleep(0)
        if fails:
            raise LookupError
        if is_interrupted:
            interrupt()
        return 7

    assert run(partial(work, fails=False)) == 7
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    with pytest.raises(LookupError):
        run(partial(work, fails=True))
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    # Interrupted when it was done already.
    assert run(partial(work, fails=False, is_interrupted=True)) == 7


@pytest.mark.parametrize("pauses", range(4))
def test_interrupted_work_says_its_last(pauses: int) -> None:
    said: list[str] = []

    async def work() -> None:
        try:
            for _ in range(pauses):
                await asyncio.sleep(0)
            interrupt()
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            said.append("last")

    with pytest.raises(KeyboardInterrupt):
        run(work)
    assert said == ["last"]


def test_signal_before_the_loop_leaves_no_coroutine_behind(
    monkeypatch: pytest.MonkeyPatch, recwarn: pytest.WarningsRecorder
) -> None:
    real = asyncio.run

    def interrupted_run(work: Coroutine[Any, Any, None]) -> None:
        interrupt()
        real(work)

    async def work() -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(asyncio, "run", interrupted_run)
    with pytest.raises(KeyboardInterrupt):
        run(work)
    gc.collect()
    assert [str(one.message) for one in recwarn] == []


def test_signal_that_interrupts_no_system_call_wakes_the_loop() -> None:
    done = subprocess.run(
        [sys.executable, "-c", ASLEEP],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("interrupted\n", "")


def test_run_of_work_that_swallows_interruption_ends() -> None:
    taken: list[str] = []

    async def work() -> None:
        interrupt()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            taken.append("once")
        await asyncio.Event().wait()

    with pytest.raises(KeyboardInterrupt):
        run(work, grace=0.01)
    assert taken == ["once"]


def test_failure_of_interrupted_work_is_not_lost() -> None:
    async def work() -> None:
        interrupt()
        try:
            await asyncio.Event().wait()
        finally:
            raise LookupError

    with pytest.raises(LookupError):
        run(work)


def test_second_one_ends_a_process_that_is_stuck() -> None:
    with subprocess.Popen([sys.executable, "-c", STUCK], stdout=subprocess.PIPE) as stuck:
        assert stuck.stdout is not None
        stuck.stdout.readline()
        while stuck.poll() is None:
            stuck.send_signal(signal.SIGINT)
        assert stuck.returncode == -signal.SIGINT


def test_run_under_ignored_sigint_keeps_it_ignored() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    async def work() -> int:
        interrupt()
        await asyncio.sleep(0.01)
        return 7

    with default_sigint():
        interrupt()
    assert run(work) == 7
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def test_default_sigint_without_work_ends_process() -> None:
    script = (
        "import os, signal\n"
        "from antiphon.cli.signals import default_sigint\n"
        "with default_sigint():\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, b"", b"")
