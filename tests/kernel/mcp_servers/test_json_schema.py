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
        (TREE, {"children": [{"children": [], "name": "ab"}]}, None),
        (TREE, {"children": [{"children": [{"name": "a"}]}]}, r"children\.0\.children\.0\.name"),
        (TREE, {"child": 1}, "child"),
        (taking({"$ref": "http://127.0.0.1:1/schema"}), {"a": 1}, "names what is not there"),
        (taking({"$ref": "#/properties/a"}), {"a": 1}, "nested too deeply"),
        (
            {**taking({"$ref": "#/$defs/d0"}), "$defs": {**DOUBLED, f"d{LEVELS}": {}}},
            {"a": 1},
            "refers to itself too often",
        ),
        (taking({"pattern": SLOW_PATTERN}), {"a": SLOW}, None),
        (taking({"$schema": "draft", "pattern": SLOW_PATTERN}), {"a": SLOW}, None),
        (
            {"type": "object", "patternProperties": {SLOW_PATTERN: {}}, **TREE},
            {SLOW: 1},
            None,
        ),
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


def test_schema_of_an_odd_version_is_checked_by_the_latest() -> None:
    check_schema({"type": "object", "$schema": ["x"]})
    with pytest.raises(ValueError, match="no JSON schema"):
        check_schema({"type": "object", "$schema": "https://example.org/", "required": 5})
