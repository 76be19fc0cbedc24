"""Themes as files: the bundled ones and those in the user's config folder.

A theme is a TOML file. `name` is what it is chosen by, `dark` says whether its page is dark (it is,
unless `dark = false`), `ansi = true` that its colours are the terminal's own (`ansi_blue` and so
on), `authors` holds twelve colours. The table `interface` sets the colours of
the program (`primary` at least), `cells` those of text, and `variables` any variable of Textual's
style sheets.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, Final, TypeVar, cast

from textual.color import Color, ColorParseError
from textual.theme import BUILTIN_THEMES, Theme

from antiphon.render.cell_theme import CELL_COLOURS
from antiphon.settings import FileProblem, read_toml
from antiphon_kernel.text.toml_lines import TomlFile
from antiphon_kernel.types.records import COLOUR_SLOTS

DEFAULT_THEME: Final = "antiphon-dark"
LIGHT_THEME: Final = "antiphon-light"

INTERFACE_COLOURS: Final = (
    "primary",
    "secondary",
    "accent",
    "foreground",
    "background",
    "surface",
    "panel",
    "boost",
    "success",
    "warning",
    "error",
)
"""The names that a theme can set in its table `interface`."""

Value = TypeVar("Value")

_TOP_LEVEL: Final = ("name", "dark", "ansi", "authors", "interface", "cells", "variables")
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9_-]*")


@dataclass(frozen=True, slots=True)
class LoadedThemes:
    """Themes by name, a user's before a bundled one of the same name, and what went wrong."""

    themes: Mapping[str, Theme]
    failures: tuple[FileProblem, ...]


class ThemeError(ValueError):
    """A theme's content is wrong; `key` names the setting, `table.key` for one in a table."""

    def __init__(self, key: str, reason: str) -> None:
        super().__init__(reason)
        self.key = key


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
                failures.append(read)
    return LoadedThemes(themes, tuple(failures))


def read_theme(path: Path) -> Theme | FileProblem:
    """The theme in a file, or why there is none."""
    file = read_toml(path)
    if not isinstance(file, TomlFile):
        return file or FileProblem(path, None, "cannot be read: it is gone")
    try:
        return parse_theme(file.tables)
    except ThemeError as error:
        return FileProblem(path, file.line_of(*error.key.split(".")), str(error))


_read_bundled: Final = cache(read_theme)


def parse_theme(data: Mapping[str, Any]) -> Theme:
    """Return the theme that a TOML document describes. Raises ThemeError."""
    for key in data:
        _expect_known("", key, _TOP_LEVEL)
    name = data.get("name")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        found = f", found {name!r}" if "name" in data else ""
        raise ThemeError("name", f"`name` has to be a word in lower case{found}")
    dark = _value(data, "dark", True, "true or false")
    ansi = _value(data, "ansi", False, "true or false")
    interface = _colours(data, "interface", INTERFACE_COLOURS)
    if "primary" not in interface:
        raise ThemeError("interface", "`interface` has to set `primary`")
    cells = _colours(data, "cells", CELL_COLOURS)
    extra = _value(data, "variables", dict[str, Any](), "a table")
    for key, value in extra.items():
        if not isinstance(value, str):
            raise ThemeError(f"variables.{key}", f"`{key}` has to be a string, found {value!r}")
    # Textual's style sheets name some variables that only a theme of the terminal's colours has.
    needed = BUILTIN_THEMES["ansi-dark"].variables if ansi else {}
    variables = {
        **needed,
        **{f"cell-{key}": colour for key, colour in cells.items()},
        **{f"author-{slot}": colour for slot, colour in enumerate(_authors(data))},
        **extra,
    }
    return Theme(name=name, dark=dark, ansi=ansi, variables=variables, **cast(Any, interface))


def _authors(data: Mapping[str, Any]) -> list[str]:
    authors = _value(data, "authors", list[Any](), "a list")
    if authors and len(authors) != COLOUR_SLOTS:
        raise ThemeError(
            "authors", f"`authors` has to hold {COLOUR_SLOTS} colours, found {len(authors)}"
        )
    return [
        _colour("authors", f"`authors` number {n}", value) for n, value in enumerate(authors, 1)
    ]


def _colours(data: Mapping[str, Any], table: str, known: tuple[str, ...]) -> dict[str, str]:
    values = _value(data, table, dict[str, Any](), "a table")
    for key in values:
        _expect_known(f"{table}.", key, known)
    return {key: _colour(f"{table}.{key}", f"`{key}`", value) for key, value in values.items()}


def _value(data: Mapping[str, Any], name: str, default: Value, kind: str) -> Value:
    """Return a value of the same type as its default."""
    value = data.get(name, default)
    if not isinstance(value, type(default)):
        raise ThemeError(name, f"`{name}` has to be {kind}, found {value!r}")
    return value


def _colour(key: str, shown: str, value: object) -> str:
    if not isinstance(value, str):
        raise ThemeError(key, f"{shown} has to be a colour in quotes, found {value!r}")
    try:
        Color.parse(value)
    except ColorParseError as error:
        raise ThemeError(
            key, f"{shown} has to be a colour like #7fb4e0, found {value!r}"
        ) from error
    return value


def _expect_known(table: str, key: str, known: tuple[str, ...]) -> None:
    if key not in known:
        allowed = ", ".join(known)
        raise ThemeError(f"{table}{key}", f"unknown setting `{key}`; known here: {allowed}")
