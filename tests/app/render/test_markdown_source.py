"""Markdown that keeps its face while it is edited."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.style import Style

from antiphon.render.markdown_source import Heading, MarkdownSource, headings, without_marks
from tests.app.render.notation import THEME, markdown_texts


def styles(text: str, line: int = 0) -> dict[str, Style]:
    """The style of each part of a line."""
    lines = text.split("\n")
    return {
        lines[line][start:end]: style
        for start, end, style in MarkdownSource(lines).spans(line, THEME)
    }


def test_emphasis_and_its_marks() -> None:
    found = styles("a *b* **c** ~~d~~ `e`")
    assert found["b"].italic
    assert found["c"].bold
    assert found["d"].strike
    assert found["e"].color == THEME.inline_code.color
    assert found["a "] == THEME.text
    assert {one for one, style in found.items() if style == THEME.dim} >= {"*", "** "[:2], "`"}


def test_link_shows_its_text_and_its_target() -> None:
    found = styles("see [here](http://x)")
    assert found["here"].underline
    assert found["](http://x)"] == THEME.dim


def test_markers_of_blocks_are_dim() -> None:
    for text, mark in (
        ("- item", "- "),
        ("12. item", "12. "),
        ("> said", "> said"),
        ("---", "---"),
    ):
        assert styles(text)[mark] == THEME.dim


def test_code_in_a_fence_has_the_colours_of_its_language() -> None:
    text = "```python\nif x: pass\n```\n*after*"
    assert styles(text)["```python"] == THEME.dim
    assert styles(text, 1)["if"].color == THEME.code.keyword.color
    assert styles(text, 1)["if"].bgcolor is None
    assert styles(text, 2)["```"] == THEME.dim
    assert styles(text, 3)["after"].italic


def test_line_that_is_too_long_is_not_styled_inside() -> None:
    assert styles("# " + "*a* " * 5_000) == {"# ": THEME.dim}


def every(source: MarkdownSource, lines: list[str]) -> list[object]:
    """The styles of all lines, of which the parts are in order and apart."""
    found = [source.spans(number, THEME) for number in range(len(lines))]
    for line, spans in zip(lines, found, strict=True):
        places = [place for start, end, _ in spans for place in (start, end)]
        assert places == sorted(places) and all(start < end for start, end, _ in spans)
        assert not places or 0 <= places[0] <= places[-1] <= len(line)
    return [*found]


@given(text=markdown_texts, data=st.data())
def test_edited_text_is_styled_as_read_afresh(text: str, data: st.DataObject) -> None:
    lines = text.split("\n")
    source = MarkdownSource(lines)
    for _ in range(4):
        every(source, lines)
        first = data.draw(st.integers(0, len(lines) - 1))
        last = data.draw(st.integers(first, len(lines) - 1))
        came = data.draw(st.lists(st.sampled_from(["```", "~~~ x", "a", "", "````"]), min_size=1))
        lines[first : last + 1] = came
        source.replaced(first, last, first + len(came) - 1)
        assert every(source, lines) == every(MarkdownSource(lines), lines)


class CountedLines(list[str]):
    """Lines that count how often one is read."""

    reads = 0

    def __getitem__(self, at: Any) -> Any:
        self.reads += 1
        return super().__getitem__(at)


def test_typing_reads_only_the_line_it_is_in() -> None:
    lines = CountedLines("```" if number % 100 == 0 else "x" for number in range(10_000))
    source = MarkdownSource(lines)
    source.spans(9_050, THEME)
    lines.reads = 0
    for _ in range(100):
        source.replaced(5_050, 5_050, 5_050)
        source.spans(5_050, THEME)
    assert lines.reads <= 400


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Why is **`2 * 3`** six?", "Why is 2 * 3 six?"),
        ("> a ***bold*** [link](https://a.org) and ~~not~~ this", "a bold link and not this"),
        ("- _one_ of snake_case_names", "one of snake_case_names"),
        ("2 * 3 * 4 and a ` alone", "2 * 3 * 4 and a ` alone"),
        ("**`", "**`"),
    ],
)
def test_without_marks_leaves_the_words(text: str, shown: str) -> None:
    assert without_marks(text) == shown


def test_headings_found_outside_of_fences_without_marks() -> None:
    text = "# One `code` #\n\n```\n# no\n~~~\n```\ntext\n   ### **Three**\n#no\n    # no\n#\n"
    assert headings(text) == [
        Heading(0, 1, "One code"),
        Heading(text.index("   ###"), 3, "Three"),
    ]
