"""Conversations written for other tools: what is read of them is what was written."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon_kernel.messages import (
    AssistantMessage,
    ContentBlock,
    DocumentBlock,
    ImageBlock,
    ImportedMessage,
    InputBlock,
    Message,
    MessageShape,
    SystemMessage,
    TextBlock,
    Thinking,
    ToolMessage,
    ToolUse,
    UnknownBlock,
    UserMessage,
    split_runs,
    write_run,
    write_system,
)
from antiphon_kernel.types.frozen_json import JsonObject
from tests.kernel.messages.generated import CHARACTERS, EXAMPLES, FROZEN, NAMES
from tests.kernel.messages.test_foreign_conversations import (
    ANTHROPIC,
    CHAT,
    FOREIGN,
    PDF,
    PIXEL,
    read,
)

NOTE = "né\ufeff\r\n".encode()
FILES = {sha256(data).hexdigest(): data for data in (PIXEL, PDF, NOTE)}
IMAGE, DOCUMENT, TEXT_FILE = (
    ImageBlock("image/png", sha256(PIXEL).hexdigest()),
    DocumentBlock("application/pdf", sha256(PDF).hexdigest()),
    DocumentBlock("text/markdown", sha256(NOTE).hexdigest()),
)


def written(
    messages: list[ImportedMessage], shape: MessageShape, files: Mapping[str, bytes] = FILES
) -> dict[str, Any]:
    system = write_system(messages[0], shape, files) if messages else None
    rest = messages[1:] if system is not None else messages
    found = [value for run in split_runs(rest, shape) for value in write_run(run, shape, files)]
    return {**({"system": system} if system is not None else {}), "messages": found}


def chained(messages: list[Message | SystemMessage]) -> list[ImportedMessage]:
    return [ImportedMessage(one, at - 1 if at else None) for at, one in enumerate(messages)]


SAID = st.text(CHARACTERS, min_size=1, max_size=6).filter(lambda one: not one.isspace())
TEXTS = SAID.map(TextBlock)
UNKNOWN = FROZEN.map(UnknownBlock) | st.sampled_from(
    [
        UnknownBlock(JsonObject({"type": "text", "text": "not a text"})),
        UnknownBlock(JsonObject({"type": "tool_result", "tool_use_id": "t1"})),
        UnknownBlock(JsonObject({"type": "image_url", "image_url": {"url": "https://a/b.png"}})),
        UnknownBlock(JsonObject({"type": "input_audio", "input_audio": {"data": "AAAA"}})),
        UnknownBlock(JsonObject({"role": "user", "content": None})),
        UnknownBlock(JsonObject({"role": "assistant", "content": []})),
        UnknownBlock(JsonObject({"content": ""})),
    ]
)
STORED: st.SearchStrategy[InputBlock] = st.sampled_from([IMAGE, DOCUMENT, TEXT_FILE])
INPUT: st.SearchStrategy[InputBlock] = st.one_of(TEXTS, TEXTS, STORED, UNKNOWN)
THINKING = st.builds(Thinking, SAID, st.none() | SAID) | st.just(Thinking("", "signed"))
SHAPES = st.sampled_from(MessageShape)


@st.composite
def conversations(draw: st.DrawFn) -> list[Message | SystemMessage]:
    """A conversation of every kind of message; each call has its result, in whatever order."""
    said: list[Message | SystemMessage] = []
    for turn in range(draw(st.integers(0, 4))):
        content = tuple(draw(st.lists(INPUT, min_size=1, max_size=3)))
        begun: list[Message | SystemMessage] = [UserMessage(content), SystemMessage(content)]
        said.append(draw(st.sampled_from([*begun, AssistantMessage(content)])))
        uses = [
            ToolUse(f"call{turn}-{at}", draw(NAMES), draw(FROZEN))
            for at in range(draw(st.integers(0, 3)))
        ]
        answer: list[ContentBlock] = [*draw(st.lists(THINKING | INPUT, max_size=2))]
        answer += draw(st.permutations([*uses, *draw(st.lists(TEXTS, max_size=1))]))
        if answer:
            said.append(AssistantMessage(tuple(answer)))
        for use in draw(st.permutations(uses)):
            result = tuple(draw(st.lists(INPUT, min_size=1, max_size=2)))
            said.append(ToolMessage(result, use.id, draw(st.booleans())))
    return said


@EXAMPLES
@given(conversations(), SHAPES)
def test_written_conversation_is_read_as_it_was(
    said: list[Message | SystemMessage], shape: MessageShape
) -> None:
    assert list(read(written(chained(said), shape)).messages) == chained(said)


@EXAMPLES
@given(st.lists(FOREIGN, max_size=4), SHAPES)
def test_conversation_of_another_tool_is_written_with_its_fields(
    value: list[dict[str, Any]], shape: MessageShape
) -> None:
    found = list(read(value).messages)
    assert list(read(written(found, shape)).messages) == found


def test_file_whose_bytes_are_not_there_is_named_by_its_hash() -> None:
    said: list[Message | SystemMessage] = [UserMessage((TextBlock("this"), IMAGE))]
    for shape in MessageShape:
        assert read(written(chained(said), shape, {})).messages == tuple(chained(said))


@pytest.mark.parametrize("shape", MessageShape)
def test_file_beside_what_no_shape_has_a_form_for_is_written_with_its_bytes(
    shape: MessageShape,
) -> None:
    odd = UnknownBlock(JsonObject({"type": "tool_result"}))
    found = read(written(chained([UserMessage((odd, IMAGE))]), shape))
    assert found.messages == tuple(chained([UserMessage((odd, IMAGE))]))
    assert list(found.files) == [IMAGE.hash]


OTHERWISE = {
    1: {"role": "developer", "content": "No lists."},
    6: {"role": "tool", "tool_call_id": "c1", "content": "a cat"},
    7: {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {
                "id": "function_call_1",
                "type": "function",
                "function": {"name": "old", "arguments": "{}"},
            }
        ],
    },
    8: {"role": "tool", "tool_call_id": "function_call_1", "content": "fine"},
}
"""Messages that have a shorter form, or one that is in use."""


def test_conversation_of_every_documented_kind_is_written_in_its_shape() -> None:
    before = read(CHAT)
    after = written(list(before.messages), MessageShape.OPENAI, before.files)["messages"]
    assert after == [OTHERWISE.get(at, one) for at, one in enumerate(CHAT["messages"])]
    before = read(ANTHROPIC)
    after = written(list(before.messages), MessageShape.ANTHROPIC, before.files)
    *first, last = ANTHROPIC["messages"]
    results, said = last["content"][:2], last["content"][2:]  # type: ignore[index]
    split = [{"role": "user", "content": part} for part in (results, said)]
    assert after == {"system": ANTHROPIC["system"], "messages": [*first, *split]}


@pytest.mark.parametrize(
    ("value", "shape"), [(CHAT, MessageShape.ANTHROPIC), (ANTHROPIC, MessageShape.OPENAI)]
)
def test_conversation_of_every_documented_kind_is_read_from_the_other_shape(
    value: dict[str, Any], shape: MessageShape
) -> None:
    before = read(value)
    after = read(written(list(before.messages), shape, before.files))
    assert (after.messages, after.files) == (before.messages, before.files)
