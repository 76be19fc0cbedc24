"""Surroundings of every test: its own home, its own runtime folder, nothing of the developer's."""

from __future__ import annotations

import asyncio
import gc
import itertools
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Generator, Iterator
from contextlib import suppress
from pathlib import Path
from types import CoroutineType, FrameType

import pytest
from hypothesis import settings
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

from tests.postgres import postgres_server, store

__all__ = ("postgres_server", "store")  # fixtures

# How long an example takes says how busy the machine is. And a run finds what the last one found:
# with ANTIPHON_CASES, other examples each time.
settings.register_profile(
    "tests",
    deadline=None,
    derandomize="ANTIPHON_CASES" not in os.environ,
    max_examples=int(os.environ.get("ANTIPHON_CASES", "15")),
)
settings.load_profile("tests")

# Every process that a test starts imports the program: it is compiled for the first of them only.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# The app says moments in the zone of the machine.
os.environ["TZ"] = "UTC"
time.tzset()

gc.disable()
# What one test leaves does not matter before the next ones have made as much.
gc.set_threshold(20_000, 20, 20)

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A run in the background of a shell: what it starts would not be interrupted either.
    signal.signal(signal.SIGINT, signal.default_int_handler)

MEMORY = Path("/dev/shm")
if MEMORY.is_dir():
    # Every write of a kernel waits for its disk: nothing here has to outlive the machine.
    found = os.statvfs(MEMORY)
    if found.f_bavail * found.f_frsize > 4 * 2**30 and not found.f_flag & os.ST_NOEXEC:
        os.environ["TMPDIR"] = tempfile.tempdir = str(MEMORY)

LONGEST_ID = 200

SERVICES = (
    "tests/kernel/messages/test_foreign_writing.py",
    "tests/kernel/providers/",
    "tests/kernel/turns/test_turns_on_the_wire.py",
)
"""Tests that import the libraries of services, which takes seconds: only when they run."""

_numbers = itertools.count()


def pytest_xdist_auto_num_workers() -> int:
    """Return two workers for each processor: tests wait half of the time."""
    return 2 * (os.cpu_count() or 1)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling:
    """Give the files to the workers in their order."""
    config.option.loadscopereorder = False
    return FileScheduling(config, log)


class FileScheduling(LoadScopeScheduling):
    """Gives the tests of a file to one worker, and those of the libraries that take long to import.

    So a worker is paid once for the fixtures of a module.
    """

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return SERVICES[0] if file.startswith(SERVICES) else file


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--store",
        choices=("sqlite", "postgres"),
        default="sqlite",
        help="where the kernels of the kernel's tests keep their contexts",
    )


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Name a long text by its length: workers send the ids of all tests, and report each by its."""
    if isinstance(val, str | bytes) and len(val) > LONGEST_ID:
        return f"{argname}-{len(val)}"
    return None


def pytest_collection_finish() -> None:
    """Collect garbage from now on: nothing that was imported is any."""
    gc.freeze()
    gc.enable()


def _frames(waiting: object) -> Iterator[str]:
    """Yield the places in which a coroutine waits, outermost first."""
    while isinstance(waiting, CoroutineType) and (frame := waiting.cr_frame) is not None:
        yield f'  File "{frame.f_code.co_filename}", line {frame.f_lineno}\n'
        waiting = waiting.cr_await


@pytest.hookimpl(wrapper=True, optionalhook=True)
def pytest_timeout_set_timer() -> Generator[None, object, object]:
    """Print what each task waits for when a test's time is over: its stack is the event loop's."""
    is_set = yield
    fail = signal.getsignal(signal.SIGALRM)
    assert callable(fail)

    def print_tasks(number: int, frame: FrameType | None) -> None:
        with suppress(RuntimeError):  # no loop runs
            for task in asyncio.all_tasks():
                waits = [f"{task.get_name()} waits in\n", *_frames(task.get_coro())]
                print(*waits, sep="", file=sys.__stderr__)  # an app that runs captures the other
        fail(number, frame)

    signal.signal(signal.SIGALRM, print_tasks)
    return is_set


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    session.config.add_cleanup(lambda: _leave_threads(exitstatus))


def _leave_threads(status: int) -> None:
    """End a process at once whose end would wait for threads that a failed test has left."""
    is_worker = "PYTEST_XDIST_WORKER" in os.environ  # which its run ends
    if not is_worker and any(not one.daemon for one in threading.enumerate()[1:]):
        sys.stdout.flush()
        os._exit(status)


@pytest.fixture(autouse=True)
def own_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Cut the test off from the developer's configuration, state and running kernels."""
    # `mktemp` looks through the folders of all tests before for the next number.
    home = tmp_path_factory.getbasetemp() / "home" / str(next(_numbers))
    home.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    for name in ("CONFIG", "STATE", "DATA", "CACHE", "RUNTIME"):
        folder = home / name.lower()
        folder.mkdir(mode=0o700)
        monkeypatch.setenv(f"XDG_{name}_{'DIR' if name == 'RUNTIME' else 'HOME'}", str(folder))
    keys = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY")
    for name in ("ANTIPHON_DATA", "TMUX", "NO_COLOR", "SSH_CONNECTION", *keys):
        monkeypatch.delenv(name, raising=False)
    # A server of models that runs here is none of a test's.
    configured = home / "config" / "antiphon" / "config.toml"
    configured.parent.mkdir()
    configured.write_text("[discovery]\nlocal_ports = []\n")
    return home
