from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon_kernel.text.edits import LineEdit, plan_edit
from antiphon_kernel.text.lines import split_lines
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from tests.errors import raises
from tests.kernel.splicing import apply_minimal, apply_splices

CHARACTERS = "abc\n\n\r\f\u2028\N{GRINNING FACE}"
TEXT = st.text(alphabet=CHARACTERS, max_size=16)


def edited(text: str, *operations: LineEdit) -> str:
    return apply_splices(text, plan_edit(text, operations))


def naive_edit(text: str, operations: Sequence[LineEdit]) -> str:
    """The rules read aloud: a list of lines, edited from the back, then the final newline."""
    lines = split_lines(text)
    above: list[list[str]] = [[] for _ in range(len(lines) + 1)]
    kept = [True] * len(lines)
    contents = []
    for operation in operations:
        if operation.content is None:
            kept[operation.start_line : operation.end_line] = [False] * (
                operation.end_line - operation.start_line
            )
            continue
        start, end = operation.start_line, operation.end_line
        contents.append(operation.content)
        if start == end:
            above[start].extend(split_lines(operation.content))
    replaced: list[list[str]] = [[] for _ in range(len(lines) + 1)]
    for operation in operations:
        if operation.content is not None and operation.start_line < operation.end_line:
            kept[operation.start_line : operation.end_line] = [False] * (
                operation.end_line - operation.start_line
            )
            replaced[operation.start_line] = split_lines(operation.content)
    result = []
    for number in range(len(lines) + 1):
        result += above[number] + replaced[number]
        if number < len(lines) and kept[number]:
            result.append(lines[number])
    if not result:
        return ""
    given_contents = [content for content in contents if content]
    final = (
        (text != "" and text.endswith("\n"))
        or (text == "" and given_contents[-1].endswith("\n"))
        or result[-1] == ""
    )
    return "\n".join(result) + ("\n" if final else "")


@st.composite
def batches(draw: st.DrawFn) -> tuple[str, list[LineEdit]]:
    """A text and operations on it that do not overlap, in any order."""
    text = draw(TEXT)
    count = len(split_lines(text))
    cuts = sorted(draw(st.lists(st.integers(0, count), max_size=8)))
    operations: list[LineEdit] = []
    for start, end in zip(cuts[::2], cuts[1::2], strict=False):
        if start == end:
            operations.append(LineEdit(start, start, draw(TEXT)))
        else:
            operations.append(LineEdit(start, end, draw(st.none() | TEXT)))
        if draw(st.booleans()):
            at = draw(st.sampled_from((start, end)))
            operations.append(LineEdit(at, at, draw(TEXT)))
    return text, draw(st.permutations(operations))


@given(batches())
def test_batch_does_what_editing_a_list_of_lines_does_and_touches_only_what_changes(
    batch: tuple[str, list[LineEdit]],
) -> None:
    text, operations = batch
    assert apply_minimal(text, plan_edit(text, operations)) == naive_edit(text, operations)


def test_expected_text_is_compared_as_lines() -> None:
    assert edited("a\nb", LineEdit(0, 1, "c", expected_text="a")) == "c\nb"
    assert edited("a\nb", LineEdit(0, 1, "c", expected_text="a\n")) == "c\nb"
    assert edited("a\nb", LineEdit(0, 2, expected_text="a\nb\n")) == ""
    assert edited("a", LineEdit(1, 1, "b", expected_text="")) == "a\nb"


@pytest.mark.parametrize(
    ("operations", "code", "culprit"),
    [
        ([LineEdit(0, 0, "x"), LineEdit(4, 4, "x")], ErrorCode.LINE_OUT_OF_RANGE, 1),
        ([LineEdit(2, 4)], ErrorCode.LINE_OUT_OF_RANGE, 0),
        ([LineEdit(-1, 2, "x")], ErrorCode.LINE_OUT_OF_RANGE, 0),
        ([LineEdit(1, 1)], ErrorCode.INVALID_PARAMS, 0),
        ([LineEdit(0, 0, "x"), LineEdit(2, 1, "x")], ErrorCode.INVALID_PARAMS, 1),
        ([LineEdit(0, 1), LineEdit(1, 2, "x", "a")], ErrorCode.CONTENT_MISMATCH, 1),
        ([LineEdit(0, 1, None, "a\n\n")], ErrorCode.CONTENT_MISMATCH, 0),
        ([LineEdit(0, 2), LineEdit(1, 3, "x")], ErrorCode.OVERLAPPING_OPERATIONS, 1),
        ([LineEdit(1, 1, "x"), LineEdit(0, 2)], ErrorCode.OVERLAPPING_OPERATIONS, 1),
        ([LineEdit(1, 2), LineEdit(1, 2)], ErrorCode.OVERLAPPING_OPERATIONS, 1),
    ],
)
def test_bad_operation_fails_the_batch_and_is_named(
    operations: list[LineEdit], code: ErrorCode, culprit: int
) -> None:
    with raises(code) as caught:
        plan_edit("a\nb\nc", operations)
    assert caught.value.details["operation"] == culprit


def test_mismatch_says_what_was_found() -> None:
    with pytest.raises(AntiphonError) as caught:
        plan_edit("a\nb\nc", [LineEdit(1, 3, None, "b")])
    details = caught.value.details
    assert (details["expected"], details["actual"]) == ("b", "b\nc")
    assert (details["start_line"], details["end_line"], details["line_count"]) == (1, 3, 3)


@given(TEXT, st.data())
def test_expected_text_that_a_mismatch_has_answered_is_accepted(
    text: str, data: st.DataObject
) -> None:
    count = len(split_lines(text))
    start = data.draw(st.integers(0, count))
    end = data.draw(st.integers(start, count))
    with pytest.raises(AntiphonError) as caught:
        plan_edit(text, [LineEdit(start, end, "new", "surely not there")])
    actual = caught.value.details["actual"]
    assert plan_edit(text, [LineEdit(start, end, "new", actual)]) is not None


@given(TEXT, st.data())
def test_ranges_overlap_exactly_when_they_share_a_line(text: str, data: st.DataObject) -> None:
    count = len(split_lines(text))
    line = st.integers(0, count)
    one, other = (sorted((data.draw(line), data.draw(line))) for _ in range(2))
    shared = max(one[0], other[0]) < min(one[1], other[1])
    pierced = any(a[0] == a[1] and b[0] < a[0] < b[1] for a, b in ((one, other), (other, one)))
    operations = [LineEdit(one[0], one[1], "x"), LineEdit(other[0], other[1], "y")]
    if shared or pierced:
        with raises(ErrorCode.OVERLAPPING_OPERATIONS):
            plan_edit(text, operations)
    else:
        plan_edit(text, operations)
