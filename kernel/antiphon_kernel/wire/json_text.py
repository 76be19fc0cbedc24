"""JSON inside an update, as the CRDT engine reads it: a mark's value, an embedded object."""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn

MAX_NESTING = 64
"""How deep lists and objects are nested; the engine gives up at twice as many."""


def refuse_unreadable(text: str) -> None:
    """Refuse what the engine would not read; it would find out in the middle of an update.

    Raises:
        ValueError: if the text is not JSON, a number in it is too large for a float, a string has
            half a surrogate pair or values are nested deeper than `MAX_NESTING`.
    """
    try:
        value = json.loads(text, parse_constant=_refuse, parse_float=_finite, parse_int=_finite)
    except RecursionError:
        raise ValueError("JSON is nested too deep") from None
    _refuse_deep(value, 0)
    if "\\u" in text:
        json.dumps(value, ensure_ascii=False).encode()


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError("a number in JSON is larger than a float")
    return value


def _refuse_deep(value: Any, depth: int) -> None:
    if not isinstance(value, list | dict):
        return
    if depth == MAX_NESTING:
        raise ValueError(f"JSON is nested deeper than {MAX_NESTING} levels")
    for one in value.values() if isinstance(value, dict) else value:
        _refuse_deep(one, depth + 1)
