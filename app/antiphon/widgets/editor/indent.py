"""Indentation by the Tab key in a text."""

from __future__ import annotations

from collections.abc import Iterable


def indent_unit(lines: Iterable[str], width: int) -> str:
    """A tab where the first indented line begins with one, else `width` spaces."""
    for line in lines:
        if line.startswith("\t"):
            return "\t"
        if line.startswith("  "):
            break
    return " " * width


def dedented(line: str, width: int) -> str:
    """The line with one step of indentation less."""
    if line.startswith("\t"):
        return line[1:]
    spaces = len(line) - len(line.lstrip(" "))
    return line[min(spaces, width) :]
