"""JSON schemas that come from servers, and values against them; references stay inside.

Checking takes little time, whatever a schema says: the kernel waits for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from jsonschema import Validator

_MOST_REFERENCES: Final = 5_000
"""References that are followed for one value."""

_SKIPPED: Final = (
    *("pattern", "patternProperties", "$dynamicRef", "$recursiveRef"),
    *("unevaluatedProperties", "unevaluatedItems"),
)
"""Keywords that can take endless time, and are left to the server itself."""


def check_schema(schema: Mapping[str, Any]) -> None:
    """Raises ValueError unless it is a JSON schema of an object."""
    from jsonschema import SchemaError

    try:
        _dialect(schema).check_schema(_without_dialects(schema))
    except SchemaError as error:
        raise ValueError(f"its schema is no JSON schema: {error.message}") from error
    if schema.get("type") != "object":
        raise ValueError("its schema is not that of an object")


def check_value(schema: Mapping[str, Any], value: Mapping[str, Any]) -> None:
    """Raises ValueError, naming the place, unless a checked schema takes a value."""
    from jsonschema.validators import extend
    from referencing import Registry
    from referencing.exceptions import Unresolvable

    dialect, followed = _dialect(schema), 0
    known: Mapping[str, Any] = dialect.VALIDATORS

    def follow(validator: Validator, ref: Any, instance: Any, schema: Any) -> Iterator[Any]:
        nonlocal followed
        followed += 1
        if followed > _MOST_REFERENCES:
            raise ValueError("its schema refers to itself too often")
        yield from known["$ref"](validator, ref, instance, schema) or ()

    def others(validator: Validator, more: Any, instance: Any, schema: Any) -> Iterator[Any]:
        if "patternProperties" not in schema:
            yield from known["additionalProperties"](validator, more, instance, schema) or ()

    changed = {"$ref": follow, "additionalProperties": others}
    skipped = dict.fromkeys(_SKIPPED, lambda *_: None)
    made = extend(dialect, {**skipped, **changed})  # type: ignore[no-untyped-call]
    validator = made(_without_dialects(schema), registry=Registry())
    try:
        wrong = next(iter(validator.iter_errors(dict(value))), None)
    except Unresolvable as error:
        raise ValueError(f"its schema names what is not there: {error}") from error
    except RecursionError as error:
        raise ValueError("its schema is nested too deeply") from error
    if wrong is not None:
        where = ".".join(map(str, wrong.absolute_path))
        raise ValueError(f"{where}: {wrong.message}" if where else wrong.message)


def _dialect(schema: Mapping[str, Any]) -> type[Validator]:
    """Return the validator of the version of JSON schema that a schema states."""
    from jsonschema.validators import Draft202012Validator, validator_for

    stated = schema.get("$schema")
    named = {"$schema": stated} if isinstance(stated, str) else {}
    return validator_for(named, default=Draft202012Validator)


def _without_dialects(schema: Any) -> Any:
    """Return a schema of which no part states a version of its own."""
    if isinstance(schema, Mapping):
        return {key: _without_dialects(one) for key, one in schema.items() if key != "$schema"}
    return [_without_dialects(one) for one in schema] if isinstance(schema, list) else schema
