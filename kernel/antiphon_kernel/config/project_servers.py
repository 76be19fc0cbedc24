"""MCP servers that a project's `.mcp.json` names, as other programs write it; each takes trust."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from antiphon_kernel.mcp_servers import McpServerConfig
from antiphon_kernel.text.toml_lines import MAX_BYTES

_MOST: Final = 100
"""Servers of one file that are looked at."""

_Text = Annotated[str, Field(max_length=4_096)]


class _ServerEntry(BaseModel):
    """An entry of `mcpServers`; what other programs have there beside it is left alone."""

    model_config = ConfigDict(strict=True)

    type: str = "stdio"
    command: _Text | None = None
    args: list[_Text] = Field(default_factory=list, max_length=100)
    env: dict[str, _Text] = Field(default_factory=dict, max_length=100)
    url: _Text | None = None
    headers: dict[str, _Text] = Field(default_factory=dict, max_length=100)


@dataclass(frozen=True, slots=True)
class ProjectServer:
    """An entry of the file, which is trusted as it is or not at all."""

    name: str
    path: Path
    """The place of the entry: that of the file, and the name."""
    content: bytes
    """The entry, always written the same way."""

    def config(self) -> McpServerConfig:
        """Return the configuration that the entry states.

        Raises:
            ValueError: saying what is wrong.
        """
        try:
            entry = _ServerEntry.model_validate_json(self.content)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            place = ".".join(map(str, first["loc"])) or "it"
            raise ValueError(f"{place}: {first['msg']}") from error
        if entry.type == "sse":
            raise ValueError("servers of type sse are not spoken to: expected stdio or http")
        command = () if entry.command is None else (entry.command, *entry.args)
        return McpServerConfig(self.name, command, entry.env, entry.url, entry.headers)

    @property
    def shown(self) -> str:
        """Return the whole entry, for people: a variable of its decides what it runs, too."""
        said = {self.name: json.loads(self.content)}
        return json.dumps(said, ensure_ascii=False, indent=1)


def project_servers(path: Path, data: bytes) -> Iterator[ProjectServer]:
    """Yield the entries of the file at a path.

    Raises:
        ValueError: if it is no file of servers.
    """
    try:
        found = json.loads(data) if len(data) <= MAX_BYTES else None
    except (ValueError, RecursionError) as error:
        raise ValueError(f"no JSON: {error}") from error
    servers = found.get("mcpServers") if isinstance(found, dict) else None
    if not isinstance(servers, dict) or len(servers) > _MOST:
        raise ValueError(f"expected an object with `mcpServers`, at most {_MOST} of them")
    for name, entry in servers.items():
        content = json.dumps(entry, sort_keys=True).encode()
        yield ProjectServer(name, path / f"server {name.replace('/', '%2F')}", content)
