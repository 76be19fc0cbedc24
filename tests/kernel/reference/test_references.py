"""Ids in requests and answers: each goes by its name too, in every tool."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, get_args

import pytest

from antiphon_kernel.kernel import Kernel
from antiphon_kernel.registry import Result
from antiphon_kernel.subscriptions import BlockEvent
from tests.kernel.reference.examples import ALL_TOOLS, play, read_example

TOOLS = [name for name in ALL_TOOLS.names if read_example(name) is not None]

BLOCK = re.compile(r"[0-9a-f]{32}\.[0-9a-f]{32}\.[0-9]+")
NAME = re.compile(r"[a-z0-9_-]+\.[a-z0-9_-]+\.[0-9]+")
OTHER_IDS = {"context_id", "tool_call_id", "turn_id"}
ELSEWHERE = {"source_block"}
"""Fields of the document that name a block of another context, which may be gone."""
AUTHORS = {"author", "creator", "principal"}


def name_of(field: str) -> str:
    """The field that holds the name of the block in another field."""
    if field == "block_id":
        return "name"
    return f"{field.removesuffix('_id')}_name"


def results(of: Any, seen: set[type[Result]]) -> None:
    """Add every model that an answer of this type holds."""
    if isinstance(of, type) and issubclass(of, Result):
        if of not in seen:
            seen.add(of)
            for field in of.model_fields.values():
                results(field.annotation, seen)
    for part in get_args(of):
        results(part, seen)


def objects(value: Any) -> Iterator[dict[str, Any]]:
    """Every object in an answer."""
    if isinstance(value, dict):
        yield value
    for part in value.values() if isinstance(value, dict) else value:
        if isinstance(part, dict | list):
            yield from objects(part)


def test_every_result_with_a_block_id_has_a_field_for_its_name() -> None:
    models: set[type[Result]] = {BlockEvent}
    for name in ALL_TOOLS.names:
        results(ALL_TOOLS[name].result, models)
    assert len(models) > 40
    for model in models:
        fields = model.model_fields
        text = {name for name, field in fields.items() if "str" in str(field.annotation)}
        ids = {one for one in text if one.endswith("_id")} - OTHER_IDS
        missing = {name_of(one) for one in ids | ({"next"} & text)} - fields.keys()
        assert not missing, model
        assert "undone" not in fields or "undone_names" in fields
        assert not AUTHORS & fields.keys() or "username" in fields, model


@pytest.mark.parametrize("tool", TOOLS)
async def test_answer_of_a_tool_names_every_block_and_author_in_it(tool: str) -> None:
    example = read_example(tool)
    assert example is not None
    for answer in (await play(tool, example)).answers:
        for found in objects(answer) if "error" not in answer else ():
            for field, value in found.items():
                if isinstance(value, str) and BLOCK.fullmatch(value) and field not in ELSEWHERE:
                    assert NAME.fullmatch(found[name_of(field)]), (field, found)
                if isinstance(value, list) and any(BLOCK.fullmatch(str(one)) for one in value):
                    assert len(found[f"{field}_names"]) == len(value)
                if field in AUTHORS:
                    assert "username" in found, found


def with_ends(kernel: Kernel, value: Any, field: str = "") -> Any:
    """Put the ends of ids in place of names."""
    contexts = {row.label: row.id for row in kernel.contexts.rows()}
    people = kernel.members.names()
    if isinstance(value, dict):
        changed = {with_ends(kernel, key): key for key in value}
        return {new: with_ends(kernel, value[key], key) for new, key in changed.items()}
    if isinstance(value, list):
        return [with_ends(kernel, one, field) for one in value]
    if isinstance(value, str) and NAME.fullmatch(value):
        context, principal, seq = value.split(".")
        return f"{contexts[context][-15:]}.{people[principal][-15:]}.{seq}"
    if field == "context":
        return contexts.get(value, value)[-15:]
    if field == "principal":
        return people.get(value, value)[-15:]
    return value


@pytest.mark.parametrize("tool", TOOLS)
async def test_tool_takes_the_end_of_an_id_where_it_takes_a_name(tool: str) -> None:
    example = read_example(tool)
    assert example is not None
    by_name = await play(tool, example)
    by_end = await play(tool, example, with_ends)
    for one in (*by_name.answers, *by_end.answers):
        one.pop("missing", None)  # says what was asked for
        for said in ("message", "field", "reference"):
            one.get("error", {}).pop(said, None)
    assert by_end.answers == by_name.answers
