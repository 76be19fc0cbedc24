"""Results of tools of MCP servers: what models and people read of them, and files."""

from __future__ import annotations

import json
from base64 import b64decode
from dataclasses import dataclass
from typing import TYPE_CHECKING

from antiphon_kernel.types.media_types import file_suffix, is_text_type, media_type_of

if TYPE_CHECKING:
    from mcp_types import CallToolResult


@dataclass(frozen=True, slots=True)
class ResultFile:
    """An image or a document of a result."""

    name: str
    media_type: str
    data: bytes


def read_result(
    result: CallToolResult, most_files: int, most_bytes: int
) -> tuple[str, list[ResultFile]]:
    """Return what is kept of a result: all of its text, and its files in order.

    Args:
        most_files: further ones are named in the text.
        most_bytes: larger ones are, too.
    """
    lines: list[str] = []
    files: list[ResultFile] = []

    def take(data: str, stated: str | None, about: str) -> None:
        try:
            content = b64decode(data, validate=True)
        except ValueError:
            lines.append(f"[{about}: not base64]")
            return
        kind = media_type_of(content)
        if kind is not None and is_text_type(kind):
            lines.append(f"[{about}]\n{content.decode()}")
        elif kind is None or len(files) >= most_files or len(content) > most_bytes:
            lines.append(f"[{about}: {stated or 'unknown type'}, {len(content):,} bytes, not kept]")
        else:
            name = f"result-{len(files) + 1}{file_suffix(kind)}"
            lines.append(f"[{about}: {name}]")
            files.append(ResultFile(name, kind, content))

    for one in result.content:
        match one.type:
            case "text":
                lines.append(one.text)
            case "image" | "audio":
                take(one.data, one.mime_type, one.type)
            case "resource_link":
                words = (one.title or one.name, one.uri, one.mime_type, one.description)
                lines.append(f"[resource {' | '.join(word for word in words if word)}]")
            case "resource":
                resource = one.resource
                if hasattr(resource, "text"):
                    lines.append(f"[resource {resource.uri}]\n{resource.text}")
                else:
                    take(resource.blob, resource.mime_type, f"resource {resource.uri}")
    data = result.structured_content
    if data is not None and not any(_says(line, data) for line in lines):
        lines.append(json.dumps(data, ensure_ascii=False, indent=1))
    return "\n".join(lines), files


def _says(text: str, data: object) -> bool:
    """Return whether a text says what is in structured content: servers say it twice."""
    if isinstance(data, dict) and data and all(value == text for value in data.values()):
        return True
    try:
        return bool(json.loads(text) == data)
    except ValueError:
        return False
