"""Errors of messages: each names its problem, and the message and field that have it."""

from __future__ import annotations

from contextlib import AbstractContextManager
from enum import StrEnum
from typing import Any

from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.quoting import quote, truncate


class MessageProblem(StrEnum):
    """Problem that keeps a message, or a list of messages, from being valid."""

    WRONG_SHAPE = "wrong_shape"
    """A value of another type than its place takes."""
    UNKNOWN_ROLE = "unknown_role"
    UNKNOWN_FIELD = "unknown_field"
    NO_CONTENT = "no_content"
    """Nothing is left of the content, or there was none."""
    BLOCK_NOT_ALLOWED = "block_not_allowed"
    """A content block that a message of this role does not hold."""
    BLANK_CALL_ID = "blank_call_id"
    BLANK_TOOL_NAME = "blank_tool_name"
    BLANK_TOOL_CALL_ID = "blank_tool_call_id"
    INVALID_VALUE = "invalid_value"
    """No JSON, half a surrogate pair, or no hash or media type."""
    INVALID_ARGUMENTS = "invalid_arguments"
    """Arguments of a tool call that are not a JSON object."""
    DUPLICATE_CALL_ID = "duplicate_call_id"
    """Two tool uses with one id on a path."""
    NO_SUCH_CALL = "no_such_call"
    """A result of a call that does not stand before it."""
    ALREADY_ANSWERED = "already_answered"
    UNANSWERED_CALL = "unanswered_call"


class MessageError(AntiphonError):
    """A message is not valid; `index` and `path` say which part of which one."""

    def __init__(
        self, problem: MessageProblem, reason: str, *, path: str = "", **details: Any
    ) -> None:
        super().__init__(
            ErrorCode.INVALID_PARAMS, reason, problem=str(problem), path=path, **details
        )
        self.problem = problem
        self.reason = reason
        self.path = path
        """The part of the message: `content[2].text`."""
        self.index: int | None = None
        """The message in its list, counted from 0."""
        self.say_where()

    @staticmethod
    def located(*, index: int | None = None, path: str = "") -> AbstractContextManager[None]:
        """Say of errors raised inside which message they are about, or in which part they lie."""
        return _Location(index, path)

    def say_where(self) -> None:
        """Begin the message with the place of the problem."""
        where = ([] if self.index is None else [f"message {self.index}"]) + (
            [self.path] if self.path else []
        )
        self.message = f"{', '.join(where)}: {self.reason}" if where else self.reason
        self.message = self.message[:1].upper() + self.message[1:]
        self.args = (self.message,)
        self.details = {**self.details, "index": self.index, "path": self.path or None}


def unexpected(
    expected: str,
    found: object,
    path: str,
    problem: MessageProblem = MessageProblem.WRONG_SHAPE,
) -> MessageError:
    """Return the error for a value that is not what its place takes."""
    return MessageError(problem, f"expected {expected}, found {quote(found)}", path=path)


class _Location(AbstractContextManager[None]):
    """Made for each message and block that is read, so without a generator."""

    __slots__ = ("_index", "_path")

    def __init__(self, index: int | None, path: str) -> None:
        self._index = index
        self._path = path

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if isinstance(error, MessageError):
            if self._index is not None:
                error.index = self._index
            error.path = ".".join(part for part in (self._path, error.path) if part)
            error.say_where()


class ToolArgumentParseError(MessageError):
    """Arguments of a tool call that are not a JSON object."""

    def __init__(self, call_id: str, name: str, raw: str, reason: str) -> None:
        super().__init__(
            MessageProblem.INVALID_ARGUMENTS,
            f"the arguments of the call {quote(call_id)} of {quote(name)} must be a JSON object,"
            f" and are {quote(raw)}: {reason}. Send an object, {{}} for none.",
            path="arguments",
            call=truncate(call_id),
            tool=truncate(name),
            found=truncate(raw),
        )
        self.call_id = call_id
        self.name = name
        self.raw = raw


class CorrelationError(MessageError):
    """A tool message without its call, or calls and results that do not match one to one."""

    def __init__(self, problem: MessageProblem, reason: str, *, path: str, call_id: str) -> None:
        super().__init__(problem, reason, path=path, call=truncate(call_id))
        self.call_id = call_id
