"""List of messages that a model is given."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import Any

import pytest

from antiphon_kernel.layout import (
    BlockAuthor,
    arrange,
    cache_points,
    tool_call_id,
    turn_id,
    visible,
)
from antiphon_kernel.layout.reading import ModelView, model_view
from antiphon_kernel.layout.text_forms import LayoutReader
from antiphon_kernel.messages import (
    AssistantMessage,
    TextBlock,
    Thinking,
    ToolMessage,
    ToolUse,
    UserMessage,
    tool_uses,
)
from antiphon_kernel.types.enums import BlockKind, Role, Status
from tests.kernel.layout.written import AMY, BEN, LYRA, OPUS, Writing, marked


def view_of(writing: Writing, model: BlockAuthor = OPUS) -> ModelView:
    layout = arrange(writing.blocks)
    return model_view(visible(layout).items, LayoutReader.of(layout, model.id))


def roles(view: ModelView) -> list[str]:
    return [str(message.role) for message in view.messages]


def heard(view: ModelView) -> list[str]:
    """Return the texts of user messages but the headers of turns."""
    return [
        block.text
        for message in view.messages
        if isinstance(message, UserMessage)
        for block in message.content
        if isinstance(block, TextBlock) and not block.text.startswith("[TURN ")
    ]


def answers(view: ModelView) -> list[Sequence[object]]:
    return [message.content for message in view.messages if isinstance(message, ToolMessage)]


def test_model_view_of_one_turn_alternates_and_correlates() -> None:
    writing = Writing()
    prompt = writing.user("Find it")
    writing.say(prompt, "Looking")
    call = writing.call(prompt)
    writing.result(call, "found\n")
    writing.say(prompt, "Here\n")
    key, turn = tool_call_id(call.id), turn_id(prompt.id, prompt.created)
    header, message, *rest = view_of(writing).messages[0].content + view_of(writing).messages[1:]
    assert header == TextBlock(f"[TURN {turn}] ts=2026-02-09T02:14:31.113Z")
    assert message == TextBlock(f"[USER MESSAGE]\n[path: ar:{turn}.user.prompt]\nFind it")
    assert rest == [
        AssistantMessage((TextBlock("Looking"), ToolUse(key, "shell", call.parameters))),
        ToolMessage((TextBlock("found\n"),), key),
        AssistantMessage((TextBlock("Here\n"),)),
    ]


def test_model_view_of_parallel_calls_answers_each_directly() -> None:
    writing = Writing()
    prompt = writing.user()
    one, two = writing.call(prompt), writing.call(prompt)
    writing.result(two, "2")
    writing.result(one, "1")
    assert roles(view_of(writing)) == ["user", "assistant", "tool", "assistant", "tool"]
    assert answers(view_of(writing)) == [(TextBlock("1"),), (TextBlock("2"),)]


def test_model_view_of_calls_of_one_round_is_one_message() -> None:
    writing = Writing()
    prompt = writing.user()
    keys = []
    for number, made_in in enumerate((0, 0, 1)):
        call = writing.call(prompt, metadata={"round": made_in})
        writing.result(call, f"{number}")
        keys.append(tool_call_id(call.id))
    view = view_of(writing)
    assert roles(view) == ["user", "assistant", "tool", "tool", "assistant", "tool"]
    assert [use.id for use in tool_uses(view.messages[1])] == keys[:2]
    ends = [item for item in view.ends if item is not None][-6:]
    assert [(end.message, end.block) for end in ends] == [
        *((1, 0), (2, 0), (1, 1), (3, 0), (4, 0), (5, 0))
    ]


def test_model_view_of_a_message_between_calls_of_one_round_keeps_its_place() -> None:
    writing = Writing()
    prompt = writing.user()
    writing.result(writing.call(prompt, metadata={"round": 0}))
    writing.user("Stop", status=Status.RUNNING)
    writing.result(writing.call(prompt, metadata={"round": 0}))
    assert roles(view_of(writing)) == ["user", "assistant", "tool", "user", "assistant", "tool"]


def test_model_view_of_several_results_is_one_tool_message() -> None:
    writing = Writing()
    call = writing.call(writing.user())
    writing.result(call, "1", metadata={"more": True})
    writing.result(call, "2", is_error=True)
    message = view_of(writing).messages[-1]
    assert message == ToolMessage((TextBlock("1"), TextBlock("2")), tool_call_id(call.id), True)


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"text": ""}, "(no output)"),
        ({"text": "", "status": Status.RUNNING}, "(still running)"),
        ({"text": "", "status": Status.ERROR, "stop_reason": "interrupted"}, "(cancelled)"),
        ({"text": "no\n", "exit_code": 2}, "no\n(exit code 2)"),
        ({"text": "a", "truncated": True}, "a\n(the output was longer than what is kept)"),
        ({"text": "a\n", "exit_code": 0}, "a\n"),
    ],
)
def test_model_view_of_a_result_says_how_it_ended(fields: dict[str, Any], text: str) -> None:
    writing = Writing()
    writing.result(writing.call(writing.user()), **fields)
    assert answers(view_of(writing)) == [(TextBlock(text),)]


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({}, "(no output)"),
        ({"status": Status.PENDING}, "(still running)"),
        ({"status": Status.ERROR, "stop_reason": "interrupted"}, "(cancelled)"),
    ],
)
def test_model_view_of_a_call_without_results_answers_it(fields: dict[str, Any], text: str) -> None:
    writing = Writing()
    writing.call(writing.user(), **fields)
    assert answers(view_of(writing)) == [(TextBlock(text),)]


def test_model_view_of_one_person_does_not_name_them() -> None:
    writing = Writing()
    prompt = writing.user("Hello")
    writing.say(prompt)
    assert heard(view_of(writing))[0].startswith("[USER MESSAGE]\n[path: ")


def test_model_view_of_several_people_names_each() -> None:
    writing = Writing()
    writing.user("Hello")
    writing.user("Me too", BEN)
    first, second = heard(view_of(writing))
    assert first.startswith("[amy] [USER MESSAGE]\n") and first.endswith("\nHello")
    assert second.startswith("[ben] [USER MESSAGE]\n") and second.endswith("\nMe too")


def test_model_view_names_people_who_wrote_before_the_summary() -> None:
    writing = Writing()
    prompt = writing.user("Hello", BEN)
    writing.summary(prompt)
    writing.user("And now")
    summary, message = heard(view_of(writing))
    assert summary.startswith("[CONVERSATION SUMMARY]\n") and message.startswith("[amy] ")


def test_model_view_of_another_model_is_what_the_user_says() -> None:
    writing = Writing()
    prompt = writing.user()
    writing.say(prompt, "I think so", LYRA)
    call = writing.call(prompt, LYRA)
    writing.result(call)
    view = view_of(writing)
    assert roles(view) == ["user"]
    _, text, shown_call, shown_result = heard(view)
    assert text == "[lyra say]: I think so"
    assert shown_call.startswith("[lyra] [react.tool.call] (JSON)\n{")
    assert shown_result.startswith("[lyra] [react.tool.result] (JSON status)\n{")
    assert roles(view_of(writing, LYRA)) == ["user", "assistant", "tool"]


def test_model_view_of_a_persons_command_is_no_tool_message() -> None:
    writing = Writing()
    writing.result(writing.call(None, AMY))
    assert roles(view_of(writing)) == ["user"]


def test_model_view_of_an_error_of_the_turn_is_not_what_the_model_said() -> None:
    writing = Writing()
    prompt = writing.user()
    writing.add(OPUS, Role.MODEL, BlockKind.ERROR, text="No network", parent=prompt.id)
    assert heard(view_of(writing))[-1] == "[ERROR]: No network"


def test_model_view_of_signed_thinking_gives_it_back_unless_it_was_edited() -> None:
    writing = Writing()
    prompt = writing.user()
    signed = {"signature": "c2ln", "signed_sha256": sha256(b"Hm").hexdigest()}
    block = writing.think(prompt, "Hm", metadata=signed)
    writing.think(prompt, "Unsigned")
    writing.say(prompt, "Yes")
    thinking, text = Thinking("Hm", "c2ln"), TextBlock("Yes")
    assert view_of(writing).messages[-1] == AssistantMessage((thinking, text))
    writing.change(block, text="Hm.")
    assert view_of(writing).messages[-1] == AssistantMessage((text,))


def test_model_view_of_a_text_that_others_edited_is_part_of_the_models_message() -> None:
    writing = Writing()
    writing.say(writing.user(), "Mine, and theirs in it")
    assert view_of(writing).messages[-1] == (
        AssistantMessage((TextBlock("Mine, and theirs in it"),))
    )


def test_marked_content_of_cache_points_is_never_thinking() -> None:
    writing = Writing()
    prompt = writing.user()
    writing.say(prompt)
    signed = {"signature": "c2ln", "signed_sha256": sha256(b"Hm").hexdigest()}
    writing.think(prompt, "Hm", metadata=signed)
    layout = arrange(writing.blocks)
    view = view_of(writing)
    (tail,) = marked(view, [cache_points(layout.items).tail or 0])
    assert view.messages[tail.message].content[tail.block] == TextBlock("Well")
