"""Block header in tool results, and the header fields allowed in a request's `metadata`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from antiphon_kernel.contexts.context import Context
from antiphon_kernel.contexts.model_fields import mirror_fields
from antiphon_kernel.document.header import ENUMS, FIELDS
from antiphon_kernel.limits import Limits
from antiphon_kernel.registry import Result
from antiphon_kernel.types.records import BlockHeader
from antiphon_kernel.validation import check_value

_OTHERWISE: Final = frozenset(("id", "parent", "order"))
"""Fields that go by another name, or are none of a caller's business."""

_KERNELS: Final = frozenset(
    (*ENUMS, "order", "created", "author", "parent", "edited_after_done", "stopped_by", "metadata")
)
"""Fields that no request says in its `metadata`."""

_OF_REQUESTS: Final = FIELDS.keys() - _KERNELS


@mirror_fields(BlockHeader, but=_OTHERWISE)
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


def header_fields(metadata: Mapping[str, Any], limits: Limits) -> dict[str, Any]:
    """Header fields out of a request's `metadata`; unknown keys stay together as `metadata`.

    Raises:
        AntiphonError: invalid_params or too_large for what `check_value` refuses.
    """
    fields = {name: value for name, value in metadata.items() if name in _OF_REQUESTS}
    if not isinstance(fields.get("input", ""), str):
        fields["input"] = json.dumps(fields["input"], ensure_ascii=False)
    for name, value in fields.items():
        check_value(name, value, limits, prefix="metadata.")
    rest = {name: value for name, value in metadata.items() if name not in _OF_REQUESTS}
    if rest:
        check_value("metadata", rest, limits)
        fields["metadata"] = rest
    return fields
