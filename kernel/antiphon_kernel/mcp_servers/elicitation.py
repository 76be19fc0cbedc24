"""Questions of servers to people in the middle of a call: a form, or an address."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from antiphon_kernel.mcp_servers.json_schema import check_schema, check_value

Action = Literal["accept", "decline", "cancel"]

Answer = tuple[Action, dict[str, Any] | None]
"""Decision of a person and, of a form that is accepted, its content by name of a field."""

_TYPES: Final = ("string", "number", "integer", "boolean", "array")


@dataclass(frozen=True, slots=True)
class Elicitation:
    """A question of a server."""

    server: str
    message: str
    schema: Mapping[str, Any] = field(default_factory=dict)
    """JSON schema of an object with flat properties; empty if an address is shown."""
    url: str | None = None
    """Address that a person is to open."""

    def as_json(self) -> dict[str, Any]:
        """Return it as the block of its call holds it: its fields in order, for a form."""
        said: dict[str, Any] = {"server": self.server, "message": self.message}
        if self.url is not None:
            return {**said, "url": self.url}
        required = self.schema.get("required", ())
        fields = self.schema.get("properties", {}).items()
        return {**said, "fields": [_field(name, one, name in required) for name, one in fields]}

    def check(self, content: Mapping[str, Any]) -> None:
        """Raises ValueError, saying what is wrong, unless a form takes what was answered."""
        check_schema(self.schema)
        if unknown := content.keys() - self.schema.get("properties", {}).keys():
            raise ValueError(f"there is no field {min(unknown)}")
        check_value(self.schema, content)


def _field(name: str, schema: Mapping[str, Any], is_required: bool) -> dict[str, Any]:
    """Return what a form shows of one field."""
    kind = schema.get("type")
    found: dict[str, Any] = {
        "name": name,
        "type": kind if kind in _TYPES else "string",
        "title": str(schema.get("title") or name),
        "required": is_required,
    }
    if "description" in schema:
        found["description"] = str(schema["description"])
    if isinstance(schema.get("default"), str | int | float | bool | list):
        found["default"] = schema["default"]
    choices = schema.get("items", schema)
    if "enum" in choices:
        found["options"] = [[str(one), str(one)] for one in choices["enum"]]
    elif titled := choices.get("oneOf") or choices.get("anyOf"):
        found["options"] = [[str(one["const"]), str(one.get("title", ""))] for one in titled]
    return found
