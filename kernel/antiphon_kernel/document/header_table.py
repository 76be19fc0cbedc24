"""The headers of many blocks as bytes: a table with a column for each field."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import fields
from typing import Final

from antiphon_kernel.document.header import ENUMS
from antiphon_kernel.types.records import BlockHeader
from antiphon_kernel.yjs.json_validation import refuse_unwritable

_FIELDS: Final = [field.name for field in fields(BlockHeader)]


def encode_headers(headers: Sequence[BlockHeader]) -> bytes:
    """One JSON document."""
    rows = [[getattr(header, name) for name in _FIELDS] for header in headers]
    return json.dumps({"fields": _FIELDS, "rows": rows}, ensure_ascii=False).encode()


def decode_headers(data: bytes) -> list[BlockHeader] | None:
    """Return what `encode_headers` wrote.

    None if that was a version with other fields, or one that did not yet check what it read.
    """
    try:
        table = json.loads(data)
        if table["fields"] != _FIELDS:
            return None
        known = [
            (_FIELDS.index(name), {str(member): member for member in enum})
            for name, enum in ENUMS.items()
        ]
        headers = []
        for row in table["rows"]:
            for index, members in known:
                row[index] = members.get(row[index], row[index])
            header = BlockHeader(*row)
            if header.metadata:
                refuse_unwritable(header.metadata)
            headers.append(header)
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    return headers
