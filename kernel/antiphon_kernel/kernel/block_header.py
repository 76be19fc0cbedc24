"""What tools say of a block, and which header fields a request may carry in `metadata`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from antiphon_kernel.document.conformity import EXACT_INTEGER
from antiphon_kernel.document.header import ENUMS, FIELDS, Form
from antiphon_kernel.kernel.context.context import Context
from antiphon_kernel.kernel.registry import Result
from antiphon_kernel.kernel.shown_records import with_fields_of
from antiphon_kernel.types.enums import DriftKind, ToolKind
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.ids import SYSTEM, BlockId
from antiphon_kernel.types.quoting import shown
from antiphon_kernel.types.records import BlockHeader

_OTHERWISE: Final = frozenset(("id", "parent", "order"))
"""Fields that go by another name, or are none of a caller's business."""

_KERNELS: Final = frozenset(
    (*ENUMS, "order", "created", "author", "parent", "edited_after_done", "stopped_by", "metadata")
)
"""Fields that no request says in its `metadata`."""

_OF_REQUESTS: Final = {name: form for name, form in FIELDS.items() if name not in _KERNELS}
_IDS: Final = frozenset(("source_context", "source_block"))
_ENUMS: Final[Mapping[str, Any]] = {"tool_kind": ToolKind, "drift_kind": DriftKind}


@with_fields_of(BlockHeader, but=_OTHERWISE)
class BlockInfo(Result):
    """The header of a block."""

    block_id: str
    parent_id: str | None = None
    """The block it answers."""
    role: str
    kind: str
    status: str
    author: str
    created: str
    version: int


_SHOWN: Final = frozenset(BlockInfo.model_fields) & FIELDS.keys()


def header_values(context: Context, block: str) -> dict[str, Any]:
    """The values of a `BlockInfo`."""
    header = context.document.header(block)
    values = {name: getattr(header, name) for name in _SHOWN}
    for name in ENUMS:
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
    fields = {
        name: _field(name, value, _OF_REQUESTS[name])
        for name, value in metadata.items()
        if name in _OF_REQUESTS
    }
    rest = {name: value for name, value in metadata.items() if name not in _OF_REQUESTS}
    return {**fields, "metadata": rest} if rest else fields


def _field(name: str, value: Any, form: Form) -> object:
    if name in _IDS:
        return _full_id(name, value)
    if name == "input":
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if form is Form.FLAG:
        if not isinstance(value, bool):
            raise _wrong(name, "true or false", value)
    elif form is Form.NUMBER:
        whole = isinstance(value, int) and not isinstance(value, bool)
        if not whole or abs(value) > EXACT_INTEGER:
            raise _wrong(name, "a whole number below 2^53", value)
    else:
        if not isinstance(value, str):
            raise _wrong(name, "a string", value)
        allowed = _ENUMS.get(name)
        if allowed is not None and value not in list(allowed):
            raise _wrong(name, "one of " + ", ".join(allowed), value)
    return value


def _full_id(name: str, value: object) -> str:
    """A reference that is stored: in full, since what it names may be in another kernel."""
    shape = "a full block id" if name == "source_block" else "a full context id"
    try:
        if name == "source_block":
            return str(BlockId.parse(str(value)))
        return str(BlockId.parse(f"{value}.{SYSTEM}.0").context)
    except ValueError as error:
        raise _wrong(name, f"{shape}, as the tools return it", value) from error


def _wrong(name: str, expected: str, value: object) -> AntiphonError:
    return AntiphonError(
        ErrorCode.INVALID_PARAMS,
        f"metadata.{name} must be {expected}, not {shown(value)}.",
        field=f"metadata.{name}",
        expected=expected,
    )
