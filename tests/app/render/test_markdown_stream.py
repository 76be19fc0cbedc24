"""A stream draws what a fresh drawing draws, and does little for it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.render.display import SourceLines
from antiphon.render.lines import LineChunk, RenderedCell
from antiphon.render.markdown import MarkdownStream
from antiphon.render.markdown_blocks import draw_unit, units_of
from antiphon.render.markdown_tokens import parse
from antiphon.render.wrap import WrapPiece, compose
from tests.app.render.notation import THEME, markdown_texts, picture, snippets
from tests.kernel.growth.work import counted_calls

WIDTH = 24


def drawn_whole(text: str, width: int = WIDTH) -> RenderedCell:
    """The text parsed in one piece, without any cuts."""
    source = SourceLines(text)
    sections: list[LineChunk] = []
    for index, unit in enumerate(units_of(parse("\n".join(source.lines)), None)):
        lines = draw_unit(unit, source, width, THEME)
        above = source.lines[unit.line - 1] if unit.line else ""
        if index and (not unit.follows_item or not above.strip(" \t")):
            lines.insert(0, compose([]))
        sections.append(LineChunk(source.starts[unit.line], lines))
    if not sections:
        sections = [LineChunk(0, [compose([WrapPiece("", THEME.text, 0)])])]
    return RenderedCell(sections)


@given(text=markdown_texts, data=st.data())
def test_growing_text_looks_as_drawn_afresh_at_every_step(text: str, data: st.DataObject) -> None:
    stream = MarkdownStream(WIDTH, THEME)
    end = 0
    while end < len(text):
        end += data.draw(st.integers(1, 6))
        assert picture(stream.update(text[:end]), text[:end]) == picture(
            drawn_whole(text[:end]), text[:end]
        )


@given(text=markdown_texts, data=st.data())
def test_edited_text_looks_as_drawn_afresh(text: str, data: st.DataObject) -> None:
    stream = MarkdownStream(WIDTH, THEME)
    assert picture(stream.update(text), text) == picture(drawn_whole(text), text)
    for _ in range(data.draw(st.integers(1, 2))):
        start = data.draw(st.integers(0, len(text)))
        end = min(len(text), start + data.draw(st.integers(0, 8)))
        text = text[:start] + data.draw(snippets) + text[end:]
        assert picture(stream.update(text), text) == picture(drawn_whole(text), text)


def calls_made(stream: MarkdownStream, text: str) -> int:
    """How many Python calls an update takes: a cost that does not depend on the machine."""
    with counted_calls() as count:
        stream.update(text)
    return count()


def costs_of_growing(text: str, step: int = 50) -> list[int]:
    stream = MarkdownStream(80, THEME)
    return [calls_made(stream, text[:end]) for end in range(step, len(text), step)]


LONG_TEXTS = {
    "one fence": "Intro\n\n```python\n" + "    value = compute(12, 'text')  # comment\n" * 100,
    "paragraphs": "Some **words**, a `span` and more text to wrap on several lines.\n\n" * 100,
    "one list": "- item with **some** words and a `span`\n" * 100,
    "numbers": "1. item with words\n   - and another\n" * 100,
}


@pytest.mark.parametrize("name", LONG_TEXTS)
def test_cost_of_a_flush_does_not_grow_with_what_is_drawn(name: str) -> None:
    costs = costs_of_growing(LONG_TEXTS[name])
    quarter = len(costs) // 4
    early, late = sum(costs[quarter : 2 * quarter]), sum(costs[-quarter:])
    assert late < 1.2 * early


def test_picture_given_out_stays_as_it_was() -> None:
    stream = MarkdownStream(80, THEME)
    first = stream.update("one\n\ntwo\n\n")
    stream.update("one\n\ntwo\n\nthree\n\nfour\n\n")
    stream.update("one\n\n2\n\nthree\n\nfour\n\n")
    assert [line.text for line in first.lines] == ["one", "", "two"]
