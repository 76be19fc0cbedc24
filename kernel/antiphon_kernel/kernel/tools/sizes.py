"""The limits of what a block holds, checked before anything is written."""

from __future__ import annotations

import json
from typing import Any

from antiphon_kernel.document.schema import Schema, TextSchema, each_part, encode_schema
from antiphon_kernel.kernel.context.context import Context
from antiphon_kernel.types.errors import AntiphonError, ErrorCode


def check_size(context: Context, code_points: int) -> None:
    """Raises AntiphonError too_large if a block's text would become longer than allowed."""
    limit = context.limits.block_code_points
    if code_points > limit:
        raise AntiphonError(
            ErrorCode.TOO_LARGE,
            f"The text of the block would have {code_points} code points, {limit} are allowed:"
            " split it into several blocks.",
            limit=limit,
            found=code_points,
        )


def check_value_size(context: Context, value: Any) -> None:
    """Raises AntiphonError too_large if one value that is no text is larger than allowed."""
    limit = context.limits.value_code_points
    found = len(json.dumps(value, ensure_ascii=False))
    if found > limit:
        raise AntiphonError(
            ErrorCode.TOO_LARGE,
            f"The value has {found} code points as JSON, {limit} are allowed: split it.",
            limit=limit,
            found=found,
        )


def check_content_size(context: Context, value: Any) -> None:
    """Raises AntiphonError too_large if a whole content is larger than allowed."""
    size = len(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
    check_size(context, size)


def check_items(context: Context, count: int) -> None:
    """Raises AntiphonError too_large if a list or log would become longer than allowed."""
    limit = context.limits.list_items
    if count > limit:
        raise AntiphonError(
            ErrorCode.TOO_LARGE,
            f"The list would have {count} items, {limit} are allowed: use several blocks.",
            limit=limit,
            found=count,
        )


def check_schema_size(context: Context, schema: Schema) -> None:
    """Raises AntiphonError too_large if a schema is longer or deeper than allowed."""
    if isinstance(schema, TextSchema):
        return
    limits = context.limits
    depth = max(len(names) for names, _ in each_part(schema))
    for found, limit, what in (
        (len(encode_schema(schema)), limits.schema_code_points, "code points of JSON"),
        (depth, limits.section_depth, "sections inside each other"),
    ):
        if found > limit:
            raise AntiphonError(
                ErrorCode.TOO_LARGE,
                f"The schema has {found} {what}, {limit} are allowed: use several blocks.",
                limit=limit,
                found=found,
            )
