"""Commands that agents run: shell cells, under the limits of models' commands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from antiphon_kernel.turns.agents.agent_turn import AgentTurn


@dataclass(frozen=True, slots=True)
class TerminalOutput:
    """What a command has printed so far, and how it has ended."""

    output: str
    truncated: bool
    exit_code: int | None = None
    signal: str | None = None


class AgentTerminals:
    """The commands that an agent runs in one turn."""

    def __init__(self, turn: AgentTurn) -> None:
        self._turn = turn

    async def create(
        self,
        command: str,
        args: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        output_byte_limit: int | None = None,
    ) -> str:
        """Start a command, which a person may have to allow; return the id of its terminal.

        Raises:
            AntiphonError: if it may not be run.
        """
        raise NotImplementedError

    def block(self, terminal: str) -> str:
        """Return the block of the call of a terminal."""
        raise NotImplementedError

    def output(self, terminal: str) -> TerminalOutput:
        """Return what a command has printed and how it ended, if it has."""
        raise NotImplementedError

    async def wait(self, terminal: str) -> TerminalOutput:
        """Wait until a command has ended."""
        raise NotImplementedError

    async def kill(self, terminal: str) -> None:
        """End a command; its output stays."""
        raise NotImplementedError

    async def release(self, terminal: str) -> None:
        """End a command, and forget its terminal."""
        raise NotImplementedError

    async def close(self) -> None:
        """End every command."""
        raise NotImplementedError
