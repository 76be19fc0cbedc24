"""Content blocks and messages: what constructors refuse and where, and which are equal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest
from hypothesis import given

from antiphon_kernel.messages import (
    AssistantMessage,
    ContentBlock,
    DocumentBlock,
    ImageBlock,
    Message,
    MessageError,
    MessageProblem,
    TextBlock,
    Thinking,
    ToolMessage,
    ToolUse,
    UnknownBlock,
    UserMessage,
    comparison_form,
    dump_message,
    is_text_only,
    message_digest,
    normalize_message,
    tool_uses,
)
from antiphon_kernel.types.frozen_json import JsonObject
from tests.kernel.messages.generated import EXAMPLES, MESSAGES

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
        (lambda: UserMessage(()), "no_content", "content"),
        (lambda: AssistantMessage(()), "no_content", "content"),
        (lambda: UserMessage(cast(Any, "text")), "wrong_shape", "content"),
        (lambda: UserMessage(cast(Any, [IMAGE])), "wrong_shape", "content"),
        (
            lambda: ToolMessage((IMAGE,), " \n"),
            "blank_tool_call_id",
            "tool_call_id",
        ),
        (lambda: ToolUse(" ", "n", JsonObject()), "blank_call_id", "id"),
        (lambda: ToolUse("i", "", JsonObject()), "blank_tool_name", "name"),
        (lambda: ToolUse("i", "n", cast(Any, {})), "wrong_shape", "parameters"),
        (lambda: TextBlock(cast(Any, None)), "wrong_shape", "text"),
        (lambda: TextBlock("a\ud800"), "invalid_value", "text"),
        (lambda: Thinking("a", "\udfff"), "invalid_value", "signature"),
        (lambda: ImageBlock("image/png", "A" * 64), "invalid_value", "hash"),
        (lambda: ImageBlock("image/png", "0" * 65), "invalid_value", "hash"),
        (lambda: ImageBlock("png", "0" * 64), "invalid_value", "media_type"),
        (lambda: UnknownBlock(cast(Any, [])), "wrong_shape", "raw"),
    ],
)
def test_constructor_with_an_invalid_value_names_problem_and_field(
    make: Callable[[], object], problem: str, path: str
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


# Equality and comparison form


def says(*content: ContentBlock) -> AssistantMessage:
    return AssistantMessage(content)


def uses(call_id: str = "c1", name: str = "calc", **parameters: Any) -> AssistantMessage:
    return says(ToolUse(call_id, name, JsonObject(parameters)))


COMPARED = {
    '["  ","\\n\\n"] is dropped': (("  ", "\n\n"), None),
    '[T,"   "] is [T]': ((CALL, "   "), (CALL,)),
    '["  hello  ","  "] is ["hello"]': (("  hello  ", "  "), ("hello",)),
}


@pytest.mark.parametrize(("content", "compared"), COMPARED.values(), ids=COMPARED)
def test_comparison_form(content: tuple[Any, ...], compared: tuple[Any, ...] | None) -> None:
    def blocks(parts: tuple[Any, ...]) -> tuple[ContentBlock, ...]:
        return tuple(TextBlock(part) if isinstance(part, str) else part for part in parts)

    expected = None if compared is None else AssistantMessage(blocks(compared))
    assert comparison_form(AssistantMessage(blocks(content))) == expected


DIFFERENT = {
    "[2,1] differs from [1,2]": (uses(a=[1, 2]), uses(a=[2, 1])),
    "same T with another id differs": (uses(), uses("c2")),
    "another name": (uses(), uses(name="Calc")),
    "1 is not True": (uses(a=1), uses(a=True)),
    "a missing key is not null": (uses(a=None), uses()),
    "another role": (UserMessage((TextBlock("a"),)), says(TextBlock("a"))),
    "result of another call": (
        ToolMessage((TextBlock("a"),), "c1"),
        ToolMessage((TextBlock("a"),), "c2"),
    ),
    "failed result": (
        ToolMessage((TextBlock("a"),), "c1"),
        ToolMessage((TextBlock("a"),), "c1", is_error=True),
    ),
    "another block of the same fields": (says(IMAGE), says(DocumentBlock("image/png", "0" * 64))),
    "thinking": (says(TextBlock("a")), says(Thinking("a"))),
    "signature": (says(Thinking("a")), says(Thinking("a", ""))),
    "signature of a call": (
        says(ToolUse("c1", "n", JsonObject())),
        says(ToolUse("c1", "n", JsonObject(), "s")),
    ),
    "white space": (says(TextBlock("a")), says(TextBlock("a "))),
}


@pytest.mark.parametrize(("one", "other"), DIFFERENT.values(), ids=DIFFERENT)
def test_different_messages_are_not_equal(one: Message, other: Message) -> None:
    assert one != other and message_digest(one) != message_digest(other)


@EXAMPLES
@given(MESSAGES, MESSAGES, MESSAGES)
def test_equality_is_an_equivalence_that_the_digest_knows(
    one: Message, other: Message, third: Message
) -> None:
    assert one == one
    assert (one == other) == (other == one) == (message_digest(one) == message_digest(other))
    assert not (one == other and other == third) or one == third


def reversed_keys(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: reversed_keys(value[key]) for key in reversed(value)}
    return [reversed_keys(item) for item in value] if isinstance(value, list) else value


@EXAMPLES
@given(MESSAGES)
def test_equality_ignores_key_order(message: Message) -> None:
    try:
        normal = normalize_message(message)
    except MessageError:
        return
    read = normalize_message(reversed_keys(dump_message(normal)))
    assert read == normal and message_digest(read) == message_digest(normal)


@EXAMPLES
@given(MESSAGES)
def test_comparison_form_of_a_comparison_form_is_the_same_object(message: Message) -> None:
    compared = comparison_form(message)
    assert compared is None or comparison_form(compared) is compared
