"""Questions of servers to people in the middle of a call: a form, or an address."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from antiphon_kernel.mcp_servers.json_schema import check_schema, check_value

Action = Literal["accept", "decline", "cancel"]

_MOST_FIELDS: Final = 32
_TEXT: Final = 2_000
_MOST_OPTIONS: Final = 100
_TYPES: Final = ("string", "number", "integer", "boolean", "array")


@dataclass(frozen=True, slots=True)
class ElicitationAnswer:
    """The answer of a person."""

    action: Action
    content: dict[str, Any] | None = None
    """By name of a field; of an accepted form."""


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
        said: dict[str, Any] = {"server": self.server, "message": self.message[:_TEXT]}
        if self.url is not None:
            return {**said, "url": self.url[:_TEXT]}
        required = self.schema.get("required", ())
        fields = list(self.schema.get("properties", {}).items())[:_MOST_FIELDS]
        shown = [_field(name, one, name in required) for name, one in fields]
        return {**said, "fields": shown}

    def check(self, content: Mapping[str, Any]) -> None:
        """Raises ValueError, saying what is wrong, unless the schema takes what was answered."""
        if self.url is not None:
            if content:
                raise ValueError("an address takes no content")
            return
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
        "title": str(schema.get("title") or name)[:_TEXT],
        "required": is_required,
    }
    if "description" in schema:
        found["description"] = str(schema["description"])[:_TEXT]
    if isinstance(schema.get("default"), str | int | float | bool | list):
        found["default"] = schema["default"]
    items = schema["items"] if isinstance(schema.get("items"), Mapping) else schema
    titled = items.get("oneOf") or items.get("anyOf")
    if isinstance(titled, list):
        pairs = [
            one for one in titled[:_MOST_OPTIONS] if isinstance(one, Mapping) and "const" in one
        ]
        found["options"] = [[str(one["const"]), str(one.get("title", ""))] for one in pairs]
    elif isinstance(choices := items.get("enum"), list):
        names = schema.get("enumNames")
        titles = names if isinstance(names, list) and len(names) == len(choices) else choices
        found["options"] = [[str(a), str(b)] for a, b in zip(choices, titles, strict=True)][
            :_MOST_OPTIONS
        ]
    return found
