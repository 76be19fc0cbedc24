"""Block header in tool results, and the header fields allowed in a request's `metadata`."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, TypeVar, get_type_hints

from pydantic import create_model

from antiphon_kernel.contexts.context import Context
from antiphon_kernel.document.header import ENUMS, FIELDS, json_object
from antiphon_kernel.limits import Limits
from antiphon_kernel.registry import Result
from antiphon_kernel.types.block_metadata import DRIFT, SUMMARY_TYPE
from antiphon_kernel.types.errors import invalid_params
from antiphon_kernel.types.records import BlockHeader
from antiphon_kernel.validation import TOOLS_ONLY, check_value

R = TypeVar("R", bound=Result)


_OTHERWISE: Final = frozenset(("id", "parent", "order"))
"""Fields that go by another name, or are none of a caller's business."""


def _with_header_fields(result: type[R]) -> type[R]:
    """Give a result the other fields of a `BlockHeader` that it does not name, with defaults."""
    types, defaults = get_type_hints(BlockHeader), BlockHeader._field_defaults
    added: dict[str, Any] = {
        name: (types[name], defaults.get(name, ...))
        for name in BlockHeader._fields
        if name not in _OTHERWISE and name not in result.model_fields
    }
    shown = create_model(
        result.__name__,
        __base__=result,
        __module__=result.__module__,
        __doc__=result.__doc__,
        **added,
    )
    shown.record = BlockHeader
    return shown


_KERNELS: Final = TOOLS_ONLY.union(ENUMS, ("order", "created", "author", "parent", "metadata"))
"""Fields that no request says in its `metadata`."""

_OF_REQUESTS: Final = FIELDS.keys() - _KERNELS


@_with_header_fields
class BlockInfo(Result):
    """The header of a block."""

    block_id: str
    name: str
    parent_id: str | None = None
    """The block it answers."""
    parent_name: str | None = None
    role: str
    kind: str
    status: str
    author: str
    username: str
    """Name of the author."""
    input: dict[str, Any] | None = None
    """Input of the tool call."""
    created: str
    version: int


_SHOWN: Final = frozenset(BlockInfo.model_fields) & FIELDS.keys()


def header_values(context: Context, block: str) -> dict[str, Any]:
    """The values of a `BlockInfo`."""
    header = context.document.header(block)
    parent = header.parent
    named = parent if parent is not None and parent in context.document else None
    values = {name: getattr(header, name) for name in _SHOWN}
    for name in ENUMS:
        values[name] = str(values[name])
    return {
        **values,
        "input": json_object(header.input) if header.input is not None else None,
        "block_id": block,
        "name": context.block_name(block),
        "username": context.username(header.author),
        "parent_id": parent,
        "parent_name": context.block_name(named) if named is not None else None,
        "version": context.blocks.version(block),
    }


def header_fields(metadata: Mapping[str, Any], limits: Limits, project: Path) -> dict[str, Any]:
    """Header fields out of a request's `metadata`; unknown keys stay together as `metadata`.

    Raises AntiphonError invalid_params or too_large for what `check_value` refuses, and for a
    `path` that is not in the folder `project`.
    """
    for name in metadata:
        if name in _KERNELS:
            raise invalid_params(
                f"metadata.{name} has the name of a header field that metadata does not set: give"
                " the parameter of the call that does, or use another name.",
                field=f"metadata.{name}",
                allowed=sorted(_OF_REQUESTS),
            )
    fields = {name: value for name, value in metadata.items() if name in _OF_REQUESTS}
    if not isinstance(fields.get("input", ""), str):
        fields["input"] = json.dumps(fields["input"], ensure_ascii=False)
    for name, value in fields.items():
        check_value(name, value, limits, prefix="metadata.")
    if "path" in fields:
        root = os.path.realpath(project)
        if not Path(os.path.realpath(Path(root, fields["path"]))).is_relative_to(root):
            raise invalid_params(
                "metadata.path must be a path inside the project, and a symbolic link leads this"
                " one out of it: name a file of the project.",
                field="metadata.path",
                expected="a path inside the project",
            )
    if metadata.get("type") == SUMMARY_TYPE:
        raise invalid_params(
            f"A block of the type {SUMMARY_TYPE} decides what models read, and only"
            " context.compact writes one: call that, or use another type.",
            field="metadata.type",
        )
    if DRIFT in metadata:
        raise invalid_params(
            f"metadata.{DRIFT} says where the kernel brought a block from, and only the tools of"
            " drift write that: leave it out.",
            field=f"metadata.{DRIFT}",
        )
    rest = {name: value for name, value in metadata.items() if name not in _OF_REQUESTS}
    if rest:
        check_value("metadata", rest, limits)
        fields["metadata"] = rest
    return fields
