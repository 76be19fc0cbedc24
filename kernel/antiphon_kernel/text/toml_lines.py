"""TOML of a configuration file, and the lines on which its values stand."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

MAX_BYTES: Final = 65_536
"""Bytes of a configuration file."""

_MAX_DOTS: Final = 100
"""Dots in one line: the parser takes quadratic time for a key of many parts."""

_KEY: Final = r"""(?:[A-Za-z0-9_-]+|"(?:[^"\\\n]|\\.)*"|'[^'\n]*')"""
_PATH: Final = rf"{_KEY}(?:[ \t]*\.[ \t]*{_KEY})*"
_HEADER: Final = re.compile(rf"[ \t]*\[{{1,2}}[ \t]*({_PATH})[ \t]*\]")
_ASSIGNMENT: Final = re.compile(rf"[ \t]*({_PATH})[ \t]*=")
_PLACE: Final = re.compile(r" \(at (?:line (\d+), column \d+|end of document)\)$")


class ConfigSyntaxError(ValueError):
    """A file is no TOML, or none that is read."""

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.line = line


@dataclass(frozen=True, slots=True)
class TomlFile:
    """Tables of a file, and the lines of their keys."""

    tables: Mapping[str, Any]
    lines: Mapping[tuple[str, ...], int]
    """Of tables and keys that begin a line, counted from 1."""

    def line_of(self, *path: str) -> int | None:
        """Return the line on which a value begins: that of the nearest table around it, if it is
        inside a value."""
        around = (path[:length] for length in range(len(path), 0, -1))
        return next((self.lines[one] for one in around if one in self.lines), None)


def parse_toml(data: bytes) -> TomlFile:
    """Read the bytes of a file, which may say anything.

    Raises:
        ConfigSyntaxError: if they are not TOML, or too many, too deep, or not UTF-8.
    """
    if len(data) > MAX_BYTES:
        raise ConfigSyntaxError(f"the file has more than {MAX_BYTES} bytes and is not read")
    try:
        text = data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise ConfigSyntaxError("expected UTF-8: save the file in this encoding", line) from error
    for number, line_text in enumerate(text.split("\n"), 1):
        if line_text.count(".") > _MAX_DOTS:
            raise ConfigSyntaxError(
                f"more than {_MAX_DOTS} dots in one line: break long text into several", number
            )
    try:
        tables = tomllib.loads(text)
    except RecursionError as error:
        raise ConfigSyntaxError("nested too deeply") from error
    except ValueError as error:
        said, line_number = str(error), None
        place = _PLACE.search(said)
        if place is not None:
            line_number = int(place[1]) if place[1] else text.rstrip("\n").count("\n") + 1
            said = said[: place.start()]
        raise ConfigSyntaxError(f"no TOML: {said[:1].lower()}{said[1:]}", line_number) from error
    return TomlFile(tables, _find_lines(text))


def _find_lines(text: str) -> dict[tuple[str, ...], int]:
    """Return the lines of headers and assignments, of text that is TOML."""
    lines: dict[tuple[str, ...], int] = {}
    table: tuple[str, ...] = ()
    quotes: str | None = None
    for number, line in enumerate(text.split("\n"), 1):
        if quotes is not None:
            if line.count(quotes) % 2:
                quotes = None
            continue
        header = _HEADER.match(line)
        if header is not None:
            table = _parts(header[1])
            lines.setdefault(table, number)
            continue
        assignment = _ASSIGNMENT.match(line)
        if assignment is not None:
            path = (*table, *_parts(assignment[1]))
            for length in range(len(table) + 1, len(path) + 1):
                lines.setdefault(path[:length], number)
        quotes = next((one for one in ('"""', "'''") if line.count(one) % 2), None)
    return lines


def _parts(key: str) -> tuple[str, ...]:
    """Return the parts of a key as it is written."""
    try:
        inner: Any = tomllib.loads(f"{key} = 0")
    except ValueError:
        return (key,)
    parts: list[str] = []
    while isinstance(inner, dict):
        ((part, inner),) = inner.items()
        parts.append(part)
    return tuple(parts)
