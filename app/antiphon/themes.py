"""Themes as files: the bundled ones and those in the user's config folder.

A theme is a TOML file. `name` is what it is chosen by, `dark` says whether its page is dark (it is,
unless `dark = false`), `authors` holds twelve colours. The table `interface` sets the colours of
the program (`primary` at least), `cells` those of text, and `variables` any variable of Textual's
style sheets.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, Final, cast

from textual.color import Color, ColorParseError
from textual.theme import Theme

from antiphon.render.cell_theme import CELL_COLOURS
from antiphon_kernel.types.records import COLOUR_SLOTS

DEFAULT_THEME: Final = "antiphon-dark"

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

_TOP_LEVEL: Final = ("name", "dark", "authors", "interface", "cells", "variables")
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9_-]*")
_TOML_PLACE: Final = re.compile(r"\s*\(at (?:line (\d+), column \d+|end of document)\)")


@dataclass(frozen=True, slots=True)
class FailedTheme:
    """A theme file that could not be used."""

    path: Path
    line: int | None
    """The line at fault, from 1; None if it is the file as a whole."""
    reason: str

    def __str__(self) -> str:
        place = f"{self.path}:{self.line}" if self.line else str(self.path)
        return f"{place}: {self.reason}"


@dataclass(frozen=True, slots=True)
class LoadedThemes:
    """Themes by name, a user's before a bundled one of the same name, and what went wrong."""

    themes: Mapping[str, Theme]
    failures: tuple[FailedTheme, ...]


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
    """Read every `*.toml` of both folders; a folder that is not there holds nothing."""
    themes: dict[str, Theme] = {}
    failures: list[FailedTheme] = []
    for folder in (bundled, user):
        for path in sorted(folder.glob("*.toml")):
            read = read_theme(path)
            if isinstance(read, Theme):
                themes[read.name] = read
            else:
                failures.append(read)
    return LoadedThemes(themes, tuple(failures))


def read_theme(path: Path) -> Theme | FailedTheme:
    """The theme in a file, or why there is none."""
    try:
        source = path.read_text(encoding="utf-8")
    except OSError as error:
        return FailedTheme(path, None, f"cannot be read: {error.strerror or error}")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        return FailedTheme(path, line, "is not UTF-8 text")
    try:
        return parse_theme(tomllib.loads(source))
    except tomllib.TOMLDecodeError as error:
        place = _TOML_PLACE.search(str(error))
        line = source.count("\n") + 1
        if place and place[1]:
            line = int(place[1])
        reason = _TOML_PLACE.sub("", str(error))
        return FailedTheme(path, line, f"is not TOML: {reason}")
    except ThemeError as error:
        return FailedTheme(path, _line_of(source, error.key), str(error))


def parse_theme(data: Mapping[str, Any]) -> Theme:
    """The theme that a TOML document describes.

    Raises:
        ThemeError: a setting is missing, unknown or not what it should be.
    """
    for key in data:
        _expect_known("", key, _TOP_LEVEL)
    name = data.get("name")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        found = f", found {name!r}" if "name" in data else ""
        raise ThemeError("name", f"`name` has to be a word in lower case{found}")
    dark = data.get("dark", True)
    if not isinstance(dark, bool):
        raise ThemeError("dark", f"`dark` has to be true or false, found {dark!r}")
    interface = _colours(data, "interface", INTERFACE_COLOURS)
    if "primary" not in interface:
        raise ThemeError("interface", "`interface` has to set `primary`")
    cells = _colours(data, "cells", CELL_COLOURS)
    variables = {
        **{f"cell-{key}": colour for key, colour in cells.items()},
        **{f"author-{slot}": colour for slot, colour in enumerate(_authors(data))},
        **_variables(data),
    }
    return Theme(name=name, dark=dark, variables=variables, **cast(Any, interface))


def _authors(data: Mapping[str, Any]) -> list[str]:
    authors = data.get("authors", [])
    if not isinstance(authors, list):
        raise ThemeError("authors", f"`authors` has to be a list, found {authors!r}")
    if authors and len(authors) != COLOUR_SLOTS:
        raise ThemeError(
            "authors", f"`authors` has to hold {COLOUR_SLOTS} colours, found {len(authors)}"
        )
    return [
        _colour("authors", f"`authors` number {n}", value) for n, value in enumerate(authors, 1)
    ]


def _colours(data: Mapping[str, Any], table: str, known: tuple[str, ...]) -> dict[str, str]:
    values = _table(data, table)
    for key in values:
        _expect_known(f"{table}.", key, known)
    return {key: _colour(f"{table}.{key}", f"`{key}`", value) for key, value in values.items()}


def _variables(data: Mapping[str, Any]) -> dict[str, str]:
    values = _table(data, "variables")
    for key, value in values.items():
        if not isinstance(value, str):
            raise ThemeError(f"variables.{key}", f"`{key}` has to be a string, found {value!r}")
    return dict(values)


def _table(data: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    table = data.get(name, {})
    if not isinstance(table, dict):
        raise ThemeError(name, f"`{name}` has to be a table, found {table!r}")
    return table


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


def _line_of(source: str, key: str) -> int | None:
    """The line, from 1, of a setting or of its table's head; None if it is not in the file."""
    table, _, name = key.rpartition(".")
    inside = not table
    head = None
    for number, line in enumerate(source.splitlines(), 1):
        text = line.strip()
        if text.startswith("["):
            section = text.strip("[] ").split("]")[0]
            inside = section == table
            if section in (table, key):
                head = number
        elif inside and re.match(rf"[\"']?{re.escape(name)}[\"']?\s*[=.]", text):
            return number
    return head
