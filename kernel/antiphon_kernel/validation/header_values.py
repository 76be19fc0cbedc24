"""Validation of header fields: each as a tool would have written it.

One check for every way in: tools, raw updates of connected clients, imports. What an earlier
version let in is read all the same, named by the doctor, and left out of copies.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Callable, Mapping
from enum import StrEnum
from functools import lru_cache
from typing import Final

from antiphon_kernel.document.header import ENUMS, FIELDS, Form, field_values
from antiphon_kernel.document.schema import is_whole
from antiphon_kernel.limits import Limits
from antiphon_kernel.types.clock import is_iso_time
from antiphon_kernel.types.enums import CallPermission, DriftKind, ToolKind
from antiphon_kernel.types.errors import AntiphonError, invalid_params
from antiphon_kernel.types.ids import is_block_id, is_id, is_name
from antiphon_kernel.types.json_validation import MAX_NESTING, read_json, unique_names
from antiphon_kernel.types.media_types import is_media_type, is_sha256
from antiphon_kernel.types.quoting import quote
from antiphon_kernel.types.records import BlockHeader
from antiphon_kernel.validation.errors import check_limit

_CLOSED: Final[Mapping[str, type[StrEnum]]] = {
    **ENUMS,
    "tool_kind": ToolKind,
    "drift_kind": DriftKind,
    "permission": CallPermission,
}
_JSON: Final = frozenset(name for name, form in FIELDS.items() if form is Form.OBJECT) | {"input"}
_OBJECT: Final = (
    f"a JSON object nested at most {MAX_NESTING} deep, with finite numbers, whole characters and"
    " names that do not repeat"
)
TOOLS_ONLY: Final = frozenset(
    (
        *("stopped_by", "edited_after_done", "media_type", "blob", "blob_bytes"),
        *("permission", "runs_for", "decided_by"),
    )
)
"""Fields that no tool lets the author of a new block set."""

_CONTROL: Final = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")


_SHAPES: Final[Mapping[str, tuple[Callable[[str], bool], str]]] = {
    # Absent is what a draft without a time of its own reads as, and an export of it says.
    "created": (
        lambda text: not text or is_iso_time(text),
        "a time from 1970 to 9999 like 2026-01-31T09:30:00.000Z",
    ),
    "parent": (is_block_id, "a full block id, as the tools return it"),
    "source_block": (is_block_id, "a full block id, as the tools return it"),
    "source_context": (is_id, "a full context id, as the tools return it"),
    "stopped_by": (is_name, "a username"),
    "runs_for": (is_name, "a username"),
    "decided_by": (is_name, "a username"),
    "media_type": (is_media_type, "a media type in lower case, such as image/png"),
    "blob": (is_sha256, "a SHA-256 in 64 lower-case hexadecimal digits"),
}


def check_field(name: str, stored: object, limits: Limits, *, prefix: str = "") -> None:
    """Check one header field, in the form in which it is stored, before anything is written.

    Args:
        prefix: what stands before the name where the caller has put it.

    Raises:
        AntiphonError: invalid_params or too_large, naming the field.
    """
    field = prefix + name
    if isinstance(stored, str):
        of_json = name in _JSON
        limit = "value_code_points" if of_json else "header_code_points"
        what = f"{field} has {len(stored)} code points"
        advice = "put what is long into the text of a block"
        check_limit(len(stored), limits, limit, what, advice)
    expected = _expected(name, stored)
    if expected is not None:
        closed = _CLOSED.get(name)
        raise invalid_params(
            f"{field} must be {expected}, not {quote(stored)}.",
            field=field,
            expected=expected,
            allowed=list(closed) if closed is not None else None,
        )


def check_value(name: str, value: object, limits: Limits, *, prefix: str = "") -> None:
    """Check one header field in the form in which a `BlockHeader` has it, as `check_field` does."""
    if FIELDS[name] is Form.OBJECT and isinstance(value, dict):
        value = json.dumps(value, ensure_ascii=False)
    elif FIELDS[name] is Form.OBJECT:
        value = None
    check_field(name, value, limits, prefix=prefix)


def without_damage(header: BlockHeader, limits: Limits) -> BlockHeader:
    """Return a header without the values that no tool would have written, for a copy.

    Words that a later version may know stay.
    """
    length = limits.header_code_points
    odd = [
        name
        for name, value in field_values(header)
        if (value or value == "")
        and (
            _is_odd_word(name, value, length)
            if name in _WORDS and isinstance(value, str)
            else _is_damaged(name, value, limits)
        )
    ]
    return header._replace(**{name: _ABSENT[name] for name in odd}) if odd else header


def without_question(header: BlockHeader) -> BlockHeader:
    """Return a header for a copy: nobody is asked about a copied call."""
    if header.permission != CallPermission.ASKED:
        return header
    return header._replace(permission=CallPermission.WITHDRAWN)


def _is_damaged(name: str, value: object, limits: Limits) -> bool:
    if FIELDS[name] is Form.STRING and isinstance(value, str) and name not in _JSON:
        return _is_odd(name, value, limits.header_code_points)
    try:
        check_value(name, value, limits)
    except AntiphonError:
        return True
    return False


def _is_odd(name: str, value: str, length: int) -> bool:
    """Return whether a string is none that a tool would have written; `length`: of the longest."""
    if len(value) > length:
        return True
    if name in _CLOSED:
        return not isinstance(value, StrEnum) and bool(_CONTROL.search(value))
    return _expected(name, value) is not None


_WORDS: Final = frozenset(_CLOSED) | {"author", "tool_name"}
"""Fields in which many blocks of a context have the same value."""

_is_odd_word: Final = lru_cache(1_024, typed=True)(_is_odd)


def _expected(name: str, stored: object) -> str | None:
    """Return the form that a value should have and has not; None if it has it."""
    form = FIELDS[name]
    if form is Form.FLAG:
        return None if isinstance(stored, bool) else "true or false"
    if form is Form.NUMBER:
        return None if is_whole(stored) else "a whole number below 2^53"
    if not isinstance(stored, str):
        return _OBJECT if name in _JSON else "a string"
    if name in _JSON:
        return None if _is_object(stored) else _OBJECT
    closed, shape = _CLOSED.get(name), _SHAPES.get(name)
    if closed is not None:
        return None if stored in list(closed) else "one of " + ", ".join(closed)
    if shape is not None:
        return None if shape[0](stored) else shape[1]
    if _CONTROL.search(stored):
        return "a line of text without control characters"
    if name == "path":
        if posixpath.isabs(stored) or posixpath.normpath(stored).split("/")[0] == "..":
            return "a path inside the project, relative to its root"
    return None


def _is_object(text: str) -> bool:
    try:
        return isinstance(read_json(text, pairs=unique_names), dict)
    except ValueError:
        return False


_ABSENT: Final = {name: BlockHeader._field_defaults.get(name, "") for name in FIELDS}
"""Values of fields that are absent."""
