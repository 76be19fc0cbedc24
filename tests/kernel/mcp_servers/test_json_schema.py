"""Schemas of servers: what they say of values, and that no schema takes endless time."""

from __future__ import annotations

from typing import Any, Final

import pytest

from antiphon_kernel.mcp_servers.json_schema import check_schema, check_value

TREE: Final = {
    "type": "object",
    "properties": {"children": {"type": "array", "items": {"$ref": "#"}}, "name": {"minLength": 2}},
    "additionalProperties": False,
}

LEVELS: Final = 30
DOUBLED: Final = {
    f"d{number}": {"allOf": [{"$ref": f"#/$defs/d{number + 1}"}] * 2} for number in range(LEVELS)
}
SLOW: Final = "a" * 40 + "!"
SLOW_PATTERN: Final = "(a+)+$"


def taking(schema: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"a": schema}}


@pytest.mark.parametrize(
    ("schema", "value", "wrong"),
    [
        ({"properties": {"a": {"minLength": 2}}}, {"a": "b"}, "^a: "),
        ({"type": "object", "required": ["a"]}, {}, "^'a' is a required"),
        # What expressions and references say is left to the server.
        (TREE, {"children": [{"children": [{"name": "a"}]}]}, None),
        (taking({"$ref": "http://127.0.0.1:1/schema"}), {"a": 1}, None),
        (taking({"$ref": "#/properties/a"}), {"a": 1}, None),
        (
            {**taking({"$ref": "#/$defs/d0"}), "$defs": {**DOUBLED, f"d{LEVELS}": {}}},
            {"a": 1},
            None,
        ),
        (taking({"pattern": SLOW_PATTERN}), {"a": SLOW}, None),
        (taking({"$schema": "draft", "pattern": SLOW_PATTERN}), {"a": SLOW}, None),
        ({"type": "object", "patternProperties": {SLOW_PATTERN: {}}}, {SLOW: 1}, None),
    ],
)
def test_value_is_checked_in_little_time(
    schema: dict[str, Any], value: dict[str, Any], wrong: str | None
) -> None:
    check_schema(schema)
    if wrong is None:
        check_value(schema, value)
    else:
        with pytest.raises(ValueError, match=wrong):
            check_value(schema, value)


@pytest.mark.parametrize("schema", [{"$schema": ["x"]}, {"required": 5}, {"type": "thing"}])
def test_what_is_no_schema_is_refused(schema: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="no JSON schema"):
        check_schema(schema)
