from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.style import Style

from antiphon.widgets.status.line import StatusSpan, cut_to, end_of, fit

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
