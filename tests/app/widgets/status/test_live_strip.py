"""The end of a text that is written out of sight, in rows."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from antiphon.widgets.status.live_strip import TAIL, LiveText, last_rows

texts = st.text("ab \n\té中", max_size=200)


def around(text: str, offset: int) -> LiveText:
    return LiveText.around(text, offset, name="aria", colour=1, others=0, unread=0)


@given(text=texts, width=st.integers(4, 30))
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
    live = LiveText.around(
        f"{code}{closed}# a",
        len(code) + len(closed) + 3,
        name="aria",
        colour=1,
        others=0,
        unread=0,
        is_markdown=True,
    )
    assert last_rows(live.before, 60, 1, is_markdown=True) == [row]


def test_live_text_of_long_text_begins_at_the_same_place_for_a_while() -> None:
    text = "x" * 10 * TAIL
    assert around(text, 5 * TAIL).before == text[:TAIL]
    assert len(around(text, 6 * TAIL - 1).before) == 2 * TAIL - 1


def test_live_text_ends_behind_at_the_line() -> None:
    assert around("ab cd\nef", 2) == LiveText("aria", 1, "ab", " cd")
