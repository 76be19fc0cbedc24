"""Reading of the texts of many blocks.

The library enters several transactions for each value of a map and makes an object of it. For a
short text that takes ten times as long as reading it does, so this asks what lies below.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from pycrdt import Doc, Map, Text

from antiphon_kernel.document.header import CONTENT, SCHEMA

_RAW_TEXT: Final[type[Any]] = type(Doc[Any]().get("text", type=Text).integrated)


def read_texts(blocks: Map[Any], keys: Iterable[str]) -> list[str | None]:
    """Return the text of each block that states no schema and has a text; None of every other.

    Args:
        keys: of blocks that are there.
    """
    with blocks.doc.transaction() as transaction:
        raw = transaction._txn  # noqa: SLF001  nothing public reads a value without an object
        stored = blocks.integrated
        return [_text(stored.get(raw, key), raw) for key in keys]


def _text(block: Any, raw: object) -> str | None:
    if block.has(raw, SCHEMA) or not block.has(raw, CONTENT):
        return None
    content = block.get(raw, CONTENT)
    return str(content.get_string(raw)) if isinstance(content, _RAW_TEXT) else None
