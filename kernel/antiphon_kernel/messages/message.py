"""Messages of a conversation: immutable values, their calls and results.

Every result answers exactly one earlier open tool use. Texts of one message that follow each other
are sent as one text: neighbours of one role are one message already, so what a model sees of two
texts depends neither on the message that each was written in nor on the service that is asked.

An error of a message names its problem, and the message and field that have it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby
from typing import Any, ClassVar, Final, TypeAlias, TypeGuard, TypeVar, cast

from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.frozen_json import JsonObject
from antiphon_kernel.types.json_validation import has_whole_characters
from antiphon_kernel.types.media_types import is_media_type, is_sha256
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
    @contextmanager
    def located(*, index: int | None = None, path: str = "") -> Iterator[None]:
        """Say of errors raised inside which message they are about, or in which part they lie."""
        try:
            yield
        except MessageError as error:
            error.index = error.index if index is None else index
            error.path = ".".join(part for part in (path, error.path) if part)
            error.say_where()
            raise

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


class CorrelationError(MessageError):
    """A tool message without its call, or calls and results that do not match one to one."""

    def __init__(self, problem: MessageProblem, reason: str, *, path: str, call_id: str) -> None:
        super().__init__(problem, reason, path=path, call=truncate(call_id))
        self.call_id = call_id


@dataclass(frozen=True, slots=True)
class TextBlock:
    """Text, kept to the character."""

    text: str

    def __post_init__(self) -> None:
        require_text(self.text, "text")


@dataclass(frozen=True, slots=True)
class ToolUse:
    """A call of a tool by a model."""

    id: str
    """Ties the result to the call; unique on a path."""
    name: str
    parameters: JsonObject
    signature: str | None = None
    """A provider's, which goes back to it with the call."""

    def __post_init__(self) -> None:
        if self.signature is not None:
            require_text(self.signature, "signature")


@dataclass(frozen=True, slots=True)
class Thinking:
    """Reasoning of a model."""

    text: str
    signature: str | None = None
    """A provider's, over exactly this text."""

    def __post_init__(self) -> None:
        require_text(self.text, "text")
        if self.signature is not None:
            require_text(self.signature, "signature")


@dataclass(frozen=True, slots=True)
class _StoredFile:
    media_type: str
    """In lower case, without parameters: `image/png`."""
    hash: str
    """SHA-256 of the bytes, in lower-case hexadecimal."""

    def __post_init__(self) -> None:
        require_text(self.media_type, "media_type")
        if not is_media_type(self.media_type):
            expected = "a media type such as image/png"
            raise unexpected(expected, self.media_type, "media_type", MessageProblem.INVALID_VALUE)
        require_text(self.hash, "hash")
        if not is_sha256(self.hash):
            expected = "a SHA-256 in 64 lower-case digits"
            raise unexpected(expected, self.hash, "hash", MessageProblem.INVALID_VALUE)


@dataclass(frozen=True, slots=True)
class ImageBlock(_StoredFile):
    """An image, by the hash of its bytes."""


@dataclass(frozen=True, slots=True)
class DocumentBlock(_StoredFile):
    """A document such as a PDF, by the hash of its bytes."""


@dataclass(frozen=True, slots=True)
class UnknownBlock:
    """Content of a kind that has no block of its own; round-trips as it came."""

    raw: JsonObject


InputBlock: TypeAlias = TextBlock | ImageBlock | DocumentBlock | UnknownBlock
"""Content of user and tool messages."""

ContentBlock: TypeAlias = InputBlock | ToolUse | Thinking
"""Content of assistant messages."""


def is_blank(text: str) -> bool:
    """Whether a text has nothing but white space."""
    return not text or text.isspace()


def require_text(value: object, path: str) -> None:
    """Refuse what is not a string of whole characters.

    Raises:
        MessageError: with `path`.
    """
    if not isinstance(value, str):
        raise unexpected("a string", value, path)
    if not has_whole_characters(value):
        raise MessageError(
            MessageProblem.INVALID_VALUE,
            f"{quote(value)} holds half a surrogate pair; send whole characters",
            path=path,
        )


def require_visible(value: object, path: str, problem: MessageProblem) -> None:
    """Refuse what is not a string with something to see in it.

    Raises:
        MessageError: with `path`, and with `problem` if the string is blank.
    """
    require_text(value, path)
    if isinstance(value, str) and is_blank(value):
        raise unexpected("a string that is not blank", value, path, problem)


class MessageRole(StrEnum):
    """Role of a message in what a model reads."""

    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


@dataclass(frozen=True, slots=True)
class UserMessage:
    """A message of a person, or of whoever is not this model."""

    role: ClassVar = MessageRole.USER
    content: tuple[InputBlock, ...]


@dataclass(frozen=True, slots=True)
class AssistantMessage:
    """A message of the model; may consist of tool uses alone."""

    role: ClassVar = MessageRole.ASSISTANT
    content: tuple[ContentBlock, ...]


@dataclass(frozen=True, slots=True)
class ToolMessage:
    """Result of one tool use."""

    role: ClassVar = MessageRole.TOOL
    content: tuple[InputBlock, ...]
    tool_call_id: str
    """Id of the tool use that it answers."""
    is_error: bool = False
    """Whether the call failed."""


Message: TypeAlias = UserMessage | AssistantMessage | ToolMessage


@dataclass(frozen=True, slots=True)
class SystemMessage:
    """Instructions of the system, which are no message of the conversation itself."""

    content: tuple[InputBlock, ...]


def is_text_only(blocks: tuple[ContentBlock, ...]) -> TypeGuard[tuple[TextBlock, ...]]:
    """Whether every block of a message's content is text."""
    return all(isinstance(one, TextBlock) for one in blocks)


def tool_uses(message: Message | SystemMessage) -> tuple[ToolUse, ...]:
    """Return the tool uses of a message, in order."""
    return tuple([block for block in message.content if isinstance(block, ToolUse)])


def _trimmed(block: ContentBlock) -> ContentBlock:
    if isinstance(block, TextBlock) and (text := block.text.strip()) != block.text:
        return TextBlock(text)
    return block


def message_digest(message: Message) -> bytes:
    """Return a digest that messages have in common which are the same, and no others.

    The order of keys makes no difference, nor does white space at either end of a text, or a blank
    text beside others.
    """
    call = [message.tool_call_id, message.is_error] if isinstance(message, ToolMessage) else []
    parts: list[object] = [message.role, *call]
    trimmed = [_trimmed(block) for block in message.content]
    kept = [block for block in trimmed if not isinstance(block, TextBlock) or block.text]
    for block in kept or message.content:
        values = (getattr(block, name) for name in block.__match_args__)
        fields = [one.canonical() if isinstance(one, JsonObject) else one for one in values]
        parts.append([type(block).__name__, *fields])
    return hashlib.sha256(json.dumps(parts).encode()).digest()


class PathCorrelation:
    """Calls and results of a path, to which messages are added and taken off at its end."""

    def __init__(self) -> None:
        self._uses: dict[str, ToolUse] = {}
        self._answered: set[str] = set()

    @property
    def open(self) -> tuple[ToolUse, ...]:
        """Tool uses without a result, in order."""
        return tuple(use for use in self._uses.values() if use.id not in self._answered)

    def add(self, message: Message | SystemMessage) -> None:
        """Add a message behind the others; one that does not fit changes nothing.

        Raises:
            CorrelationError: if it is a result without an earlier open tool use, or has a tool use
                with the id of another one.
        """
        if isinstance(message, ToolMessage):
            call_id = message.tool_call_id
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
                    f"an earlier message answers the tool use {quote(call_id)}; a call has one"
                    " result",
                    path="tool_call_id",
                    call_id=call_id,
                )
            self._answered.add(call_id)
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

    def remove_last(self, message: Message | SystemMessage) -> None:
        """Take off the message that was added last."""
        if isinstance(message, ToolMessage):
            self._answered.remove(message.tool_call_id)
        for use in tool_uses(message):
            del self._uses[use.id]


def open_tool_uses(path: Sequence[Message]) -> tuple[ToolUse, ...]:
    """Return the tool uses of a path that have no result yet, in order.

    Raises:
        CorrelationError: with index and path of the first message that does not fit: a result
            without an earlier open tool use, or an id that an earlier tool use has.
    """
    correlation = PathCorrelation()
    for index, message in enumerate(path):
        with MessageError.located(index=index):
            correlation.add(message)
    return correlation.open


JOIN: Final = " "
"""Between two texts that become one."""

_Part = TypeVar("_Part")


def coalesce(parts: Sequence[_Part], join: str = JOIN, *, in_pieces: bool = False) -> list[_Part]:
    """Return the parts of a message with strings in a row as one; all else stays, and apart.

    Args:
        in_pieces: leave each string a part of its own, with the join at its beginning, so that no
            part changes with what follows it.
    """
    if len(parts) < 2:
        return list(parts)
    merged: list[_Part] = []
    for is_text, run in groupby(parts, lambda part: isinstance(part, str)):
        if not is_text:
            merged.extend(run)
            continue
        first, *others = cast(Iterable[str], run)
        pieces = [first, *(join + text for text in others)]
        merged += cast(list[_Part], pieces if in_pieces else ["".join(pieces)])
    return merged
