"""A turn of an agent while it is played, and what the agent asks of its client meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from types import SimpleNamespace
from typing import Any, Final

from acp import RequestError, schema

from antiphon_kernel.turns.agents.agent_turn import AgentTurn
from antiphon_kernel.turns.agents.files import read_file, write_file
from antiphon_kernel.turns.agents.questions import ask
from antiphon_kernel.turns.agents.terminals import AgentTerminals
from antiphon_kernel.turns.agents.updates import TurnUpdates
from antiphon_kernel.types.errors import AntiphonError


class PlayedTurn:
    """A turn that is played: what the agent has said, and what it waits for."""

    def __init__(self, turn: AgentTurn) -> None:
        self.turn = turn
        self.terminals = AgentTerminals(turn)
        self.updates = TurnUpdates(turn)
        self.failure: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Fails with what could not be written."""
        self._writing = asyncio.Lock()
        self._asked: set[asyncio.Task[Any]] = set()
        self.is_stopping = False

    async def take(self, update: object) -> None:
        """Write what an update says."""
        try:
            async with self._writing:
                if not self.is_stopping:
                    await self.updates.take(update)
        except Exception as error:  # noqa: BLE001  whatever it is, the turn fails with it
            if not self.failure.done():
                self.failure.set_exception(error)
                self.failure.exception()  # unless the turn is stopped, it is said

    async def end(self, response: schema.PromptResponse) -> None:
        """End the turn as the agent has ended it; what comes later is skipped."""
        async with self._writing:
            self.is_stopping = True
            await self.updates.end(response.stop_reason, response.usage)

    async def answer(self, name: str, params: Mapping[str, Any]) -> Any:
        """Do what the agent asks for; cancelled when the turn is stopped."""
        task = asyncio.ensure_future(self._do(name, params))
        self._asked.add(task)
        task.add_done_callback(self._asked.discard)
        return await task

    async def _do(self, name: str, params: Mapping[str, Any]) -> Any:
        """Do what a request asks for; it has all parameters that there are."""
        turn, terminals = self.turn, self.terminals
        match name:
            case "request_permission":
                await self.take(params["tool_call"])
                outcome = await ask(turn, params["tool_call"], params["options"])
                return schema.RequestPermissionResponse(outcome=outcome)
            case "read_text_file":
                text = await read_file(turn, params["path"], params["line"], params["limit"])
                return schema.ReadTextFileResponse(content=text)
            case "write_text_file":
                await write_file(turn, params["path"], params["content"])
                return schema.WriteTextFileResponse()
            case "create_terminal":
                return schema.CreateTerminalResponse(terminal_id=await terminals.create(**params))
            case "terminal_output":
                return terminals.output(params["terminal_id"])
            case "wait_for_terminal_exit":
                return await terminals.wait(params["terminal_id"])
            case "kill_terminal":
                await terminals.kill(params["terminal_id"])
            case "release_terminal":
                await terminals.release(params["terminal_id"])
        return None

    def stop(self) -> None:
        """Write nothing more, and cancel what the agent waits for."""
        self.is_stopping = True
        for task in tuple(self._asked):
            task.cancel()

    async def close(self) -> None:
        """End what is left of the turn."""
        self.stop()
        if self._asked:
            await asyncio.wait(self._asked)
        await self.terminals.close()


_REQUESTS: Final = (
    "request_permission read_text_file write_text_file create_terminal terminal_output"
    " wait_for_terminal_exit kill_terminal release_terminal".split()
)


def client_of(find: Callable[[str], PlayedTurn | None]) -> object:
    """Return the client of an agent, as the library calls it: with a method for each request.

    Args:
        find: returns the turn that is played in a session.
    """

    async def answer(name: str, session_id: str, **params: Any) -> Any:
        try:
            if (played := find(session_id)) is not None and not played.is_stopping:
                return await played.answer(name, params)
        except AntiphonError as error:
            raise RequestError(-32602, error.message) from error
        except asyncio.CancelledError:
            pass  # the turn is stopped
        if name == "request_permission":
            cancelled = schema.DeniedOutcome(outcome="cancelled")
            return schema.RequestPermissionResponse(outcome=cancelled)
        raise RequestError(-32600, "No turn runs in this session, or it is being stopped.")

    return SimpleNamespace(**{name: partial(answer, name) for name in _REQUESTS})
