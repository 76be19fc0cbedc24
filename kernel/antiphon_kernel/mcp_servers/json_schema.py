"""JSON schemas that come from servers, and values against them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

_SLOW: Final = re.compile(r'"(pattern|patternProperties|[$]ref|[$](dynamic|recursive)Ref)":')
"""Keywords that can take endless time: expressions, and references of a schema to itself."""


def is_quick(schema: Mapping[str, Any]) -> bool:
    """Return whether a check takes little time; where it may not, only the server checks."""
    return not _SLOW.search(json.dumps(schema))


def check_schema(schema: Mapping[str, Any]) -> None:
    """Raises ValueError unless it is a JSON schema."""
    from jsonschema import SchemaError
    from jsonschema.validators import validator_for

    try:
        validator_for(schema).check_schema(schema)
    except (SchemaError, RecursionError, TypeError) as error:
        said = getattr(error, "message", error)
        raise ValueError(f"its schema is no JSON schema: {said}") from error


def check_value(schema: Mapping[str, Any], value: Mapping[str, Any]) -> None:
    """Raises ValueError, naming the place, unless a checked schema takes a value."""
    from jsonschema.validators import validator_for

    if not is_quick(schema):
        return
    wrong = next(iter(validator_for(schema)(schema).iter_errors(dict(value))), None)
    if wrong is not None:
        where = ".".join(map(str, wrong.absolute_path))
        raise ValueError(f"{where}: {wrong.message}" if where else wrong.message)
