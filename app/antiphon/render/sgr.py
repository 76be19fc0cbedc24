"""Colours and attributes that programs set in their output (SGR), as styles of a theme.

The sixteen named colours are the theme's. Every other colour is taken as it is, moved towards black
or white as far as it takes to be read on its ground; a theme without colours gets greys.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final, NamedTuple

from rich.color import Color as RichColor
from rich.style import Style
from textual.color import Color

from antiphon.render.cell_theme import TEXT_CONTRAST, CellTheme, contrast

SGR: Final = r"\x1b\[([0-9;:]{0,64})m"
"""Pattern of a sequence that sets styles; group 1 is its parameters. A longer one is none."""

Rgb = tuple[int, int, int]
_NAMED: Final = 16
_CUBE: Final = (0, 95, 135, 175, 215, 255)
_STEPS: Final = 20
_FAINT: Final = 0.35
"""Share of its ground that faint text takes on, where that leaves it readable."""


class SgrState(NamedTuple):
    """Style that a terminal would write in: the colours by number or as red, green and blue."""

    foreground: int | Rgb | None = None
    background: int | Rgb | None = None
    bold: bool = False
    faint: bool = False
    italic: bool = False
    underline: bool = False
    reverse: bool = False
    strike: bool = False


PLAIN: Final = SgrState()

_FLAGS: Final[dict[int, tuple[str, bool]]] = {
    1: ("bold", True),
    2: ("faint", True),
    3: ("italic", True),
    4: ("underline", True),
    7: ("reverse", True),
    9: ("strike", True),
    21: ("underline", True),
    23: ("italic", False),
    24: ("underline", False),
    27: ("reverse", False),
    29: ("strike", False),
}


@lru_cache(4096)
def after_sgr(state: SgrState, parameters: str) -> SgrState:
    """Return the state after a sequence; what is unknown or out of range changes nothing."""
    groups = [_numbers(group) for group in parameters.split(";")]
    at = 0
    while at < len(groups):
        number, *rest = groups[at]
        at += 1
        if number in (38, 48):
            if not rest:
                size = {2: 4, 5: 2}.get(groups[at][0], 1) if at < len(groups) else 0
                rest = [group[0] for group in groups[at : at + size]]
                at += size
            elif rest[0] == 2 and len(rest) > 4:
                rest = [2, *rest[2:5]]  # the second is the colour space
            colour = _extended(rest)
            if colour is not None:
                state = (
                    state._replace(foreground=colour)
                    if number == 38
                    else state._replace(background=colour)
                )
        else:
            state = _after_number(state, number, rest)
    return state


def _numbers(group: str) -> list[int]:
    return [int(part) if part else 0 for part in group.split(":")]


def _after_number(state: SgrState, number: int, rest: list[int]) -> SgrState:
    if number == 0:
        return PLAIN
    if number == 22:
        return state._replace(bold=False, faint=False)
    if number == 4 and rest[:1] == [0]:
        return state._replace(underline=False)
    if flag := _FLAGS.get(number):
        return state._replace(**{flag[0]: flag[1]})
    for name, first, bright in (("foreground", 30, 90), ("background", 40, 100)):
        if first <= number < first + 8:
            return state._replace(**{name: number - first})  # type: ignore[arg-type]
        if bright <= number < bright + 8:
            return state._replace(**{name: number - bright + 8})  # type: ignore[arg-type]
        if number == first + 9:
            return state._replace(**{name: None})  # type: ignore[arg-type]
    return state


def _extended(parts: list[int]) -> int | Rgb | None:
    if any(part > 255 for part in parts):
        return None
    if len(parts) == 2 and parts[0] == 5:
        return parts[1]
    if len(parts) == 4 and parts[0] == 2:
        return parts[1], parts[2], parts[3]
    return None


_SEQUENCE: Final = re.compile(SGR)
_SET_ANEW: Final = re.compile(r"\x1b\[0*m")


def states_after(text: str, state: SgrState, start: int, end: int) -> SgrState:
    """Return the state at `end`, from that at `start`."""
    for found in _SEQUENCE.finditer(text, start, end):
        state = after_sgr(state, found[1])
    return state


def state_near(text: str, offset: int, reach: int = 16_384) -> SgrState:
    """Return the state at an offset, as far as the text shortly before it says."""
    first = max(0, offset - reach)
    first = max((found.end() for found in _SET_ANEW.finditer(text, first, offset)), default=first)
    return states_after(text, PLAIN, first, offset)


class SgrStyles:
    """The style of each state in a theme, on the ground of output."""

    def __init__(self, theme: CellTheme, style: Style) -> None:
        """`style` is that of text in the plain state."""
        self._plain = style
        self._named = theme.ansi
        self._is_grey = all(_is_grey(colour) for colour in theme.ansi)
        self._ground = _colour_of(theme.panel.bgcolor, Color(0, 0, 0))
        self._text = _colour_of(style.color, Color(255, 255, 255))
        self._styles: dict[SgrState, Style] = {PLAIN: style}

    def style(self, state: SgrState) -> Style:
        style = self._styles.get(state)
        if style is None:
            if len(self._styles) >= 1024:
                self._styles = {PLAIN: self._plain}
            style = self._styles[state] = self._make(state)
        return style

    def _make(self, state: SgrState) -> Style:
        page, text = self._ground, self._text
        colour = self._colour(state.foreground, text)
        ground = self._colour(state.background, page)
        has_ground = state.background is not None or state.reverse
        if state.reverse:
            colour, ground = ground, colour
        if state.faint:
            colour = colour.blend(ground, _FAINT)
        is_coloured = has_ground or state.foreground is not None or state.faint
        return self._plain + Style(
            color=_readable(colour, ground).rich_color if is_coloured else None,
            bgcolor=ground.rich_color if has_ground else None,
            bold=state.bold or None,
            italic=state.italic or None,
            underline=state.underline or None,
            strike=state.strike or None,
        )

    def _colour(self, given: int | Rgb | None, default: Color) -> Color:
        if given is None:
            return default
        if isinstance(given, int):
            if given < _NAMED:
                return self._named[given]
            given = _of_256(given)
        red, green, blue = given
        if self._is_grey:
            red = green = blue = round(0.299 * red + 0.587 * green + 0.114 * blue)
        return Color(red, green, blue)


def _of_256(number: int) -> Rgb:
    if number >= 232:
        level = 8 + 10 * (number - 232)
        return level, level, level
    number -= _NAMED
    return _CUBE[number // 36], _CUBE[number // 6 % 6], _CUBE[number % 6]


def _is_grey(colour: Color) -> bool:
    return colour.r == colour.g == colour.b


def _colour_of(colour: RichColor | None, default: Color) -> Color:
    return default if colour is None or colour.is_default else Color.from_rich_color(colour)


@lru_cache(4096)
def _readable(colour: Color, ground: Color) -> Color:
    """The nearest colour on the way to black or white that can be read on the ground.

    What the terminal's own colours look like is not known: they stay.
    """
    if colour.ansi is not None:
        return colour
    return next(_towards_readable(colour, ground), colour)


def _towards_readable(colour: Color, ground: Color) -> Iterator[Color]:
    black, white = Color(0, 0, 0), Color(255, 255, 255)
    end = max(black, white, key=lambda one: contrast(one, ground))
    for step in range(_STEPS + 1):
        tried = colour.blend(end, step / _STEPS)
        if contrast(tried, ground) >= TEXT_CONTRAST:
            yield tried
    yield end
