"""Correlation of calls and results: every result answers exactly one earlier open tool use."""

from __future__ import annotations

from collections.abc import Sequence

from antiphon_kernel.messages.blocks import ToolUse
from antiphon_kernel.messages.errors import CorrelationError, MessageError, MessageProblem
from antiphon_kernel.messages.message import Message, ToolMessage
from antiphon_kernel.types.quoting import quote


def open_tool_uses(path: Sequence[Message]) -> tuple[ToolUse, ...]:
    """Return the tool uses of a path that have no result yet, in order.

    Raises:
        CorrelationError: with index and path of the first message that does not fit: a result
            without an earlier open tool use, or an id that an earlier tool use has.
    """
    uses: dict[str, ToolUse] = {}
    answered: set[str] = set()
    for index, message in enumerate(path):
        with MessageError.located(index=index):
            if isinstance(message, ToolMessage):
                _answer(message.tool_call_id, uses, answered)
                continue
            for at, block in enumerate(message.content):
                if isinstance(block, ToolUse):
                    if block.id in uses:
                        raise CorrelationError(
                            MessageProblem.DUPLICATE_CALL_ID,
                            f"the id {quote(block.id)} belongs to an earlier tool use of the path;"
                            " give each one its own",
                            path=f"content[{at}].id",
                            call_id=block.id,
                        )
                    uses[block.id] = block
    return tuple(use for use in uses.values() if use.id not in answered)


def check_correlation(path: Sequence[Message]) -> None:
    """Refuse a path that is no request: with tool uses and results that do not match one to one.

    Raises:
        CorrelationError: as `open_tool_uses` does, or for the first tool use without a result.
    """
    if unanswered := open_tool_uses(path):
        first = unanswered[0]
        index, at = next(
            (index, at)
            for index, message in enumerate(path)
            for at, block in enumerate(message.content)
            if block is first
        )
        with MessageError.located(index=index):
            raise CorrelationError(
                MessageProblem.UNANSWERED_CALL,
                f"the tool use {quote(first.id)} of {quote(first.name)} has no result; a request"
                " has one for each",
                path=f"content[{at}]",
                call_id=first.id,
            )


def _answer(call_id: str, uses: dict[str, ToolUse], answered: set[str]) -> None:
    if call_id not in uses:
        raise CorrelationError(
            MessageProblem.NO_SUCH_CALL,
            f"no tool use before it has the id {quote(call_id)}; a result follows its call",
            path="tool_call_id",
            call_id=call_id,
        )
    if call_id in answered:
        raise CorrelationError(
            MessageProblem.ALREADY_ANSWERED,
            f"an earlier message answers the tool use {quote(call_id)}; a call has one result",
            path="tool_call_id",
            call_id=call_id,
        )
    answered.add(call_id)
