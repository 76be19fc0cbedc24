"""A block's header in the CRDT: which key holds which field, and how it is written there.

The fields are those of `BlockHeader`; the type of a field says how it is stored. Absent is never
null: a field that is not set has no key. Times and ids are strings, `input` and `metadata` are JSON
strings, flags are booleans that are only there when true.

For the fields, or the texts, of many blocks the library enters several transactions for each value
of a map and makes an object of it. For a short value that takes ten times as long as reading it
does, so bulk reading asks what lies below.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum, StrEnum, auto
from functools import lru_cache, partial
from operator import attrgetter
from typing import Any, Final, get_args, get_origin, get_type_hints

from pycrdt import Doc, Map, Text

from antiphon_kernel.document.schema import is_whole
from antiphon_kernel.types.enums import BlockKind, Role, Status
from antiphon_kernel.types.json_validation import read_json
from antiphon_kernel.types.quoting import quote
from antiphon_kernel.types.records import BlockHeader
from antiphon_kernel.yjs.update_writer import encode_any

CONTENT = "content"
"""The key of the block's content."""

SCHEMA = "schema"
"""The key of what the content looks like; absent if it is a text."""


class Form(Enum):
    """Storage form of a field."""

    STRING = auto()
    FLAG = auto()
    NUMBER = auto()
    OBJECT = auto()


def _form(annotation: Any) -> Form:
    if get_origin(annotation) is Mapping:
        return Form.OBJECT
    kinds = get_args(annotation) or (annotation,)
    if bool in kinds:
        return Form.FLAG
    return Form.NUMBER if int in kinds else Form.STRING


FIELDS: Final[Mapping[str, Form]] = {
    name: _form(annotation)
    for name, annotation in get_type_hints(BlockHeader).items()
    if name != "id"
}
"""Every header field that is stored (the id is the block's key)."""

ENUMS: Final[Mapping[str, type[StrEnum]]] = {"kind": BlockKind, "role": Role, "status": Status}
"""The fields whose values this version knows some of."""

_MEMBERS: Final[Mapping[str, Mapping[str, StrEnum]]] = {
    name: {str(member): member for member in enum} for name, enum in ENUMS.items()
}

_WORDS: Final = frozenset(ENUMS) | {"author", "source_context", "tool_name"}
"""Fields in which many blocks of a context have the same value."""

_SORTED: Final = sorted(FIELDS)
_values: Final = attrgetter(*_SORTED)
_WITHOUT: Final = BlockHeader("", BlockKind.TEXT, Role.USER, Status.PENDING, "", "", "")
"""The values of keys that a block lacks."""

_PLACES: Final = {name: (BlockHeader._fields.index(name), form) for name, form in FIELDS.items()}
_MEMBERS_AT: Final = [(_PLACES[name][0], members) for name, members in _MEMBERS.items()]
_AUTHOR_AT: Final = _PLACES["author"][0]
"""The last of the fields that every header has."""

_NOWHERE: Final[tuple[int, Form | None]] = (-1, None)

_RAW_TEXT: Final[type[Any]] = type(Doc[Any]().get("text", type=Text).integrated)
_RAW_MAP: Final[type[Any]] = type(Doc[Any]().get("map", type=Map).integrated)
_NO_HEADER: Final = (CONTENT, SCHEMA)


def stored_value(name: str, value: object) -> object | None:
    """Return the value stored under `name`; None means that the key is left out.

    Raises:
        ValueError: if there is no such field or the value has the wrong type.
    """
    form = FIELDS.get(name)
    if form is None:
        raise ValueError(f"a block has no header field {quote(name)}")
    if form is Form.STRING and type(value) is str:
        return value
    if value is None:
        return None
    if form is Form.FLAG:
        if not isinstance(value, bool):
            raise ValueError(f"{name} is true or false, not {quote(value)}")
        return value or None
    if form is Form.NUMBER:
        if not isinstance(value, int | float) or not is_whole(value):
            raise ValueError(f"{name} is a whole number below 2^53, not {quote(value)}")
        return float(value)
    if form is Form.OBJECT:
        return json.dumps(value, ensure_ascii=False, sort_keys=True) if value else None
    if not isinstance(value, str):
        raise ValueError(f"{name} is a string, not {quote(value)}")
    return str(value)


def stored_header(header: BlockHeader) -> dict[str, object]:
    """Every key of a new block but its content."""
    stored = {
        name: stored_value(name, value)
        for name, value in field_values(header)
        # An exit code of 0 equals False and is one.
        if value or not (value is None or value is False or value == {})
    }
    if None in stored.values():
        return {name: value for name, value in stored.items() if value is not None}
    return stored


def encoded_header(header: BlockHeader) -> list[tuple[str, bytes]]:
    """Return the keys of `stored_header`, each with its value as updates hold it."""
    return [
        (name, _encode_word(value) if name in _WORDS else encode_any(value))
        for name, value in stored_header(header).items()
    ]


_encode_word: Final = lru_cache(1_024, typed=True)(encode_any)


def field_values(header: BlockHeader) -> Iterator[tuple[str, Any]]:
    """Return the name and value of each field, without the id."""
    return zip(_SORTED, _values(header), strict=True)


def write_keys(stored: Map[Any], values: Mapping[str, object]) -> None:
    """Write these keys of a shared map; None removes one."""
    for name, value in values.items():
        if value is not None:
            stored[name] = value
        elif name in stored:
            del stored[name]


def known_value(name: str, value: Any) -> Any:
    """The member that a value of one of `ENUMS` is; the value itself if this version knows none."""
    return _MEMBERS[name].get(value, value) if isinstance(value, str) else value


def read_header(block: str, stored: Mapping[str, Any]) -> BlockHeader:
    """Return the header of a block from its keys; never fails, whatever is stored.

    Values of a wrong type count as absent; an object whose JSON cannot be read is shown as the text
    that is stored, under `unreadable`.
    """
    values: list[Any] = [block, *_WITHOUT[1:]]
    for name, value in stored.items():
        at, form = _PLACES.get(name, _NOWHERE)
        if form is Form.STRING:
            if isinstance(value, str) and (value or at > _AUTHOR_AT):
                values[at] = value
        elif form is not None and (read := _read_value(form, value)) is not None:
            values[at] = read
    if not values[_AUTHOR_AT]:
        parts = block.split(".")
        values[_AUTHOR_AT] = parts[1] if len(parts) == 3 else ""
    for at, members in _MEMBERS_AT:
        values[at] = members.get(values[at], values[at])
    return BlockHeader._make(values)


def _read_value(form: Form, value: object) -> Any:
    """Return a value that is no string; None if there is nothing of this form."""
    match form, value:
        case Form.FLAG, True:
            return True
        case Form.NUMBER, int() | float() if is_whole(value):
            return int(value)
        case Form.OBJECT, str():
            return json_object(value)
    return None


def json_object(stored: str) -> dict[str, Any]:
    """Return a stored JSON object; what cannot be read is shown under `unreadable`."""
    try:
        value = read_json(stored)
    except ValueError:
        return {"unreadable": stored}
    return value if isinstance(value, dict) else {"unreadable": stored}


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
            block = _value(stored, key, raw)
            if not isinstance(block, _RAW_MAP):
                raise KeyError(key)
            get = block.get
            yield {name: get(raw, name) for name in block.keys(raw) if name not in _NO_HEADER}


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
