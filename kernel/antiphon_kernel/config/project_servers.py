"""MCP servers that a project's `.mcp.json` names, as other programs write it; each takes trust."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from antiphon_kernel.text.toml_lines import MAX_BYTES


@dataclass(frozen=True, slots=True)
class ProjectServer:
    """An entry of the file, which is trusted as it is or not at all."""

    name: str
    path: Path
    """The place of the entry: that of the file, and the name."""
    content: bytes
    """The entry, always written the same way."""

    def fields(self) -> dict[str, Any]:
        """Return the entry as the table of a configuration file; what else it says is left out.

        Raises:
            ValueError: if it cannot be one.
        """
        entry = json.loads(self.content)
        args = entry.get("args", []) if isinstance(entry, dict) else None
        if not isinstance(args, list):
            raise ValueError("expected an object, with a list as `args`")
        if entry.get("type") == "sse":
            raise ValueError("servers of type sse are not spoken to: expected stdio or http")
        fields = {key: entry[key] for key in ("env", "url", "headers") if key in entry}
        return fields | ({"command": [entry["command"], *args]} if "command" in entry else {})

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
    if not isinstance(servers, dict):
        raise ValueError("expected an object with `mcpServers`")
    for name, entry in servers.items():
        content = json.dumps(entry, sort_keys=True).encode()
        yield ProjectServer(name, path / f"server {name.replace('/', '%2F')}", content)
