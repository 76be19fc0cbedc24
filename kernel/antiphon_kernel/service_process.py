"""A program of others that is talked to over pipes: its complaints kept, its end complete."""

from __future__ import annotations

import asyncio
import logging
import os
import shlex
from asyncio.subprocess import Process
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Final

from antiphon_kernel.shell import LINGER_SECONDS, run_service, wait_exited
from antiphon_kernel.text.sanitize import sanitize

_log = logging.getLogger(__name__)

LOG_BYTES: Final = 1_000_000
"""Size at which the log of what programs complain of is begun anew; one older log is kept."""

_LOOK_SECONDS: Final = 0.1
"""Between two looks whether it has exited, which most often the end of what it says tells."""

_LAST_BYTES: Final = 2_000
_READ_BYTES: Final = 65_536


class ServiceProcess:
    """One process with all that it has started; nothing of it is left once it has ended."""

    def __init__(self, process: Process, stack: AsyncExitStack, log: Path) -> None:
        """`stack` ends it."""
        self._process, self._stack, self._log_file = process, stack, log
        self._last_errors = b""
        exited = wait_exited(process, _LOOK_SECONDS)
        self._exited = asyncio.create_task(exited, name="exit of a program")
        self._complaining = asyncio.create_task(self._keep_errors(), name="stderr of a program")
        self._ending: asyncio.Task[None] | None = None
        self.heard_at = asyncio.get_running_loop().time()
        """Time at which it was last heard of, by the clock of the event loop."""

    @classmethod
    async def start(
        cls, command: Sequence[str], env: Mapping[str, str], folder: Path, log: Path
    ) -> ServiceProcess:
        """Start a command in a folder; what it writes to stderr goes to `log`.

        Args:
            env: variables that it gets beside the kernel's own.

        Raises:
            OSError: if it could not be started.
        """
        stack = AsyncExitStack()
        service = run_service(f"exec {shlex.join(command)}", folder, env)
        return cls(await stack.enter_async_context(service), stack, log)

    async def read(self) -> bytes:
        """Return what it says next; nothing once it has ended.

        What others hold its end of the pipe open for does not count.
        """
        assert self._process.stdout is not None
        reading = asyncio.ensure_future(self._process.stdout.read(_READ_BYTES))
        try:
            await asyncio.wait({reading, self._exited}, return_when=asyncio.FIRST_COMPLETED)
            await asyncio.wait({reading}, timeout=LINGER_SECONDS if self._exited.done() else None)
            data = reading.result() if reading.done() else b""
        finally:
            reading.cancel()
        if not data:
            await asyncio.wait({self._exited}, timeout=LINGER_SECONDS)
        self.heard_at = asyncio.get_running_loop().time()
        return data

    async def write(self, data: bytes) -> None:
        """Send it something; if it has ended, the end of what it says tells."""
        assert self._process.stdin is not None
        with suppress(ConnectionError):
            self._process.stdin.write(data)
            await self._process.stdin.drain()

    @property
    def has_ended(self) -> bool:
        """Return whether it has ended, or is being ended."""
        return self._ending is not None or self._exited.done()

    async def end(self) -> None:
        """End it, politely and then not; it is gone when this returns."""
        if self._ending is None:
            self._ending = asyncio.create_task(self._end(), name="end of a program")
        await asyncio.shield(self._ending)

    async def _end(self) -> None:
        await self._stack.aclose()
        await self._exited
        # A process that has left the group may hold the pipe open.
        await asyncio.wait({self._complaining}, timeout=LINGER_SECONDS)
        self._complaining.cancel()

    def how_it_ended(self) -> str:
        """Return how it has ended, and the last that it complained of."""
        code = self._process.returncode or 0
        said = f"has ended with exit code {code}" if code >= 0 else f"was killed (signal {-code})"
        lines = sanitize(self._last_errors.decode(errors="replace")).strip().splitlines()
        if len(self._last_errors) == _LAST_BYTES:
            lines = lines[1:]
        last = "".join(f"\n    {line}" for line in lines[-10:])
        return f"{said}. Its last lines:{last}" if last else f"{said}, without a word on stderr."

    async def _keep_errors(self) -> None:
        assert self._process.stderr is not None
        while data := await self._process.stderr.read(_READ_BYTES):
            self.heard_at = asyncio.get_running_loop().time()
            self._last_errors = (self._last_errors + data)[-_LAST_BYTES:]
            try:
                handle = os.open(self._log_file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
                try:
                    os.write(handle, data)
                    is_full = os.fstat(handle).st_size > LOG_BYTES
                finally:
                    os.close(handle)
                if is_full:
                    self._log_file.replace(self._log_file.with_suffix(".log.1"))
            except OSError as error:
                _log.warning("what a program complains of is not kept: %s", error)
