"""The filter that every row of the screen goes through."""

from __future__ import annotations

import pytest
from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.color import Color
from textual.filter import LineFilter

from antiphon.screen_filter import NeutralText

BLACK = Color(0, 0, 0)
RED = Style(color="red")


def filtered(*texts: str) -> list[Segment]:
    return NeutralText().apply([Segment(text, RED) for text in texts], BLACK)


@pytest.mark.parametrize(
    "texts",
    [
        ("plain ", "text"),
        ("\u2503 W\xf6rter, \u65e5\u672c\u8a9e",),
        ("\U0001f469", "\u200d\U0001f469"),
        ("\u2764", "\ufe0f ok"),
        ("\u0645\u06cc", "\u200c\u0634"),
    ],
)
def test_filter_row_of_ordinary_text_stays_as_it_is(texts: tuple[str, ...]) -> None:
    segments = [Segment(text, RED) for text in texts]
    assert NeutralText().apply(segments, BLACK) is segments


class Escaping(LineFilter):
    """A filter whose rows drive the terminal."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        return [Segment(f"\x1b{one.text}", one.style) for one in segments]


def test_filter_replaces_what_the_filters_before_it_have_written() -> None:
    row = NeutralText((Escaping(),)).apply([Segment("text  ", RED)], BLACK)
    assert "".join(one.text for one in row) == "\u241btext "


def test_filter_hostile_row_is_visible_in_its_styles_and_as_wide_as_before() -> None:
    texts = ("a\x1b[31m", "\u202eb\x9b", "\n\t\U000e0041\u200b", " " * 8)
    row = filtered(*texts)
    assert "".join(one.text for one in row).startswith("a\u241b[31m\u21e0b")
    assert all(one.text.isprintable() and one.style == RED for one in row)
    assert sum(cell_len(one.text) for one in row) == sum(map(cell_len, texts))
