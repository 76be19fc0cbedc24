"""The MCP servers of a kernel: each started at first use, restarted with backoff, ended with it."""

from __future__ import annotations

import asyncio
import importlib
import logging
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from antiphon_kernel.mcp_servers.server_config import McpServerConfig
from antiphon_kernel.mcp_servers.server_tools import MOST_TOOLS, McpTool, read_tool, with_own_names
from antiphon_kernel.shell import ErrorLog

if TYPE_CHECKING:
    from mcp.shared.dispatcher import ProgressFnT
    from mcp_types import CallToolResult

    from antiphon_kernel.mcp_servers.connection import Ask, Connection

_log = logging.getLogger(__name__)

START_SECONDS: Final = 30.0
"""Time that a server has until it has said which tools it has."""

LONGEST_DELAY: Final = 60.0
"""Seconds until it is started again, at most: none, 1, 2, 4 and so on. A server that has run for
longer is one that has worked."""

_LAST_WORDS: Final = 2.0
"""Seconds in which a call waits for the reason why its server has ended."""


class McpServerFailed(Exception):
    """A server is not there, or has not answered as it should; the message says so to models."""


class ServerState(StrEnum):
    """State of a server."""

    IDLE = "idle"
    """Not used yet."""
    STARTING = "starting"
    READY = "ready"
    ENDED = "ended"
    """It could not be reached, or is there no more; it is started again when it is needed."""


@dataclass(eq=False)
class McpServer:
    """One server of a kernel."""

    config: McpServerConfig
    project: Path
    log: Path
    """File for what it says on standard error."""
    problem: str | None = None
    """Reason why it is not there, or why some of its tools are not."""
    tools: tuple[McpTool, ...] = ()
    """Its tools as it last listed them, not yet named among those of others."""
    _connection: Connection | None = None
    _task: asyncio.Task[None] | None = None
    _listed: int = 0
    """Number of the change of its tools after which they were listed."""
    _settled: asyncio.Event = field(default_factory=asyncio.Event)
    """Set while it does not start."""
    _not_before: float = 0.0
    _delay: float = 0.0
    """Seconds until it is started again if it ends soon."""

    @property
    def state(self) -> ServerState:
        """Return its state now."""
        if self._task is None:
            return ServerState.ENDED if self._not_before else ServerState.IDLE
        return ServerState.STARTING if self._connection is None else ServerState.READY

    async def ready(self, seconds: float) -> None:
        """Have its tools as they are now, if that takes no longer.

        It is started if it is not there, unless it has ended a moment ago.
        """
        if self._task is None and asyncio.get_running_loop().time() >= self._not_before:
            self.problem = None
            self._settled.clear()
            self._task = asyncio.create_task(self._run(), name=f"MCP server {self.config.name}")
        try:
            async with asyncio.timeout(seconds):
                await self._settled.wait()
                if self._connection is not None and self._listed != self._connection.changes:
                    await self._list(self._connection)
        except TimeoutError:
            return  # it goes on
        except Exception as error:  # noqa: BLE001  whatever a server makes of it
            self._stop(_said(error))

    async def close(self) -> None:
        """End it and all of its processes."""
        self._not_before = float("inf")
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})

    async def call(
        self, tool: McpTool, arguments: dict[str, Any], progress: ProgressFnT, ask: Ask
    ) -> CallToolResult:
        """Call a tool as it was when its definition was read.

        Raises:
            McpServerFailed: if the server is not there, has changed the tool since, or answers with
                an error.
        """
        await self.ready(START_SECONDS)
        connection, name = self._connection, self.config.name
        if connection is None:
            raise McpServerFailed(
                f"The MCP server {name} is not there: {self.problem or 'it starts'}."
            )
        if all(one.digest != tool.digest for one in self.tools):
            raise McpServerFailed(
                f"The MCP server {name} has changed or removed this tool since it was listed, so it"
                " was not called. The next turn lists its tools anew."
            )
        try:
            return await connection.call(tool.tool, arguments, progress, ask)
        except Exception as error:
            said = _said(error)
            if "Connection closed" in said or "Session terminated" in said:
                self._stop(said)
                if self._task is not None:  # it knows more
                    await asyncio.wait({self._task}, timeout=_LAST_WORDS)
                said = self.problem or said
            raise McpServerFailed(
                f"The MCP server {name} has answered with an error: {said}"
            ) from error

    def _stop(self, why: str) -> None:
        """Let it end, as it is of no use any more."""
        if self._task is not None and not self._task.cancelling():
            self.problem = why
            self._task.cancel()

    async def _run(self) -> None:
        loop, log = asyncio.get_running_loop(), ErrorLog(self.log)
        began = loop.time()
        try:
            for module in ("antiphon_kernel.mcp_servers.connection", "jsonschema.validators"):
                await asyncio.to_thread(importlib.import_module, module)
            from antiphon_kernel.mcp_servers.connection import Connection

            opening = Connection(self.config, self.project, self._stop).open(log)
            async with asyncio.timeout(START_SECONDS) as limit, opening as connection:
                await self._list(connection)
                limit.reschedule(None)
                self._connection = connection
                self._settled.set()
                await connection.watch()
        except TimeoutError:
            self._stop(f"it has not answered within {START_SECONDS:g} seconds")
        except ModuleNotFoundError:
            self._stop("the library for it is not installed: pip install 'antiphon[agents]'")
        except Exception as error:  # noqa: BLE001  the problem is reported
            self._stop(_said(error))
        finally:
            if log.last and self.problem:
                self.problem = f"{self.problem}; its last words: {' | '.join(log.last)}"
            delay = 0.0 if loop.time() - began > LONGEST_DELAY else self._delay
            self._delay = min(2 * delay or 1.0, LONGEST_DELAY)
            self._not_before = max(self._not_before, loop.time() + delay)
            self._task = self._connection = None
            self._settled.set()
            if self._not_before < float("inf"):
                _log.warning("the MCP server %s has ended: %s", self.config.name, self.problem)

    async def _list(self, connection: Connection) -> None:
        """Take in which tools it has."""
        changes, problems = connection.changes, []
        found = await connection.tools()
        if len(found) > MOST_TOOLS:
            problems.append(f"it has more than {MOST_TOOLS} tools: the others are left out")
        tools: dict[str, McpTool] = {}
        for one in found[:MOST_TOOLS]:
            try:
                if one.name in tools:
                    raise ValueError("it is listed twice")
                tools[one.name] = read_tool(self.config, one)
            except ValueError as error:
                problems.append(f"the tool {one.name[:80]!r} is left out: {error}")
        self.tools, self._listed = tuple(tools.values()), changes
        self.problem = "; ".join(problems[:5]) or None


class McpServers:
    """All servers of a kernel."""

    def __init__(self, configs: Iterable[McpServerConfig], project: Path, data: Path) -> None:
        self._servers = {
            one.name: McpServer(one, project, data / f"mcp-{one.name}.log") for one in configs
        }

    def __iter__(self) -> Iterator[McpServer]:
        return iter(self._servers.values())

    def __getitem__(self, name: str) -> McpServer:
        return self._servers[name]

    def tools(self, names: Collection[str] | None = None) -> tuple[McpTool, ...]:
        """Return the tools that are known, by their names for models.

        Args:
            names: of those that are wanted, or of all of a server: `NAME__*`; all if None.
        """
        every = with_own_names(tool for one in self for tool in one.tools)
        return tuple(
            one for one in every if names is None or any(fnmatchcase(one.name, it) for it in names)
        )

    async def ready(self, names: Collection[str] | None, seconds: float) -> list[str]:
        """Have the servers ready whose tools are wanted; return which are not, and why."""
        due = [
            one
            for one in self
            if names is None or any(it.startswith(f"{one.config.name}__") for it in names)
        ]
        await asyncio.gather(*(one.ready(seconds) for one in due))
        return [
            f"{one.config.name}: {one.problem or 'it is still starting'}"
            for one in due
            if one.state is not ServerState.READY or one.problem
        ]

    async def close(self) -> None:
        """End all of them."""
        await asyncio.gather(*(one.close() for one in self))


def _said(error: BaseException) -> str:
    """Return what an error says; of a group the first one."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return " ".join(str(error).split())[:1_000] or type(error).__name__
