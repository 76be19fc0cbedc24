"""A block's content as it was at an earlier version, as JSON and as a plan that brings it back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from antiphon_kernel.document.content import Content, plain_json
from antiphon_kernel.document.counters import as_number
from antiphon_kernel.document.history.block_history import BlockHistory
from antiphon_kernel.document.history.container_index import Names
from antiphon_kernel.document.history.update_builder import UpdatePlan
from antiphon_kernel.document.schema import (
    CompositeSchema,
    FieldSchema,
    FieldType,
    MapSchema,
    Part,
    is_counter,
    is_text,
    names_of,
    path_of,
)
from antiphon_kernel.document.schema_validation import violations
from antiphon_kernel.types.frozen_json import canonical_json


def content_at(history: BlockHistory, part: Part, path: str | None, version: int) -> Content:
    """Return what the part at a path was at a version of its block."""
    value = _value(history, part, names_of(path), version)
    return Content(value, tuple(violations(part, value, path)))


def _value(history: BlockHistory, part: Part, names: Names, version: int) -> Any:
    if isinstance(part, MapSchema | CompositeSchema):
        return {
            name: _value(history, one, (*names, name), version) for name, one in _inner_parts(part)
        }
    if is_text(part):
        return history.text(path_of(names), version)
    if is_counter(part):
        return as_number(history.counter(names, version))
    if _is_single(part):
        values = history.values(names, version)
        return plain_json(values[0]) if values else None
    return [plain_json(one) for one in history.values(names, version)]


def _inner_parts(part: MapSchema | CompositeSchema) -> Iterator[tuple[str, Part]]:
    if isinstance(part, MapSchema):
        yield from ((field.name, field) for field in part.fields)
    else:
        yield from ((section.name, section.content) for section in part.sections)


def _is_single(part: Part) -> bool:
    return isinstance(part, FieldSchema) and part.field_type is not FieldType.LIST


@dataclass(frozen=True, slots=True)
class PlannedPart:
    """The plan for one text, list, log, counter or field."""

    names: Names
    plan: UpdatePlan


def plan_content_at(
    history: BlockHistory, part: Part, names: Names, version: int, client: int
) -> Iterator[PlannedPart]:
    """Yield the plans that bring back what a part was at a version; none for what is the same.

    Args:
        client: who will write it: counters are counted by client.
    """
    if isinstance(part, MapSchema | CompositeSchema):
        for name, one in _inner_parts(part):
            yield from plan_content_at(history, one, (*names, name), version, client)
        return
    if is_counter(part):
        plan = history.plan_count(names, version, client)
    elif _is_single(part) and not is_text(part):
        now, then = history.values(names), history.values(names, version)
        same = canonical_json([*map(plain_json, now)]) == canonical_json([*map(plain_json, then)])
        plan = UpdatePlan() if same else history.plan_restore(path_of(names), version)
    else:
        plan = history.plan_restore(path_of(names), version)
    if plan:
        yield PlannedPart(names, plan)
