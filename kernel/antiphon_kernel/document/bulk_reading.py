"""Reading of the texts, or of some header fields, of many blocks.

The library enters several transactions for each value of a map and makes an object of it. For a
short value that takes ten times as long as reading it does, so this asks what lies below.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Final

from pycrdt import Doc, Map, Text

from antiphon_kernel.document.header import CONTENT, SCHEMA

_RAW_TEXT: Final[type[Any]] = type(Doc[Any]().get("text", type=Text).integrated)
_RAW_MAP: Final[type[Any]] = type(Doc[Any]().get("map", type=Map).integrated)
_NO_HEADER: Final = (CONTENT, SCHEMA)


def read_fields(
    blocks: Map[Any], keys: Iterable[str], names: Sequence[str]
) -> list[tuple[Any, ...] | None]:
    """Return the stored values of these fields for each key, None of a field that is not there.

    The whole entry is None if what has that key is no block.
    """
    with blocks.doc.transaction() as transaction:
        raw = transaction._txn  # noqa: SLF001  nothing public reads a value without an object
        found = map(partial(blocks.integrated.get, raw), keys)
        return [
            tuple([_value(block, name, raw) for name in names])
            if isinstance(block, _RAW_MAP)
            else None
            for block in found
        ]


def read_keys(blocks: Map[Any], keys: Iterable[str]) -> Iterator[dict[str, Any]]:
    """Yield all that is stored under the keys of each of some blocks but content and schema.

    Raises KeyError if one of them is no block.
    """
    stored = blocks.integrated
    with blocks.doc.transaction() as transaction:
        raw = transaction._txn  # noqa: SLF001  as above
        for key in keys:
            yield _keys(_value(stored, key, raw), key, raw)


def _keys(block: Any, key: str, raw: object) -> dict[str, Any]:
    if not isinstance(block, _RAW_MAP):
        raise KeyError(key)
    get = block.get
    return {name: get(raw, name) for name in block.keys(raw) if name not in _NO_HEADER}


def _value(block: Any, name: str, raw: object) -> Any:
    return block.get(raw, name) if block.has(raw, name) else None


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
