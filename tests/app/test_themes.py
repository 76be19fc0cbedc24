"""Theme files, and whether the bundled ones can be read."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import pytest
from rich.style import Style
from textual.color import Color
from textual.theme import BUILTIN_THEMES, Theme

from antiphon.render.cell_theme import CellTheme, CodeTheme
from antiphon.render.text_lines import on_ground
from antiphon.themes import (
    DEFAULT_THEME,
    bundled_themes_folder,
    load_themes,
    read_theme,
)
from antiphon_kernel.types.records import COLOUR_SLOTS

ON_SURFACES = (
    *("text", "dim", "heading_1", "heading_2", "heading_3", "link", "thinking", "tool_prompt"),
    *("tool_command", "status_done", "status_running", "status_failed", "error", "unread"),
    *("mode_write", "mode_edit", "mode_navigate"),
)
"""Styles of text that may stand on a surface."""

GOOD = 'name = "mine"\n\n[interface]\nprimary = "#336699"\n'

BUNDLED = load_themes(bundled_themes_folder(), Path("/nonexistent"))
NAMES = sorted(BUNDLED.themes)
TERMINAL = "terminal"
"""The theme of which only the terminal knows the colours."""
KNOWN = [name for name in NAMES if name != TERMINAL]

DIFFERENCES = ("edit_surface", "removed_surface")
SURFACES = ("user_band", "panel", "focus_surface", "composer", "strip", *DIFFERENCES)


def contrast(one: Color, other: Color) -> float:
    """The contrast ratio that WCAG defines, 1 to 21."""
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


def _linear(one: Color) -> tuple[float, float, float]:
    red, green, blue = (
        share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4
        for share in one.normalized
    )
    return red, green, blue


def _luminance(one: Color) -> float:
    red, green, blue = _linear(one)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _perceived(one: Color) -> tuple[float, float, float]:
    """OKLab coordinates: distances in them are differences as seen."""
    red, green, blue = _linear(one)
    long = math.cbrt(0.4122214708 * red + 0.5363325363 * green + 0.0514459929 * blue)
    middle = math.cbrt(0.2119034982 * red + 0.6806995451 * green + 0.1073969566 * blue)
    short = math.cbrt(0.0883024619 * red + 0.2817188376 * green + 0.6299787005 * blue)
    return (
        0.2104542553 * long + 0.7936177850 * middle - 0.0040720468 * short,
        1.9779984951 * long - 2.4285922050 * middle + 0.4505937099 * short,
        0.0259040371 * long + 0.7827717662 * middle - 0.8086757660 * short,
    )


def painted(style: Style, page: Style) -> tuple[Color, Color]:
    """Foreground and background of text in a style on the page."""
    shown = page + style
    assert shown.color and shown.bgcolor
    return Color.from_rich_color(shown.color), Color.from_rich_color(shown.bgcolor)


def test_bundled_themes_are_all_there_and_whole() -> None:
    assert BUNDLED.failures == ()
    assert {DEFAULT_THEME, "antiphon-light", "high-contrast", "monochrome"} <= set(NAMES)
    assert len(NAMES) >= 8


@pytest.mark.parametrize("name", KNOWN)
def test_theme_text_styles_have_contrast(name: str) -> None:
    theme = CellTheme.from_theme(BUNDLED.themes[name])
    least = 7.0 if name == "high-contrast" else 4.5
    styles = {
        field: getattr(theme, field)
        for field in CellTheme.__dataclass_fields__
        if isinstance(getattr(theme, field), Style)
    }
    del styles["map_thumb"]
    for group in ("authors", "blame", "cursors", "selections"):
        styles |= {f"{group} {slot}": style for slot, style in enumerate(getattr(theme, group))}
    for role in ("plain", "keyword", "name", "string", "number", "comment", "removed"):
        styles[f"code {role}"] = getattr(theme.code, role)
    poor = {
        field: round(contrast(*painted(style, theme.background)), 2)
        for field, style in styles.items()
        if contrast(*painted(style, theme.background)) < least
    }
    assert poor == {}


@pytest.mark.parametrize("name", KNOWN)
def test_text_on_every_surface_has_contrast(name: str) -> None:
    theme = CellTheme.from_theme(BUNDLED.themes[name])
    text = {field: getattr(theme, field) for field in ON_SURFACES}
    text |= {f"author {slot}": style for slot, style in enumerate(theme.authors)}
    roles = CodeTheme.__dataclass_fields__
    code = {f"code {role}": on_ground(getattr(theme.code, role)) for role in roles}
    ratios = {
        (surface, field): contrast(*painted(style, theme.background + getattr(theme, surface)))
        for surface in SURFACES
        for field, style in (text | (code if surface in DIFFERENCES else {})).items()
    }
    assert {place: round(ratio, 2) for place, ratio in ratios.items() if ratio < 4.5} == {}


def test_terminal_theme_has_no_colours_of_its_own() -> None:
    theme = CellTheme.from_theme(BUNDLED.themes[TERMINAL])
    styles = [one for one in _all_styles(theme) if isinstance(one, Style)]
    colours = {colour for style in styles for colour in (style.color, style.bgcolor) if colour}
    assert colours
    assert all(colour.is_default or colour.is_system_defined for colour in colours)
    assert len(set(theme.authors)) == COLOUR_SLOTS


def _all_styles(theme: CellTheme) -> list[object]:
    found: list[object] = []
    for field in CellTheme.__dataclass_fields__:
        value = getattr(theme, field)
        found += value if isinstance(value, tuple) else [value]
    return found + [getattr(theme.code, field) for field in CodeTheme.__dataclass_fields__]


@pytest.mark.parametrize("name", KNOWN)
def test_theme_surfaces_and_marks_stand_out_from_the_page(name: str) -> None:
    theme = CellTheme.from_theme(BUNDLED.themes[name])
    page = painted(theme.background, theme.background)[1]
    ratios = {
        field: round(contrast(painted(getattr(theme, field), theme.background)[1], page), 2)
        for field in SURFACES
    } | {"code": round(contrast(painted(theme.code.plain, theme.background)[1], page), 2)}
    assert {field: ratio for field, ratio in ratios.items() if not 1.3 <= ratio <= 1.5} == {}
    for mark in (theme.map_thumb, theme.map_unread, theme.map_hit):
        assert contrast(painted(mark, theme.background)[0], page) >= 3
    for marked in (theme.own_selection, theme.hit):
        assert contrast(painted(marked, theme.background)[1], page) >= 1.8


@pytest.mark.parametrize("name", [name for name in KNOWN if name != "monochrome"])
def test_twelve_authors_can_be_told_apart_by_colour(name: str) -> None:
    theme = CellTheme.from_theme(BUNDLED.themes[name])
    colours = [painted(style, theme.background)[0] for style in theme.authors]
    nearest = min(
        math.dist(_perceived(one), _perceived(other))
        for one, other in itertools.combinations(colours, 2)
    )
    assert nearest > 0.07


def test_monochrome_theme_distinguishes_authors_by_weight_slant_and_lines() -> None:
    theme = CellTheme.from_theme(BUNDLED.themes["monochrome"])
    for style in (*theme.blame, *theme.cursors, *theme.selections, theme.error, theme.link):
        for colour in painted(style, theme.background):
            assert colour.r == colour.g == colour.b
    assert len(set(theme.blame)) == len(set(theme.authors)) == COLOUR_SLOTS


def test_cell_theme_from_any_builtin_theme_has_all_styles() -> None:
    for theme in BUILTIN_THEMES.values():
        assert len(CellTheme.from_theme(theme).authors) == COLOUR_SLOTS, theme.name


@pytest.mark.parametrize(
    ("source", "line", "words"),
    [
        ('name = "mine"\nprimary =\n', 2, "no TOML"),
        ('name = "mine', 1, "no TOML"),
        ('name = "mine"\n[interface]\nprimary = "blueish"\n', 3, "colour like #7fb4e0"),
        ('name = "mine"\n[interface]\nprimary = 7\n', 3, "text in quotes"),
        ('name = "mine"\n[interface]\nsurface = "#fff"\n', 2, "'interface.primary' is missing"),
        (
            'name = "mine"\n[interface]\nprimry = "#fff"\n',
            3,
            "no setting 'interface.primry'; known",
        ),
        (GOOD + '[cells]\ndim = "#777"\nlnk = "#fff"\n', 7, "'cells.lnk' has to be one of dim"),
        ('[interface]\nprimary = "#fff"\n', None, "'name' is missing"),
        ('name = "Not This"\n', 1, "found 'Not This'"),
        ('dark = "yes"\nname = "mine"\n', 1, "true or false"),
        ('authors = ["#fff"]\nname = "mine"\n[interface]\nprimary = "#fff"\n', 1, "a list of 12"),
        (GOOD + "[variables]\nborder = 1\n", 6, "text in quotes"),
        ("interface = 3\nname = 'mine'\n", 1, "has to be a table"),
    ],
)
def test_broken_theme_is_a_failure_with_file_line_and_reason(
    tmp_path: Path, source: str, line: int | None, words: str
) -> None:
    path = tmp_path / "broken.toml"
    path.write_text(source, encoding="utf-8")
    failures = read_theme(path)
    assert isinstance(failures, list)
    (failure,) = (one for one in failures if words in one.reason)
    assert (failure.path, failure.line) == (path, line)
    assert str(failure).startswith(f"{path}:{line}: " if line else f"{path}: ")


def test_file_that_cannot_be_read_is_a_failure(tmp_path: Path) -> None:
    (tmp_path / "folder.toml").mkdir()
    (tmp_path / "latin.toml").write_bytes(b'name = "x"\n# \xe9\n')
    failures = load_themes(tmp_path, tmp_path / "none").failures
    assert [failure.line for failure in failures] == [None, 2]


def test_rest_loads_beside_a_broken_theme(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text("name = ", encoding="utf-8")
    (tmp_path / "b.toml").write_text(GOOD, encoding="utf-8")
    loaded = load_themes(bundled_themes_folder(), tmp_path)
    assert set(NAMES) < set(loaded.themes)
    assert isinstance(loaded.themes["mine"], Theme)
    assert len(loaded.failures) == 1


def test_user_theme_replaces_a_bundled_one_of_its_name(tmp_path: Path) -> None:
    source = GOOD.replace("mine", DEFAULT_THEME)
    (tmp_path / "own.toml").write_text(source, encoding="utf-8")
    loaded = load_themes(bundled_themes_folder(), tmp_path)
    assert loaded.themes[DEFAULT_THEME].primary == "#336699"
