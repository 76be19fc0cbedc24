"""Every style that drawing a cell, its gutter or a presence mark needs, made from a theme.

A theme names author colours in its variables `author-0` to `author-11` and may overrule single
cell colours with `cell-dim`, `cell-code-background` and the other names of `CELL_COLOURS`. What a
theme does not name is derived from its foreground, background and accents, so that every Textual
theme works. Wherever two meanings could be told apart by colour only, they also differ in weight,
slant, underline or a sign.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

from rich.style import Style
from textual.color import Color, ColorParseError
from textual.theme import Theme

from antiphon_kernel.types.records import COLOUR_SLOTS

_ANSI_HUES: Final = {
    "black": None,
    "red": 0.0,
    "green": 0.36,
    "yellow": 0.13,
    "blue": 0.58,
    "magenta": 0.83,
    "cyan": 0.5,
    "white": None,
}
"""The named colours of terminals in their order, with the hue that each is about."""

CELL_COLOURS: Final = (
    "dim",
    "heading",
    "link",
    "code",
    "code-background",
    "code-keyword",
    "code-name",
    "code-string",
    "code-number",
    "code-comment",
    "code-removed",
    "selection",
    "focus",
    "unread",
    "user-band",
    "panel",
    "focus-surface",
    "edit-surface",
    "removed-surface",
    "composer",
    "strip",
    "hit",
    "hit-current",
    "map-thumb",
    "map-unread",
    "map-hit",
    "mode-write",
    "mode-edit",
    "mode-navigate",
    *(f"ansi-{name}" for name in _ANSI_HUES),
    *(f"ansi-bright-{name}" for name in _ANSI_HUES),
)
"""The names that a theme can set as `cell-<name>`."""

TEXT_CONTRAST: Final = 4.5
"""Text has at least this contrast to its ground."""

INK_STEPS: Final = 4
"""Looks of new text until it looks as all text."""

_STEPS: Final = 200
"""Colours that are tried between a page and a tint."""

_ATTRIBUTES: Final = tuple(
    Style(italic=italic or None, underline=line == 1 or None, underline2=line == 2 or None)
    + Style(overline=overline or None)
    for overline in (False, True)
    for line in (0, 1, 2)
    for italic in (False, True)
)
"""Styles that tell the slots apart where a theme gives several of them one colour."""


@dataclass(frozen=True, slots=True)
class CodeTheme:
    """Styles of highlighted code, on the code background."""

    plain: Style
    keyword: Style
    name: Style
    string: Style
    number: Style
    comment: Style
    removed: Style


_CODE_STYLES: Final = tuple(CodeTheme.__dataclass_fields__)


@dataclass(frozen=True, slots=True, eq=False)
class CellTheme:
    """Styles by what they mean; text styles have no background unless it is their meaning.

    There is one for each theme of the app.
    """

    background: Style
    """The page: foreground and background of everything else."""
    text: Style
    dim: Style
    """Output, notes, marks, quotes, folds, targets of links: whatever is beside the point."""
    heading_1: Style
    heading_2: Style
    heading_3: Style
    """Of levels 3 to 6."""
    emphasis: Style
    strong: Style
    strike: Style
    inline_code: Style
    link: Style
    code: CodeTheme
    thinking: Style
    tool_prompt: Style
    tool_command: Style
    status_done: Style
    status_running: Style
    status_failed: Style
    error: Style
    authors: tuple[Style, ...]
    """Names and gutter marks, by colour slot."""
    blame: tuple[Style, ...]
    """Text tinted by its author, by colour slot."""
    cursors: tuple[Style, ...]
    """Somebody's cursor cell and name tag, by colour slot."""
    selections: tuple[Style, ...]
    """Somebody's selection, by colour slot."""
    ink: tuple[tuple[Style, ...], ...]
    """New text by colour slot and age; empty in a theme that has one colour for all authors."""
    ink_unknown: tuple[Style, ...]
    """New text of nobody in particular by age; empty as `ink`."""
    own_cursor: Style
    own_selection: Style
    focus: Style
    """Keys, and what is chosen in a list."""
    unread: Style
    user_band: Style
    """Ground of what people have said; as all surfaces, a background and nothing else."""
    panel: Style
    """Ground of output."""
    focus_surface: Style
    edit_surface: Style
    """Also of lines that a difference adds."""
    removed_surface: Style
    composer: Style
    """Ground of the message that is being written."""
    strip: Style
    """Ground of the rows that show what is written out of sight."""
    hit: Style
    """Text that was searched for."""
    hit_current: Style
    map_thumb: Style
    """The view in the scroll bar, and marks in it: their colour is the foreground."""
    map_unread: Style
    map_hit: Style
    mode_write: Style
    """Name and rule of a mode."""
    mode_edit: Style
    mode_navigate: Style
    ansi: tuple[Color, ...]
    """The sixteen colours that programs name in their output, the bright ones last."""

    @classmethod
    def from_theme(cls, theme: Theme) -> CellTheme:
        """The styles of a theme; colours that cannot be read are derived instead."""
        known = _built.get(theme.name)
        if known is None or (known[0] is not theme and known[0] != theme):
            built = _build(_Palette(theme))
            known = (theme, _on_terminal_colours(built) if theme.ansi else built)
            _built[theme.name] = known
        return known[1]

    def mode(self, word: str) -> Style:
        """Style of a mode's word and rule; one without a colour is dim."""
        styles = {"WRITE": self.mode_write, "EDIT": self.mode_edit, "READ": self.dim}
        return styles.get(word, self.mode_navigate)

    def author(self, slot: int) -> Style:
        """Style of an author's name; any whole number is a slot."""
        return self.authors[slot % COLOUR_SLOTS]


_built: Final[dict[str, tuple[Theme, CellTheme]]] = {}
"""Styles by the name of the theme that they were made from."""


def css_variables(theme: Theme) -> dict[str, str]:
    """Return the variables of the app's style sheet that a theme need not set."""
    thumb = CellTheme.from_theme(theme).map_thumb.color
    assert thumb is not None
    return {"cell-map-thumb": Color.from_rich_color(thumb).hex}


class _Palette:
    """Colours of a theme by name, with derived ones for what it leaves out."""

    def __init__(self, theme: Theme) -> None:
        system = theme.to_color_system().generate()
        self._variables: Mapping[str, str] = theme.variables
        self.foreground = self._of(theme.foreground, system.get("foreground"), "#e0e0e0")
        self.background = self._of(theme.background, system.get("background"), "#121212")
        self.primary = self._of(theme.primary, "#7fb4e0")
        self.accent = self._of(theme.accent, system.get("accent"), theme.primary)
        self.success = self._of(theme.success, system.get("success"), theme.primary)
        self.warning = self._of(theme.warning, system.get("warning"), theme.primary)
        self.error = self._of(theme.error, system.get("error"), theme.primary)
        self.code_background = self.surface("code-background", self.foreground, 1.3)

    def cell(self, name: str, derived: Color) -> Color:
        return self._of(self._variables.get(f"cell-{name}"), derived.hex)

    def surface(self, name: str, tint: Color, ratio: float) -> Color:
        """The given colour, else the page towards `tint`, as far as it takes for this contrast."""
        steps = (self.background.blend(tint, step / _STEPS) for step in range(1, _STEPS))
        far = (one for one in steps if contrast(one, self.background) >= ratio)
        return self.cell(name, next(far, tint))

    def author(self, slot: int) -> Color:
        """The given colour, else one of twelve hues from the first accent on, neighbours apart."""
        hue, saturation, lightness = self.primary.hsl
        turned = (hue + (slot * 5 % COLOUR_SLOTS) / COLOUR_SLOTS) % 1.0
        derived = Color.from_hsl(turned, max(saturation, 0.45), lightness)
        return self._of(self._variables.get(f"author-{slot}"), derived.hex)

    def ansi(self) -> tuple[Color, ...]:
        """The sixteen colours of terminals: the theme's own where it has one of that hue."""
        own = (self.error, self.success, self.warning, self.primary, self.accent)
        page, ink = self.background, self.foreground
        greys = {"black": page.blend(ink, 0.25), "white": page.blend(ink, 0.85)}
        derived: dict[str, Color] = {}
        for name, hue in _ANSI_HUES.items():
            free = [colour for colour in own if colour not in derived.values()]
            derived[name] = greys[name] if hue is None else _of_hue(hue, free, self.primary)
        bright = {name: colour.blend(ink, 0.3) for name, colour in derived.items()} | {"white": ink}
        return (
            *(self.cell(f"ansi-{name}", colour) for name, colour in derived.items()),
            *(self.cell(f"ansi-bright-{name}", colour) for name, colour in bright.items()),
        )

    @staticmethod
    def _of(*candidates: str | None) -> Color:
        for candidate in filter(None, candidates):
            with suppress(ColorParseError):
                return Color.parse(candidate)
        return Color(128, 128, 128)


def contrast(one: Color, other: Color) -> float:
    """Return the contrast ratio of two colours as WCAG defines it: 1 to 21."""
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


def _luminance(colour: Color) -> float:
    red, green, blue = (
        share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4
        for share in colour.normalized
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


_NEAR_HUE: Final = 0.07
"""Part of the circle of hues within which two colours have the same name."""

_COLOURED: Final = 0.2
"""Saturation from which a colour has a hue."""


def _of_hue(hue: float, own: Sequence[Color], like: Color) -> Color:
    """The colour among `own` that is nearest to a hue, else one of that hue made like another."""

    def distance(colour: Color) -> float:
        apart = abs(colour.hsl[0] - hue) % 1.0
        return min(apart, 1 - apart)

    near = [one for one in own if one.hsl[1] > _COLOURED and distance(one) <= _NEAR_HUE]
    if near:
        return min(near, key=distance)
    _, saturation, lightness = like.hsl
    return Color.from_hsl(hue, saturation, lightness)


def _foreground(colour: Color, **attributes: bool) -> Style:
    return Style(color=colour.rich_color, **attributes)  # type: ignore[arg-type]


def _build(palette: _Palette) -> CellTheme:
    page, ink = palette.background, palette.foreground
    dim = palette.cell("dim", page.blend(ink, 0.62))
    heading = palette.cell("heading", palette.primary)
    slots = [palette.author(slot) for slot in range(COLOUR_SLOTS)]
    has_colours = len({colour.hex for colour in slots}) == COLOUR_SLOTS
    marks = [Style()] * COLOUR_SLOTS if has_colours else list(_ATTRIBUTES)
    return CellTheme(
        background=Style(color=ink.rich_color, bgcolor=page.rich_color),
        text=_foreground(ink),
        dim=_foreground(dim),
        heading_1=_foreground(heading, bold=True, underline=True),
        heading_2=_foreground(heading, bold=True),
        heading_3=_foreground(heading, bold=True, italic=True),
        emphasis=Style(italic=True),
        strong=Style(bold=True),
        strike=Style(strike=True),
        inline_code=Style(
            color=palette.cell("code", palette.accent).rich_color,
            bgcolor=palette.code_background.rich_color,
        ),
        link=_foreground(palette.cell("link", palette.primary), underline=True),
        code=_code_theme(palette),
        thinking=_foreground(dim, italic=True),
        tool_prompt=_foreground(palette.accent, bold=True),
        tool_command=_foreground(ink, bold=True),
        status_done=_foreground(palette.success),
        status_running=_foreground(palette.accent),
        status_failed=_foreground(palette.error, bold=True),
        error=_foreground(palette.error),
        authors=tuple(
            _foreground(colour, bold=True) + mark for colour, mark in zip(slots, marks, strict=True)
        ),
        blame=tuple(_foreground(colour) + mark for colour, mark in zip(slots, marks, strict=True)),
        cursors=tuple(
            Style(color=page.rich_color, bgcolor=colour.rich_color, bold=True) for colour in slots
        ),
        selections=tuple(
            Style(bgcolor=page.blend(colour, 0.28).rich_color) + Style(underline=True)
            for colour in slots
        ),
        ink=tuple(_fading(colour, ink) for colour in slots) if has_colours else (),
        ink_unknown=_fading(palette.accent, ink) if has_colours else (),
        own_cursor=Style(color=page.rich_color, bgcolor=ink.rich_color),
        own_selection=Style(bgcolor=palette.surface("selection", palette.primary, 1.85).rich_color),
        focus=_foreground(palette.cell("focus", palette.primary), bold=True),
        unread=_foreground(palette.cell("unread", palette.accent), bold=True),
        user_band=_ground(palette.surface("user-band", palette.primary, 1.32)),
        panel=_ground(palette.surface("panel", ink, 1.3)),
        focus_surface=_ground(palette.surface("focus-surface", palette.accent, 1.35)),
        edit_surface=_ground(palette.surface("edit-surface", palette.success, 1.35)),
        removed_surface=_ground(palette.surface("removed-surface", palette.error, 1.35)),
        composer=_ground(palette.surface("composer", ink, 1.3)),
        strip=_ground(palette.surface("strip", palette.accent, 1.35)),
        hit=_readable_on(palette.surface("hit", palette.warning, 1.9), ink) + Style(underline=True),
        hit_current=_readable_on(palette.cell("hit-current", palette.warning), page)
        + Style(bold=True),
        map_thumb=_foreground(palette.surface("map-thumb", ink, 3.2)),
        map_unread=_foreground(palette.cell("map-unread", palette.cell("unread", palette.accent))),
        map_hit=_foreground(palette.cell("map-hit", palette.warning)),
        mode_write=_foreground(palette.cell("mode-write", palette.primary), bold=True),
        mode_edit=_foreground(palette.cell("mode-edit", palette.success), bold=True),
        mode_navigate=_foreground(palette.cell("mode-navigate", palette.accent), bold=True),
        ansi=palette.ansi(),
    )


def _fading(colour: Color, text: Color) -> tuple[Style, ...]:
    """Return the styles of new text on its way to the colour of all text."""
    if colour.ansi is not None or text.ansi is not None:
        return (_foreground(colour),) * INK_STEPS
    return tuple(_foreground(colour.blend(text, step / INK_STEPS)) for step in range(INK_STEPS))


def _on_terminal_colours(theme: CellTheme) -> CellTheme:
    """Return the theme without mixed colours: attributes stand for grounds and for what is dim."""
    dim, none = Style(dim=True), Style()
    black = Style(color="black")
    return replace(
        theme,
        dim=dim,
        thinking=dim + Style(italic=True),
        inline_code=Style(color=theme.inline_code.color),
        code=CodeTheme(
            **{
                name: dim if name == "comment" else Style(color=style.color, bold=style.bold)
                for name, style in ((one, getattr(theme.code, one)) for one in _CODE_STYLES)
            }
        ),
        cursors=tuple(black + Style(bgcolor=one.color, bold=True) for one in theme.blame),
        selections=tuple(black + Style(bgcolor=one.color, underline=True) for one in theme.blame),
        own_cursor=Style(reverse=True),
        own_selection=Style(reverse=True),
        user_band=none,
        panel=none,
        focus_surface=none,
        edit_surface=none,
        removed_surface=none,
        composer=none,
        strip=none,
        hit=Style(underline=True, bold=True),
        hit_current=Style(reverse=True, bold=True),
        map_thumb=Style(color="bright_black"),
        ansi=tuple(
            Color.parse(f"ansi_{bright}{name}") for bright in ("", "bright_") for name in _ANSI_HUES
        ),
    )


def _ground(colour: Color) -> Style:
    return Style(bgcolor=colour.rich_color)


def _readable_on(ground: Color, wanted: Color) -> Style:
    """Text on a ground of its own, in the wanted colour or, if that is too near, black or white."""
    if contrast(wanted, ground) < TEXT_CONTRAST:
        black, white = Color(0, 0, 0), Color(255, 255, 255)
        wanted = max(black, white, key=lambda one: contrast(one, ground))
    return Style(color=wanted.rich_color, bgcolor=ground.rich_color)


def _code_theme(palette: _Palette) -> CodeTheme:
    ground, ink = _ground(palette.code_background), palette.foreground

    def on_code(name: str, derived: Color, **attributes: bool) -> Style:
        return ground + _foreground(palette.cell(name, derived), **attributes)

    return CodeTheme(
        plain=ground + _foreground(ink),
        keyword=on_code("code-keyword", palette.primary, bold=True),
        name=on_code("code-name", ink),
        string=on_code("code-string", palette.success),
        number=on_code("code-number", palette.accent),
        comment=on_code("code-comment", palette.background.blend(ink, 0.62), italic=True),
        removed=on_code("code-removed", palette.error),
    )
