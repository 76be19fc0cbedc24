r"""Output as a terminal shows it: coloured (SGR), written over by ``\r`` and backspace.

The sixteen named colours are the theme's. Every other colour is taken as it is, moved towards black
or white as far as it takes to be read on its ground; a theme without colours gets greys.

Of all sequences only those that set styles and those that clear a part of the line have an effect;
every other one is shown as the visible characters that stand for it.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple

from rich.color import Color as RichColor
from rich.style import Style
from textual.color import Color

from antiphon.render.cell_theme import TEXT_CONTRAST, CellTheme, contrast
from antiphon.render.wrap import (
    WrapPiece,
    expand_tabs,
    graphemes,
    is_one_cell_each,
)

SGR: Final = r"\x1b\[([0-9;:]{0,64})m"
"""Pattern of a sequence that sets styles; group 1 is its parameters. A longer one is none."""

Rgb = tuple[int, int, int]
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
    groups = [[int(part or 0) for part in group.split(":")] for group in parameters.split(";")]
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
            if colour is not None and number == 38:
                state = state._replace(foreground=colour)
            elif colour is not None:
                state = state._replace(background=colour)
        else:
            state = _after_number(state, number, rest)
    return state


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
        self._is_grey = all(one.r == one.g == one.b for one in theme.ansi)
        self._ground = _colour_of(theme.panel.bgcolor, Color(0, 0, 0))
        self._text = _colour_of(style.color, Color(255, 255, 255))
        self.style: Final = lru_cache(1024)(self._style)

    def _style(self, state: SgrState) -> Style:
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
            if given < len(self._named):
                return self._named[given]
            given = RichColor.from_ansi(given).get_truecolor()
        red, green, blue = given
        if self._is_grey:
            red = green = blue = round(0.299 * red + 0.587 * green + 0.114 * blue)
        return Color(red, green, blue)


def _colour_of(colour: RichColor | None, default: Color) -> Color:
    return default if colour is None or colour.is_default else Color.from_rich_color(colour)


@lru_cache(4096)
def _readable(colour: Color, ground: Color) -> Color:
    """The nearest colour on the way to black or white that can be read on the ground.

    What the terminal's own colours look like is not known: they stay.
    """
    if colour.ansi is not None:
        return colour
    black, white = Color(0, 0, 0), Color(255, 255, 255)
    end = max(black, white, key=lambda one: contrast(one, ground))
    steps = (colour.blend(end, step / _STEPS) for step in range(_STEPS + 1))
    return next((one for one in steps if contrast(one, ground) >= TEXT_CONTRAST), end)


TAB: Final = 8
"""Columns from one tab stop to the next in plain text, as terminals have it."""

_TOKEN: Final = re.compile(SGR + r"|\x1b\[([0-2]?)K|\r|\x08")


class TerminalLine:
    """A line that is written from left to right and over itself."""

    def __init__(self, styles: SgrStyles, state: SgrState) -> None:
        self._styles = styles
        self.state = state
        self._column = 0
        self._cells: list[WrapPiece | None] = []
        """A picture in each column; a wide one is followed by None for its other column."""

    def copy(self) -> TerminalLine:
        other = TerminalLine(self._styles, self.state)
        other._column, other._cells = self._column, self._cells.copy()
        return other

    def write(self, raw: str, shown: str, offset: int) -> None:
        """Carry on with a part of the line; `shown` is `raw` with what is harmful replaced."""
        at = 0
        for found in _TOKEN.finditer(raw):
            self._print(shown[at : found.start()], offset + at)
            at = found.end()
            if found[1] is not None:
                self.state = after_sgr(self.state, found[1])
            elif found[2] is not None:
                self._erase(found[2])
            elif found[0] == "\r":
                self._column = 0
            else:
                self._column = max(0, self._column - 1)
        self._print(shown[at:], offset + at)

    def pieces(self) -> list[WrapPiece]:
        return list(filter(None, self._cells))

    def _print(self, text: str, offset: int) -> None:
        if not text:
            return
        style = self._styles.style(self.state)
        cells: list[WrapPiece | None] = []
        for part in expand_tabs(text, style, offset, TAB, self._column):
            shown, _, at, length = part
            if length != len(shown):  # a tab
                cells += [part, *[None] * (len(shown) - 1)]
            elif is_one_cell_each(shown):
                cells += [WrapPiece(one, style, place, 1) for place, one in enumerate(shown, at)]
            else:
                for low, high, width in graphemes(shown):
                    if width or low != high:
                        cells.append(WrapPiece(shown[low:high], style, at + low, high - low))
                        cells += [None] * (width - 1)
        start, end = self._column, self._column + len(cells)
        self._break_wide(start)
        self._break_wide(end)
        if start > len(self._cells):
            self._cells += [WrapPiece(" ", self._styles.style(self.state))] * (
                start - len(self._cells)
            )
        self._cells[start:end] = cells
        self._column = end

    def _erase(self, how: str) -> None:
        if how == "2":
            self._cells.clear()
        elif how == "1":
            blank = WrapPiece(" ", self._styles.style(self.state))
            count = min(self._column + 1, len(self._cells))
            self._break_wide(count)
            self._cells[:count] = [blank] * count
        else:
            self._break_wide(self._column)
            del self._cells[self._column :]

    def _break_wide(self, column: int) -> None:
        """Put blanks for a wide picture that goes across this edge."""
        if 0 < column < len(self._cells) and self._cells[column] is None:
            first = column - 1
            while first > 0 and self._cells[first] is None:
                first -= 1
            end = column
            while end < len(self._cells) and self._cells[end] is None:
                end += 1
            whole = self._cells[first]
            assert whole is not None
            self._cells[first:end] = [WrapPiece(" ", whole.style)] * (end - first)


_CLEARS: Final = re.compile(r"\x1b\[[0-2]?K")


def _is_written_over(raw: str) -> bool:
    """The line has to be written step by step: it goes back or clears something."""
    return "\r" in raw or "\x08" in raw or ("\x1b[" in raw and _CLEARS.search(raw) is not None)


class TerminalDecoder:
    """Reads lines of output, one after the other, the last one again as it grows."""

    def __init__(self, styles: SgrStyles) -> None:
        self._styles = styles
        self._open: tuple[str, int, SgrState, TerminalLine] | None = None
        """The text that was written, the line's place and state at its start, and the line."""

    def pieces(
        self, raw: str, shown: str, offset: int, state: SgrState
    ) -> tuple[list[WrapPiece], SgrState]:
        """Return a line as it is shown, and the state at its end.

        `shown` is the line with everything harmful replaced; `state` is that at its start.
        """
        if _is_written_over(raw):
            pieces, after = self._written_over(raw, shown, offset, state)
        elif "\x1b" not in raw:
            return expand_tabs(shown, self._styles.style(state), offset, TAB), state
        else:
            pieces, after = self._coloured(raw, shown, offset, state)
        if not pieces or pieces[0].offset != offset:
            pieces.insert(0, WrapPiece("", self._styles.style(state), offset, 0))
        return pieces, after

    def _written_over(
        self, raw: str, shown: str, offset: int, state: SgrState
    ) -> tuple[list[WrapPiece], SgrState]:
        """Write the line; what stands before its last return is not written again as it grows."""
        line, done = TerminalLine(self._styles, state), 0
        if self._open is not None and self._open[1:3] == (offset, state):
            if raw.startswith(self._open[0]):
                line, done = self._open[3], len(self._open[0])
        final = raw.rfind("\r") + 1
        if final > done:
            line.write(raw[done:final], shown[done:final], offset + done)
            done = final
        self._open = raw[:done], offset, state, line
        line = line.copy()
        line.write(raw[done:], shown[done:], offset + done)
        return line.pieces(), line.state

    def _coloured(
        self, raw: str, shown: str, offset: int, state: SgrState
    ) -> tuple[list[WrapPiece], SgrState]:
        """Read a line that is only coloured."""
        pieces: list[WrapPiece] = []
        at = column = 0
        for found in (*_SEQUENCE.finditer(raw), None):
            end = found.start() if found else len(shown)
            if at < end or (found is None and not pieces):
                style = self._styles.style(state)
                part = expand_tabs(shown[at:end], style, offset + at, TAB, column)
                pieces += part
                column += sum(len(piece.text) for piece in part)
            if found:
                state = after_sgr(state, found[1])
                at = found.end()
        return pieces, state
