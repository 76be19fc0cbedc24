"""A text becomes another one, and what is in both is left alone."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from antiphon_kernel.text.splice_diff import plan_difference
from tests.kernel.splicing import apply_splices

texts = st.text(st.sampled_from("ab\n\r😀é漢\u200d "), max_size=60)


@given(texts, texts)
def test_splices_make_the_other_text(before: str, after: str) -> None:
    assert apply_splices(before, plan_difference(before, after)) == after


@given(texts)
def test_same_text_takes_no_splice(text: str) -> None:
    assert plan_difference(text, text) == []


def test_changed_word_is_all_that_changes() -> None:
    before = "".join(f"line {number}\n" for number in range(2_000))
    after = before.replace("line 700\n", "line seven hundred\n")
    [splice] = plan_difference(before, after)
    assert splice.offset == before.index("700") and splice.deleted <= 3
    assert len(splice.inserted) <= len("seven hundred")


def test_plan_difference_of_distant_changes_is_two_splices() -> None:
    before = "one\n" + "same\n" * 500 + "two\n"
    after = "ONE\n" + "same\n" * 500 + "TWO\n"
    first, last = plan_difference(before, after)
    assert (first.inserted, last.inserted) == ("ONE", "TWO")
