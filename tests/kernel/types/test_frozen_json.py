"""Frozen JSON: equality of JSON, refusal of what JSON has no word for."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon_kernel.types.frozen_json import JsonObject, canonical_json, freeze, thaw
from antiphon_kernel.types.json_validation import (
    MAX_NESTING,
    read_json,
    replace_half_characters,
    unique_names,
)
from tests.kernel.messages.generated import EXAMPLES, JSON

OBJECTS = st.dictionaries(st.sampled_from("abc"), JSON, max_size=3)


def in_reverse(value: Any) -> Any:
    """The same JSON with the keys of every object in another order."""
    if isinstance(value, dict):
        return {key: in_reverse(value[key]) for key in reversed(value)}
    return [in_reverse(item) for item in value] if isinstance(value, list) else value


@EXAMPLES
@given(OBJECTS)
def test_equality_ignores_the_order_of_keys(value: dict[str, Any]) -> None:
    first, second = JsonObject(value), JsonObject(in_reverse(value))
    assert first == second and hash(first) == hash(second)


@EXAMPLES
@given(JSON)
def test_thaw_of_frozen_returns_an_equal_value_of_its_own(value: Any) -> None:
    assert thaw(freeze(value)) == value


@EXAMPLES
@given(OBJECTS, OBJECTS, OBJECTS)
def test_equality_is_transitive(one: Any, two: Any, three: Any) -> None:
    first, second, third = JsonObject(one), JsonObject(two), JsonObject(three)
    assert (first == second) == (second == first)
    assert not (first == second and second == third) or first == third


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"a": 1}, {"a": True}),
        ({"a": 0}, {"a": False}),
        ({"a": [1]}, {"a": [True]}),
        ({"a": None}, {}),
        ({"a": "1"}, {"a": 1}),
        ({"a": [1, 2]}, {"a": [2, 1]}),
        ({"a": {}}, {"a": []}),
        ({"a": 2**53}, {"a": 2**53 + 1}),
    ],
)
def test_equality_of_different_json_is_false(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert JsonObject(one) != JsonObject(other)


def test_equality_of_one_number_written_in_two_ways_is_true() -> None:
    assert JsonObject({"a": 1}) == JsonObject({"a": 1.0})
    assert canonical_json(freeze([1.0, -0.0, 1e3])) == "[1,0,1000]"


def test_change_of_the_source_leaves_the_frozen_object_as_it_was() -> None:
    source = {"a": [1, {"b": 2}]}
    frozen = JsonObject(source)
    source["a"].append(3)
    thaw(frozen)["a"].append(4)
    assert thaw(frozen) == {"a": [1, {"b": 2}]}


def nested(depth: int) -> Any:
    return [nested(depth - 1)] if depth else 0


@pytest.mark.parametrize(
    "value",
    [float("nan"), float("inf"), 10**400, "\ud800", {1: 2}, {"\udc00": 1}, {2}, b"x", nested(65)],
)
def test_freeze_of_what_is_not_json_is_refused(value: object) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        freeze(value)
    with pytest.raises(ValueError):  # noqa: PT011
        JsonObject({"a": value})


def test_freeze_takes_as_many_levels_as_the_reader() -> None:
    assert thaw(freeze(nested(64))) == nested(64)


@EXAMPLES
@given(JSON, st.booleans())
def test_read_json_of_what_can_be_written_gives_it_back(value: Any, ascii_only: bool) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only)
    assert read_json(text, pairs=unique_names) == value


@pytest.mark.parametrize(
    "text",
    [
        *("", "{", "NaN", "[-Infinity]", "1e400", "1" * 310, "1" * 5_000),
        *('"\ud800"', '{"\udc00": 1}', r'"\ud800"', r'{"\udc00": 1}', r'["\ude00\ud83d"]'),
        *("[" * 65 + "]" * 65, "[" * 100_000, '{"a":' * 65 + "1" + "}" * 65),
    ],
)
def test_read_json_of_what_cannot_be_written_again_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        read_json(text)


def test_read_json_at_the_deepest_nesting_is_read() -> None:
    assert read_json("[" * MAX_NESTING + "]" * MAX_NESTING)


def test_unique_names_of_a_repeated_name_is_refused() -> None:
    assert read_json('{"a": 1, "a": 2}') == {"a": 2}
    with pytest.raises(ValueError, match="same name"):
        read_json(r'[{"a": 1, "\u0061": 2}]', pairs=unique_names)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("a\ud83d", "a\ufffd"), ("\ude00b", "\ufffdb"), ("\ud83d\ude00", "😀"), ("é😀", "é😀")],
)
def test_replace_half_characters_keeps_whole_ones(text: str, expected: str) -> None:
    assert replace_half_characters(text) == expected
