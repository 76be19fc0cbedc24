"""Commands that agents run: shell cells, under the limits of models' commands."""

from __future__ import annotations

import asyncio
import json
import logging
import shlex
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from antiphon_kernel.turns.agents.agent_turn import AgentTurn
from antiphon_kernel.turns.asker import AskerDismissed
from antiphon_kernel.turns.block_writer import SHELL, CallBlocks, begin_call, open_result
from antiphon_kernel.turns.permission import PermissionRequest
from antiphon_kernel.types.constants import INTERRUPTED
from antiphon_kernel.types.errors import AntiphonError, ErrorCode, invalid_params
from antiphon_kernel.types.json_validation import replace_half_characters
from antiphon_kernel.types.quoting import quote
from antiphon_kernel.types.roles import Permission
from antiphon_kernel.uninterruptible import run_uninterrupted

_log = logging.getLogger(__name__)

_OUTPUT_BYTES: Final = 200_000
"""Bytes of an output that an agent is given at most."""


@dataclass(frozen=True, slots=True)
class TerminalOutput:
    """Output of a command so far, and how it has ended."""

    output: str
    truncated: bool
    """Whether the beginning is left out."""
    exit_code: int | None = None
    signal: str | None = None
    """Name of the signal that has ended it."""


@dataclass(eq=False, slots=True)
class _AgentTerminal:
    """One command."""

    blocks: CallBlocks
    limit: int
    """Bytes of its output that are kept, the last ones."""
    task: asyncio.Task[None] = field(init=False)
    output: str = ""
    truncated: bool = False
    has_ended: bool = False
    exit_code: int | None = None

    def add(self, text: str) -> None:
        """Take more output."""
        data = (self.output + text).encode()
        self.truncated = self.truncated or len(data) > self.limit
        self.output = data[max(len(data) - self.limit, 0) :].decode(errors="ignore")


class AgentTerminals:
    """The commands that an agent runs in one turn."""

    def __init__(self, turn: AgentTurn) -> None:
        self._turn = turn
        self._terminals: dict[str, _AgentTerminal] = {}

    async def create(
        self,
        command: str,
        args: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        output_byte_limit: int | None = None,
    ) -> str:
        """Start a command, which a person may have to allow; return the id of its terminal.

        People see variables and folder in its line, since they change what it does.

        Raises:
            AntiphonError: permission_denied if it may not be run.
        """
        turn, writer = self._turn, self._turn.writer
        line = replace_half_characters(" ".join([command, *map(shlex.quote, args)]))
        if cwd is not None and cwd.rstrip("/") != str(writer.kernel.project):
            line = f"cd {shlex.quote(cwd)} && {line}"
        for name, value in (env or {}).items():
            line = f"export {shlex.quote(f'{name}={value}')}; {line}"
        if not line.strip():
            raise invalid_params("The command is empty: say what to run.", field="command")
        terminal = uuid.uuid4().hex
        call = await begin_call(writer, turn.prompt, terminal, SHELL, line, 0)
        writer.describe(call, input=json.dumps({"command": line}))
        request = PermissionRequest(
            *(writer.context, call, writer.actor.principal.id, SHELL, {"command": line}),
            turn.asker,
        )
        is_permitted = (SHELL, line) in turn.permitted
        refusal = None if is_permitted else await turn.desk.decide(request)
        blocks = await open_result(writer, call)
        if refusal is not None:
            await blocks.fail(f"Not run: {refusal}")
            raise AntiphonError(ErrorCode.PERMISSION_DENIED, refusal)
        limit = _OUTPUT_BYTES if output_byte_limit is None else output_byte_limit
        made = self._terminals[terminal] = _AgentTerminal(blocks, min(limit, _OUTPUT_BYTES))
        made.task = asyncio.create_task(self._run(made, line), name=f"terminal of {terminal}")
        return terminal

    def block(self, terminal: str) -> str:
        """Return the block of the call of a terminal."""
        return self._find(terminal).blocks.call

    def output(self, terminal: str) -> TerminalOutput:
        """Return what a command has printed and how it ended, if it has."""
        found = self._find(terminal)
        signal = "SIGTERM" if found.has_ended and found.exit_code is None else None
        return TerminalOutput(found.output, found.truncated, found.exit_code, signal)

    async def wait(self, terminal: str) -> TerminalOutput:
        """Wait until a command has ended."""
        await asyncio.wait({self._find(terminal).task})
        return self.output(terminal)

    async def kill(self, terminal: str) -> None:
        """End a command; its output stays."""
        await self._end(self._find(terminal), f"Ended by {self._turn.presence.username}.")

    async def release(self, terminal: str) -> None:
        """End a command, and forget its terminal."""
        await self.kill(terminal)
        del self._terminals[terminal]

    async def close(self) -> None:
        """End every command."""
        every = tuple(self._terminals.values())
        await asyncio.gather(*(self._end(one, "Ended with the turn.") for one in every))
        self._terminals.clear()

    def _find(self, terminal: str) -> _AgentTerminal:
        found = self._terminals.get(terminal)
        if found is None:
            raise invalid_params(
                f"There is no terminal {quote(terminal)}: it was released, or its turn has ended.",
                field="terminalId",
            )
        return found

    async def _end(self, terminal: _AgentTerminal, why: str) -> None:
        terminal.task.cancel()
        await asyncio.wait({terminal.task})
        if not terminal.has_ended:
            terminal.has_ended = True
            await self._fail(terminal, why, INTERRUPTED)

    async def _run(self, terminal: _AgentTerminal, line: str) -> None:
        """Run a command into its blocks; when cancelled, they are still open."""
        turn, blocks, seconds = self._turn, terminal.blocks, self._turn.settings.shell_seconds

        async def nothing_to_save() -> list[str]:
            return []  # what agents write is saved already

        run = partial(
            blocks.run_command, line, nothing_to_save, turn.presence.write_in, terminal.add
        )
        try:
            async with asyncio.timeout(seconds):
                await turn.asker.run(Permission.OWN, run)
        except TimeoutError:
            why = f"Stopped: it had not ended after {seconds:g} seconds."
            await self._fail(terminal, why, "time_limit")
        except AskerDismissed as error:
            why = error.command_refusal("this turn answers a message")
            await self._fail(terminal, why, INTERRUPTED)
        except AntiphonError as error:
            _log.info("the command of %s was ended by somebody else: %s", blocks.call, error)
        else:
            terminal.exit_code = turn.writer.context.document.header(blocks.call).exit_code
        terminal.has_ended = True

    async def _fail(self, terminal: _AgentTerminal, why: str, reason: str) -> None:
        """Say why a command was ended, unless its agent may write nothing more."""
        writer = self._turn.writer
        if writer.kernel.sessions.dismissal(writer.actor) is None:
            try:
                await run_uninterrupted(terminal.blocks.fail(why, stop_reason=reason))
            except AntiphonError as error:
                _log.info("the command of %s was ended before: %s", terminal.blocks.call, error)
