"""Quoting of what others have sent or named, in messages: never at length."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

QUOTED: Final = 100
"""Code points of one value that are quoted; a full block id fits."""

LISTED: Final = 20
"""Names that a message lists."""


def quote(value: object) -> str:
    """A value as it is quoted, shortened."""
    return truncate(repr(value))


def truncate(text: str) -> str:
    """A text without the end that is too much; for machine fields that repeat what was sent."""
    return text if len(text) <= QUOTED else f"{text[: QUOTED - 3]}..."


def join_names(names: Iterable[str]) -> str:
    """Names in a row, the first ones if there are many; `none` if there are none."""
    every = list(names)
    more = len(every) - LISTED
    said = ", ".join(truncate(name) for name in every[:LISTED]) or "none"
    return f"{said} and {more} more" if more > 0 else said


def count_of(number: int, noun: str) -> str:
    """`1 line`, `2 lines`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
