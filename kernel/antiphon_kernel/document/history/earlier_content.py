"""A block's content as it was at an earlier version, as JSON and as a plan that brings it back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from antiphon_kernel.document.content import Content, plain_json
from antiphon_kernel.document.counters import as_number
from antiphon_kernel.document.history.block_history import BlockHistory
from antiphon_kernel.document.history.container_index import Names
from antiphon_kernel.document.history.update_builder import UpdatePlan
from antiphon_kernel.document.schema import (
    FieldType,
    Part,
    field_type_of,
    inner_parts,
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
    match field_type_of(part):
        case FieldType.TEXT:
            return history.text(path_of(names), version)
        case FieldType.COUNTER:
            return as_number(history.counter(names, version))
        case FieldType.LIST:
            return [plain_json(one) for one in history.values(names, version)]
        case None:
            inner = inner_parts(part)
            return {name: _value(history, one, (*names, name), version) for name, one in inner}
        case _:
            values = history.values(names, version)
            return plain_json(values[0]) if values else None


def plan_content_at(
    history: BlockHistory, part: Part, names: Names, version: int, client: int
) -> Iterator[tuple[Names, UpdatePlan]]:
    """Yield the plan for each text, list, log, counter or field that is not what it was.

    Args:
        client: who will write it: counters are counted by client.
    """
    match field_type_of(part):
        case None:
            for name, one in inner_parts(part):
                yield from plan_content_at(history, one, (*names, name), version, client)
            return
        case FieldType.COUNTER:
            plan = history.plan_count(names, version, client)
        case FieldType.TEXT | FieldType.LIST:
            plan = history.plan_restore(path_of(names), version)
        case _:
            now, then = ([*map(plain_json, history.values(names, at))] for at in (None, version))
            same = canonical_json(now) == canonical_json(then)
            plan = UpdatePlan() if same else history.plan_restore(path_of(names), version)
    if plan:
        yield names, plan
