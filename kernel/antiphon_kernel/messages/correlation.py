"""Correlation of calls and results: every result answers exactly one earlier open tool use."""

from __future__ import annotations

from collections.abc import Sequence

from antiphon_kernel.messages.errors import CorrelationError, MessageError, MessageProblem
from antiphon_kernel.messages.message import Message, ToolMessage, ToolUse, tool_uses
from antiphon_kernel.types.quoting import quote


class PathCorrelation:
    """Calls and results of a path, to which messages are added and taken off at its end."""

    def __init__(self) -> None:
        self._uses: dict[str, ToolUse] = {}
        self._answered: set[str] = set()

    @property
    def open(self) -> tuple[ToolUse, ...]:
        """Tool uses without a result, in order."""
        return tuple(use for use in self._uses.values() if use.id not in self._answered)

    def add(self, message: Message) -> None:
        """Add a message behind the others; one that does not fit changes nothing.

        Raises:
            CorrelationError: if it is a result without an earlier open tool use, or has a tool use
                with the id of another one.
        """
        if isinstance(message, ToolMessage):
            self._answer(message.tool_call_id)
            return
        added: dict[str, ToolUse] = {}
        for at, block in enumerate(message.content):
            if isinstance(block, ToolUse):
                if block.id in self._uses or block.id in added:
                    raise CorrelationError(
                        MessageProblem.DUPLICATE_CALL_ID,
                        f"the id {quote(block.id)} belongs to an earlier tool use of the path;"
                        " give each one its own",
                        path=f"content[{at}].id",
                        call_id=block.id,
                    )
                added[block.id] = block
        self._uses.update(added)

    def remove_last(self, message: Message) -> None:
        """Take off the message that was added last."""
        if isinstance(message, ToolMessage):
            self._answered.remove(message.tool_call_id)
        for use in tool_uses(message):
            del self._uses[use.id]

    def _answer(self, call_id: str) -> None:
        if call_id not in self._uses:
            raise CorrelationError(
                MessageProblem.NO_SUCH_CALL,
                f"no tool use before it has the id {quote(call_id)}; a result follows its call",
                path="tool_call_id",
                call_id=call_id,
            )
        if call_id in self._answered:
            raise CorrelationError(
                MessageProblem.ALREADY_ANSWERED,
                f"an earlier message answers the tool use {quote(call_id)}; a call has one result",
                path="tool_call_id",
                call_id=call_id,
            )
        self._answered.add(call_id)


def open_tool_uses(path: Sequence[Message]) -> tuple[ToolUse, ...]:
    """Return the tool uses of a path that have no result yet, in order.

    Raises:
        CorrelationError: with index and path of the first message that does not fit: a result
            without an earlier open tool use, or an id that an earlier tool use has.
    """
    correlation = PathCorrelation()
    for index, message in enumerate(path):
        try:
            correlation.add(message)
        except MessageError:
            with MessageError.located(index=index):
                raise
    return correlation.open


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
