"""The process of an agent: talked to over pipes, what it complains of kept, its end complete."""

from __future__ import annotations

import asyncio
import shlex
from asyncio.subprocess import Process
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Final

from antiphon_kernel.config.agents import AgentConfig
from antiphon_kernel.shell import LINGER_SECONDS, ErrorLog, run_service, wait_exited

_LOOK_SECONDS: Final = 0.1
"""Between two looks whether it has exited, which most often the end of what it says tells."""

_READ_BYTES: Final = 65_536


class AgentProcess:
    """One process with all that it has started; nothing of it is left once it has ended."""

    def __init__(self, process: Process, stack: AsyncExitStack, log: ErrorLog) -> None:
        """`stack` ends it."""
        assert process.stderr is not None
        self._process, self._stack, self._log = process, stack, log
        exited = wait_exited(process, _LOOK_SECONDS)
        complaining = log.read(process.stderr, self._heard)
        self._exited = asyncio.create_task(exited, name="exit of an agent")
        self._complaining = asyncio.create_task(complaining, name="stderr of an agent")
        self._ending: asyncio.Task[None] | None = None
        self.heard_at = asyncio.get_running_loop().time()
        """Time at which it was last heard of, by the clock of the event loop."""

    @classmethod
    async def start(cls, config: AgentConfig, project: Path, log: Path) -> AgentProcess:
        """Start the agent's command; what it writes to stderr goes to `log`.

        Raises:
            OSError: if it could not be started.
        """
        stack, folder = AsyncExitStack(), Path(config.cwd or project)
        service = run_service(f"exec {shlex.join(config.command)}", folder, config.env)
        return cls(await stack.enter_async_context(service), stack, ErrorLog(log))

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
        self._heard()
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
            self._ending = asyncio.create_task(self._end(), name="end of an agent")
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
        last = "".join(f"\n    {line}" for line in self._log.last)
        return f"{said}. Its last lines:{last}" if last else f"{said}, without a word on stderr."

    def _heard(self) -> None:
        self.heard_at = asyncio.get_running_loop().time()
