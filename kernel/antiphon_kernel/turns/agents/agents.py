"""Agents of a kernel by name, and their sessions in contexts."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from antiphon_kernel.config.agents import AgentConfig
from antiphon_kernel.contexts import Context
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.turns.turn import TurnFailed, TurnSettings
from antiphon_kernel.types.ids import ContextId

if TYPE_CHECKING:
    from antiphon_kernel.turns.agents.session import AgentSession


class Agents:
    """The agents that can be asked here; what they take is imported with the first turn."""

    def __init__(
        self, kernel: Kernel, configs: Sequence[AgentConfig], settings: TurnSettings
    ) -> None:
        self._kernel, self._settings = kernel, settings
        self._configs = {one.name: one for one in configs}
        self._sessions: dict[tuple[ContextId, str], AgentSession] = {}
        self._ending: set[asyncio.Task[None]] = set()
        kernel.closed.listen(self._closed)

    def __iter__(self) -> Iterator[str]:
        return iter(self._configs)

    def __getitem__(self, name: str) -> AgentConfig:
        return self._configs[name]

    def find(self, context: Context, name: str) -> AgentSession | None:
        """Return the session of an agent in a context; None if it has had no turn there."""
        return self._sessions.get((context.id, name))

    async def session(self, context: Context, name: str) -> AgentSession:
        """Return the session of an agent in a context.

        Raises:
            TurnFailed: if the library that talks to agents is not installed.
        """
        try:
            module = await asyncio.to_thread(import_module, f"{__package__}.session")
        except ModuleNotFoundError as error:
            raise TurnFailed(
                f"Agents need a library that is not installed ({error.name}):"
                " install antiphon[agents]."
            ) from error
        made = self.find(context, name)
        if made is None:
            config = self._configs[name]
            made = module.AgentSession(self._kernel, context, config, self._settings)
            self._sessions[context.id, name] = made
        return made

    async def close(self) -> None:
        """End all processes."""
        sessions = list(self._sessions.values())
        await asyncio.gather(*(one.close() for one in sessions), *self._ending)

    def _closed(self, context: Context) -> None:
        for key in [key for key in self._sessions if key[0] == context.id]:
            task = asyncio.create_task(self._sessions.pop(key).close(), name=f"end of {key[1]}")
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)
