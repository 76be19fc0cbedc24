"""Content blocks and messages: constructors refuse what is not valid, with the place of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest

from antiphon_kernel.messages import (
    AssistantMessage,
    ContentBlock,
    DocumentBlock,
    ImageBlock,
    MessageError,
    MessageProblem,
    TextBlock,
    Thinking,
    ToolMessage,
    ToolUse,
    UnknownBlock,
    UserMessage,
    is_text_only,
    tool_uses,
)
from antiphon_kernel.types.frozen_json import JsonObject

CALL = ToolUse("c1", "calc", JsonObject({"x": 2}))
IMAGE = ImageBlock("image/png", "0" * 64)
EVERY_BLOCK: tuple[ContentBlock, ...] = (
    TextBlock("a"),
    Thinking("b", "sig"),
    CALL,
    IMAGE,
    DocumentBlock("application/pdf", "f" * 64),
    UnknownBlock(JsonObject({"type": "citation"})),
)


def test_tool_uses_of_an_assistant_message_are_in_order() -> None:
    assert tool_uses(AssistantMessage(EVERY_BLOCK)) == (CALL,)
    assert tool_uses(UserMessage((TextBlock("a"),))) == ()


def test_text_only_is_false_with_another_block() -> None:
    assert is_text_only((TextBlock("a"), TextBlock(" ")))
    assert not is_text_only((TextBlock("a"), IMAGE))


@pytest.mark.parametrize("block", [CALL, Thinking("t")])
@pytest.mark.parametrize("make", [UserMessage, lambda content: ToolMessage(content, "c1")])
def test_user_and_tool_messages_refuse_blocks_of_the_assistant(
    make: Callable[[Any], object], block: ContentBlock
) -> None:
    with pytest.raises(MessageError) as refused:
        make((TextBlock("a"), block))
    assert refused.value.problem is MessageProblem.BLOCK_NOT_ALLOWED
    assert refused.value.path == "content[1]"


@pytest.mark.parametrize(
    ("make", "problem", "path"),
    [
        (lambda: UserMessage(()), MessageProblem.NO_CONTENT, "content"),
        (lambda: AssistantMessage(()), MessageProblem.NO_CONTENT, "content"),
        (lambda: UserMessage(cast(Any, "text")), MessageProblem.WRONG_SHAPE, "content"),
        (lambda: UserMessage(cast(Any, [IMAGE])), MessageProblem.WRONG_SHAPE, "content"),
        (
            lambda: ToolMessage((IMAGE,), " \n"),
            MessageProblem.BLANK_TOOL_CALL_ID,
            "tool_call_id",
        ),
        (lambda: ToolUse(" ", "n", JsonObject()), MessageProblem.BLANK_CALL_ID, "id"),
        (lambda: ToolUse("i", "", JsonObject()), MessageProblem.BLANK_TOOL_NAME, "name"),
        (lambda: ToolUse("i", "n", cast(Any, {})), MessageProblem.WRONG_SHAPE, "parameters"),
        (lambda: TextBlock(cast(Any, None)), MessageProblem.WRONG_SHAPE, "text"),
        (lambda: TextBlock("a\ud800"), MessageProblem.INVALID_VALUE, "text"),
        (lambda: Thinking("a", "\udfff"), MessageProblem.INVALID_VALUE, "signature"),
        (lambda: ImageBlock("image/png", "A" * 64), MessageProblem.INVALID_VALUE, "hash"),
        (lambda: ImageBlock("image/png", "0" * 65), MessageProblem.INVALID_VALUE, "hash"),
        (lambda: ImageBlock("png", "0" * 64), MessageProblem.INVALID_VALUE, "media_type"),
        (lambda: UnknownBlock(cast(Any, [])), MessageProblem.WRONG_SHAPE, "raw"),
    ],
)
def test_constructor_with_an_invalid_value_names_problem_and_field(
    make: Callable[[], object], problem: MessageProblem, path: str
) -> None:
    with pytest.raises(MessageError) as refused:
        make()
    assert (refused.value.problem, refused.value.path) == (problem, path)


def test_error_located_in_a_list_names_index_and_path() -> None:
    with (
        pytest.raises(MessageError) as refused,
        MessageError.located(index=3),
        MessageError.located(path="content[1]"),
    ):
        ToolUse("", "n", JsonObject())
    error = refused.value
    assert (error.index, error.path) == (3, "content[1].id")
    assert error.message.startswith("Message 3, content[1].id: expected")
    assert error.as_json()["index"] == 3 and error.as_json()["path"] == "content[1].id"
