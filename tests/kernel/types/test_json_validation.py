"""JSON that somebody else wrote is read strictly."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon_kernel.types.json_validation import (
    MAX_NESTING,
    read_json,
    replace_half_characters,
    unique_names,
)
from tests.kernel.messages.generated import EXAMPLES, JSON


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
