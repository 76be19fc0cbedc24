from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon_kernel.text.lines import (
    line_count,
    line_start,
    lines_between,
    number_lines,
    split_lines,
)
from antiphon_kernel.types.errors import ErrorCode
from tests.errors import raises

TEXT = st.text(alphabet="ab\n\r\f\x85\u2028\N{GRINNING FACE}", max_size=12)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", []),
        ("a", ["a"]),
        ("a\n", ["a"]),
        ("a\n\n", ["a", ""]),
        ("\n", [""]),
        ("a\nb", ["a", "b"]),
        ("a\r\nb\r\n", ["a\r", "b\r"]),
        ("a\rb", ["a\rb"]),
        ("a\x0bb\fc\x1cd\x85e\u2028f\u2029g", ["a\x0bb\fc\x1cd\x85e\u2028f\u2029g"]),
    ],
)
def test_line_ends_at_a_newline_and_at_nothing_else(text: str, lines: list[str]) -> None:
    assert split_lines(text) == lines
    assert line_count(text) == len(lines)


@given(TEXT)
def test_lines_and_their_starts_agree_with_the_text(text: str) -> None:
    lines = split_lines(text)
    assert line_count(text) == len(lines)
    for number, line in enumerate(lines):
        start = line_start(text, number)
        assert text[start : start + len(line)] == line
        assert start == 0 or text[start - 1] == "\n"
    assert line_start(text, len(lines)) == len(text)


@given(TEXT, st.data())
def test_neighbouring_ranges_of_lines_join_to_the_text(text: str, data: st.DataObject) -> None:
    count = line_count(text)
    middle = data.draw(st.integers(0, count))
    assert lines_between(text, 0, middle) + lines_between(text, middle, count) == text


@pytest.mark.parametrize(("text", "line"), [("", 1), ("a", 2), ("a\n", 2), ("a\n", -1)])
def test_line_past_the_end_is_out_of_range(text: str, line: int) -> None:
    with raises(ErrorCode.LINE_OUT_OF_RANGE) as caught:
        line_start(text, line)
    assert caught.value.details["line_count"] == line_count(text)


def test_range_turned_round_is_refused() -> None:
    with raises(ErrorCode.INVALID_PARAMS):
        lines_between("a\nb\n", 1, 0)


def test_numbered_lines_are_number_tab_line() -> None:
    assert number_lines("a\n\nb", 7) == "7\ta\n8\t\n9\tb"
    assert number_lines("a\n") == "0\ta\n"
    assert number_lines("") == ""
