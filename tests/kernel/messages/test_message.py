"""Content blocks and messages: what is refused and where, which are equal, which are one text.

Errors of calls and results name the first message that does not fit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon_kernel.messages import (
    JOIN,
    AssistantMessage,
    ContentBlock,
    CorrelationError,
    DocumentBlock,
    ImageBlock,
    Message,
    MessageError,
    TextBlock,
    Thinking,
    ToolMessage,
    ToolUse,
    UnknownBlock,
    UserMessage,
    coalesce,
    dump_message,
    is_text_only,
    message_digest,
    normalize_message,
    open_tool_uses,
    tool_uses,
)
from antiphon_kernel.types.frozen_json import JsonObject
from tests.kernel.messages.generated import EXAMPLES, MESSAGES, PATHS

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


@pytest.mark.parametrize(
    ("make", "problem", "path"),
    [
        (lambda: TextBlock(cast(Any, None)), "wrong_shape", "text"),
        (lambda: TextBlock("a\ud800"), "invalid_value", "text"),
        (lambda: Thinking("a", "\udfff"), "invalid_value", "signature"),
        (lambda: ImageBlock("image/png", "A" * 64), "invalid_value", "hash"),
        (lambda: ImageBlock("image/png", "0" * 65), "invalid_value", "hash"),
        (lambda: ImageBlock("png", "0" * 64), "invalid_value", "media_type"),
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
        TextBlock(cast(Any, None))
    error = refused.value
    assert (error.index, error.path) == (3, "content[1].text")
    assert error.message.startswith("Message 3, content[1].text: expected")
    assert error.as_json()["index"] == 3 and error.as_json()["path"] == "content[1].text"


# Equality


def says(*content: ContentBlock) -> AssistantMessage:
    return AssistantMessage(content)


def uses(call_id: str = "c1", name: str = "calc", **parameters: Any) -> AssistantMessage:
    return says(ToolUse(call_id, name, JsonObject(parameters)))


COMPARED = {
    '["  ","\\n\\n"] is itself': (("  ", "\n\n"), ("  ", "\n\n")),
    '[T,"   "] is [T]': ((CALL, "   "), (CALL,)),
    '["  hello  ","  "] is ["hello"]': (("  hello  ", "  "), ("hello",)),
}


@pytest.mark.parametrize(("content", "compared"), COMPARED.values(), ids=COMPARED)
def test_message_digest_of_messages_that_are_the_same(
    content: tuple[Any, ...], compared: tuple[Any, ...]
) -> None:
    def blocks(parts: tuple[Any, ...]) -> tuple[ContentBlock, ...]:
        return tuple(TextBlock(part) if isinstance(part, str) else part for part in parts)

    messages = AssistantMessage(blocks(content)), AssistantMessage(blocks(compared))
    assert message_digest(messages[0]) == message_digest(messages[1])


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
}


@pytest.mark.parametrize(("one", "other"), DIFFERENT.values(), ids=DIFFERENT)
def test_different_messages_are_not_equal(one: Message, other: Message) -> None:
    assert one != other and message_digest(one) != message_digest(other)


@EXAMPLES
@given(MESSAGES, MESSAGES, MESSAGES)
def test_equality_is_an_equivalence_that_the_digest_follows(
    one: Message, other: Message, third: Message
) -> None:
    assert one == one
    assert (one == other) == (other == one)
    assert one != other or message_digest(one) == message_digest(other)
    assert not (one == other and other == third) or one == third


def reversed_keys(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: reversed_keys(value[key]) for key in reversed(value)}
    return [reversed_keys(item) for item in value] if isinstance(value, list) else value


@EXAMPLES
@given(MESSAGES)
def test_equality_ignores_key_order(message: Message) -> None:
    try:
        normal = normalize_message(dump_message(message))
    except MessageError:
        return
    read = normalize_message(reversed_keys(dump_message(normal)))
    assert read == normal and message_digest(read) == message_digest(normal)


U = UserMessage((TextBlock("u"),))


def use(call_id: str) -> ToolUse:
    return ToolUse(call_id, "calc", JsonObject())


def calls(*ids: str) -> AssistantMessage:
    return AssistantMessage((TextBlock("t"), *map(use, ids)))


def result(call_id: str) -> ToolMessage:
    return ToolMessage((TextBlock("r"),), call_id)


@pytest.mark.parametrize(
    "path",
    [
        [],
        [U],
        [U, calls("a"), result("a"), U],
        [U, calls("a", "b"), result("b"), result("a")],
        [calls("a"), calls("b"), U, result("b"), result("a")],
    ],
)
def test_path_whose_calls_have_one_result_each_is_a_request(path: list[Message]) -> None:
    assert open_tool_uses(path) == ()


@pytest.mark.parametrize(
    ("path", "problem", "index", "where"),
    [
        ([U, result("a")], "no_such_call", 1, "tool_call_id"),
        ([result("a"), calls("a")], "no_such_call", 0, "tool_call_id"),
        (
            [calls("a"), result("a"), U, result("a")],
            "already_answered",
            3,
            "tool_call_id",
        ),
        (
            [calls("a"), result("a"), calls("b", "a")],
            "duplicate_call_id",
            2,
            "content[2].id",
        ),
        ([U, calls("a", "a")], "duplicate_call_id", 1, "content[2].id"),
    ],
)
def test_path_that_does_not_match_is_refused_with_index_and_path(
    path: list[Message], problem: str, index: int, where: str
) -> None:
    with pytest.raises(CorrelationError) as refused:
        open_tool_uses(path)
    error = refused.value
    assert (error.problem, error.index, error.path) == (problem, index, where)


def first_misfit(path: list[Message]) -> int | None:
    """The index by the definition: looking through everything before each message again."""
    for index, message in enumerate(path):
        before = [one.id for other in path[:index] for one in tool_uses(other)]
        if isinstance(message, ToolMessage):
            earlier = [one.tool_call_id for one in path[:index] if isinstance(one, ToolMessage)]
            if message.tool_call_id not in before or message.tool_call_id in earlier:
                return index
        own = [one.id for one in tool_uses(message)]
        if len({*before, *own}) < len(before) + len(own):
            return index
    return None


@EXAMPLES
@given(st.permutations(["a", "b", "c"]), st.sets(st.sampled_from("abc")))
def test_open_tool_uses_are_those_without_a_result_in_order(
    order: list[str], unanswered: set[str]
) -> None:
    results = [result(one) for one in order if one not in unanswered]
    assert open_tool_uses([calls("a", "b", "c"), *results]) == tuple(map(use, sorted(unanswered)))


@EXAMPLES
@given(PATHS)
def test_error_names_the_first_message_that_does_not_fit(path: list[Message]) -> None:
    found = None
    try:
        open_tool_uses(path)
    except CorrelationError as error:
        found = error.index
    assert found == first_misfit(path)


PARTS = st.lists(st.sampled_from(["a", "b", " ", 1, 2]))


@pytest.mark.parametrize(
    ("parts", "merged"),
    [
        (["A", "B"], ["A B"]),
        (["A"], ["A"]),
        (["A", "B", 1, "C", 2, 3, "D", "E"], ["A B", 1, "C", 2, 3, "D E"]),
        ([], []),
    ],
)
def test_coalesce_texts_in_a_row_returns_one(
    parts: list[str | int], merged: list[str | int]
) -> None:
    assert coalesce(parts) == merged


def test_coalesce_in_pieces_returns_the_join_at_the_beginning_of_each_later_text() -> None:
    parts = ["A", "B", 1, "C", "D"]
    assert coalesce(parts, "\n\n", in_pieces=True) == ["A", "\n\nB", 1, "C", "\n\nD"]


@EXAMPLES
@given(PARTS)
def test_coalesce_twice_is_once_and_leaves_its_input(parts: list[str | int]) -> None:
    before = list(parts)
    once = coalesce(parts)
    assert coalesce(once) == once and parts == before


@EXAMPLES
@given(PARTS, st.lists(st.sampled_from("ab"), min_size=1))
def test_coalesce_in_pieces_reads_as_one_and_grows_at_its_end(
    parts: list[str | int], more: list[str]
) -> None:
    pieces = coalesce(parts, in_pieces=True)
    assert coalesce(pieces, "") == coalesce(parts, JOIN)
    assert coalesce([*parts, *more], in_pieces=True)[: len(parts)] == pieces
