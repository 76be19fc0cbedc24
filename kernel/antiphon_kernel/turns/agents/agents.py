"""Agents of a kernel by name, and their sessions in contexts."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

from antiphon_kernel.config.agents import AgentConfig
from antiphon_kernel.contexts import Context
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.tasks import BackgroundTasks
from antiphon_kernel.turns.agents.agent_turn import AgentTurn
from antiphon_kernel.turns.asker import AskerDismissed
from antiphon_kernel.turns.turn import TurnFailed
from antiphon_kernel.types.ids import ContextId
from antiphon_kernel.types.roles import Permission

if TYPE_CHECKING:
    from antiphon_kernel.turns.agents.session import AgentSession

_log = logging.getLogger(__name__)


class Agents:
    """The agents that can be asked here; what they take is imported with the first turn."""

    def __init__(self, kernel: Kernel, configs: Sequence[AgentConfig]) -> None:
        self._kernel = kernel
        self.configs = {one.name: one for one in configs}
        """The agents by name, in order."""
        self._sessions: dict[tuple[ContextId, str], AgentSession] = {}
        self._ending = BackgroundTasks(_log)
        kernel.closed.listen(self._closed)

    def find(self, context: Context, name: str) -> AgentSession | None:
        """Return the session of an agent in a context; None if it has had no turn there."""
        return self._sessions.get((context.id, name))

    async def play(self, name: str, turn: AgentTurn) -> None:
        """Play a turn of an agent to its end, as `AgentSession.play` does.

        Raises:
            TurnFailed: if the agent fails, is not asked by an owner, or its library is missing.
        """
        turn.presence.write_in(None)
        context = turn.writer.context
        try:
            module = await asyncio.to_thread(import_module, f"{__package__}.session")
            session = self.find(context, name)
            if session is None:
                about = self._kernel, context, self.configs[name], turn.settings
                session = self._sessions[context.id, name] = module.AgentSession(*about)
            # Its process has the rights of the kernel's own user.
            await turn.asker.run(Permission.OWN, partial(session.play, turn))
        except ModuleNotFoundError as error:
            raise TurnFailed(
                f"Agents need a library that is not installed ({error.name}):"
                " install antiphon[agents]."
            ) from error
        except AskerDismissed as error:
            said = f"this is a message of {error.asker}, and only an owner has agents work here"
            doing = "Ended" if error.has_begun else "Not answered"
            raise TurnFailed(f"{doing}: {said}: ask the owner to ask {name}.") from error

    async def close(self) -> None:
        """End all processes."""
        await asyncio.gather(*(one.close() for one in self._sessions.values()))
        await self._ending.close()

    def _closed(self, context: Context) -> None:
        for key in [key for key in self._sessions if key[0] == context.id]:
            self._ending.start(self._sessions.pop(key).close(), f"end of {key[1]}")
