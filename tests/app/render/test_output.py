"""Output of programs: its colours, what it writes over, and what it may not do to a terminal."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.style import Style
from textual.color import Color

from antiphon.render.cell_renderer import CellRenderer
from antiphon.render.cell_theme import TEXT_CONTRAST, CellTheme, contrast
from antiphon.render.lines import RenderedCell
from antiphon.render.terminal_output import PLAIN, SgrState, SgrStyles, after_sgr
from tests.app.render.notation import THEME, bundled_theme, picture, plain, render_cell, view

THEMES = ("antiphon-dark", "antiphon-light", "high-contrast", "monochrome")


def drawn(text: str, width: int = 40) -> RenderedCell:
    return render_cell(view("tool_result", text), width, THEME)


def rows(text: str, width: int = 40) -> list[str]:
    return [row.removeprefix("  ").rstrip() for row in plain(drawn(text, width))]


def style_of(text: str, word: str) -> Style:
    for segment in drawn(text).line(0).strip:
        if word in segment.text:
            assert segment.style is not None
            return segment.style
    raise AssertionError(f"{word} is not shown")


# What is coloured


def test_sgr_state_goes_on_over_lines() -> None:
    assert style_of("\x1b[1mone\ntwo", "one").bold
    cell = drawn("\x1b[1mone\ntwo")
    assert ("two", True) in [(one.text, one.style and one.style.bold) for one in cell.line(1).strip]


@pytest.mark.parametrize(
    ("parameters", "state"),
    [
        ("", PLAIN),
        ("1;31", SgrState(foreground=1, bold=True)),
        ("91;104", SgrState(foreground=9, background=12)),
        ("38;5;200", SgrState(foreground=200)),
        ("38:5:200", SgrState(foreground=200)),
        ("48;2;1;2;3", SgrState(background=(1, 2, 3))),
        ("38:2::1:2:3", SgrState(foreground=(1, 2, 3))),
        ("38:2:1:2:3;4:3", SgrState(foreground=(1, 2, 3), underline=True)),
        ("38;2;300;0;0;1", SgrState(bold=True)),
        ("38;5", PLAIN),
        ("38;9;1", SgrState(bold=True)),
        ("99999999999999999999", PLAIN),
        ("8;5;6", PLAIN),
        ("1;2;3;4;7;9;22;23;24;27;29", PLAIN),
        ("31;39;41;49", PLAIN),
        ("4;4:0", PLAIN),
        ("1;2;3;4;7;9;31;42;0", PLAIN),
    ],
)
def test_parameters_of_sgr(parameters: str, state: SgrState) -> None:
    assert after_sgr(PLAIN, parameters) == state


@pytest.mark.parametrize("name", THEMES)
def test_every_colour_can_be_read_and_told_apart_in_every_theme(name: str) -> None:
    theme = CellTheme.from_theme(bundled_theme(name))
    styles = SgrStyles(theme, theme.dim)
    panel = Color.from_rich_color(theme.panel.bgcolor)
    colours = [*range(256), (0, 0, 0), (255, 255, 255), (10, 200, 90), None]
    for at, colour in enumerate(colours):
        for state in (
            SgrState(colour),
            SgrState(colour, faint=True),
            SgrState(colour, reverse=True),
            SgrState(None, colour),
            SgrState(colour, colours[at * 7 % len(colours)]),
        ):
            style = styles.style(state)
            ground = Color.from_rich_color(style.bgcolor) if style.bgcolor else panel
            text = Color.from_rich_color(style.color)
            if state not in (PLAIN, SgrState(reverse=True)):
                assert contrast(text, ground) >= TEXT_CONTRAST - 0.05, (state, style)
    assert name == "monochrome" or len({colour.hex for colour in theme.ansi[1:7]}) == 6


def test_theme_without_colours_shows_none() -> None:
    theme = CellTheme.from_theme(bundled_theme("monochrome"))
    styles = SgrStyles(theme, theme.dim)
    for colour in (*range(256), (200, 10, 60)):
        red, green, blue = Color.from_rich_color(styles.style(SgrState(colour)).color).rgb
        assert red == green == blue


# What is written over


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("progress 1/5\rprogress 2/5", ["progress 2/5"]),
        ("progress 1/5\rprogress 2/5\r", ["progress 2/5"]),
        ("one two\rab", ["abe two"]),
        ("one\r\ntwo\r\n", ["one", "two"]),
        ("abc\b\bX", ["aXc"]),
        ("\b\b\bok", ["ok"]),
        ("loading\r\x1b[Kdone", ["done"]),
        ("loading\x1b[2K\rdone", ["done"]),
        ("abcdef\r\x1b[31mXY", ["XYcdef"]),
        ("a\tb\rX", ["X       b"]),
        ("字字\rX", ["X 字"]),
        ("字字\r X", [" X字"]),
        ("e\u0301x\rab", ["ab"]),
        ("x\x1b[1mbold\x1b[m\ry", ["ybold"]),
    ],
)
def test_line_is_written_over_as_in_a_terminal(text: str, shown: list[str]) -> None:
    assert rows(text) == shown


def test_map_leads_from_what_is_shown_to_its_place_in_the_text() -> None:
    text = "abc\x1b[31m\rX\x1b[0m\ndef"
    cell = drawn(text)
    assert plain(cell) == ["  Xbc", "  def"]
    assert cell.offset_at(0, 2) == text.index("X")
    assert cell.offset_at(0, 3) == text.index("b")
    assert cell.place_of(text.index("X")) == (0, 2)
    assert cell.place_of(text.index("c")) == (0, 4)
    assert cell.place_of(text.index("def")) == (1, 2)


# What is neutralised

HOSTILE = (
    "\x1b]0;title\x07",
    "\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\",
    "\x1bP1;2|dcs\x1b\\",
    "\x1b[2J\x1b[H",
    "\x1b[?1049h",
    "\x1b[6n",
    "\x9b31mred",
    "\x9d0;x\x9c",
    "\x1b[31",
    "\x1b[",
    "\x1b",
    "\x1b[1;" + "9" * 5_000 + "m",
    "\x1b[" + "1;" * 5_000 + "m",
    "\x1b[31;?m",
    "\x1b[5A",
    "\x1bc",
    "\u202eevil",
    "\x00\x07\x0c\x0b",
)


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_nothing_but_styles_reaches_the_terminal(text: str) -> None:
    for cell in (drawn(text), drawn(f"a\r{text}b\n{text}"), drawn(f"\x1b[1m{text}\x1b[31mz")):
        for line in cell.lines:
            assert not [one for one in line.text if unicodedata.category(one) in ("Cc", "Cf")]


def test_flood_of_sequences_is_drawn_by_parts() -> None:
    text = "\x1b[31m\x1b[1;38;5;7m" * 100_000 + "x"
    cell = CellRenderer(40, THEME).update(view("tool_result", text))
    assert cell.drawn_count == 0
    cell, last = cell.settled(cell.line_count - 1, 20)
    assert cell.line(last).strip.text == "  x"
    assert cell.drawn_count < 100


# Growing

parts = st.sampled_from(
    [
        *("a", "bc ", "\n", "\r", "\r\n", "\b", "\t", "字", "e\u0301", "\u200d", "👩"),
        *("\x1b", "[", "31", ";", "m", "\x1b[31m", "\x1b[0m", "\x1b[1;4m", "\x1b[K", "\x1b[1K"),
        *("\x9b", "\x1b]0;t\x07", "\x1b[48;2;9;9;9m", "\x1b[2K", "wide word "),
    ]
)
outputs = st.lists(parts, max_size=30).map("".join)


@given(pieces=st.lists(outputs, min_size=1, max_size=6), width=st.integers(6, 30))
def test_growing_output_looks_as_drawn_afresh(pieces: list[str], width: int) -> None:
    for collapsed in (False, True):
        renderer, text = CellRenderer(width, THEME), ""
        for piece in pieces:
            text += piece
            shown = view("tool_result", text, collapsed=collapsed, status="running")
            fresh = render_cell(shown, width, THEME)
            assert picture(renderer.update(shown), text) == picture(fresh, text)


@given(text=outputs, width=st.integers(6, 30))
def test_output_shows_every_offset_once_and_in_its_line(text: str, width: int) -> None:
    cell = drawn(text, width)
    shown: list[int] = []
    for line in cell.lines:
        assert line.strip.cell_length <= max(width, 2)
        for run in line.runs:
            if run.width:
                shown += range(run.offset, run.offset + run.length)
    assert len(shown) == len(set(shown))
    assert all(text[offset] not in "\n" for offset in shown)
    lines = [text.count("\n", 0, offset) for offset in shown]
    assert lines == sorted(lines)
