"""What agents ask of their client: files, terminals, permission; answered within their turn."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from acp import RequestError
from acp.schema import (
    CreateTerminalResponse,
    DeniedOutcome,
    EnvVariable,
    PermissionOption,
    ReadTextFileResponse,
    RequestPermissionResponse,
    TerminalExitStatus,
    TerminalOutputResponse,
    ToolCallUpdate,
    WaitForTerminalExitResponse,
    WriteTextFileResponse,
)

from antiphon_kernel.turns.agents.agent_turn import AgentTurn
from antiphon_kernel.turns.agents.files import read_file, write_file
from antiphon_kernel.turns.agents.questions import ask
from antiphon_kernel.turns.agents.terminals import AgentTerminals
from antiphon_kernel.turns.agents.updates import TurnUpdates
from antiphon_kernel.types.errors import AntiphonError

T = TypeVar("T")


class _Stopped(RequestError):
    """No turn runs in which a request could be answered."""

    def __init__(self) -> None:
        super().__init__(-32600, "No turn runs in this session, or it is being stopped.")


class PlayedTurn:
    """A turn of an agent that is played: what it has said, and what it waits for."""

    def __init__(self, turn: AgentTurn) -> None:
        self.turn = turn
        self.terminals = AgentTerminals(turn)
        self.updates = TurnUpdates(turn, self.terminals)
        self.failure: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Fails with what could not be written."""
        self._writing = asyncio.Lock()
        self._asked: set[asyncio.Task[Any]] = set()
        self._is_stopping = False

    async def take(self, update: object) -> None:
        """Write what an update says."""
        try:
            async with self._writing:
                if not self._is_stopping:
                    await self.updates.take(update)
        except Exception as error:  # noqa: BLE001  whatever it is, the turn fails with it
            if not self.failure.done():
                self.failure.set_exception(error)

    async def answer(self, work: Coroutine[Any, Any, T]) -> T:
        """Do what the agent asks for, as long as the turn is not stopped.

        Raises:
            RequestError: if it cannot be done, or the turn is stopped.
        """
        task = asyncio.ensure_future(work)
        self._asked.add(task)
        if self._is_stopping:
            task.cancel()
        try:
            await asyncio.wait({task})
            return task.result()
        except asyncio.CancelledError:
            if not task.done():  # it is the connection that ends
                raise
            raise _Stopped from None
        except AntiphonError as error:
            raise RequestError(-32602, error.message) from error
        finally:
            task.cancel()
            self._asked.discard(task)

    def stop(self) -> None:
        """Write nothing more, and cancel what the agent waits for."""
        self._is_stopping = True
        for task in tuple(self._asked):
            task.cancel()

    async def close(self) -> None:
        """End what is left of the turn."""
        self.stop()
        if self._asked:
            await asyncio.wait(self._asked)
        await self.terminals.close()
        if self.failure.done():
            self.failure.exception()  # it has been said, or the turn was stopped
        self.failure.cancel()


class AgentClient:
    """The client of one agent, as the library calls it."""

    def __init__(self, played: Callable[[str], PlayedTurn | None]) -> None:
        """`played` returns the turn that is played in a session."""
        self._played = played

    def _turn(self, session: str) -> PlayedTurn:
        found = self._played(session)
        if found is None:
            raise _Stopped
        return found

    async def request_permission(
        self, session_id: str, tool_call: ToolCallUpdate, options: list[PermissionOption], **_: Any
    ) -> RequestPermissionResponse:
        """Ask whether a call may run."""
        try:
            played = self._turn(session_id)

            async def decide() -> RequestPermissionResponse:
                await played.take(tool_call)
                outcome = await ask(played.turn, tool_call, options)
                return RequestPermissionResponse(outcome=outcome)

            return await played.answer(decide())
        except _Stopped:
            return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))

    async def read_text_file(
        self,
        session_id: str,
        path: str,
        line: int | None = None,
        limit: int | None = None,
        **_: Any,
    ) -> ReadTextFileResponse:
        """Read a file as it is now."""
        played = self._turn(session_id)
        text = await played.answer(read_file(played.turn, path, line, limit))
        return ReadTextFileResponse(content=text)

    async def write_text_file(
        self, session_id: str, path: str, content: str, **_: Any
    ) -> WriteTextFileResponse:
        """Change a file."""
        played = self._turn(session_id)
        await played.answer(write_file(played.turn, path, content))
        return WriteTextFileResponse()

    async def create_terminal(
        self,
        session_id: str,
        command: str,
        args: list[str] | None = None,
        env: list[EnvVariable] | None = None,
        cwd: str | None = None,
        output_byte_limit: int | None = None,
        **_: Any,
    ) -> CreateTerminalResponse:
        """Run a command."""
        played = self._turn(session_id)
        variables = {one.name: one.value for one in env or ()}
        terminal = await played.answer(
            played.terminals.create(command, args or (), variables, cwd, output_byte_limit)
        )
        return CreateTerminalResponse(terminal_id=terminal)

    async def terminal_output(
        self, session_id: str, terminal_id: str, **_: Any
    ) -> TerminalOutputResponse:
        """Return what a command has printed."""
        terminals = self._turn(session_id).terminals

        async def look() -> TerminalOutputResponse:
            found = terminals.output(terminal_id)
            status = TerminalExitStatus(exit_code=found.exit_code, signal=found.signal)
            has_ended = found.exit_code is not None or found.signal is not None
            return TerminalOutputResponse(
                output=found.output,
                truncated=found.truncated,
                exit_status=status if has_ended else None,
            )

        return await self._turn(session_id).answer(look())

    async def wait_for_terminal_exit(
        self, session_id: str, terminal_id: str, **_: Any
    ) -> WaitForTerminalExitResponse:
        """Wait until a command has ended."""
        played = self._turn(session_id)
        found = await played.answer(played.terminals.wait(terminal_id))
        return WaitForTerminalExitResponse(exit_code=found.exit_code, signal=found.signal)

    async def kill_terminal(self, session_id: str, terminal_id: str, **_: Any) -> None:
        """End a command."""
        played = self._turn(session_id)
        await played.answer(played.terminals.kill(terminal_id))

    async def release_terminal(self, session_id: str, terminal_id: str, **_: Any) -> None:
        """End a command, and forget its terminal."""
        played = self._turn(session_id)
        await played.answer(played.terminals.release(terminal_id))
