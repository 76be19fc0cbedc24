"""Normal form of messages: the worked cases, and the rules behind them."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given

from antiphon_kernel.messages import (
    AssistantMessage,
    Message,
    MessageError,
    MessageProblem,
    TextBlock,
    Thinking,
    ToolArgumentParseError,
    ToolMessage,
    ToolUse,
    UnknownBlock,
    UserMessage,
    dump_message,
    normalize_message,
    normalize_messages,
)
from antiphon_kernel.types.frozen_json import JsonObject
from tests.kernel.messages.generated import ANYTHING, EXAMPLES, LEGACY, MESSAGES


def call(arguments: object, call_id: object = "c1", name: object = "calc") -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    return {"id": call_id, "type": "function", "function": function}


def assistant(content: object, *calls: object) -> dict[str, Any]:
    return {"role": "assistant", "content": content, "tool_calls": list(calls)}


def use(**parameters: Any) -> ToolUse:
    return ToolUse("c1", "calc", JsonObject(parameters))


@pytest.mark.parametrize(
    ("value", "content"),
    [
        pytest.param(
            {"role": "user", "content": "  Hello  "},
            (TextBlock("  Hello  "),),
            id="user text is kept to the character",
        ),
        pytest.param(
            assistant("Run a calc", call('{"x":2, "y":3}')),
            (TextBlock("Run a calc"), use(x=2, y=3)),
            id="text, then the call",
        ),
        pytest.param(assistant(None, call("{}")), (use(),), id="null content with a call"),
        pytest.param(assistant("   ", call("{}")), (use(),), id="blank content with a call"),
        pytest.param(assistant(None, call("")), (use(),), id="empty arguments are {}"),
        pytest.param(assistant(None, call(" \n\t ")), (use(),), id="blank arguments are {}"),
        pytest.param(
            assistant([{"type": "text", "text": "a"}], call("")),
            (TextBlock("a"), use()),
            id="content blocks with calls beside them",
        ),
    ],
)
def test_normal_form_of_a_legacy_message(value: object, content: tuple[object, ...]) -> None:
    assert normalize_message(value).content == content


def test_tool_message_keeps_the_id_and_whether_it_failed() -> None:
    value = {"role": "tool", "content": "42\n", "tool_call_id": "c1"}
    assert normalize_message(value) == ToolMessage((TextBlock("42\n"),), "c1")
    assert normalize_message(value | {"is_error": True}) == ToolMessage(
        (TextBlock("42\n"),), "c1", is_error=True
    )


@pytest.mark.parametrize(
    "raw",
    ["not-json", "[1, 2, 3]", "null", "42", "true", '"a string"', '{"a": NaN}', '{"a":1,"a":2}'],
)
def test_arguments_that_are_no_object_are_refused_with_id_name_and_raw_text(raw: str) -> None:
    with pytest.raises(ToolArgumentParseError) as refused:
        normalize_messages([{"role": "user", "content": "a"}, assistant(None, call(raw))])
    error = refused.value
    assert (error.call_id, error.name, error.raw) == ("c1", "calc", raw)
    assert (error.index, error.path) == (1, "tool_calls[0].function.arguments")


@pytest.mark.parametrize(
    ("value", "problem", "path"),
    [
        pytest.param(
            assistant(None, call("", " ")),
            MessageProblem.BLANK_CALL_ID,
            "tool_calls[0].id",
            id="blank call id",
        ),
        pytest.param(
            assistant(None, call("", "c1", "")),
            MessageProblem.BLANK_TOOL_NAME,
            "tool_calls[0].function.name",
            id="blank name",
        ),
        pytest.param(
            {"role": "tool", "content": "a", "tool_call_id": "\t"},
            MessageProblem.BLANK_TOOL_CALL_ID,
            "tool_call_id",
            id="blank tool_call_id",
        ),
        pytest.param(
            {"role": "tool", "content": None, "tool_call_id": "c1"},
            MessageProblem.NO_CONTENT,
            "content",
            id="tool content null",
        ),
        pytest.param(
            {"role": "tool", "content": " \n", "tool_call_id": "c1"},
            MessageProblem.NO_CONTENT,
            "content",
            id="tool content blank",
        ),
        pytest.param(assistant("  "), MessageProblem.NO_CONTENT, "content", id="nothing left"),
        pytest.param(
            {"role": "user", "content": [{"type": "text", "text": " "}]},
            MessageProblem.NO_CONTENT,
            "content",
            id="nothing left of content blocks",
        ),
        pytest.param(
            {"role": "system", "content": "be brief"},
            MessageProblem.UNKNOWN_ROLE,
            "role",
            id="role system in a list of messages",
        ),
        pytest.param(
            {"role": "user", "content": "a", "tool_calls": [call("")]},
            MessageProblem.BLOCK_NOT_ALLOWED,
            "tool_calls[0]",
            id="call of a user",
        ),
        pytest.param(
            {"role": "user", "content": "a", "name": "anna"},
            MessageProblem.UNKNOWN_FIELD,
            "name",
            id="field that has no place",
        ),
        pytest.param(
            {"role": "user", "content": [{"type": "text", "text": " "}, 7]},
            MessageProblem.WRONG_SHAPE,
            "content[1]",
            id="block that is none",
        ),
        pytest.param(
            {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text"}]},
            MessageProblem.WRONG_SHAPE,
            "content[1].text",
            id="text block without text",
        ),
        pytest.param(
            {"role": "user", "content": "\ud800"},
            MessageProblem.INVALID_VALUE,
            "content[0].text",
            id="half a surrogate pair",
        ),
        pytest.param(
            {"role": "user", "content": [{"type": "sound", "at": float("nan")}]},
            MessageProblem.INVALID_VALUE,
            "content[0]",
            id="NaN",
        ),
        pytest.param("hello", MessageProblem.WRONG_SHAPE, "", id="no object"),
    ],
)
def test_message_that_has_no_normal_form_is_refused_with_index_and_path(
    value: object, problem: MessageProblem, path: str
) -> None:
    with pytest.raises(MessageError) as refused:
        normalize_messages([{"role": "user", "content": "a"}, value])
    error = refused.value
    assert (error.problem, error.index, error.path) == (problem, 1, path)
    assert error.as_json()["index"] == 1


def test_message_that_is_valid_already_is_the_same_object() -> None:
    message = AssistantMessage((TextBlock(" a "), use(x=1), Thinking("")))
    assert normalize_message(message) is message


def test_block_of_another_type_is_kept_whole() -> None:
    block = {"type": "citation", "source": {"page": 3}}
    message = normalize_message({"role": "user", "content": [block]})
    assert message == UserMessage((UnknownBlock(JsonObject(block)),))


@EXAMPLES
@given(MESSAGES)
def test_written_message_is_read_as_its_normal_form(message: Message) -> None:
    if all(isinstance(block, TextBlock) and not block.text.strip() for block in message.content):
        with pytest.raises(MessageError):
            normalize_message(dump_message(message))
        return
    normal = normalize_message(message)
    assert normalize_message(dump_message(message)) == normal
    assert normalize_message(dump_message(normal)) == normal


@EXAMPLES
@given(ANYTHING)
def test_normalizing_is_idempotent_and_fails_with_a_typed_error_only(value: Any) -> None:
    before = copy.deepcopy(value)
    try:
        normal = normalize_message(value)
    except MessageError:
        return
    finally:
        assert value == before
    assert normalize_message(normal) is normal
    assert isinstance(dump_message(normal)["content"], list)


@EXAMPLES
@given(LEGACY)
def test_normalizing_drops_nothing_but_blank_text(value: dict[str, Any]) -> None:
    try:
        content = normalize_message(value).content
    except MessageError:
        return
    text = value["content"] or ""
    calls = [one["id"] for one in value.get("tool_calls", ())]
    assert [block.text for block in content if isinstance(block, TextBlock)] == (
        [text] if text.strip() else []
    )
    assert [block.id for block in content if isinstance(block, ToolUse)] == calls
