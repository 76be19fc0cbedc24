"""Themes as files: the bundled ones and those in the user's config folder.

A theme is a TOML file. `name` is what it is chosen by, `dark` says whether its page is dark (it is,
unless `dark = false`), `ansi = true` that its colours are the terminal's own (`ansi_blue` and so
on), `authors` holds twelve colours. The table `interface` sets the colours of
the program (`primary` at least), `cells` those of text, and `variables` any variable of Textual's
style sheets.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Annotated, Final

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from textual.color import Color, ColorParseError
from textual.theme import BUILTIN_THEMES, Theme

from antiphon.render.cell_theme import CELL_COLOURS
from antiphon.settings import FileProblem, problems_of, read_toml
from antiphon_kernel.text.toml_lines import TomlFile
from antiphon_kernel.types.records import COLOUR_SLOTS

DEFAULT_THEME: Final = "antiphon-dark"
LIGHT_THEME: Final = "antiphon-light"


def _check_colour(value: str) -> str:
    try:
        Color.parse(value)
    except ColorParseError as error:
        raise ValueError("a colour like #7fb4e0") from error
    return value


def _check_cell_colour(name: str) -> str:
    if name not in CELL_COLOURS:
        raise ValueError(f"one of {', '.join(CELL_COLOURS)}")
    return name


_Colour = Annotated[str, AfterValidator(_check_colour)]
_CellColour = Annotated[str, AfterValidator(_check_cell_colour)]


class _InterfaceColours(BaseModel):
    """Colours of a theme's table `interface`, with Textual's names."""

    model_config = ConfigDict(extra="forbid", strict=True)

    primary: _Colour
    secondary: _Colour | None = None
    accent: _Colour | None = None
    foreground: _Colour | None = None
    background: _Colour | None = None
    surface: _Colour | None = None
    panel: _Colour | None = None
    boost: _Colour | None = None
    success: _Colour | None = None
    warning: _Colour | None = None
    error: _Colour | None = None


class _ThemeFile(BaseModel):
    """Content of a theme's file."""

    model_config = ConfigDict(extra="forbid", strict=True)

    name: str = Field(pattern="^[a-z0-9][a-z0-9_-]*$")
    dark: bool = True
    ansi: bool = False
    authors: list[_Colour] = Field([], min_length=COLOUR_SLOTS, max_length=COLOUR_SLOTS)
    interface: _InterfaceColours
    cells: dict[_CellColour, _Colour] = {}
    variables: dict[str, str] = {}


@dataclass(frozen=True, slots=True)
class LoadedThemes:
    """Themes by name, a user's before a bundled one of the same name, and what went wrong."""

    themes: Mapping[str, Theme]
    failures: tuple[FileProblem, ...]


def bundled_themes_folder() -> Path:
    """Return the folder of the bundled themes: in the installed package, else in the repository."""
    installed = Path(str(resources.files("antiphon"))) / "bundled_themes"
    if installed.is_dir():
        return installed
    return Path(__file__).resolve().parents[2] / "themes"


def load_themes(bundled: Path, user: Path) -> LoadedThemes:
    """Read every `*.toml` of both folders; a folder that is not there holds nothing.

    A bundled file is read once in a process.
    """
    themes: dict[str, Theme] = {}
    failures: list[FileProblem] = []
    for folder, reader in ((bundled, _read_bundled), (user, read_theme)):
        for path in sorted(folder.glob("*.toml")):
            read = reader(path)
            if isinstance(read, Theme):
                themes[read.name] = read
            else:
                failures += read
    return LoadedThemes(themes, tuple(failures))


def read_theme(path: Path) -> Theme | list[FileProblem]:
    """The theme in a file, or why there is none."""
    file = read_toml(path)
    if not isinstance(file, TomlFile):
        return [file or FileProblem(path, None, "cannot be read: it is gone")]
    try:
        told = _ThemeFile.model_validate(file.tables)
    except ValidationError as invalid:
        return problems_of(path, file, _ThemeFile, invalid)
    # Textual's style sheets name some variables that only a theme of the terminal's colours has.
    needed = BUILTIN_THEMES["ansi-dark"].variables if told.ansi else {}
    variables = {
        **needed,
        **{f"cell-{name}": colour for name, colour in told.cells.items()},
        **{f"author-{slot}": colour for slot, colour in enumerate(told.authors)},
        **told.variables,
    }
    colours = told.interface.model_dump()
    return Theme(name=told.name, dark=told.dark, ansi=told.ansi, variables=variables, **colours)


_read_bundled: Final = cache(read_theme)
