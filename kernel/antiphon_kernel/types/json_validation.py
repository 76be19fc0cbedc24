"""JSON that somebody else wrote, read strictly: inside an update, in a header field, in a call."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from functools import cache
from typing import Any, Final

from antiphon_kernel.types.quoting import quote

MAX_NESTING = 64
"""How deep lists and objects are nested; the engine gives up at twice as many."""

_SHORT: Final = 300
"""Digits of an integer that is finite as a float, for certain."""

_Pairs = list[tuple[str, Any]]


def read_json(text: str, *, pairs: Callable[[_Pairs], dict[str, Any]] | None = None) -> Any:
    """Return the value of a JSON document that every reader can take and write again.

    Args:
        pairs: makes an object of its members, in order; `unique_names` refuses repeated ones.

    Raises:
        ValueError: if the text is not JSON, a number in it is too large for a float, a string has
            half a surrogate pair or values are nested deeper than `MAX_NESTING`.
    """
    if not has_whole_characters(text):
        raise ValueError("it has half a surrogate pair")
    value = parse_json(text, pairs=pairs, integer=_integer)
    _reject_deep(value, 0)
    if "\\u" in text:  # which may have written half a pair
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    return value


def parse_json(
    text: str,
    *,
    pairs: Callable[[_Pairs], dict[str, Any]] | None = None,
    integer: Callable[[str], int] = int,
) -> Any:
    """Return the value of a JSON document whose numbers are finite, however deep and long it is.

    Args:
        pairs: as for `read_json`.
        integer: reads whole numbers.

    Raises:
        ValueError: if the text is not JSON, or a number in it is too large for a float.
    """
    try:
        return _decoder(pairs, integer).decode(text)
    except RecursionError:
        raise ValueError("it is nested too deep") from None


@cache
def _decoder(
    pairs: Callable[[_Pairs], dict[str, Any]] | None, integer: Callable[[str], int]
) -> json.JSONDecoder:
    return json.JSONDecoder(
        parse_constant=_finite, parse_float=_finite, parse_int=integer, object_pairs_hook=pairs
    )


def unique_names(pairs: _Pairs) -> dict[str, Any]:
    """Make an object of its members.

    Raises:
        ValueError: if two have the same name, of which readers keep the first or the last one.
    """
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("an object in it has two members of the same name")
    return found


def has_whole_characters(text: str) -> bool:
    """Return whether a text has no half of a surrogate pair, which nothing could store."""
    try:
        if not text.isascii():
            text.encode()
    except UnicodeEncodeError:
        return False
    return True


def replace_half_characters(text: str) -> str:
    """Return a text in which U+FFFD stands for each half of a surrogate pair; pairs are joined."""
    if has_whole_characters(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError(f"{quote(digits)} is no number in JSON")
    return value


def _integer(digits: str) -> int:
    if len(digits) > _SHORT:
        _finite(digits)
    return int(digits)


def _reject_deep(value: Any, depth: int) -> None:
    if not isinstance(value, list | dict):
        return
    if depth == MAX_NESTING:
        raise ValueError(f"JSON is nested deeper than {MAX_NESTING} levels")
    for one in value.values() if isinstance(value, dict) else value:
        _reject_deep(one, depth + 1)
