"""Coalescing: the worked cases, and the rules behind them."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain, pairwise

import pytest
from hypothesis import given

from antiphon_kernel.messages import (
    JOIN,
    AssistantMessage,
    ImageBlock,
    Message,
    TextBlock,
    ToolMessage,
    ToolUse,
    UserMessage,
    coalesce,
    is_text_only,
)
from antiphon_kernel.types.frozen_json import JsonObject
from tests.kernel.messages.generated import EXAMPLES, PATHS

T = ToolUse("c1", "calc", JsonObject())


def user(*texts: str) -> UserMessage:
    return UserMessage(tuple(map(TextBlock, texts)))


def model(*texts: str) -> AssistantMessage:
    return AssistantMessage(tuple(map(TextBlock, texts)))


CALL = AssistantMessage((T,))
TEXT_AND_CALL = AssistantMessage((TextBlock("b"), T))
RESULTS = [ToolMessage((TextBlock("r1"),), "c1"), ToolMessage((TextBlock("r2"),), "c2")]


@pytest.mark.parametrize(
    ("messages", "merged"),
    [
        pytest.param(
            [user("A"), user("B"), model("C"), model("D"), CALL, model("E"), *RESULTS],
            [user("A B"), model("C D"), CALL, model("E"), *RESULTS],
            id="U A, U B, A C, A D, A T, A E, tool r1, tool r2",
        ),
        pytest.param(
            [model("a"), TEXT_AND_CALL, model("c"), model("d")],
            [model("a"), TEXT_AND_CALL, model("c d")],
            id="a, b+T, c, d",
        ),
        pytest.param([], [], id="empty stays empty"),
    ],
)
def test_coalesce(messages: list[Message], merged: list[Message]) -> None:
    assert coalesce(messages) == tuple(merged)


def test_texts_of_one_message_are_joined_as_those_of_two() -> None:
    assert coalesce([user("a", "b"), user("c")]) == coalesce([user("a"), user("b", "c")])
    assert coalesce([user("a", "b")]) == (user(JOIN.join("ab")),)


def test_message_with_an_image_is_not_merged() -> None:
    pictured = UserMessage((TextBlock("a"), ImageBlock("image/png", "0" * 64)))
    messages = [user("b"), pictured, user("c")]
    assert coalesce(messages) == tuple(messages)


@EXAMPLES
@given(PATHS)
def test_coalescing_twice_is_once_and_leaves_its_input(path: list[Message]) -> None:
    before = list(path)
    once = coalesce(path)
    assert coalesce(once) == once and path == before


@EXAMPLES
@given(PATHS)
def test_coalescing_keeps_barriers_and_every_text_in_order(path: list[Message]) -> None:
    merged = coalesce(path)
    assert [id(one) for one in barriers(merged)] == [id(one) for one in barriers(path)]
    assert texts(merged) == texts(path)


def barriers(messages: Iterable[Message]) -> list[Message]:
    return [
        one for one in messages if isinstance(one, ToolMessage) or not is_text_only(one.content)
    ]


def texts(messages: Iterable[Message]) -> str:
    """Every text, without what coalescing puts between two."""
    blocks = chain.from_iterable(one.content for one in messages)
    return "".join(one.text for one in blocks if isinstance(one, TextBlock)).replace(JOIN, "")


@EXAMPLES
@given(PATHS)
def test_coalesced_neighbours_differ_in_role_or_are_barriers(path: list[Message]) -> None:
    merged = coalesce(path)
    for one, following in pairwise(merged):
        both_text = is_text_only(one.content) and is_text_only(following.content)
        assert one.role is not following.role or not both_text or isinstance(one, ToolMessage)
