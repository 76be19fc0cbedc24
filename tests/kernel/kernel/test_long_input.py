"""Whatever is sent, and however long: what is said of it is not."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any

import pytest

from antiphon_kernel.kernel import Kernel
from antiphon_kernel.registry import Tool
from antiphon_kernel.tools.all_tools import KERNEL_TOOLS
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.records import Actor
from tests.errors import raises
from tests.kernel.kernel.calls import Caller, Make

LONG = "x" * 5_000
LONG_THINGS = (
    LONG,
    f"default.{LONG}.1",
    f"(ü{LONG}",
    10**4_000,
    [LONG] * 20,
    {LONG: LONG},
)
CONTENTS = ("expected", "hunks")
RUN = 150
"""More of one character than that in an error is too much."""


def said(error: AntiphonError) -> str:
    """All of an error, checked."""
    text = json.dumps(error.as_json(), ensure_ascii=False)
    assert len(error.message) < 4_000
    assert len(text) < 20_000, text[:2_000]
    for character in "xü":
        assert character * RUN not in text, text[:2_000]
    return text


def plausible(tool: Tool, block: str) -> dict[str, Any]:
    """Return what the tool needs, so that the one long thing is what is wrong."""
    known: dict[str, Any] = {
        "block_id": block,
        "context": "default",
        "label": "new",
        "role": "user",
        "kind": "text",
        "query": "q",
        "text": "t",
        "field": "title",
        "value": 1,
        "index": 0,
        "patch": "",
        "operations": [],
        "offset": 0,
        "status": "done",
        "version": 1,
        "principal": "amy",
        "subscription": "s",
        "entry": "e",
    }
    schema = tool.params.model_json_schema(by_alias=True)
    return {name: known.get(name, "x") for name in schema.get("required", ())}


@pytest.mark.parametrize("area", sorted({one.name.partition(".")[0] for one in KERNEL_TOOLS}))
async def test_parameter_error_quotes_values_shortened(
    kernel: Kernel, amy: Actor, make: Make, area: str
) -> None:
    schema: dict[str, Any] = {"type": "map", "fields": [{"name": "title", "field_type": "text"}]}
    for tool in (one for one in KERNEL_TOOLS if one.name.startswith(f"{area}.")):
        fields = tool.params.model_json_schema(by_alias=True).get("properties", ())
        blocks = [await make("text"), await make(schema=schema, content={"title": "t"})]
        for block in blocks if "block_id" in fields else blocks[:1]:
            base = plausible(tool, block)
            for field, long in itertools.product((*fields, LONG), LONG_THINGS):
                try:
                    await kernel.call(amy, tool.name, {**base, field: long})
                except AntiphonError as error:
                    said(error)


async def test_unknown_tool_error_quotes_name_shortened(call: Caller) -> None:
    with raises(ErrorCode.UNKNOWN_TOOL) as caught:
        await call(LONG)
    assert "block.create" in said(caught.value)


def nested() -> Iterator[tuple[str, dict[str, Any]]]:
    """Calls with something long further inside."""
    new = {"role": "user", "kind": "text"}
    for metadata in (
        {"tool_kind": LONG},
        {"exit_code": LONG},
        {"source_block": LONG},
        {"source_context": LONG},
        {"is_error": LONG},
        {"path": [LONG]},
    ):
        yield "block.create", {**new, "metadata": metadata}
    names = [{"name": LONG, "field_type": "number"}]
    for schema, content in (
        ({"type": "map", "fields": names}, {LONG: "no number"}),
        ({"type": "map", "fields": names * 2}, None),
        ({"type": "map", "fields": [{**names[0], "default": LONG}]}, None),
        ({"type": "map", "fields": []}, {LONG: 1}),
        ({"type": "map", "fields": []}, {f"{n}{LONG}": 1 for n in range(50)}),
        ({"type": "list", "item_schema": {"field_type": "number"}}, [LONG] * 50),
        ({"type": LONG}, None),
        ({"type": "composite", "sections": [{"name": LONG, "schema": {"type": LONG}}]}, None),
        ({"type": "composite", "sections": []}, {LONG: 1}),
    ):
        yield "block.create", {**new, "schema": schema, "content": content}
    for operation in (
        {"op": LONG},
        {"op": "insert", "line": LONG, "content": ""},
        {"op": "insert", "line": 0, "content": "", LONG: 1},
        {"op": "replace", "start_line": 0, "end_line": 1, "content": "", "expected_text": LONG},
    ):
        yield "block.edit", {"block_id": "default.amy.1", "operations": [operation]}
    patch = f"--- a\n+++ b\n@@ -1 +1 @@\n-{LONG}\n+b\n"
    for one in (LONG, patch, patch.replace("@@ -1", f"@@ -{LONG}"), patch.replace("\n-", "\n!")):
        yield "block.apply_patch", {"block_id": "default.amy.1", "patch": one}
    context = {"type": "context", "format": 1, "context_id": "c", "label": "l", "version": 1}
    person = {"type": "principal", "id": "p", "username": "u", "kind": "human"}
    block = {"type": "block", "id": "b", "version": 1, "header": {}, "text": "", "authors": []}
    for lines in (
        [{**context, LONG: 1}],
        [context, {**person, "kind": LONG}],
        [context, {**person, "username": LONG}],
        [context, person, {**block, "id": LONG}],
        [context, person, {**block, "id": f"{'a' * 32}.{LONG}.1"}],
        [context, person, {**block, "header": {LONG: 1}}],
        [context, person, {**block, "header": {"author": LONG}}],
    ):
        yield "context.import", {"text": "\n".join(map(json.dumps, lines)), "label": "imported"}
    yield "context.import", {"text": json.dumps({**context, "label": LONG})}


async def test_parameter_error_quotes_nested_values_shortened(call: Caller, make: Make) -> None:
    await make("text\n")
    for tool, params in nested():
        with pytest.raises(AntiphonError) as caught:
            await call(tool, **params)
        error = caught.value
        # Which lines were expected is content, as what is there instead is.
        is_about_lines = error.code in (ErrorCode.CONTENT_MISMATCH, ErrorCode.PATCH_FAILED)
        contents = CONTENTS if is_about_lines else ()
        details = {name: one for name, one in error.details.items() if name not in contents}
        said(AntiphonError(error.code, error.message, **details))


async def test_context_error_names_few_of_many_contexts(call: Caller) -> None:
    for number in range(30):
        await call("context.create", label=f"c{number:02}" + "-" * 50)
    for tool, params in (
        ("context.create", {"label": "c07" + "-" * 50}),
        ("context.export", {"context": "nowhere"}),
    ):
        with pytest.raises(AntiphonError) as caught:
            await call(tool, **params)
        assert "and 11 more" in said(caught.value)
        assert caught.value.message.count("---") / 16 < 21


async def test_name_has_64_code_points_at_most(call: Caller) -> None:
    await call("context.create", label="notes")
    for letter, tool, params, named in (
        ("a", "context.create", {}, "label"),
        ("b", "context.fork", {"context": "default"}, "label"),
        ("c", "context.rename", {"context": "notes"}, "label"),
        ("d", "kernel.invite", {"role": "viewer"}, "name"),
    ):
        with raises(ErrorCode.INVALID_PARAMS):
            await call(tool, **params, **{named: letter * 65})
        await call(tool, **params, **{named: letter * 64})


async def test_forks_of_what_has_a_long_label_are_named_all_the_same(call: Caller) -> None:
    label = "x" * 64
    await call("context.create", label=label)
    made = [await call("context.fork", context=label) for _ in range(12)]
    labels = [one["label"] for one in made]
    assert len({label, *labels}) == 13
    assert all(len(one) <= 64 for one in labels)
