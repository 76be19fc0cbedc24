"""A block's header in the CRDT: which key holds which field, and how it is written there.

Absent is never null: a field that is not set has no key. Times and ids are strings, `input` and
`metadata` are JSON strings, flags are booleans that are only there when true.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, TypeVar

from pycrdt import Map

from antiphon_kernel.types.enums import BlockKind, Role, Status
from antiphon_kernel.types.records import BlockHeader

_Enum = TypeVar("_Enum", bound=StrEnum)

CONTENT = "content"
"""The key of the block's content."""

SCHEMA = "schema"
"""The key of what the content looks like; absent if it is a text."""

_STRINGS = (
    "kind",
    "role",
    "status",
    "order",
    "created",
    "author",
    "parent",
    "tool_kind",
    "drift_kind",
    "tool_name",
    "tool_call_id",
    "input",
    "source_context",
    "source_block",
    "path",
    "language",
    "stop_reason",
    "stopped_by",
)
_FLAGS = (
    "is_error",
    "truncated",
    "collapsed",
    "excluded",
    "ephemeral",
    "edited_after_done",
)
FIELDS = frozenset((*_STRINGS, *_FLAGS, "exit_code", "metadata"))
"""Every header field that is stored (the id is the block's key)."""


def stored_value(name: str, value: object) -> object | None:
    """What is written under `name`; None means that the key is left out.

    Raises:
        ValueError: if there is no such field or the value has the wrong type.
    """
    if name not in FIELDS:
        raise ValueError(f"a block has no header field {name!r}")
    if value is None:
        return None
    if name in _FLAGS:
        if not isinstance(value, bool):
            raise ValueError(f"{name} is true or false, not {value!r}")
        return value or None
    if name == "exit_code":
        if not isinstance(value, int):
            raise ValueError(f"exit_code is a whole number, not {value!r}")
        return float(value)
    if name == "metadata":
        return json.dumps(value, ensure_ascii=False, sort_keys=True) if value else None
    if not isinstance(value, str):
        raise ValueError(f"{name} is a string, not {value!r}")
    return str(value)


def stored_header(header: BlockHeader) -> dict[str, object]:
    """Every key of a new block but its content."""
    stored = ((name, stored_value(name, getattr(header, name))) for name in sorted(FIELDS))
    return {name: value for name, value in stored if value is not None}


def write_keys(stored: Map[Any], values: Mapping[str, object]) -> None:
    """Write these keys of a shared map; None removes one."""
    for name, value in values.items():
        if value is not None:
            stored[name] = value
        elif name in stored:
            del stored[name]


def read_header(block: str, stored: Mapping[str, Any]) -> BlockHeader:
    """The header of a block from its keys. Values of a wrong type count as absent."""

    def string(name: str) -> str | None:
        value = stored.get(name)
        return value if isinstance(value, str) else None

    def flag(name: str) -> bool:
        return stored.get(name) is True

    exit_code = stored.get("exit_code")
    return BlockHeader(
        id=block,
        kind=_known(BlockKind, string("kind") or "text"),
        role=_known(Role, string("role") or "user"),
        status=_known(Status, string("status") or "pending"),
        order=string("order") or "",
        created=string("created") or "",
        author=string("author") or _principal_of(block),
        parent=string("parent"),
        tool_kind=string("tool_kind"),
        drift_kind=string("drift_kind"),
        tool_name=string("tool_name"),
        tool_call_id=string("tool_call_id"),
        input=string("input"),
        exit_code=int(exit_code) if isinstance(exit_code, int | float) else None,
        is_error=flag("is_error"),
        truncated=flag("truncated"),
        source_context=string("source_context"),
        source_block=string("source_block"),
        path=string("path"),
        language=string("language"),
        collapsed=flag("collapsed"),
        excluded=flag("excluded"),
        ephemeral=flag("ephemeral"),
        edited_after_done=flag("edited_after_done"),
        stop_reason=string("stop_reason"),
        stopped_by=string("stopped_by"),
        metadata=_metadata(string("metadata")),
    )


def _known(enum: type[_Enum], value: str) -> _Enum | str:
    return enum(value) if value in enum.__members__.values() else value


def _principal_of(block: str) -> str:
    parts = block.split(".")
    return parts[1] if len(parts) == 3 else ""


def _metadata(stored: str | None) -> dict[str, Any]:
    if stored is None:
        return {}
    try:
        value = json.loads(stored)
    except ValueError:
        return {"unreadable": stored}
    return value if isinstance(value, dict) else {"unreadable": stored}
