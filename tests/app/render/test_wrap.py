"""Text on screen lines."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.style import Style

from antiphon.render.display import sanitize_for_display
from antiphon.render.wrap import (
    WrapPiece,
    clipped,
    closed,
    compose,
    expand_tabs,
    graphemes,
    line_ranges,
    wrap,
)

PLAIN = Style.null()
FAMILY = "\U0001f469\u200d\U0001f469\u200d\U0001f467"
FLAG = "\U0001f1e9\U0001f1ea"

words = st.text(alphabet="ab  c-", max_size=60)
wide = st.lists(
    st.sampled_from(
        ["a", "b", " ", " ", "字", "。", "（", FAMILY, FLAG, "e\u0301", "❤\ufe0f", "—"]
    ),
    max_size=40,
).map("".join)
anything = st.text(max_size=40).map(lambda text: sanitize_for_display(text.replace("\n", "")))


def wrapped(text: str, width: int, *, words: bool = True) -> list[str]:
    rows = wrap([WrapPiece.shown(text, PLAIN, 0)], width, words=words)
    return ["".join(piece.text for piece in row) for row in rows]


@pytest.mark.parametrize(
    ("text", "width", "expected"),
    [
        ("", 10, [""]),
        ("one two", 10, ["one two"]),
        ("one two three", 8, ["one two", "three"]),
        ("one     two", 5, ["one", "two"]),
        ("abcdefghij", 4, ["abcd", "efgh", "ij"]),
        ("ab cdefghij", 4, ["ab", "cdef", "ghij"]),
        ("   indented text", 9, ["   indent", "ed text"]),
        ("trailing     ", 9, ["trailing"]),
        ("one 字字字字", 8, ["one 字字", "字字"]),
        ("字字字。字", 6, ["字字", "字。字"]),
        ("a" + FAMILY + FAMILY, 4, ["a" + FAMILY, FAMILY]),
        ("aaa" + FLAG, 4, ["aaa", FLAG]),
        ("abce\u0301", 4, ["abce\u0301"]),
    ],
)
def test_words_first_then_pictures(text: str, width: int, expected: list[str]) -> None:
    assert wrapped(text, width) == expected
    assert wrapped("ab cd efg", 4, words=False) == ["ab c", "d ef", "g"]


@given(text=st.one_of(words, wide, anything), width=st.integers(2, 12))
def test_wrap_fits_width_and_loses_only_spaces(text: str, width: int) -> None:
    text = closed(WrapPiece.shown(text, PLAIN, 0)).text
    lines = wrapped(text, width)
    assert all(cell_len(line) <= width for line in lines)
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")


@given(text=st.one_of(words, wide, anything), width=st.integers(2, 12))
def test_wrap_without_words_loses_nothing(text: str, width: int) -> None:
    text = closed(WrapPiece.shown(text, PLAIN, 0)).text
    assert "".join(wrapped(text, width, words=False)) == text


@given(text=words, width=st.integers(2, 12), first=st.integers(2, 12), by_word=st.booleans())
def test_quick_and_thorough_wrapping_agree(
    text: str, width: int, first: int, by_word: bool
) -> None:
    quick = line_ranges(text, width, first_width=first, words=by_word)
    # A mark that takes no cell sends the same text through the thorough one.
    marked = text + "\u0301"
    thorough = line_ranges(marked, width, first_width=first, words=by_word)
    if text and not text.endswith(" "):
        assert [marked[a:b].rstrip("\u0301") for a, b in thorough] == [text[a:b] for a, b in quick]


@given(text=st.one_of(wide, anything))
def test_pictures_cover_the_text_and_its_width(text: str) -> None:
    text = closed(WrapPiece.shown(text, PLAIN, 0)).text
    units = graphemes(text)
    assert [unit.start for unit in units[1:]] == [unit.end for unit in units[:-1]]
    assert sum(unit.end - unit.start for unit in units) == len(text)
    assert sum(unit.width for unit in units) == cell_len(text)


@given(
    parts=st.lists(st.tuples(st.one_of(words, wide), st.booleans()), max_size=6),
    width=st.integers(2, 20),
)
def test_pieces_keep_their_offsets(parts: list[tuple[str, bool]], width: int) -> None:
    pieces, text = [], ""
    for part, is_shown in parts:
        if is_shown:
            pieces.append(WrapPiece.shown(part, PLAIN, len(text)))
            text += part
        else:
            pieces.append(WrapPiece(part, PLAIN))
    for row in wrap(pieces, width):
        for piece in row:
            if piece.offset >= 0:
                assert text[piece.offset : piece.offset + piece.length] == piece.text


@given(text=st.one_of(words, wide), width=st.integers(1, 20))
def test_clipped_text_fits_and_says_that_it_is_clipped(text: str, width: int) -> None:
    line = compose(clipped([WrapPiece.shown(text, PLAIN, 0)], width, PLAIN))
    assert line.strip.cell_length <= width
    assert line.text == text or line.text.endswith("…")


@given(text=st.text("a\t字", max_size=12), tab=st.integers(1, 9), column=st.integers(0, 9))
def test_expanded_tabs_reach_their_stops_and_keep_the_places_of_the_text(
    text: str, tab: int, column: int
) -> None:
    told = ""
    for piece in expand_tabs(text, PLAIN, 5, tab, column):
        column += cell_len(piece.text)
        written = text[piece.offset - 5 :][: piece.length]
        is_tab = written == "\t" and not piece.text.strip() and column % tab == 0
        assert is_tab or (written == piece.text and "\t" not in written)
        told += written
    assert told == text


@pytest.mark.parametrize("text", ["क\u200dष", "a\u200d", "\u200d👩", "x\u200dy"])
def test_joiner_joins_pictures_only(text: str) -> None:
    assert "\u200d" not in sanitize_for_display(text)
    assert len(sanitize_for_display(text)) == len(text)
