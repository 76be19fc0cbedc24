"""Blocks with a schema through the tools: what is written reads back, what is wrong is refused."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from antiphon_kernel.kernel.kernel import Kernel
from antiphon_kernel.types.enums import PrincipalKind
from antiphon_kernel.types.errors import ErrorCode
from antiphon_kernel.types.records import Actor
from tests.kernel.kernel.calls import Make, refused
from tests.kernel.kernel.tools.report import TASK, value


@pytest.fixture
async def lsp(kernel: Kernel) -> Actor:
    return kernel.open_session(await kernel.principal("lsp", PrincipalKind.SOURCE), "test")


async def test_a_new_block_has_its_defaults(kernel: Kernel, amy: Actor, report: str) -> None:
    found = await kernel.call(amy, "block.get", {"block_id": report})
    assert found["value"] == {
        "notes": "",
        "task": {
            "title": "",
            "effort": None,
            "open": True,
            "tags": [],
            "due": None,
            "votes": 2,
            "Found by": "lsp",
        },
        "diagnostics": {"errors": [], "raw": ""},
        "steps": [],
    }
    assert found["violations"] == []
    assert (await kernel.call(amy, "block.render", {"block_id": report}))["text"] == (
        "## notes\n\n"
        "## task\ntitle:\neffort:\nopen: true\ntags: []\ndue:\nvotes: 2\n"
        "Found by [read-only]: lsp\n\n"
        "## diagnostics [read-only]\n## diagnostics/errors\n\n## diagnostics/raw\n\n"
        "## steps\n"
    )


@pytest.mark.parametrize(
    ("field", "given"),
    [
        ("title", "draußen\n漢😀"),
        ("effort", 2.5),
        ("effort", -3),
        ("open", False),
        ("tags", ["a", "b"]),
        ("due", "2026-01-31T09:30:00+01:00"),
        ("votes", 10**40),
    ],
)
async def test_a_field_reads_as_it_was_set(
    kernel: Kernel, amy: Actor, report: str, field: str, given: Any
) -> None:
    request = {"block_id": report, "section": "task", "field": field}
    done = await kernel.call(amy, "block.set_field", {**request, "value": given})
    assert done["version"] == 2
    assert await value(kernel, amy, report, "task", field) == given
    again = await kernel.call(amy, "block.set_field", {**request, "value": given})
    assert again["version"] == 2  # a call that changes nothing commits nothing


async def test_null_takes_a_value_away(kernel: Kernel, amy: Actor, report: str) -> None:
    request = {"block_id": report, "section": "task", "field": "effort"}
    await kernel.call(amy, "block.set_field", {**request, "value": 1})
    await kernel.call(amy, "block.set_field", {**request, "value": None})
    assert await value(kernel, amy, report, "task", "effort") is None


@pytest.mark.parametrize(
    ("field", "given", "rule"),
    [
        ("title", 3, "type"),
        ("effort", "3", "type"),
        ("effort", True, "type"),
        ("effort", 2**53, "type"),
        ("open", None, "required"),
        ("open", 1, "type"),
        ("tags", ["a", 2], "type"),
        ("tags", ["a", "b", "c", "d"], "max_items"),
        ("due", "tomorrow", "type"),
        ("due", "2026-01-31T09:30:00", "type"),
        ("votes", "1", "type"),
        ("votes", 10**300, "type"),
        ("colour", "red", "unknown_name"),
    ],
)
async def test_a_value_that_the_schema_does_not_allow_is_refused(
    kernel: Kernel, amy: Actor, report: str, field: str, given: Any, rule: str
) -> None:
    request = {"block_id": report, "section": "task", "field": field, "value": given}
    error = await refused(kernel, amy, "block.set_field", request)
    assert error.code is ErrorCode.SCHEMA_VIOLATION
    assert (error.details["rule"], error.details["path"]) == (rule, f"task/{field}")
    assert error.details["expected"] and error.details["found"]


async def test_an_import_is_refused_whole(kernel: Kernel, amy: Actor, report: str) -> None:
    content = {"notes": "fine", "task": {"effort": "wrong", "open": 3}, "extra": 1}
    error = await refused(kernel, amy, "block.import", {"block_id": report, "content": content})
    broken = {one["path"] for one in error.details["violations"]}
    assert broken == {"task/effort", "task/open", "extra"}


async def test_items_come_and_go(kernel: Kernel, amy: Actor, report: str) -> None:
    steps = {"block_id": report, "section": "steps"}
    for item in ("b", {"n": [1, None, {"z": 1.5, "a": 2}]}):
        await kernel.call(amy, "block.push_item", {**steps, "value": item})
    await kernel.call(amy, "block.insert_item", {**steps, "index": 0, "value": "a"})
    await kernel.call(amy, "block.insert_item", {**steps, "index": 3, "value": None})
    await kernel.call(amy, "block.delete_item", {**steps, "index": 1})
    assert await value(kernel, amy, report, "steps") == [
        "a",
        {"n": [1, None, {"z": 1.5, "a": 2}]},
        None,
    ]
    error = await refused(kernel, amy, "block.delete_item", {**steps, "index": 3})
    assert error.details["rule"] == "index"


async def test_a_list_field_is_full_at_its_limit(kernel: Kernel, amy: Actor, report: str) -> None:
    tags = {"block_id": report, "section": "task", "field": "tags"}
    for item in "abc":
        await kernel.call(amy, "block.push_item", {**tags, "value": item})
    error = await refused(kernel, amy, "block.push_item", {**tags, "value": "d"})
    assert (error.code, error.details["rule"]) == (ErrorCode.SCHEMA_VIOLATION, "max_items")
    error = await refused(kernel, amy, "block.insert_item", {**tags, "index": 0, "value": 1})
    assert error.details["rule"] == "max_items"


async def test_a_log_grows_and_shows_its_last_entries(
    kernel: Kernel, lsp: Actor, report: str
) -> None:
    log = {"block_id": report, "section": "diagnostics/errors"}
    for entry in ("one", {"line": 2}, "three"):
        await kernel.call(lsp, "block.append_log", {**log, "entry": entry})
    assert await value(kernel, lsp, report, "diagnostics/errors") == ["one", {"line": 2}, "three"]
    text = (await kernel.call(lsp, "block.render", log))["text"]
    assert text == '(1 earlier entries)\n- {"line": 2}\n- three\n'
    content = {**log, "content": ["one", "changed"]}
    error = await refused(kernel, lsp, "block.import", content)
    assert error.details["rule"] == "append_only"


WRITES: list[tuple[str, dict[str, Any], ErrorCode]] = [
    (
        "block.set_field",
        {"section": "task", "field": "Found by", "value": "me"},
        ErrorCode.READ_ONLY_FIELD,
    ),
    ("block.append", {"section": "task/Found by", "text": "x"}, ErrorCode.READ_ONLY_FIELD),
    (
        "block.append",
        {"section": "task/Found by", "text": "x", "stream": True},
        ErrorCode.READ_ONLY_FIELD,
    ),
    ("block.append", {"section": "diagnostics/raw", "text": "x"}, ErrorCode.READ_ONLY_SECTION),
    (
        "block.edit",
        {
            "section": "diagnostics/raw",
            "operations": [{"op": "insert", "line": 0, "content": "x"}],
        },
        ErrorCode.READ_ONLY_SECTION,
    ),
    (
        "block.splice",
        {"section": "diagnostics/raw", "offset": 0, "insert": "x"},
        ErrorCode.READ_ONLY_SECTION,
    ),
    (
        "block.append_log",
        {"section": "diagnostics/errors", "entry": "x"},
        ErrorCode.READ_ONLY_SECTION,
    ),
    (
        "block.import",
        {"content": {"notes": "n", "diagnostics": {"raw": "x"}}},
        ErrorCode.READ_ONLY_SECTION,
    ),
    (
        "block.import",
        {"section": "diagnostics", "content": {"raw": "x"}},
        ErrorCode.READ_ONLY_SECTION,
    ),
]


@pytest.mark.parametrize(("tool", "params", "code"), WRITES)
async def test_what_is_read_only_is_written_by_the_system_and_sources_alone(
    kernel: Kernel,
    amy: Actor,
    lsp: Actor,
    report: str,
    tool: str,
    params: dict[str, Any],
    code: ErrorCode,
) -> None:
    params = {"block_id": report, **params}
    model = kernel.open_session(await kernel.principal("gpt", PrincipalKind.MODEL), "test")
    for actor in (amy, model):
        error = await refused(kernel, actor, tool, params)
        assert error.code is code
        assert error.details["path"] in ("task/Found by", "diagnostics")
    before = await kernel.call(amy, "block.export", {"block_id": report})
    for actor in (lsp, kernel.system):
        await kernel.call(actor, tool, params)
    after = await kernel.call(amy, "block.export", {"block_id": report})
    assert after["version"] > before["version"] and after["content"] != before["content"]


READ_ONLY_EDITS: list[tuple[str, dict[str, Any], ErrorCode]] = [
    ("block.append", {"section": "diagnostics/raw", "text": "x"}, ErrorCode.READ_ONLY_SECTION),
    (
        "block.append_log",
        {"section": "diagnostics/errors", "entry": 1},
        ErrorCode.READ_ONLY_SECTION,
    ),
    (
        "block.import",
        {"content": {"notes": "n", "diagnostics": {"raw": "y"}}},
        ErrorCode.READ_ONLY_SECTION,
    ),
    (
        "block.set_field",
        {"section": "task", "field": "Found by", "value": "me"},
        ErrorCode.READ_ONLY_FIELD,
    ),
]


@pytest.mark.parametrize(("tool", "params", "code"), READ_ONLY_EDITS)
async def test_nobody_else_takes_back_what_a_source_wrote_where_it_alone_writes(
    kernel: Kernel,
    amy: Actor,
    lsp: Actor,
    report: str,
    tool: str,
    params: dict[str, Any],
    code: ErrorCode,
) -> None:
    await kernel.call(lsp, tool, {"block_id": report, **params})
    written = await value(kernel, amy, report)
    its = {"block_id": report, "principal": "lsp"}
    assert (await refused(kernel, amy, "block.undo", its)).code is code
    await kernel.call(lsp, "block.undo", {"block_id": report})
    assert await value(kernel, amy, report) != written
    assert (await refused(kernel, amy, "block.redo", its)).code is code
    await kernel.call(lsp, "block.redo", {"block_id": report})
    assert await value(kernel, amy, report) == written


async def test_what_a_source_wrote_elsewhere_can_be_taken_back(
    kernel: Kernel, amy: Actor, lsp: Actor, report: str
) -> None:
    await kernel.call(
        lsp, "block.append", {"block_id": report, "section": "notes", "text": "here too"}
    )
    await kernel.call(amy, "block.undo", {"block_id": report, "principal": "lsp"})
    assert await value(kernel, amy, report, "notes") == ""


async def test_an_import_may_name_what_is_read_only_and_the_same(
    kernel: Kernel, amy: Actor, report: str
) -> None:
    content = (await kernel.call(amy, "block.export", {"block_id": report}))["content"]
    content["notes"] = "new"
    done = await kernel.call(amy, "block.import", {"block_id": report, "content": content})
    assert done["version"] == 2
    assert await value(kernel, amy, report) == content


async def test_what_is_exported_makes_the_same_block(
    kernel: Kernel, amy: Actor, lsp: Actor, report: str, make: Make
) -> None:
    content = {
        "notes": "a\nb",
        "task": {"title": "t", "effort": 1.5, "tags": ["x"], "votes": -7},
        "diagnostics": {"errors": [{"l": 1}], "raw": "r"},
        "steps": [1, [2], {"three": None}],
    }
    await kernel.call(lsp, "block.import", {"block_id": report, "content": content})
    out = await kernel.call(amy, "block.export", {"block_id": report})
    copy = await make(schema=out["schema"], content=out["content"])
    assert await value(kernel, amy, copy) == out["content"]
    again = await kernel.call(amy, "block.export", {"block_id": copy})
    assert (again["schema"], again["content"]) == (out["schema"], out["content"])


async def test_a_structured_block_survives_a_restart(
    kernel: Kernel, open_kernel: Callable[[], Awaitable[Kernel]], amy: Actor, report: str
) -> None:
    task = {"block_id": report, "section": "task"}
    await kernel.call(amy, "block.set_field", {**task, "field": "title", "value": "漢"})
    await kernel.call(amy, "block.increment", {**task, "field": "votes"})
    before = await kernel.call(amy, "block.export", {"block_id": report})
    await kernel.close()
    reopened = await open_kernel()
    again = reopened.open_session(reopened.owner, "test")
    after = await reopened.call(again, "block.export", {"block_id": report})
    assert (after["schema"], after["content"]) == (before["schema"], before["content"])
    done = await reopened.call(again, "block.increment", {**task, "field": "votes"})
    assert done["value"] == 4


async def test_text_tools_write_in_sections(kernel: Kernel, amy: Actor, report: str) -> None:
    notes = {"block_id": report, "section": "notes"}
    title = {"block_id": report, "section": "task/title"}
    await kernel.call(amy, "block.append", {**notes, "text": "one\ntwo\n"})
    await kernel.call(amy, "block.append", {**title, "text": "t", "stream": True})
    await kernel.call(amy, "block.append", {**notes, "text": "three", "stream": True})
    edit = [{"op": "replace", "start_line": 1, "end_line": 2, "content": "TWO"}]
    await kernel.call(amy, "block.edit", {**notes, "operations": edit})
    await kernel.call(amy, "block.splice", {**notes, "offset": 0, "insert": "# "})
    assert (await kernel.call(amy, "block.read", notes))["content"] == "# one\nTWO\nthree"
    assert await value(kernel, amy, report, "task", "title") == "t"
    for path in (None, "task", "task/effort", "nowhere", "notes/inner"):
        request = {"block_id": report, "text": "x", **({"section": path} if path else {})}
        error = await refused(kernel, amy, "block.append", request)
        assert "notes" in error.details["allowed"]


async def test_a_write_begins_a_pending_block_and_marks_a_finished_one(
    kernel: Kernel, amy: Actor, make: Make
) -> None:
    for status, field, expected in (
        (None, "status", "running"),
        ("done", "edited_after_done", True),
    ):
        extra = {"status": status} if status else {}
        block = await make(schema={"type": "list"}, content=None, **extra)
        await kernel.call(amy, "block.push_item", {"block_id": block, "value": 1})
        context, found = await kernel.find_block(block)
        assert getattr(context.document.header(found), field) == expected
        assert context.version(found) == 2


async def test_a_set_text_keeps_what_others_write_in_it(
    kernel: Kernel, amy: Actor, report: str
) -> None:
    title = {"block_id": report, "section": "task", "field": "title"}
    await kernel.call(amy, "block.set_field", {**title, "value": "one two three\n"})
    context, block = await kernel.find_block(report)
    seen: list[int] = []
    context.document.watch(
        lambda change: seen.extend(
            splice.deleted for text in change.texts for splice in text.splices
        )
    )
    await kernel.call(amy, "block.set_field", {**title, "value": "one 2 three\n"})
    assert context.document.text(block, "task/title") == "one 2 three\n"
    assert sum(seen) == len("two")


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "tree"},
        {"type": "map", "fields": [{"name": "a", "field_type": "colour"}]},
        {"type": "map", "fields": [{"name": "a/b", "field_type": "text"}]},
        {
            "type": "map",
            "fields": [{"name": "a", "field_type": "text"}, {"name": "a", "field_type": "text"}],
        },
        {"type": "map", "fields": [{"name": "a", "field_type": "text", "max_items": 3}]},
        {"type": "map", "fields": [{"name": "a", "field_type": "number", "default": "one"}]},
        {"type": "map", "fields": [{"name": "a", "field_type": "list", "default": 1}]},
        {
            "type": "map",
            "fields": [{"name": "a", "field_type": "list", "max_items": 1, "default": [1, 2]}],
        },
        {"type": "composite", "sections": [{"name": "A", "schema": {"type": "text"}}]},
        {"type": "list", "max_items": 0},
        {"type": "text", "colour": "red"},
    ],
)
async def test_a_schema_that_means_nothing_is_refused(
    kernel: Kernel, amy: Actor, schema: dict[str, Any]
) -> None:
    request = {"role": "user", "kind": "text", "schema": schema}
    assert (await refused(kernel, amy, "block.create", request)).code is ErrorCode.INVALID_PARAMS


async def test_a_block_begins_with_a_content_that_fits(
    kernel: Kernel, amy: Actor, make: Make
) -> None:
    request = {"role": "user", "kind": "text", "schema": TASK}
    for content in ("text", {"effort": 1}, {"title": None}, {"title": "t", "open": None}, [1]):
        error = await refused(kernel, amy, "block.create", {**request, "content": content})
        assert error.code is ErrorCode.SCHEMA_VIOLATION
    error = await refused(
        kernel, amy, "block.create", {"role": "user", "kind": "text", "content": [1]}
    )
    assert error.code is ErrorCode.SCHEMA_VIOLATION
    block = await make(schema=TASK, content={"title": "t", "Found by": "me", "votes": 5})
    found = await kernel.call(amy, "block.get", {"block_id": block})
    assert found["version"] == 1
    assert (found["value"]["Found by"], found["value"]["votes"]) == ("me", 5)


async def test_everything_has_its_limit(kernel: Kernel, amy: Actor, make: Make) -> None:
    deep: dict[str, Any] = {"type": "text"}
    for _ in range(40):
        deep = {"type": "composite", "sections": [{"name": "in", "schema": deep}]}
    request = {"role": "user", "kind": "text", "schema": deep}
    assert (await refused(kernel, amy, "block.create", request)).code is ErrorCode.TOO_LARGE
    block = await make(schema={"type": "list"}, content=None)
    limit = kernel.limits.value_code_points
    big = {"block_id": block, "value": "x" * limit}
    assert (await refused(kernel, amy, "block.push_item", big)).code is ErrorCode.TOO_LARGE
    many = {"block_id": block, "content": [0] * (kernel.limits.list_items + 1)}
    assert (await refused(kernel, amy, "block.import", many)).code is ErrorCode.TOO_LARGE
    nested: Any = 0
    for _ in range(100):
        nested = [nested]
    error = await refused(kernel, amy, "block.push_item", {"block_id": block, "value": nested})
    assert error.code is ErrorCode.SCHEMA_VIOLATION
