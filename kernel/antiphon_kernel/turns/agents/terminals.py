"""Commands that agents run: shell cells, under the limits of models' commands."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from acp import schema

from antiphon_kernel.tasks import run_uninterrupted
from antiphon_kernel.turns.agents.agent_turn import AgentTurn
from antiphon_kernel.turns.block_writer import SHELL, CallBlocks
from antiphon_kernel.types.constants import INTERRUPTED
from antiphon_kernel.types.errors import AntiphonError, invalid_params
from antiphon_kernel.types.json_validation import replace_half_characters
from antiphon_kernel.types.quoting import quote


@dataclass(eq=False, slots=True)
class _AgentTerminal:
    """One command."""

    blocks: CallBlocks
    limit: int | None
    """Bytes of its output that the agent wants, the last ones."""
    task: asyncio.Task[None]


class AgentTerminals:
    """The commands that an agent runs in one turn."""

    def __init__(self, turn: AgentTurn) -> None:
        self._turn = turn
        self._terminals: dict[str, _AgentTerminal] = {}

    async def create(
        self,
        command: str,
        args: Sequence[str] | None = None,
        env: Sequence[schema.EnvVariable] | None = None,
        cwd: str | None = None,
        output_byte_limit: int | None = None,
        **_: object,
    ) -> str:
        """Start a command, which a person may have to allow; return the id of its block.

        People see variables and folder in its line, since they change what it does.

        Raises:
            AntiphonError: permission_denied if it may not be run.
        """
        turn, writer = self._turn, self._turn.writer
        line = replace_half_characters(" ".join([command, *map(shlex.quote, args or ())]))
        if cwd is not None and cwd.rstrip("/") != str(writer.kernel.project):
            line = f"cd {shlex.quote(cwd)} && {line}"
        for one in env or ():
            line = f"export {shlex.quote(f'{one.name}={one.value}')}; {line}"
        blocks = await turn.open_call(turn.request(SHELL, {"command": line}), line)
        task = asyncio.create_task(self._run(blocks, line), name=f"terminal of {blocks.call}")
        self._terminals[blocks.call] = _AgentTerminal(blocks, output_byte_limit, task)
        return blocks.call

    def output(self, terminal: str) -> schema.TerminalOutputResponse:
        """Return what people see of the output of a command, and how it ended, if it has."""
        found, document = self._find(terminal), self._turn.writer.context.document
        data = document.text(found.blocks.result).encode()
        cut = 0 if found.limit is None else max(len(data) - found.limit, 0)
        ended = schema.TerminalExitStatus(**self._how_it_ended(terminal))
        return schema.TerminalOutputResponse(
            output=data[cut:].decode(errors="ignore"),
            truncated=bool(cut) or document.header(found.blocks.result).truncated,
            exit_status=ended if found.task.done() else None,
        )

    async def wait(self, terminal: str) -> schema.WaitForTerminalExitResponse:
        """Wait until a command has ended; return how."""
        await asyncio.wait({self._find(terminal).task})
        return schema.WaitForTerminalExitResponse(**self._how_it_ended(terminal))

    def _how_it_ended(self, terminal: str) -> dict[str, Any]:
        code = self._turn.writer.context.document.header(terminal).exit_code
        return {"exit_code": code, "signal": "SIGTERM" if code is None else None}

    async def kill(self, terminal: str) -> None:
        """End a command; its output stays."""
        await self._end(self._find(terminal), f"Ended by {self._turn.presence.username}.")

    async def release(self, terminal: str) -> None:
        """End a command, and forget its terminal."""
        await self.kill(terminal)
        del self._terminals[terminal]

    async def close(self) -> None:
        """End every command."""
        every = self._terminals.values()
        await asyncio.gather(*(self._end(one, "Ended with the turn.") for one in every))

    def _find(self, terminal: str) -> _AgentTerminal:
        found = self._terminals.get(terminal)
        if found is None:
            raise invalid_params(
                f"There is no terminal {quote(terminal)}: it was released, or its turn has ended.",
                field="terminalId",
            )
        return found

    async def _end(self, terminal: _AgentTerminal, why: str) -> None:
        if not terminal.task.done():
            terminal.task.cancel()
            await asyncio.wait({terminal.task})
            with suppress(AntiphonError):  # somebody else has ended it, or the agent has to go
                await run_uninterrupted(terminal.blocks.fail(why, stop_reason=INTERRUPTED))

    async def _run(self, blocks: CallBlocks, line: str) -> None:
        """Run a command; what agents write is saved already."""
        where, seconds = self._turn.presence.write_in, self._turn.settings.shell_seconds
        with suppress(AntiphonError):  # somebody else has ended it
            await blocks.run_command(line, on_start=where, seconds=seconds)
