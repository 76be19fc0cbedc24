"""The headers of many blocks as bytes: a table with a column for each field."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import fields
from typing import Final

from antiphon_kernel.types.enums import BlockKind, Role, Status
from antiphon_kernel.types.records import BlockHeader

_FIELDS: Final = [field.name for field in fields(BlockHeader)]
_ENUMS: Final = {"kind": BlockKind, "role": Role, "status": Status}


def encode_headers(headers: Sequence[BlockHeader]) -> bytes:
    """One JSON document."""
    rows = [[getattr(header, name) for name in _FIELDS] for header in headers]
    return json.dumps({"fields": _FIELDS, "rows": rows}, ensure_ascii=False).encode()


def decode_headers(data: bytes) -> list[BlockHeader] | None:
    """What `encode_headers` wrote; None if that was a version with other fields."""
    try:
        table = json.loads(data)
        if table["fields"] != _FIELDS:
            return None
        at = {name: _FIELDS.index(name) for name in _ENUMS}
        known = {name: dict(enum.__members__.items()) for name, enum in _ENUMS.items()}
        by_value = {
            name: {str(member): member for member in members.values()}
            for name, members in known.items()
        }
        headers = []
        for row in table["rows"]:
            for name, index in at.items():
                row[index] = by_value[name].get(row[index], row[index])
            headers.append(BlockHeader(*row))
    except (ValueError, TypeError, KeyError):
        return None
    return headers
