"""Reading a block's content as JSON, whatever its schema, and saying where it breaks it.

An undo can break a schema though every single write kept it (it brings an item back into a list
that is full by now): what is there is read all the same, and what is wrong is told beside it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from pycrdt import Array, Map, Text

from antiphon_kernel.document.containers import items_of
from antiphon_kernel.document.counters import as_number, total, unreadable
from antiphon_kernel.document.document import Document
from antiphon_kernel.document.schema import (
    EXACT_INTEGER,
    FieldType,
    MapSchema,
    Part,
    Rule,
    Violation,
    each_part,
    field_type_of,
    inner_parts,
    joined,
    part_at,
    path_of,
    violations,
)
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.quoting import LISTED, join_names, quote, truncate


@dataclass(frozen=True, slots=True)
class Content:
    """A content, or a part of one."""

    value: Any
    """Its JSON: a string, a list, or an object in the order of the schema; null: no value."""
    violations: tuple[Violation, ...]


def read_content(document: Document, block: str, path: str | None = None) -> Content:
    """Return the content of a block at a path.

    Raises:
        KeyError: if there is no such block.
        AntiphonError: schema_violation if its schema has nothing at that path.
    """
    part = part_of(document, block, path)
    reader = _ContentReader(document, block)
    value = reader.read(part, path)
    found = dict.fromkeys((*reader.broken, *violations(part, value, path)))
    return Content(value, tuple(found))


def read_value(document: Document, block: str, path: str | None = None) -> Any:
    """The JSON alone; raises the same."""
    part = part_of(document, block, path)
    return _ContentReader(document, block).read(part, path)


def part_of(document: Document, block: str, path: str | None) -> Part:
    """Return the part of a block's schema at a path; raises the same."""
    schema = document.schema(block)
    part = part_at(schema, path)
    if part is None:
        known = [path_of(names) or "" for names, _ in each_part(schema) if names]
        expected = f"one of the parts {join_names(known)}"
        reject_violations(block, [Violation(path, Rule.UNKNOWN_NAME, expected, quote(path))])
    assert part is not None
    return part


def reject_violations(block: str, found: Iterable[Violation]) -> None:
    """Raises AntiphonError schema_violation if there is any."""
    broken = list(found)
    if not broken:
        return
    more = f" (and {len(broken) - 1} more)" if len(broken) > 1 else ""
    raise AntiphonError(
        ErrorCode.SCHEMA_VIOLATION,
        f"The schema of block {block} does not allow this: {broken[0]}{more}.",
        block_id=block,
        **_said(broken[0]),
        violations=[_said(one) for one in broken[:LISTED]],
    )


def _said(broken: Violation) -> dict[str, Any]:
    found = broken.as_json()
    return found if broken.path is None else {**found, "path": truncate(broken.path)}


@dataclass(slots=True)
class _ContentReader:
    document: Document
    block: str
    broken: list[Violation] = field(default_factory=list)

    def read(self, part: Part, path: str | None) -> Any:
        kind = field_type_of(part)
        above, _, name = (path or "").rpartition("/")
        is_single = kind not in (None, FieldType.TEXT, FieldType.LIST, FieldType.COUNTER)
        container = self.document.container(self.block, above or None if is_single else path)
        match kind, container:
            case None, _:
                if isinstance(part, MapSchema) and isinstance(container, Map):
                    known = {one.name for one in part.fields}
                    expected = f"one of the fields {', '.join(sorted(known))}"
                    for name in sorted(set(container.keys()) - known):
                        at = joined(path, name)
                        self.broken.append(Violation(at, Rule.UNKNOWN_NAME, expected, quote(name)))
                return {name: self.read(one, joined(path, name)) for name, one in inner_parts(part)}
            case FieldType.TEXT, _:
                if not isinstance(container, Text):
                    self._report(path, "a text", "nothing")
                return self.document.text(self.block, path)
            case FieldType.LIST, Array():
                return [self._json(one, path) for one in items_of(container)]
            case FieldType.LIST, _:
                self._report(path, "a list", "nothing")
                return []
            case FieldType.COUNTER, Map():
                if unreadable(container):
                    self._report(path, "the sums of a counter", "something that is no number")
                return as_number(total(container))
            case FieldType.COUNTER, _:
                self._report(path, "a counter", "nothing")
                return 0
            case _, Map():
                return self._json(container.get(name), path)
        self._report(path, "a field of a map", "nothing")
        return None

    def _json(self, stored: Any, path: str | None) -> Any:
        return plain_json(stored, lambda odd: self._report(path, "JSON", quote(odd)))

    def _report(self, path: str | None, expected: str, found: str) -> None:
        self.broken.append(Violation(path, Rule.UNREADABLE, expected, found))


def plain_json(stored: Any, report: Callable[[object], None] = lambda odd: None) -> Any:
    """Return a stored value as JSON: whole numbers come out of the CRDT as floats.

    Args:
        report: called with each value that JSON does not have; null stands in its place.
    """
    if isinstance(stored, float) and math.isfinite(stored):
        whole = stored.is_integer() and abs(stored) <= EXACT_INTEGER
        return int(stored) if whole else stored
    if isinstance(stored, int) and abs(stored) > EXACT_INTEGER:
        return float(stored)
    if stored is None or isinstance(stored, str | bool | int):
        return stored
    if isinstance(stored, list):
        return [plain_json(one, report) for one in stored]
    if isinstance(stored, dict):
        # The CRDT does not keep the order of their names.
        return {name: plain_json(stored[name], report) for name in sorted(stored)}
    report(stored)
    return None
