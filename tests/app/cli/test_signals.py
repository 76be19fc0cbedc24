"""Ctrl+C while a command's event loop runs."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import subprocess
import sys
from collections.abc import Coroutine, Iterator
from typing import Any

import pytest

from antiphon.cli.signals import default_sigint, run
from tests.waiting import PATIENCE

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


def test_run_returns_result_of_work_and_restores_signal_handler() -> None:
    async def work() -> int:
        await asyncio.sleep(0)
        return 7

    assert run(work) == 7
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_run_of_failing_work_raises_its_error() -> None:
    async def work() -> None:
        raise LookupError

    with pytest.raises(LookupError):
        run(work)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


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


def test_run_of_work_finished_at_interruption_returns_result() -> None:
    async def work() -> int:
        interrupt()
        return 7

    assert run(work) == 7


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
