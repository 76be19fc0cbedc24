"""What is wrong with the parameters of a call, in words that name them as the caller does."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any, Final

from pydantic import BaseModel, ValidationError

from antiphon_kernel.types.errors import AntiphonError, ErrorCode

_SHOWN: Final = 60
"""Code points of a value that are quoted."""

_EXPECTED: Final[Mapping[str, str]] = {
    "bool_type": "true or false",
    "dict_type": "an object",
    "enum": "{expected}",
    "float_type": "a number",
    "greater_than": "more than {gt}",
    "greater_than_equal": "at least {ge}",
    "int_from_float": "a whole number",
    "int_type": "a whole number",
    "less_than_equal": "at most {le}",
    "list_type": "a list",
    "literal_error": "{expected}",
    "model_attributes_type": "an object",
    "model_type": "an object",
    "string_pattern_mismatch": "something that matches {pattern}",
    "string_too_long": "at most {max_length} code points",
    "string_too_short": "at least {min_length} code points",
    "string_type": "a string",
    "too_long": "at most {max_length} items",
    "too_short": "at least {min_length} items",
    "tuple_type": "a list",
    "union_tag_invalid": "{expected_tags} as its {discriminator}",
    "union_tag_not_found": "an object with {discriminator}",
}


def refusal(tool: str, params: type[BaseModel], error: ValidationError) -> AntiphonError:
    """What a tool answers to parameters that it cannot take.

    Its field `errors` lists everything that is wrong, as `field`, `expected` and `found`.
    """
    names = [field.alias or name for name, field in params.model_fields.items()]
    wrong = [_wrong(one) for one in error.errors(include_url=False)]
    first, kind = wrong[0], error.errors(include_url=False)[0]["type"]
    if kind == "missing":
        said = f"{tool} needs {first['field']}, which is missing."
    elif kind == "extra_forbidden":
        said = f"{tool} does not know {first['field']}.{did_you_mean(first['field'], names)}"
    else:
        said = (
            f"{tool} cannot take {first['field']} = {first['found']}: expected {first['expected']}."
        )
    takes = f"It takes: {', '.join(names)}." if names else "It takes no parameters."
    return AntiphonError(ErrorCode.INVALID_PARAMS, f"{said} {takes}", tool=tool, errors=wrong)


def _wrong(one: Mapping[str, Any]) -> dict[str, str]:
    field = ".".join(str(part) for part in one["loc"]) or "parameters"
    if one["type"] == "missing":
        return {"field": field, "expected": "a value", "found": "nothing"}
    found = json.dumps(one["input"], default=str, ensure_ascii=True)
    found = found if len(found) <= _SHOWN else found[: _SHOWN - 3] + "..."
    if one["type"] == "extra_forbidden":
        return {"field": field, "expected": "nothing of this name", "found": found}
    template = _EXPECTED.get(one["type"])
    said: str = one["msg"]
    expected = template.format(**one.get("ctx", {})) if template else said[:1].lower() + said[1:]
    return {"field": field, "expected": expected, "found": found}


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """A question to add to what is said of an unknown name; empty if none is like it."""
    close = get_close_matches(name, tuple(names))
    # Letters that have changed places are the likeliest of mistakes.
    best = min(close, key=lambda one: sorted(one) != sorted(name), default=None)
    return f" Did you mean {best}?" if best is not None else ""
