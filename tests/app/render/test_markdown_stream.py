"""A stream draws what a fresh drawing draws, and does little for it."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st
from textual.theme import BUILTIN_THEMES

from antiphon.render.cell_theme import CellTheme
from antiphon.render.display import SourceLines
from antiphon.render.lines import RenderedCell, RenderedLine, Section
from antiphon.render.markdown import MarkdownStream
from antiphon.render.markdown_blocks import draw_unit, units_of
from antiphon.render.markdown_tokens import parse
from antiphon.render.wrap import Piece, compose
from tests.app.render.markdown_texts import markdown_texts, snippets

THEME = CellTheme.from_theme(BUILTIN_THEMES["nord"])
WIDTH = 24


def drawn_whole(text: str, width: int = WIDTH) -> RenderedCell:
    """The text parsed in one piece, without any cuts."""
    source = SourceLines(text)
    sections: list[Section] = []
    for index, unit in enumerate(units_of(parse("\n".join(source.lines)), None)):
        lines = draw_unit(unit, source, width, THEME)
        above = source.lines[unit.line - 1] if unit.line else ""
        if index and (not unit.follows_item or not above.strip(" \t")):
            lines.insert(0, compose([]))
        line = sections[-1].end_line if sections else 0
        sections.append(Section(source.starts[unit.line], line, lines))
    if not sections:
        sections = [Section(0, 0, [compose([Piece("", THEME.text, 0)])])]
    return RenderedCell(sections)


def picture(cell: RenderedCell) -> Sequence[tuple[object, ...]]:
    return [(list(line.strip), line.strip.cell_length, line.runs) for line in cell.lines]


def places(cell: RenderedCell, text: str) -> list[tuple[int, int]]:
    return [cell.place_of(offset) for offset in range(len(text) + 1)]


def assert_same(streamed: RenderedCell, fresh: RenderedCell, text: str) -> None:
    assert [line.text for line in streamed.lines] == [line.text for line in fresh.lines]
    assert picture(streamed) == picture(fresh)
    assert places(streamed, text) == places(fresh, text)


@given(text=markdown_texts)
def test_cuts_do_not_change_the_picture(text: str) -> None:
    assert_same(MarkdownStream(WIDTH, THEME).update(text), drawn_whole(text), text)


@given(text=markdown_texts, data=st.data())
def test_a_growing_text_looks_as_drawn_afresh_at_every_step(text: str, data: st.DataObject) -> None:
    stream = MarkdownStream(WIDTH, THEME)
    end = 0
    while end < len(text):
        end += data.draw(st.integers(1, 6))
        assert_same(stream.update(text[:end]), drawn_whole(text[:end]), text[:end])


@given(text=markdown_texts, data=st.data())
def test_an_edited_text_looks_as_drawn_afresh(text: str, data: st.DataObject) -> None:
    stream = MarkdownStream(WIDTH, THEME)
    stream.update(text)
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(text)))
        end = min(len(text), start + data.draw(st.integers(0, 8)))
        text = text[:start] + data.draw(snippets) + text[end:]
        assert_same(stream.update(text), drawn_whole(text), text)
