"""Equality and comparison form of messages: the worked cases, and the rules behind them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from antiphon_kernel.messages import (
    AssistantMessage,
    ContentBlock,
    DocumentBlock,
    ImageBlock,
    Message,
    MessageError,
    TextBlock,
    Thinking,
    ToolMessage,
    ToolUse,
    UserMessage,
    comparison_form,
    dump_message,
    message_digest,
    normalize_message,
)
from antiphon_kernel.types.frozen_json import JsonObject
from tests.kernel.messages.generated import EXAMPLES, MESSAGES

HASH = "0" * 64
CALL = ToolUse("c1", "calc", JsonObject({"x": 1}))


def says(*content: ContentBlock) -> AssistantMessage:
    return AssistantMessage(content)


def uses(call_id: str = "c1", name: str = "calc", **parameters: Any) -> AssistantMessage:
    return says(ToolUse(call_id, name, JsonObject(parameters)))


@pytest.mark.parametrize(
    ("content", "compared"),
    [
        pytest.param(("  ", "\n\n"), None, id='["  ","\\n\\n"] is dropped'),
        pytest.param((CALL, "   "), (CALL,), id='[T,"   "] is [T]'),
        pytest.param(("  hello  ", "  "), ("hello",), id='["  hello  ","  "] is ["hello"]'),
    ],
)
def test_comparison_form(content: tuple[Any, ...], compared: tuple[Any, ...] | None) -> None:
    def blocks(parts: tuple[Any, ...]) -> tuple[ContentBlock, ...]:
        return tuple(TextBlock(part) if isinstance(part, str) else part for part in parts)

    expected = None if compared is None else AssistantMessage(blocks(compared))
    assert comparison_form(AssistantMessage(blocks(content))) == expected


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param(uses(a=[1, 2]), uses(a=[2, 1]), id="[2,1] differs from [1,2]"),
        pytest.param(uses(), uses("c2"), id="same T with another id differs"),
        pytest.param(uses(), uses(name="Calc"), id="another name"),
        pytest.param(uses(a=1), uses(a=True), id="1 is not True"),
        pytest.param(uses(a=None), uses(), id="a missing key is not null"),
        pytest.param(UserMessage((TextBlock("a"),)), says(TextBlock("a")), id="another role"),
        pytest.param(
            ToolMessage((TextBlock("a"),), "c1"),
            ToolMessage((TextBlock("a"),), "c2"),
            id="result of another call",
        ),
        pytest.param(
            ToolMessage((TextBlock("a"),), "c1"),
            ToolMessage((TextBlock("a"),), "c1", is_error=True),
            id="failed result",
        ),
        pytest.param(
            says(ImageBlock("image/png", HASH)),
            says(DocumentBlock("image/png", HASH)),
            id="another block of the same fields",
        ),
        pytest.param(says(TextBlock("a")), says(Thinking("a")), id="thinking"),
        pytest.param(says(Thinking("a")), says(Thinking("a", "")), id="signature"),
        pytest.param(
            says(ToolUse("c1", "n", JsonObject())),
            says(ToolUse("c1", "n", JsonObject(), "s")),
            id="signature of a call",
        ),
        pytest.param(says(TextBlock("a")), says(TextBlock("a ")), id="white space"),
    ],
)
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
