"""A shell command as two blocks: the call, and the result that answers it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from antiphon_kernel.layout import ROUND
from antiphon_kernel.turns.block_writer import BlockWriter
from antiphon_kernel.turns.kept_output import KeptOutput
from antiphon_kernel.turns.shell import run_shell, wants_terminal
from antiphon_kernel.types.enums import BlockKind, Status, ToolKind
from antiphon_kernel.types.errors import AntiphonError
from antiphon_kernel.uninterruptible import run_uninterrupted

_log = logging.getLogger(__name__)

SHELL = "shell"
"""The tool's name in blocks and for models."""

NO_TERMINAL = "[The command asked for a terminal; commands here run without one.]"
"""Stands below the output of a command that has failed for want of one."""


@dataclass(frozen=True, slots=True)
class CallBlocks:
    """A call and the block that its result goes to."""

    call: str
    result: str
    began: float
    """Reading of the monotonic clock when it began to run."""
    output: list[str] = field(default_factory=list)
    """Output of the command that has been written."""
    kept: KeptOutput = field(default_factory=KeptOutput)
    """Output of the command so far."""


async def open_call(writer: BlockWriter, command: str, call_id: str) -> CallBlocks:
    """Create the blocks of a person's command that is about to run; both, even if cancelled."""

    async def create() -> CallBlocks:
        call = await writer.create(
            BlockKind.TOOL_CALL,
            None,
            command,
            input={"command": command},
            **_call_fields(SHELL, call_id),
        )
        return await open_result(writer, call)

    return await run_uninterrupted(create())


async def begin_call(
    writer: BlockWriter, parent: str, call_id: str, name: str, content: str, made_in: int
) -> str:
    """Create the block of a model's call, which is pending until it runs.

    Args:
        name: of the tool.
        content: the arguments, as far as they are known.
        made_in: the round of the turn that the model makes it in.
    """
    fields = {**_call_fields(name, call_id), ROUND: made_in}
    return await writer.create(BlockKind.TOOL_CALL, parent, content, status="pending", **fields)


async def open_result(writer: BlockWriter, call: str) -> CallBlocks:
    """Create the block of a call's result; both run from now on, even if this is cancelled."""

    async def create() -> CallBlocks:
        await writer.begin(call)
        # Behind its own call, also where the model has made several at once.
        fields = _result_fields(writer, call)
        result = await writer.create(BlockKind.TOOL_RESULT, call, after=call, **fields)
        # It may stay empty for long; a crash meanwhile ends what is running, not what is pending.
        await writer.begin(result)
        return CallBlocks(call, result, writer.kernel.clock.monotonic())

    return await run_uninterrupted(create())


def _call_fields(name: str, call_id: str) -> dict[str, Any]:
    kind = ToolKind.SHELL if name == SHELL else ToolKind.BUILTIN
    return {"tool_kind": kind, "tool_name": name, "tool_call_id": call_id}


def _result_fields(writer: BlockWriter, call: str) -> dict[str, Any]:
    header = writer.context.document.header(call)
    names = ("tool_kind", "tool_name", "tool_call_id")
    return {name: getattr(header, name) for name in names}


async def run_command(
    writer: BlockWriter,
    blocks: CallBlocks,
    command: str,
    on_start: Callable[[str], None] = lambda result: None,
) -> None:
    """Run a shell command into its blocks; `on_start` is told where the output goes.

    While output is held back, the result is marked as truncated.

    When cancelled, the processes are gone and the blocks are still open: the canceller knows why.
    """
    kept = blocks.kept

    async def show(text: str) -> None:
        was_holding_back = kept.is_holding_back
        await _write(writer, blocks, kept.add(text))
        if kept.is_holding_back and not was_holding_back:
            writer.describe(blocks.result, truncated=True)

    on_start(blocks.result)
    try:
        exit_code = await run_shell(command, writer.kernel.project, show)
    except (OSError, ValueError) as error:
        await fail_call(writer, blocks, f"The command could not be started: {error}")
        return
    except asyncio.CancelledError:
        if writer.kernel.sessions.dismissal(writer.actor) is None:
            try:
                await run_uninterrupted(_write_rest(writer, blocks))
            except AntiphonError as error:  # the block was ended by somebody else
                _log.warning("the end of the output of %s is not kept: %s", blocks.call, error)
        raise
    await _write_rest(writer, blocks)
    failed = exit_code != 0
    if failed and wants_terminal("".join(blocks.output)):
        await _write(writer, blocks, _own_line(blocks, NO_TERMINAL))
    await writer.finish(blocks.result, Status.DONE, exit_code=exit_code, is_error=failed)
    status = Status.ERROR if failed else Status.DONE
    await end_call(writer, blocks, status, exit_code=exit_code)


def _own_line(blocks: CallBlocks, sentence: str) -> str:
    output = "".join(blocks.output[-1:])
    return f"{sentence}\n" if not output or output.endswith("\n") else f"\n{sentence}\n"


async def _write(writer: BlockWriter, blocks: CallBlocks, text: str) -> None:
    if text:
        blocks.output.append(text)
        await writer.append(blocks.result, text)


async def _write_rest(writer: BlockWriter, blocks: CallBlocks) -> None:
    """Write the output that was held back, and whether that is all of it."""
    if blocks.kept.is_holding_back:
        await _write(writer, blocks, blocks.kept.take_rest())
        writer.describe(blocks.result, truncated=blocks.kept.left_out > 0)


async def end_call(
    writer: BlockWriter, blocks: CallBlocks, status: Status, **fields: object
) -> None:
    """End the block of a call and say how long it ran."""
    seconds = writer.kernel.clock.monotonic() - blocks.began
    await writer.finish(blocks.call, status, duration_ms=round(seconds * 1000), **fields)


async def fail_call(
    writer: BlockWriter, blocks: CallBlocks, message: str, **fields: object
) -> None:
    """Answer a call that could not be carried out, or not to its end."""
    await _write_rest(writer, blocks)
    output = "".join(blocks.output)
    if output and not output.endswith("\n"):
        message = f"\n{message}"
    await writer.append(blocks.result, message)
    await writer.finish(blocks.result, Status.ERROR, is_error=True, **fields)
    await end_call(writer, blocks, Status.ERROR, is_error=True, **fields)
