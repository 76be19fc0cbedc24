"""Rows around the document, and the end of a text that is written out of sight."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.style import Style

from antiphon.widgets.status.line import StatusSpan, cut_to, end_of, fit
from antiphon.widgets.status.live_strip import TAIL, last_rows, surroundings

texts = st.text(st.sampled_from("ab 漢字é…"), max_size=30)


@given(texts, st.integers(0, 20))
def test_cut_text_fits_and_says_that_it_is_cut(text: str, width: int) -> None:
    cut = cut_to(text, width)
    assert cell_len(cut) <= width
    assert cut == text or cut.endswith("…") or not width


@given(texts, st.integers(2, 20))
def test_end_of_a_text_fits(text: str, width: int) -> None:
    end = end_of(text, width)
    assert cell_len(end) <= width
    assert end == text or (end[0] == "…" and text.endswith(end[1:]))


@given(st.lists(texts, max_size=4), texts, st.integers(10, 60), st.integers(0, 1))
def test_line_is_as_wide_as_it_has_to_be(
    left: list[str], right: str, width: int, margin: int
) -> None:
    strip = fit(
        [StatusSpan(text, Style()) for text in left],
        [StatusSpan(right, Style())],
        width,
        Style(),
        margin=margin,
    )
    assert strip.cell_length == width


written = st.text("ab \n\té中", max_size=200)


@given(text=written, width=st.integers(4, 30))
def test_last_rows_fit_and_end_with_the_text(text: str, width: int) -> None:
    rows = last_rows(text, width, 2)
    assert len(rows) <= 2
    assert all(row.strip() and cell_len(row) <= width for row in rows)
    lines = [line for line in text.split("\n") if line.strip()]
    if lines:
        assert rows[-1].split()[-1:] == [lines[-1].split()[-1][-len(rows[-1].split()[-1]) :]]
    else:
        assert not rows


def test_last_rows_of_growing_line_break_where_they_did() -> None:
    words = "one text holds both of them "
    before = last_rows(words * 3, 20, 99)
    assert last_rows(words * 9, 20, 99)[: len(before) - 1] == before[:-1]


@pytest.mark.parametrize(
    ("text", "row"),
    [
        ("**This cell is open.** It is *open*", "This cell is open. It is open"),
        ("## Two `hands`, one [text](https://a.b)", "Two hands, one text"),
        ("- **Nobody merges.", "• **Nobody merges."),
        ("```python\n# a * b * c", "# a * b * c"),
        ("before\n---", "before"),
    ],
)
def test_last_rows_of_markdown_read_as_on_the_page(text: str, row: str) -> None:
    assert last_rows(text, 60, 1, is_markdown=True) == [row]


@pytest.mark.parametrize(("closed", "row"), [("", "# a"), ("```\n", "a")])
def test_live_text_that_begins_in_a_fence_is_code_until_its_end(closed: str, row: str) -> None:
    code = "```python\n" + "x = 1\n" * TAIL
    text = f"{code}{closed}# a"
    before, _ = surroundings(text, len(text), is_markdown=True)
    assert last_rows(before, 60, 1, is_markdown=True) == [row]


def test_live_text_begins_at_the_same_place_for_a_while_and_ends_at_its_line() -> None:
    text = "x" * 10 * TAIL
    assert surroundings(text, 5 * TAIL)[0] == text[:TAIL]
    assert len(surroundings(text, 6 * TAIL - 1)[0]) == 2 * TAIL - 1
    assert surroundings("ab cd\nef", 2) == ("ab", " cd")
