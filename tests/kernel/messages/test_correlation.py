"""Correlation of calls and results: errors name the first message that does not fit."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon_kernel.messages import (
    AssistantMessage,
    CorrelationError,
    Message,
    TextBlock,
    ToolMessage,
    ToolUse,
    UserMessage,
    check_correlation,
    open_tool_uses,
    tool_uses,
)
from antiphon_kernel.types.frozen_json import JsonObject
from tests.kernel.messages.generated import EXAMPLES, PATHS

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
    check_correlation(path)
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
        ([U, calls("a", "b"), result("a")], "unanswered_call", 1, "content[2]"),
    ],
)
def test_path_that_does_not_match_is_refused_with_index_and_path(
    path: list[Message], problem: str, index: int, where: str
) -> None:
    with pytest.raises(CorrelationError) as refused:
        check_correlation(path)
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
