"""The limits of what a block holds, checked before a tool writes anything."""

from __future__ import annotations

import json
from typing import Any

from antiphon_kernel.contexts import Context
from antiphon_kernel.document.schema import Schema, TextSchema, each_part, encode_schema
from antiphon_kernel.validation import check_limit, reject_long_text


def check_size(context: Context, code_points: int) -> None:
    """Raises AntiphonError too_large if a block's text would become longer than allowed."""
    reject_long_text(context.limits, code_points)


def check_value_size(context: Context, value: Any) -> None:
    """Raises AntiphonError too_large if one value that is no text is larger than allowed."""
    found = len(json.dumps(value, ensure_ascii=False))
    what = f"The value has {found} code points as JSON"
    check_limit(found, context.limits.value_code_points, what, "split it")


def check_content_size(context: Context, value: Any) -> None:
    """Raises AntiphonError too_large if a whole content is larger than allowed."""
    size = len(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
    check_size(context, size)


def check_items(context: Context, count: int) -> None:
    """Raises AntiphonError too_large if a list or log would become longer than allowed."""
    what = f"The list would have {count} items"
    check_limit(count, context.limits.list_items, what, "use several blocks")


def check_schema_size(context: Context, schema: Schema) -> None:
    """Raises AntiphonError too_large if a schema is longer or deeper than allowed."""
    if isinstance(schema, TextSchema):
        return
    limits = context.limits
    size, depth = len(encode_schema(schema)), max(len(names) for names, _ in each_part(schema))
    for found, limit, what in (
        (size, limits.schema_code_points, f"The schema has {size} code points of JSON"),
        (depth, limits.section_depth, f"The schema has {depth} sections inside each other"),
    ):
        check_limit(found, limit, what, "use several blocks")
