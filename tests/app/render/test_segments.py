"""Long texts that are drawn where they are looked at."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.render.cell_renderer import CellRenderer
from antiphon.render.lines import LONGEST_LINE, Cutter, RenderedCell, SegmentedText, SegmentStart
from antiphon.render.markdown import MarkdownCutter, MarkdownStream
from antiphon.render.terminal_output import SgrStyles
from antiphon.render.text_lines import PlainCutter, PlainLook, PlainStream
from antiphon.render.wrap import compose
from tests.app.render.notation import THEME, markdown_texts, picture, view, written
from tests.app.widgets.editor.texts import applied, fractions, splice_of
from tests.kernel.growth.work import counted_calls

WIDTH = 60
ROWS = 40
"""Lines around a place that a view needs."""


def whole(cell: RenderedCell) -> RenderedCell:
    """The cell with every line drawn."""
    return cell.settled(0, cell.line_count + 1_000_000)[0]


PARAGRAPHS = "".join(f"Paragraph **{n}** of *some* length, `code` too.\n\n" for n in range(2_000))
LINES = "".join(f"line {n} of the output\n" for n in range(35_000))
ONE_LINE = "words and words " * 62_500
FENCE = "```python\n" + "".join(f"value_{n} = {n}\n" for n in range(12_000)) + "```\n\nBehind.\n"
LIST = "".join(f"- item {n}\n" for n in range(12_000))

LONG = {
    "paragraphs": ("text", PARAGRAPHS * 4),
    "output": ("tool_result", LINES),
    "thinking": ("thinking", LINES),
    "text of one line": ("text", ONE_LINE),
    "output of one line": ("tool_result", ONE_LINE),
    "fence": ("text", FENCE),
    "list": ("text", LIST),
    "file": ("file", LINES),
}


@pytest.mark.parametrize("name", LONG)
def test_long_cell_is_drawn_by_the_window(name: str) -> None:
    kind, text = LONG[name]
    assert len(text) > 300_000 or text.count("\n") >= 12_000
    cell = CellRenderer(WIDTH, THEME).update(view(kind, text))
    assert cell.drawn_count < 3, "nothing but notes is drawn before it is looked at"
    for line in (0, cell.line_count // 2, cell.line_count - 1):
        with counted_calls(compose) as drawn:
            cell, line = cell.settled(line, ROWS)
        assert drawn() < 2_000
        seen = range(max(0, line - ROWS), min(cell.line_count, line + ROWS))
        assert sum(bool(cell.line(one).text) for one in seen) >= len(seen) // 2
    offset = len(text) // 3
    cell, line = cell.settled_at(offset, ROWS)
    assert cell.place_of(offset)[0] == line
    assert cell.drawn_count < 6_000


def test_number_of_lines_that_stay_drawn_is_bounded() -> None:
    renderer = CellRenderer(WIDTH, THEME)
    cell = renderer.update(view("tool_result", LINES))
    most = 0
    for line in range(0, 35_000, 2_000):
        cell, _ = cell.settled(line, ROWS)
        most = max(most, cell.drawn_count)
    assert most < 12_000


def test_line_stays_the_same_while_others_are_drawn_above_it() -> None:
    cell = CellRenderer(WIDTH, THEME).update(view("text", PARAGRAPHS))
    cell, line = cell.settled_at(50_000, ROWS)
    shown = cell.line(line)
    for other in (0, 30_000, 80_000, 10_000):
        cell, _ = cell.settled_at(other, ROWS)
        cell, line = cell.settled_at(50_000, ROWS)
        assert cell.line(line) == shown


def test_appending_to_a_long_text_draws_its_end_only() -> None:
    renderer = CellRenderer(WIDTH, THEME)
    text = PARAGRAPHS
    cell = renderer.update(view("text", text))
    cell, _ = cell.settled(cell.line_count - 1, ROWS)
    with counted_calls(compose) as drawn:
        for _ in range(20):
            text += "More.\n\n"
            cell = renderer.update(view("text", text))
        cell, last = cell.settled(cell.line_count - 1, ROWS)
    assert cell.line(last).text == "More."
    assert drawn() < 20 * 1_000


def cold(cutter: Cutter, text: str) -> RenderedCell:
    return whole(SegmentedText(cutter).update(text))


NUMBERED = "1. one\n2. two\n\n   more of it\n\n3. three\n"
blocks = st.sampled_from(
    [
        NUMBERED,
        "A paragraph of words\nthat goes on.\n",
        "# Heading\n",
        "- one\n- two\n  - inner\n- three\n",
        "* loose\n\n* items\n",
        "```python\nx = 1\n\ny = 2\n```\n",
        "- with code\n\n  ```\n  x\n\n  y\n  ```\n",
        "~~~\n```\nnot a fence\n\n~~~\n",
        "| a | b |\n|---|---|\n| 1 | 2 |\n",
        "> quoted\n>\n> ```\n> x\n> ```\n",
        "    indented code\n",
        "---\n",
        "Title\n=====\n",
    ]
)


texts = st.lists(blocks, min_size=4, max_size=12).filter(lambda them: them.count(NUMBERED) < 2)


@given(parts=texts, width=st.integers(20, 60))
def test_markdown_in_segments_looks_as_in_one_piece(parts: list[str], width: int) -> None:
    text = "\n".join(parts)
    expected = MarkdownStream(width, THEME).update(text)
    cutter = MarkdownCutter(width, THEME, size=70)
    assert written(cold(cutter, text)) == written(expected)


@given(data=st.data(), size=st.integers(10, 80))
def test_markdown_that_changes_looks_as_drawn_afresh(data: st.DataObject, size: int) -> None:
    cutter = MarkdownCutter(30, THEME, size=size)
    stream, text = SegmentedText(cutter), ""
    for _ in range(5):
        edit = data.draw(st.tuples(fractions, fractions, markdown_texts))
        text = applied(text, splice_of(text, *edit))
        cell = stream.update(text)
        if data.draw(st.booleans()):
            cell = cell.settled_at(data.draw(st.integers(0, len(text))), 5)[0]
        fresh = cold(cutter, text)
        assert list(whole(cell).lines) == list(fresh.lines)


@pytest.mark.parametrize(
    "text",
    [
        "1. two words\n- https://a.b/x,word\n|a|b|\n",
        "```\r\n" + "x = 1\r\n" * 40 + "```\r\n\r\n" + "A *b* c.\r\n\r\n" * 40,
    ],
    ids=["ends where it could be cut", "lines end with CR and LF"],
)
def test_markdown_in_small_segments_looks_as_in_one_piece(text: str) -> None:
    cell = cold(MarkdownCutter(30, THEME, size=10), text)
    assert written(cell) == written(MarkdownStream(30, THEME).update(text))


outputs = st.lists(
    st.sampled_from(["a", "bc\n", "\n", "\r", "\x1b[31m", "\x1b[0m", "字", "\t", "word word\n"]),
    max_size=60,
).map("".join)


@given(pieces=st.lists(outputs, max_size=5), size=st.integers(5, 60))
def test_output_in_segments_looks_as_in_one_piece(pieces: list[str], size: int) -> None:
    styles = SgrStyles(THEME, THEME.dim)
    stream = SegmentedText(PlainCutter(PlainLook(20, THEME.dim, styles=styles), size=size))
    text = ""
    for piece in pieces:
        text += piece
        fresh = PlainStream(PlainLook(20, THEME.dim, styles=styles)).update(text)
        assert picture(whole(stream.update(text)), text) == picture(fresh, text)


def test_sequence_is_never_cut_in_two() -> None:
    cutter = PlainCutter(PlainLook(WIDTH, THEME.dim, styles=SgrStyles(THEME, THEME.dim)))
    for lead in range(LONGEST_LINE - 20, LONGEST_LINE + 5):
        text = "x" * lead + "\x1b[31;1;4mred" + "y" * LONGEST_LINE
        start = cutter.next_start(text, SegmentStart(0, 0, None))
        assert start is not None
        assert not lead < start.offset < lead + len("\x1b[31;1;4m")
