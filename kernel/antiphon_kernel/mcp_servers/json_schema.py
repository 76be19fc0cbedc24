"""JSON schemas that come from servers, and values against them; references stay inside."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def check_schema(schema: Mapping[str, Any]) -> None:
    """Raises ValueError unless it is a JSON schema of an object."""
    from jsonschema import SchemaError
    from jsonschema.validators import validator_for

    try:
        validator_for(schema).check_schema(schema)
    except SchemaError as error:
        raise ValueError(f"its schema is no JSON schema: {error.message}") from error
    if schema.get("type") != "object":
        raise ValueError("its schema is not that of an object")


def check_value(schema: Mapping[str, Any], value: Mapping[str, Any]) -> None:
    """Raises ValueError, naming the place, unless a checked schema takes a value."""
    from jsonschema.validators import validator_for
    from referencing import Registry
    from referencing.exceptions import Unresolvable

    validator = validator_for(schema)(schema, registry=Registry())
    try:
        wrong = next(iter(validator.iter_errors(dict(value))), None)
    except Unresolvable as error:
        raise ValueError(f"its schema names what is not there: {error}") from error
    if wrong is not None:
        where = ".".join(map(str, wrong.absolute_path))
        raise ValueError(f"{where}: {wrong.message}" if where else wrong.message)
