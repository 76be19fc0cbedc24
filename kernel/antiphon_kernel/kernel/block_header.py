"""What tools say of a block, and which header fields a request may carry in `metadata`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pydantic import Field

from antiphon_kernel.document.conformity import EXACT_INTEGER
from antiphon_kernel.document.header import FIELDS
from antiphon_kernel.kernel.context.context import Context
from antiphon_kernel.kernel.registry import Result
from antiphon_kernel.types.enums import DriftKind, ToolKind
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.ids import SYSTEM, BlockId

_STRINGS = frozenset(
    ("tool_kind", "drift_kind", "tool_name", "tool_call_id", "path", "language", "stop_reason")
)
_FLAGS = frozenset(("collapsed", "excluded", "ephemeral", "is_error", "truncated"))
_IDS = frozenset(("source_context", "source_block"))
_ENUMS: Mapping[str, Any] = {"tool_kind": ToolKind, "drift_kind": DriftKind}


class BlockInfo(Result):
    """The header of a block."""

    block_id: str
    parent_id: str | None = None
    """The block it answers."""
    role: str
    kind: str
    status: str
    author: str
    """Id of the principal that created it."""
    created: str
    version: int
    tool_kind: str | None = None
    """Which engine runs the tool call: `shell`, `mcp`, `builtin`."""
    drift_kind: str | None = None
    """How it came over from another context."""
    tool_name: str | None = None
    """The tool that is called."""
    tool_call_id: str | None = None
    """What ties a result to its call."""
    input: str | None = None
    """Input of the tool call, a JSON document."""
    exit_code: int | None = None
    is_error: bool = False
    truncated: bool = False
    """Whether the command said more than is kept."""
    source_context: str | None = None
    """Id of the context that it came from."""
    source_block: str | None = None
    """Id of the block that it was copied or drawn from."""
    path: str | None = None
    """The file it is about."""
    language: str | None = None
    """The language its text is written in."""
    collapsed: bool = False
    """Whether it is shown folded."""
    excluded: bool = False
    """Whether models are not given it."""
    ephemeral: bool = False
    """Whether it is not part of the conversation's record."""
    edited_after_done: bool = False
    """Whether its text has changed since it was done."""
    stop_reason: str | None = None
    stopped_by: str | None = None
    metadata: dict[str, Any] = Field(default_factory=dict)
    """Whatever else its creator has said of it."""


def header_values(context: Context, block: str) -> dict[str, Any]:
    """The values of a `BlockInfo`."""
    header = context.document.header(block)
    values = {name: getattr(header, name) for name in FIELDS & set(BlockInfo.model_fields)}
    for name in ("role", "kind", "status"):
        values[name] = str(values[name])
    return {
        **values,
        "block_id": block,
        "parent_id": header.parent,
        "version": context.version(block),
    }


def header_fields(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Header fields out of a request's `metadata`; unknown keys stay together as `metadata`.

    Raises:
        AntiphonError: invalid_params for a field of the wrong type or an unknown enum value.
    """
    fields: dict[str, Any] = {}
    rest: dict[str, Any] = {}
    for name, value in metadata.items():
        if name in _STRINGS:
            if not isinstance(value, str):
                raise _wrong(name, "a string", value)
            allowed = _ENUMS.get(name)
            if allowed is not None and value not in list(allowed):
                raise _wrong(name, "one of " + ", ".join(allowed), value)
            fields[name] = value
        elif name in _FLAGS:
            if not isinstance(value, bool):
                raise _wrong(name, "true or false", value)
            fields[name] = value
        elif name == "exit_code":
            whole = isinstance(value, int) and not isinstance(value, bool)
            if not whole or abs(value) > EXACT_INTEGER:
                raise _wrong(name, "a whole number below 2^53", value)
            fields[name] = value
        elif name in _IDS:
            fields[name] = _full_id(name, value)
        elif name == "input":
            fields[name] = value if isinstance(value, str) else _json(value)
        else:
            rest[name] = value
    if rest:
        fields["metadata"] = rest
    return fields


def _full_id(name: str, value: object) -> str:
    """A reference that is stored: in full, since what it names may be in another kernel."""
    shape = "a full block id" if name == "source_block" else "a full context id"
    try:
        if name == "source_block":
            return str(BlockId.parse(str(value)))
        return str(BlockId.parse(f"{value}.{SYSTEM}.0").context)
    except ValueError as error:
        raise _wrong(name, f"{shape}, as the tools return it", value) from error


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _wrong(name: str, expected: str, value: object) -> AntiphonError:
    return AntiphonError(
        ErrorCode.INVALID_PARAMS,
        f"metadata.{name} must be {expected}, not {value!r}.",
        field=f"metadata.{name}",
        expected=expected,
    )
