"""The tools that programs call over MCP: those of the registry, with its words for them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import mcp_types as types

from antiphon_kernel.registry import Registry, described_schema
from antiphon_kernel.server.forwarding import SessionCalls
from antiphon_kernel.turns.model_tools import error_text
from antiphon_kernel.types.enums import BlockKind
from antiphon_kernel.types.errors import AntiphonError, ErrorCode, invalid_params
from antiphon_kernel.types.quoting import join_names
from antiphon_kernel.types.roles import Permission


class _McpOffer(NamedTuple):
    """A tool of the registry as programs are offered it."""

    name: str
    tool: str
    """Name in the registry."""
    params: str
    """Parameters that are offered; with ! those that may not be left out here."""
    doc: str = ""
    """Its description, if its own docstring is not what is to be said."""
    preset: Mapping[str, Any] = {}
    """Values of parameters that are left out."""
    destroys: bool = False
    """Whether it takes away text that was there."""

    @property
    def required(self) -> list[str]:
        """Return the parameters that may not be left out here."""
        return [key[:-1] for key in self.params.split() if key[-1] == "!"]


_LISTED: Final = (
    _McpOffer("list_contexts", "context.list", "archived"),
    _McpOffer(
        "read_context",
        "context.layout",
        "context! start",
        "Read a context, its conversation and documents, page by page; the last page without start."
        " Each item has the path and the id by which other tools take its block.",
        {"last": 50, "limit": 50, "text_limit": 4_000},
    ),
    _McpOffer(
        "read_block",
        "block.read",
        "block_id section range version",
        "Read a block, or some of its lines, each with its number, counted from 0, and a tab in"
        " front. The version in the answer is the base_version of an edit.",
        {"line_numbers": True},
    ),
    _McpOffer(
        "search",
        "kernel.search",
        "query regex kinds path_prefix max_blocks after_block",
        "Find text in the blocks of every context, and in files that are open.",
        {"kinds": [str(kind) for kind in BlockKind]},
    ),
    _McpOffer(
        "write_message",
        "block.create",
        "context! content! parent_id after",
        "Write a text of your own into a context: a message to everybody who reads it.",
        {"kind": "text", "status": "done"},
    ),
    _McpOffer(
        "append",
        "block.splice",
        "block_id section insert!",
        "Write at the end of a block, exactly this text: begin it with a newline for a new line.",
    ),
    _McpOffer("edit", "block.edit", "block_id section operations base_version!", destroys=True),
    _McpOffer("apply_patch", "block.apply_patch", "block_id section patch", destroys=True),
    _McpOffer("blame", "block.blame", "block_id section"),
    _McpOffer("list_files", "file.status", ""),
    _McpOffer("read_file", "file.read", "path start_line end_line", preset={"line_numbers": True}),
    _McpOffer(
        "edit_file",
        "file.edit",
        "path old_text new_text start_line end_line base_version",
        destroys=True,
    ),
    _McpOffer(
        "undo_mine",
        "block.undo",
        "context! block_id preview",
        "Take back your own last edit in a context, never what others wrote.",
        destroys=True,
    ),
)
OFFERS: Final = {one.name: one for one in _LISTED}
"""By name, in the order in which they are listed."""

_PLAINER: Final = {
    "context": {"type": "string", "description": "Label or id of the context: see list_contexts."},
    "content": {"type": "string", "description": "All of the text."},
    "insert": {"type": "string", "description": "Text to write."},
}
"""Parameters of which the registry says something else than what holds here."""

_NAMES: Final = {
    "block.list": "read_context",
    "block.search": "search",
    "block.append": "append",
    **{one.tool: one.name for one in _LISTED},
}
_NAMED: Final = re.compile(rf"\b({'|'.join(map(re.escape, _NAMES))})\b")

_READ_AGAIN: Final = "Next: read_block or read_file, then send the change again with that version."
_NEXT: Final[Mapping[str, str]] = {
    ErrorCode.BLOCK_NOT_FOUND: "Next: read_context, or search for its text.",
    ErrorCode.CONTEXT_NOT_FOUND: "Next: list_contexts.",
    ErrorCode.AMBIGUOUS_ID: "Next: give more of the id, as read_context shows it.",
    ErrorCode.STALE_VERSION: _READ_AGAIN,
    ErrorCode.CONTENT_MISMATCH: _READ_AGAIN,
    ErrorCode.LINE_OUT_OF_RANGE: _READ_AGAIN,
    ErrorCode.PATCH_FAILED: _READ_AGAIN,
}
"""The next call after an error, by its code."""


def explained(error: AntiphonError) -> str:
    """Return an error for a model: what is there now, and what to call next."""
    return f"{_renamed(error_text(error))}\n{_NEXT.get(error.code, '')}".rstrip()


def _renamed(text: str) -> str:
    """Return what the registry says with the names that tools have here."""
    return _NAMED.sub(lambda found: _NAMES[found[1]], text)


def listed_tools(registry: Registry) -> list[types.Tool]:
    """Return the tools as clients are told of them, always in the same order."""
    return [_listed(one, registry) for one in _LISTED]


async def call_tool(caller: SessionCalls, name: str, said: Mapping[str, Any]) -> dict[str, Any]:
    """Call a tool as a program.

    Raises:
        AntiphonError: whatever it can fail with.
    """
    offer = OFFERS[name]
    given = {**offer.preset, **{key: one for key, one in said.items() if one is not None}}
    if missing := [key for key in offer.required if key not in given]:
        raise invalid_params(f"{name} needs {join_names(missing)}.")
    return await caller.call(offer.tool, given)


def _listed(offer: _McpOffer, registry: Registry) -> types.Tool:
    known = registry[offer.tool]
    schema = json.loads(_renamed(json.dumps(described_schema(known.params))))
    names = offer.params.replace("!", "").split()
    properties = {key: _PLAINER.get(key) or schema["properties"][key] for key in names}
    for key in offer.preset.keys() & properties:
        del properties[key]["default"]
    required = {*schema.get("required", ()), *offer.required}
    input_schema = {
        "type": "object",
        "properties": properties,
        "required": [key for key in names if key in required],
        "additionalProperties": False,
    }
    if "#/$defs/" in json.dumps(properties):
        input_schema["$defs"] = schema["$defs"]
    reads = known.needs is Permission.READ
    return types.Tool(
        name=offer.name,
        description=_renamed(offer.doc or " ".join(known.doc.split())),
        input_schema=input_schema,
        output_schema=described_schema(known.result),
        annotations=types.ToolAnnotations(
            read_only_hint=reads,
            destructive_hint=offer.destroys,
            idempotent_hint=reads,
            open_world_hint=False,
        ),
    )
