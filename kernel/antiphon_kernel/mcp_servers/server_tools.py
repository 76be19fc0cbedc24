"""Tools of MCP servers as models are told of them: names, schemas, and what a person approves."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from antiphon_kernel.mcp_servers.json_schema import check_schema
from antiphon_kernel.mcp_servers.server_config import McpServerConfig

if TYPE_CHECKING:
    from mcp_types import Tool

MOST_TOOLS: Final = 128
"""Tools of one server that are taken."""

_NAME_LENGTH: Final = 64
_DESCRIPTION_LENGTH: Final = 4_000
_SCHEMA_BYTES: Final = 50_000

_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9_-]")
_PARAMETER: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}")

_KEPT: Final = ("properties", "required", "$defs", "definitions", "additionalProperties")
"""Keywords that services take, beside its type, in the schema of a tool's arguments."""


@dataclass(frozen=True, slots=True)
class McpTool:
    """A tool of a server, in the definition that the server had of it."""

    server: str
    tool: str
    """Name that the server knows it by."""
    name: str
    """Name for models."""
    description: str
    parameters: Mapping[str, Any]
    """JSON schema of an object."""
    digest: str
    """Hash of the server and the definition: what a person approves is approved of this one."""


def read_tool(server: McpServerConfig, tool: Tool) -> McpTool:
    """Return a tool of a server, not yet named among those of others.

    Raises:
        ValueError: if models cannot be told of it, saying why.
    """
    schema = tool.input_schema
    definition = tool.model_dump(mode="json", by_alias=True, exclude={"icons", "meta"})
    said = json.dumps([*server.command, server.url, definition], sort_keys=True)
    if len(said) > _SCHEMA_BYTES:
        raise ValueError(f"its definition has more than {_SCHEMA_BYTES:,} characters")
    check_schema(schema)
    properties = schema.get("properties", {})
    if not all(map(_PARAMETER.fullmatch, properties)):
        raise ValueError("an argument has a name that services do not take")
    name = f"{server.name}__{_NOT_IN_NAMES.sub('_', tool.name)}"[:_NAME_LENGTH]
    kept: dict[str, Any] = {key: schema[key] for key in _KEPT if key in schema}
    return McpTool(
        server.name,
        tool.name,
        name,
        (tool.description or tool.title or "")[:_DESCRIPTION_LENGTH],
        {"type": "object", "properties": {}, **kept},
        hashlib.sha256(said.encode()).hexdigest()[:16],
    )


def with_own_names(tools: Iterable[McpTool]) -> list[McpTool]:
    """Return tools in a fixed order, those after the first of a name numbered from 2."""
    named: dict[str, McpTool] = {}
    for one in sorted(tools, key=lambda tool: (tool.server, tool.tool)):
        name, number = one.name, 2
        while name in named:
            ending = f"_{number}"
            name, number = one.name[: _NAME_LENGTH - len(ending)] + ending, number + 1
        named[name] = replace(one, name=name)
    return list(named.values())
