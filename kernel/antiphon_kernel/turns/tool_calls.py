"""Calls of tools that a model has made in one round, and their results."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from antiphon_kernel.contexts import WriterPresence
from antiphon_kernel.document.header import json_object
from antiphon_kernel.layout import ROUND
from antiphon_kernel.providers.events import ToolCallEvent
from antiphon_kernel.storage import ToolPermission
from antiphon_kernel.turns.asker import Asker, AskerDismissed
from antiphon_kernel.turns.block_writer import BlockWriter
from antiphon_kernel.turns.model_tools import ModelTools, PreparedCall, error_text
from antiphon_kernel.turns.permission import PermissionDesk, PermissionRequest
from antiphon_kernel.turns.shell_call import CallBlocks, KeptOutput, open_result
from antiphon_kernel.turns.turn_limits import TurnLimits
from antiphon_kernel.types.constants import INTERRUPTED
from antiphon_kernel.types.enums import Status
from antiphon_kernel.types.errors import AntiphonError, ErrorCode

_log = logging.getLogger(__name__)

CUT_OFF = "The answer was cut off before this call was whole, so it was not run: make it again."
"""Result of a call whose arguments did not come to their end."""

ENDED = "Not run: the turn ended before."
"""Result of a call whose turn failed before it could be run."""


@dataclass(eq=False, slots=True)
class RoundCall:
    """A call whose block is there, from the moment in which the model began to write it."""

    id: str
    """Id of the provider's."""
    block: str
    event: ToolCallEvent | None = None
    """The whole call; None as long as the model writes it."""
    problem: str | None = None
    """Reason why it cannot be kept, and is not run."""


@dataclass(eq=False, slots=True)
class ToolCalls:
    """Answers the calls of a turn's rounds, with the rights of whoever asked."""

    writer: BlockWriter
    presence: WriterPresence
    asker: Asker
    tools: ModelTools
    desk: PermissionDesk
    limits: TurnLimits

    async def answer_all(self, calls: Sequence[RoundCall]) -> None:
        """Run each call and write its result: side by side if they all only read, else in order."""
        prepared = [(call, self._prepare(call)) for call in calls]
        reads = [one for _, one in prepared if not isinstance(one, str) and one.is_read_only]
        if len(calls) > 1 and len(reads) == len(calls):
            async with asyncio.TaskGroup() as group:
                for call, one in prepared:
                    group.create_task(self._answer(call, one))
        else:
            for call, one in prepared:
                await self._answer(call, one)

    async def close(self, calls: Sequence[RoundCall]) -> None:
        """Answer the calls of a turn that has failed, as far as they have no result yet."""
        for call in calls:
            tree, document = self.writer.context.block_tree, self.writer.context.document
            is_open = not Status(document.header(call.block).status).terminal
            if is_open and not list(tree.descendants(call.block, 1)):
                blocks = await open_result(self.writer, call.block)
                await blocks.fail(CUT_OFF if call.event is None else ENDED)

    def _prepare(self, call: RoundCall) -> PreparedCall | str:
        """Return a call that may be run, or why it may not."""
        if call.event is None:
            return call.problem or CUT_OFF
        try:
            return self.tools.prepare(call.event.name, call.event.input)
        except AntiphonError as error:
            return error_text(error)

    async def _answer(self, call: RoundCall, prepared: PreparedCall | str) -> None:
        """Run a call and write its result, unless somebody ends one of the two blocks before."""
        try:
            await self._run_and_write(call, prepared)
        except AntiphonError as error:
            if error.code is not ErrorCode.INVALID_TRANSITION:
                raise
            _log.info("call %s was ended by somebody else: %s", call.block, error)
            for block in (*self.writer.context.block_tree.descendants(call.block, 1), call.block):
                await self.writer.finish(block, Status.ERROR, is_error=True)

    async def _run_and_write(self, call: RoundCall, prepared: PreparedCall | str) -> None:
        refusal = prepared if isinstance(prepared, str) else await self._refusal(call, prepared)
        blocks = await open_result(self.writer, call.block)
        if refusal is not None or isinstance(prepared, str):
            await blocks.fail(refusal or "")
            return
        try:
            await self.asker.run(prepared.needs, partial(self._run, blocks, prepared))
        except AskerDismissed as error:
            fields = {"stop_reason": INTERRUPTED} if error.has_begun else {}
            await blocks.fail(_dismissal(error, prepared), **fields)

    async def _refusal(self, call: RoundCall, prepared: PreparedCall) -> str | None:
        """Return why a call is not allowed; None if it is."""
        model = self.writer.actor.principal.id
        reason = await self.desk.decide(
            PermissionRequest(
                self.writer.context,
                call.block,
                model,
                prepared.name,
                prepared.arguments,
                self.asker,
            )
        )
        return None if reason is None else f"Not run: {reason}"

    async def _run(self, blocks: CallBlocks, call: PreparedCall) -> None:
        limits = self.limits
        seconds = limits.shell_seconds if call.tool is None else limits.tool_seconds
        try:
            async with asyncio.timeout(seconds):
                if call.tool is None:
                    command = str(call.arguments["command"])
                    await blocks.run_command(command, self.presence.write_in)
                    return
                text = await self.tools.run(self.writer.actor, call)
        except TimeoutError:
            message = f"Stopped: it had not ended after {seconds:g} seconds."
            await blocks.fail(message, stop_reason="time_limit")
        except AntiphonError as error:
            await blocks.fail(error_text(error))
        else:
            kept = KeptOutput(limits.output_code_points)
            await self.writer.append(blocks.result, kept.add(text) + kept.take_rest())
            await self.writer.finish(blocks.result, Status.DONE, truncated=kept.left_out > 0)
            await blocks.end(Status.DONE)


def _dismissal(error: AskerDismissed, call: PreparedCall) -> str:
    if call.tool is None:
        return error.command_refusal("this turn answers a message")
    begun = "Ended" if error.has_begun else "Not run"
    return (
        f"{begun}: this turn answers a message of {error.asker}, and {call.name} takes the right"
        f" to {call.needs}."
    )


def resumed_calls(
    writer: BlockWriter, undecided: Sequence[ToolPermission]
) -> tuple[int, list[RoundCall]]:
    """Return the round in which calls were made that still wait for people, and the calls."""
    calls, number = [], 0
    for one in undecided:
        writer.adopt(one.call)
        header = writer.context.document.header(one.call)
        made_in = header.metadata.get(ROUND)
        number = max(number, made_in if isinstance(made_in, int) else 0)
        call_id = header.tool_call_id or one.call
        arguments = json_object(header.input or "{}")
        calls.append(RoundCall(call_id, one.call, ToolCallEvent(call_id, one.tool, arguments)))
    return number, calls
