"""Names that a message addresses: `@name` at its start, any number of them."""

from __future__ import annotations

import re

from antiphon_kernel.types.ids import NAME_PATTERN

# What goes on with a slash, or with a dot and more, is the path of a file.
_ADDRESS = re.compile(rf"\s*@({NAME_PATTERN.pattern})(?![a-z0-9_-]|/|\.[^\s.])[,:]?", re.ASCII)


def mentions(text: str) -> list[str]:
    """Return the names in order, each once, without their `@`."""
    names: list[str] = []
    at = 0
    while (name := _ADDRESS.match(text, at)) is not None:
        at = name.end()
        if name[1] not in names:
            names.append(name[1])
    return names


def without_mentions(text: str) -> str:
    """Return a message without the names that it addresses at its start."""
    at = 0
    while (name := _ADDRESS.match(text, at)) is not None:
        at = name.end()
    return text[at:].lstrip() if at else text
