"""Shell commands: run in a folder, their output streamed, their processes never left behind.

A command runs in a process group of its own. When its shell has exited, or when it is cancelled,
whatever is left of the group is ended; a watchdog does that if this process is killed, and no
command begins before the watchdog knows of it. A process that detaches itself into a session of its
own (a daemon) is outside of that on purpose.
"""

from __future__ import annotations

import asyncio
import codecs
import os
import re
import shutil
import signal
import subprocess
from asyncio.subprocess import DEVNULL, PIPE
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final

BATCH_SECONDS = 0.010
"""Output that comes within this time is handed on in one piece."""

FULL_PIPE_SECONDS = 0.001
"""The same while the pipe is full: whoever writes into it waits."""

TERM_GRACE_SECONDS = 2.0
"""How long processes have to end after SIGTERM before they are killed."""

LINGER_SECONDS = 0.2
"""How long background processes may outlive their shell, to finish their output."""

_BEGIN = 'read -r _ && exec "$0" -c "$1"'
"""Becomes the command when it is told to; ends if this process ends before."""

LINE_BYTES: Final = 16 * 2**20
"""Bytes of the longest line that a process may print which is talked to."""

_READ_BYTES = 65_536
_POLL_SECONDS = 0.010
_LOG_BYTES: Final = 1_000_000
"""Bytes of standard error that are kept of one process."""


_WANTS_TERMINAL = re.compile(
    r"failed tty get|not (?:to |from )?a (?:tty|terminal)|inappropriate ioctl for device"
    r"|error opening terminal|terminal is (?:dumb|required|not fully functional)|no tty present"
    r"|TERM environment variable|unknown terminal type",
    re.IGNORECASE,
)
_LOOKED_AT = 4_000
"""Code points at either end of an output in which a complaint is looked for."""


_SCRIPT: Final = """
trap '' HUP INT TERM
while read -r sign group; do
    case $sign in
        +) groups="$groups $group" ;;
        -)
            others=
            for one in $groups; do
                [ "$one" = "$group" ] || others="$others $one"
            done
            groups=$others
            ;;
    esac
done
for one in $groups; do
    kill -s KILL -- "-$one"
done
"""


class Watchdog:
    """A small process that outlives this one and ends its commands if it could not do so itself.

    It is told which process groups run, and starts with the first. When this process is gone,
    however it went, the pipe between the two is closed, and whatever is still named is killed.
    """

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._groups: set[int] = set()

    def watch(self, group: int) -> None:
        """This group dies with us.

        Raises:
            OSError: if no watchdog can be started.
        """
        self._groups.add(group)
        self._notify(f"+ {group}")

    def forget(self, group: int) -> None:
        """This group has ended; its number may be another's soon."""
        self._groups.discard(group)
        with suppress(OSError):
            self._notify(f"- {group}")

    def _notify(self, line: str) -> None:
        process = self._process
        if process is not None and process.poll() is None:
            with suppress(BrokenPipeError):
                self._write(process, line)
                return
        if not self._groups:
            return
        self._process = process = subprocess.Popen(
            ["/bin/sh", "-c", _SCRIPT],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        for group in self._groups:
            self._write(process, f"+ {group}")

    def _write(self, process: subprocess.Popen[bytes], line: str) -> None:
        assert process.stdin is not None
        process.stdin.write(line.encode() + b"\n")
        process.stdin.flush()


WATCHDOG: Final = Watchdog()


def wants_terminal(output: str) -> bool:
    """Return whether a command that failed says that it found no terminal."""
    ends = output[:_LOOKED_AT], output[-_LOOKED_AT:]
    return any(_WANTS_TERMINAL.search(end) is not None for end in ends)


async def run_shell(command: str, folder: Path, on_output: Callable[[str], Awaitable[None]]) -> int:
    """Run `command`, handing its output (stdout and stderr in order) to `on_output` as it comes.

    Returns its exit code; ended by signal N it is 128 + N, as in a shell.

    When cancelled, no process of the command's group is alive by the time this returns.

    Raises:
        OSError: if the command could not be started.
        ValueError: if the command cannot be passed to a shell (it holds a NUL).
    """
    if "\0" in command:  # what an event loop makes of it differs
        raise ValueError("a command cannot hold a null character")
    reading, writing = os.pipe()
    source, pipe = asyncio.StreamReader(), None
    try:
        pipe, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(source), os.fdopen(reading, "rb")
        )
        process = await _start(command, folder, f"{_BEGIN} </dev/null", writing, writing)
        WATCHDOG.watch(process.pid)
        assert process.stdin is not None
        process.stdin.write(b"\n")
        process.stdin.close()
    except BaseException:
        if pipe is not None:
            pipe.close()
        raise
    finally:
        os.close(writing)
    reader = asyncio.create_task(_hand_on(source, on_output))
    try:
        exited = asyncio.create_task(process.wait())
        try:
            await asyncio.wait({reader, exited}, return_when=asyncio.FIRST_COMPLETED)
            if reader.done():
                reader.result()
            await exited
            await asyncio.wait({reader}, timeout=LINGER_SECONDS)
        finally:
            exited.cancel()
            await _end_group(process)
            WATCHDOG.forget(process.pid)
        # A daemon may still hold the pipe: what is in it is ours, what it writes later is not.
        if not pipe.is_closing():
            pipe.close()
            with suppress(BlockingIOError):
                while data := os.read(reading, _READ_BYTES):
                    source.feed_data(data)
        await reader
    finally:
        pipe.close()
        reader.cancel()
        await asyncio.wait({reader})
    code = process.returncode or 0
    return 128 - code if code < 0 else code


async def run_program(
    command: Sequence[str],
    folder: Path,
    seconds: float,
    variables: Mapping[str, str] | None = None,
) -> tuple[int | None, bytes]:
    """Run a program that asks nothing; return its exit code, and what it prints.

    Args:
        variables: all of its environment, if it is not that of this process.

    Raises:
        TimeoutError: it took longer, and was killed.
    """
    process = await asyncio.create_subprocess_exec(
        *command, cwd=folder, env=variables, stdin=DEVNULL, stdout=PIPE, stderr=DEVNULL
    )
    try:
        async with asyncio.timeout(seconds):
            output, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return process.returncode, output


@asynccontextmanager
async def run_service(
    command: str, folder: Path, variables: Mapping[str, str] = {}, log: ErrorLog | None = None
) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run a command that is talked to over pipes; none of its processes is left afterwards.

    Args:
        variables: of its environment, besides those of this process.
        log: takes its standard error, which the caller reads if there is none.

    Raises:
        OSError: if it could not be started.
    """
    process = await _start(command, folder, _BEGIN, PIPE, PIPE, variables=variables)
    assert process.stdin is not None and process.stdout is not None and process.stderr is not None
    reading: set[asyncio.Task[Any]] = set()
    try:
        WATCHDOG.watch(process.pid)
        process.stdin.write(b"\n")
        if log is not None:
            reading.add(asyncio.create_task(log.read(process.stderr)))
        yield process
    finally:
        process.stdin.close()
        reading.add(asyncio.create_task(process.stdout.read()))  # its end is seen behind that
        await _end_group(process)
        WATCHDOG.forget(process.pid)
        # A process that has left the group may hold the pipes open.
        for task in (await asyncio.wait(reading, timeout=LINGER_SECONDS))[1]:
            task.cancel()


async def _start(
    command: str,
    folder: Path,
    begin: str,
    output: int,
    errors: int,
    *,
    variables: Mapping[str, str] = {},
) -> asyncio.subprocess.Process:
    """The shell, which waits for a line on its input before it carries the command out."""
    plain = {"TERM": "dumb", "PAGER": "cat", "GIT_TERMINAL_PROMPT": "0"}
    return await asyncio.create_subprocess_exec(
        *("/bin/sh", "-c", begin, shutil.which("bash") or "/bin/sh", command),
        stdin=PIPE,
        stdout=output,
        stderr=errors,
        cwd=folder,
        env={**os.environ, **plain, **variables},
        start_new_session=True,
    )


async def _end_group(process: asyncio.subprocess.Process) -> None:
    """End everything in the process group: politely, then not."""
    group = process.pid
    try:
        if _signal_group(group, signal.SIGTERM):
            # A stopped process does not see SIGTERM before it goes on.
            _signal_group(group, signal.SIGCONT)
            await _wait_until_gone(group)
    finally:
        _signal_group(group, signal.SIGKILL)
    await wait_exited(process)
    await _wait_until_gone(group)


async def read_lines(
    process: asyncio.subprocess.Process, heard: Callable[[], None] = lambda: None
) -> AsyncGenerator[bytes, None]:
    """Yield the lines that a process prints until it has ended, even if others hold its pipe open.

    Args:
        heard: is called whenever something comes.

    Raises:
        ValueError: naming a line that is too long.
    """
    assert process.stdout is not None
    rest, has_exited, data = bytearray(), False, b""
    while data or not has_exited:
        has_exited = process.returncode is not None
        try:
            async with asyncio.timeout(LINGER_SECONDS):
                if not (data := await process.stdout.read(_READ_BYTES)):
                    return
        except TimeoutError:
            data = b""
            continue
        heard()
        *lines, last = data.split(b"\n")
        if lines:
            lines[0] = bytes(rest) + lines[0]
            rest.clear()
        rest += last
        if len(rest) > LINE_BYTES:
            raise ValueError(f"a line of more than {LINE_BYTES:,} bytes")
        for line in lines:
            yield line


class ErrorLog:
    """The standard error of a process: a file that it is added to, and its last lines."""

    def __init__(self, path: Path, heard: Callable[[], None] = lambda: None) -> None:
        """`heard` is called whenever something comes."""
        self._path, self._heard = path, heard
        self.last: deque[str] = deque(maxlen=10)

    async def read(self, source: asyncio.StreamReader) -> None:
        """Take in everything, and keep the beginning of it in the file.

        A file that has become long is begun anew.
        """
        left, rest = _LOG_BYTES, b""
        with self._path.open("ab", buffering=0) as file:
            self._path.chmod(0o600)
            if file.tell() > _LOG_BYTES:
                file.truncate(0)
            while data := await source.read(_READ_BYTES):
                self._heard()
                file.write(data[:left])
                left = max(0, left - len(data))
                *lines, rest = (rest + data)[-_READ_BYTES:].split(b"\n")
                self.last.extend(one.decode("utf-8", "replace")[:500] for one in lines if one)
        if rest:
            self.last.append(rest.decode("utf-8", "replace")[:500])


async def wait_exited(process: asyncio.subprocess.Process) -> None:
    """Wait until a process has exited; its own `wait` also waits for whoever holds its pipes."""
    while process.returncode is None:  # noqa: ASYNC110  nothing else tells of it
        await asyncio.sleep(_POLL_SECONDS)


async def _wait_until_gone(group: int) -> None:
    for _ in range(round(TERM_GRACE_SECONDS / _POLL_SECONDS)):
        if not _alive(group):
            return
        await asyncio.sleep(_POLL_SECONDS)


def _signal_group(group: int, number: int) -> bool:
    """Send a signal, 0 for none; False if the group is gone."""
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return False
    except PermissionError:
        # macOS answers so for a group of which only zombies are left.
        return False
    return True


def _alive(group: int) -> bool:
    """Whether the group has a member that is not just a zombie nobody has reaped."""
    if not _signal_group(group, 0):
        return False
    processes = Path("/proc")
    if not (processes / "self" / "stat").exists():
        return True
    for folder in processes.iterdir():
        if folder.name.isdigit():
            try:
                stat = (folder / "stat").read_bytes()
            except OSError:
                continue
            state, _, member_of = stat.rpartition(b")")[2].split()[:3]
            if int(member_of) == group and state not in (b"Z", b"X"):
                return True
    return False


async def _hand_on(
    source: asyncio.StreamReader, on_output: Callable[[str], Awaitable[None]]
) -> None:
    """Hand on what comes in batches, until the end."""
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    while data := await source.read(_READ_BYTES):
        if text := decoder.decode(data):
            await on_output(text)
        is_full = len(data) == _READ_BYTES
        await asyncio.sleep(FULL_PIPE_SECONDS if is_full else BATCH_SECONDS)
    if text := decoder.decode(b"", final=True):
        await on_output(text)
