"""Normal form of messages: the worked cases, and the rules behind them."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given

from antiphon_kernel.messages import (
    Message,
    MessageError,
    TextBlock,
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


def user(content: object, **more: object) -> dict[str, Any]:
    return {"role": "user", "content": content, **more}


def result(content: object, call_id: str = "c1") -> dict[str, Any]:
    return {"role": "tool", "content": content, "tool_call_id": call_id}


def block(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def use(**parameters: Any) -> ToolUse:
    return ToolUse("c1", "calc", JsonObject(parameters))


LEGACY_FORMS = {
    "user text is kept to the character": (user("  Hello  "), (TextBlock("  Hello  "),)),
    "text, then the call": (
        assistant("Run a calc", call('{"x":2, "y":3}')),
        (TextBlock("Run a calc"), use(x=2, y=3)),
    ),
    "null content with a call": (assistant(None, call("{}")), (use(),)),
    "blank content with a call": (assistant("   ", call("{}")), (use(),)),
    "empty arguments are {}": (assistant(None, call("")), (use(),)),
    "blank arguments are {}": (assistant(None, call(" \n\t ")), (use(),)),
    "calls beside blocks": (assistant([block("a")], call("")), (TextBlock("a"), use())),
}


@pytest.mark.parametrize(("value", "content"), LEGACY_FORMS.values(), ids=LEGACY_FORMS)
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
    with pytest.raises(MessageError) as refused:
        normalize_messages([{"role": "user", "content": "a"}, assistant(None, call(raw))])
    error = refused.value
    details = [error.as_json()[name] for name in ("call", "tool", "found")]
    assert (error.problem, details) == ("invalid_arguments", ["c1", "calc", raw])
    assert (error.index, error.path) == (1, "tool_calls[0].function.arguments")


WITHOUT_NORMAL_FORM = {
    "blank call id": (assistant(None, call("", " ")), "blank_call_id", "tool_calls[0].id"),
    "blank name": (
        assistant(None, call("", "c1", "")),
        "blank_tool_name",
        "tool_calls[0].function.name",
    ),
    "blank tool_call_id": (result("a", "\t"), "blank_tool_call_id", "tool_call_id"),
    "tool content null": (result(None), "no_content", "content"),
    "tool content blank": (result(" \n"), "no_content", "content"),
    "nothing left": (assistant("  "), "no_content", "content"),
    "nothing left of content blocks": (user([block(" ")]), "no_content", "content"),
    "role system": ({"role": "system", "content": "be brief"}, "unknown_role", "role"),
    "call of a user": (user("a", tool_calls=[call("")]), "block_not_allowed", "tool_calls[0]"),
    "field that has no place": (user("a", name="anna"), "unknown_field", "name"),
    "block that is none": (user([block(" "), 7]), "wrong_shape", "content[1]"),
    "block without text": (user([{"type": "text"}]), "wrong_shape", "content[0].text"),
    "half a surrogate pair": (user("\ud800"), "invalid_value", "content[0].text"),
    "NaN": (user([{"type": "sound", "at": float("nan")}]), "invalid_value", "content[0]"),
    "no object": ("hello", "wrong_shape", ""),
}


@pytest.mark.parametrize(
    ("value", "problem", "path"), WITHOUT_NORMAL_FORM.values(), ids=WITHOUT_NORMAL_FORM
)
def test_message_that_has_no_normal_form_is_refused_with_index_and_path(
    value: object, problem: str, path: str
) -> None:
    with pytest.raises(MessageError) as refused:
        normalize_messages([{"role": "user", "content": "a"}, value])
    error = refused.value
    assert (error.problem, error.index, error.path) == (problem, 1, path)
    assert error.as_json()["index"] == 1


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
    normal = normalize_message(dump_message(message))
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
    assert normalize_message(dump_message(normal)) == normal


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
