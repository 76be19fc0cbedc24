"""Immutable JSON values, with the equality of JSON: `True` is no number, key order says nothing."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from antiphon_kernel.types.json_validation import MAX_NESTING, has_whole_characters
from antiphon_kernel.types.quoting import quote

FrozenJson: TypeAlias = "bool | int | float | str | tuple[FrozenJson, ...] | JsonObject | None"


class JsonObject(Mapping[str, FrozenJson]):
    """An immutable JSON object, its members in the order in which they came.

    Two are equal if they hold the same JSON: in any order of keys, lists in the same order, `1`
    equal to `1.0` and not to `True`, a missing key not equal to null.
    """

    __slots__ = ("_canonical", "_members")

    def __init__(self, members: Mapping[str, Any] | None = None, *, depth: int = 0) -> None:
        """Freeze a mapping with all that is in it.

        Args:
            depth: in how many lists and objects it is.

        Raises:
            ValueError: as `freeze` does.
        """
        self._members = {
            _key(key): freeze(member, depth=depth + 1) for key, member in (members or {}).items()
        }
        self._canonical: str | None = None

    def __getitem__(self, key: str) -> FrozenJson:
        return self._members[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._members)

    def __len__(self) -> int:
        return len(self._members)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, JsonObject):
            return NotImplemented
        return self is other or self.canonical() == other.canonical()

    def __hash__(self) -> int:
        return hash(self.canonical())

    def __repr__(self) -> str:
        return f"JsonObject({thaw(self)!r})"

    def canonical(self) -> str:
        """The JSON text that all equal objects have in common."""
        if self._canonical is None:
            self._canonical = canonical_json(self)
        return self._canonical


def freeze(value: object, *, depth: int = 0) -> FrozenJson:
    """Make an immutable copy of a JSON value; an object that is frozen already is returned itself.

    Args:
        depth: in how many lists and objects it is.

    Raises:
        ValueError: if the value, or one in it, has no place in JSON: a number that is not finite,
            half a surrogate pair, a key that is not a string, nesting deeper than `MAX_NESTING`.
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _whole_characters(value)
    if isinstance(value, int | float):
        try:
            if math.isfinite(value):
                return value
        except OverflowError:
            raise ValueError("an integer in it has more than 308 digits") from None
        raise ValueError(f"{quote(value)} is no number in JSON")
    if isinstance(value, JsonObject) and depth == 0:
        return value
    if depth == MAX_NESTING:
        raise ValueError(f"JSON is nested deeper than {MAX_NESTING} levels")
    if isinstance(value, Mapping):
        return JsonObject(value, depth=depth)
    if isinstance(value, list | tuple):
        return tuple(freeze(item, depth=depth + 1) for item in value)
    raise ValueError(f"{quote(value)} is no JSON value")


def thaw(value: FrozenJson) -> Any:
    """Return the value as dicts and lists, which are the caller's own."""
    if isinstance(value, JsonObject):
        return {key: thaw(member) for key, member in value.items()}
    if isinstance(value, tuple):
        return [thaw(item) for item in value]
    return value


def canonical_json(value: FrozenJson | list[Any] | dict[str, Any]) -> str:
    """Return the JSON text that all values equal to this one have in common."""
    return json.dumps(
        _with_whole_numbers(value), ensure_ascii=False, sort_keys=True, separators=(",", ":")
    )


def _with_whole_numbers(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _with_whole_numbers(member) for key, member in value.items()}
    if isinstance(value, list | tuple):
        return [_with_whole_numbers(item) for item in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def _key(key: object) -> str:
    if not isinstance(key, str):
        raise ValueError(f"{quote(key)} is no key of a JSON object, which is a string")
    return _whole_characters(key)


def _whole_characters(text: str) -> str:
    if not has_whole_characters(text):
        raise ValueError(f"{quote(text)} holds half a surrogate pair")
    return text
