"""Blocks with a schema: what is written reads back, what is wrong is refused.

Items of lists are complete: their schema's defaults are in them, what is required is there.
Counters add up exactly, also those that happen at once. Read-only content is written by the system
and sources alone.
"""

from __future__ import annotations

import asyncio
from typing import Any

from antiphon_kernel.contexts import Context
from antiphon_kernel.document.content import read_content
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.limits import Limits
from antiphon_kernel.types.enums import PrincipalKind
from antiphon_kernel.types.errors import ErrorCode
from antiphon_kernel.types.records import Actor
from tests.kernel.kernel.calls import Caller, Make, OpenKernel, refused
from tests.kernel.tools.files import REPORT, TASK, value


async def test_new_block_has_its_defaults(call: Caller, report: str) -> None:
    found = await call("block.get", block_id=report)
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
    assert (await call("block.render", block_id=report))["text"] == (
        "## notes\n\n"
        "## task\ntitle:\neffort:\nopen: true\ntags: []\ndue:\nvotes: 2\n"
        "Found by [read-only]: lsp\n\n"
        "## diagnostics [read-only]\n## diagnostics/errors\n\n## diagnostics/raw\n\n"
        "## steps\n"
    )


def fields(*types: str, name: str = "a", **more: Any) -> dict[str, Any]:
    return {"type": "map", "fields": [{"name": name, "field_type": one, **more} for one in types]}


MEANINGLESS: tuple[dict[str, Any], ...] = (
    {"type": "tree"},
    fields("colour"),
    fields("text", name="a/b"),
    fields("text", "text"),
    fields("text", max_items=3),
    fields("number", default="one"),
    fields("list", default=1),
    fields("list", max_items=1, default=[1, 2]),
    {"type": "composite", "sections": [{"name": "A", "schema": {"type": "text"}}]},
    {"type": "list", "max_items": 0},
    {"type": "list", "item_schema": fields("number", default="one")},
    {"type": "text", "colour": "red"},
)


async def test_schema_that_means_nothing_is_refused(call: Caller) -> None:
    for schema in MEANINGLESS:
        error = await call.refused("block.create", role="user", kind="text", schema=schema)
        assert error.code is ErrorCode.INVALID_PARAMS, schema


async def test_block_begins_with_a_content_that_fits(call: Caller, make: Make) -> None:
    request = {"role": "user", "kind": "text", "schema": TASK}
    for content in ("text", {"effort": 1}, {"title": None}, {"title": "t", "open": None}, [1]):
        error = await call.refused("block.create", **request, content=content)
        assert error.code is ErrorCode.SCHEMA_VIOLATION
    error = await call.refused("block.create", role="user", kind="text", content=[1])
    assert error.code is ErrorCode.SCHEMA_VIOLATION
    block = await make(schema=TASK, content={"title": "t", "Found by": "me", "votes": 5})
    found = await call("block.get", block_id=block)
    assert found["version"] == 1
    assert (found["value"]["Found by"], found["value"]["votes"]) == ("me", 5)


async def test_schema_beyond_any_limit_is_rejected(open_kernel: OpenKernel) -> None:
    kernel = await open_kernel(Limits(list_items=100))
    call = Caller(kernel, kernel.open_session(kernel.owner, "test"))
    deep: dict[str, Any] = {"type": "text"}
    for _ in range(40):
        deep = {"type": "composite", "sections": [{"name": "in", "schema": deep}]}
    request = {"role": "user", "kind": "text", "schema": deep}
    assert (await call.refused("block.create", **request)).code is ErrorCode.TOO_LARGE
    made = await call("block.create", role="user", kind="text", schema={"type": "list"})
    block = made["block_id"]
    limit = kernel.limits.value_code_points
    big = {"block_id": block, "value": "x" * limit}
    assert (await call.refused("block.push_item", **big)).code is ErrorCode.TOO_LARGE
    many = {"block_id": block, "content": [0] * (kernel.limits.list_items + 1)}
    assert (await call.refused("block.import", **many)).code is ErrorCode.TOO_LARGE
    nested: Any = 0
    for _ in range(100):
        nested = [nested]
    error = await call.refused("block.push_item", block_id=block, value=nested)
    assert error.code is ErrorCode.SCHEMA_VIOLATION


async def test_field_reads_as_it_was_set_and_null_takes_a_value_away(
    kernel: Kernel, amy: Actor, report: str
) -> None:
    version = 1
    for field, given in (
        ("title", "draußen\n漢😀"),
        ("effort", 2.5),
        ("effort", -3),
        ("effort", None),
        ("open", False),
        ("tags", ["a", "b"]),
        ("due", "2026-01-31T09:30:00+01:00"),
        ("votes", 10**40),
    ):
        request = {"block_id": report, "section": "task", "field": field, "value": given}
        version += 1
        for _ in range(2):  # a call that changes nothing commits nothing
            done = await kernel.call(amy, "block.set_field", request)
            assert done["version"] == version, field
        assert await value(kernel, amy, report, "task", field) == given


BAD_VALUES: list[tuple[str, Any, str]] = [
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
]


async def test_value_that_the_schema_does_not_allow_is_refused(call: Caller, report: str) -> None:
    for field, given, rule in BAD_VALUES:
        request = {"block_id": report, "section": "task", "field": field, "value": given}
        error = await call.refused("block.set_field", **request)
        assert error.code is ErrorCode.SCHEMA_VIOLATION
        assert (error.details["rule"], error.details["path"]) == (rule, f"task/{field}")
        assert error.details["expected"] and error.details["found"]


async def test_items_come_and_go_up_to_their_limit(kernel: Kernel, amy: Actor, report: str) -> None:
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
    tags = {"block_id": report, "section": "task", "field": "tags"}
    for item in "abc":
        await kernel.call(amy, "block.push_item", {**tags, "value": item})
    error = await refused(kernel, amy, "block.push_item", {**tags, "value": "d"})
    assert (error.code, error.details["rule"]) == (ErrorCode.SCHEMA_VIOLATION, "max_items")
    error = await refused(kernel, amy, "block.insert_item", {**tags, "index": 0, "value": 1})
    assert error.details["rule"] == "max_items"


async def test_log_grows_and_shows_its_last_entries(
    kernel: Kernel, lsp: Actor, report: str
) -> None:
    log = {"block_id": report, "section": "diagnostics/errors"}
    for entry in ("one", {"line": 2}, "three"):
        await kernel.call(lsp, "block.append_log", {**log, "entry": entry})
    assert await value(kernel, lsp, report, "diagnostics/errors") == ["one", {"line": 2}, "three"]
    text = (await kernel.call(lsp, "block.render", log))["text"]
    assert (
        text == '## diagnostics/errors [read-only]\n(1 earlier entries)\n- {"line": 2}\n- three\n'
    )
    error = await refused(kernel, lsp, "block.import", {**log, "content": ["one", "changed"]})
    assert error.details["rule"] == "append_only"


async def test_block_export_creates_equal_block(
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


async def test_write_begins_a_pending_block_and_marks_a_finished_one(
    kernel: Kernel, call: Caller, make: Make
) -> None:
    for status, field, expected in (
        (None, "status", "running"),
        ("done", "edited_after_done", True),
    ):
        extra = {"status": status} if status else {}
        block = await make(schema={"type": "list"}, content=None, **extra)
        await call("block.push_item", block_id=block, value=1)
        context, found = await kernel.find_block(block)
        assert getattr(context.document.header(found), field) == expected
        assert context.blocks.version(found) == 2


ITEM: dict[str, Any] = {
    "type": "map",
    "fields": [
        {"name": "title", "field_type": "text", "required": True},
        {"name": "open", "field_type": "boolean", "required": True, "default": True},
        {"name": "tags", "field_type": "list", "default": ["new"]},
    ],
}
STEPS: dict[str, Any] = {"type": "list", "item_schema": ITEM}
BOARD: dict[str, Any] = {
    "type": "map",
    "fields": [{"name": "steps", "field_type": "list", "item_schema": ITEM}],
}
FULL = {"title": "t", "open": True, "tags": ["new"]}


async def test_an_item_without_a_required_field_is_refused(call: Caller, make: Make) -> None:
    block = await make(schema=STEPS, content=None)
    for tool, params in (
        ("block.push_item", {"value": {"open": True}}),
        ("block.insert_item", {"value": {"title": None}, "index": 0}),
        ("block.import", {"content": [{"title": "fine"}, {"tags": []}]}),
    ):
        error = await call.refused(tool, block_id=block, **params)
        assert (error.code, error.details["rule"]) == (ErrorCode.SCHEMA_VIOLATION, "required")
        assert error.details["path"] == "title"
        assert error.details["item"] == (1 if tool == "block.import" else 0)
    inside = {"type": "composite", "sections": [{"name": "in", "schema": ITEM}]}
    for schema, content in (
        ({"type": "list", "item_schema": inside}, [{}]),
        (BOARD, {"steps": [{"open": False}]}),
    ):
        request = {"role": "user", "kind": "text", "schema": schema, "content": content}
        error = await call.refused("block.create", **request)
        assert error.details["rule"] == "required"


async def test_the_defaults_of_an_item_are_applied_at_every_door(
    kernel: Kernel, amy: Actor, make: Make
) -> None:
    block = await make(schema=STEPS, content=[{"title": "t"}])
    request = {"block_id": block, "value": {"title": "t"}}
    await kernel.call(amy, "block.push_item", request)
    await kernel.call(amy, "block.insert_item", {**request, "index": 0})
    assert await value(kernel, amy, block) == [FULL, FULL, FULL]
    await kernel.call(amy, "block.import", {"block_id": block, "content": [{"title": "t"}]})
    assert await value(kernel, amy, block) == [FULL]
    board = await make(schema=BOARD, content={"steps": [{"title": "t", "open": False}]})
    assert await value(kernel, amy, board) == {"steps": [{**FULL, "open": False}]}
    change = {"block_id": board, "field": "steps", "value": [{"title": "t", "tags": []}]}
    await kernel.call(amy, "block.set_field", change)
    assert await value(kernel, amy, board) == {"steps": [{**FULL, "tags": []}]}
    (field,) = BOARD["fields"]
    schema = {"type": "map", "fields": [{**field, "default": [{"title": "t"}]}]}
    assert await value(kernel, amy, await make(schema=schema, content=None)) == {"steps": [FULL]}


async def test_defaults_that_add_too_much_to_an_item_are_refused(call: Caller, make: Make) -> None:
    field = {"name": "a", "field_type": "text", "default": "x" * 90_000}
    item = {"type": "map", "fields": [field]}
    block = await make(schema={"type": "list", "item_schema": item}, content=None)
    many = {"block_id": block, "content": [{}] * 1_000}
    assert (await call.refused("block.import", **many)).code is ErrorCode.TOO_LARGE
    deep = {"type": "list", "item_schema": {"type": "list", "item_schema": item}}
    block = await make(schema=deep, content=None)
    value = {"block_id": block, "value": [{}] * 1_000}
    assert (await call.refused("block.push_item", **value)).code is ErrorCode.TOO_LARGE
    first = {"name": "b", "field_type": "list", "item_schema": item, "default": [{}] * 1_000}
    request = {"role": "user", "kind": "text", "schema": {"type": "map", "fields": [first]}}
    assert (await call.refused("block.create", **request)).code is ErrorCode.TOO_LARGE


async def test_an_item_that_lacks_a_required_field_is_reported(
    kernel: Kernel, amy: Actor, make: Make
) -> None:
    block = await make(schema=STEPS, content=None)
    context: Context = (await kernel.find_block(block))[0]
    items: Any = context.document.container(block)
    context.write(amy, "test", lambda: items.append({"tags": []}), blocks=[block])
    found = read_content(context.document, block).violations
    assert [(one.path, str(one.rule), one.item) for one in found] == [
        ("title", "required", 0),
        ("open", "required", 0),
    ]


async def test_counters_count_exactly(kernel: Kernel, amy: Actor, report: str) -> None:
    votes = {"block_id": report, "section": "task", "field": "votes"}
    for by in (0.1, 0.2, 10**25):
        await kernel.call(amy, "block.increment", {**votes, "by": by})
    done = await kernel.call(amy, "block.increment", {**votes, "by": -2})
    assert done["value"] == float(10**25)
    await kernel.call(amy, "block.increment", {**votes, "by": -(10**25)})
    assert await value(kernel, amy, report, "task", "votes") == 0.3
    calls = (kernel.call(amy, "block.increment", votes) for _ in range(4))
    done_together = await asyncio.gather(*calls)
    assert [one["value"] for one in done_together] == [1.3, 2.3, 3.3, 4.3]
    error = await refused(kernel, amy, "block.increment", {**votes, "field": "effort"})
    assert error.code is ErrorCode.SCHEMA_VIOLATION


Params = dict[str, Any]
READ_ONLY_SECTION, READ_ONLY_FIELD = ErrorCode.READ_ONLY_SECTION, ErrorCode.READ_ONLY_FIELD

WRITES: list[tuple[str, Params, ErrorCode]] = [
    ("block.set_field", {"section": "task", "field": "Found by", "value": "me"}, READ_ONLY_FIELD),
    ("block.append", {"section": "task/Found by", "text": "x"}, READ_ONLY_FIELD),
    ("block.append", {"section": "task/Found by", "text": "x", "stream": True}, READ_ONLY_FIELD),
    ("block.append", {"section": "diagnostics/raw", "text": "x"}, READ_ONLY_SECTION),
    (
        "block.edit",
        {
            "section": "diagnostics/raw",
            "operations": [{"op": "insert", "line": 0, "content": "x"}],
        },
        READ_ONLY_SECTION,
    ),
    ("block.splice", {"section": "diagnostics/raw", "offset": 0, "insert": "x"}, READ_ONLY_SECTION),
    ("block.append_log", {"section": "diagnostics/errors", "entry": "x"}, READ_ONLY_SECTION),
    ("block.import", {"content": {"notes": "n", "diagnostics": {"raw": "x"}}}, READ_ONLY_SECTION),
    ("block.import", {"section": "diagnostics", "content": {"raw": "x"}}, READ_ONLY_SECTION),
]


async def test_read_only_content_is_written_by_system_and_sources_only(
    kernel: Kernel, amy: Actor, lsp: Actor, make: Make
) -> None:
    model = kernel.open_session(await kernel.principal("gpt", PrincipalKind.MODEL), "test")
    for tool, sent, code in WRITES:
        report = await make(schema=REPORT, content=None)
        params = {"block_id": report, **sent}
        for actor in (amy, model):
            error = await refused(kernel, actor, tool, params)
            assert error.code is code, (tool, sent)
            assert error.details["path"] in ("task/Found by", "diagnostics")
        before = await kernel.call(amy, "block.export", {"block_id": report})
        for actor in (lsp, kernel.system):
            await kernel.call(actor, tool, params)
        after = await kernel.call(amy, "block.export", {"block_id": report})
        assert after["version"] > before["version"] and after["content"] != before["content"]


READ_ONLY_EDITS: list[tuple[str, Params, ErrorCode]] = [
    ("block.append", {"section": "diagnostics/raw", "text": "x"}, READ_ONLY_SECTION),
    ("block.append_log", {"section": "diagnostics/errors", "entry": 1}, READ_ONLY_SECTION),
    ("block.import", {"content": {"notes": "n", "diagnostics": {"raw": "y"}}}, READ_ONLY_SECTION),
    ("block.set_field", {"section": "task", "field": "Found by", "value": "me"}, READ_ONLY_FIELD),
]


async def test_undo_of_a_write_by_a_source_is_denied_to_others_where_they_may_not_write(
    kernel: Kernel, amy: Actor, lsp: Actor, report: str
) -> None:
    its = {"block_id": report, "principal": "lsp"}
    for tool, params, code in READ_ONLY_EDITS:
        await kernel.call(lsp, tool, {"block_id": report, **params})
        written = await value(kernel, amy, report)
        assert (await refused(kernel, amy, "block.undo", its)).code is code
        await kernel.call(lsp, "block.undo", {"block_id": report})
        assert await value(kernel, amy, report) != written
        assert (await refused(kernel, amy, "block.redo", its)).code is code
        await kernel.call(lsp, "block.redo", {"block_id": report})
        assert await value(kernel, amy, report) == written
    notes = {"block_id": report, "section": "notes", "text": "here too"}
    await kernel.call(lsp, "block.append", notes)
    await kernel.call(amy, "block.undo", its)
    assert await value(kernel, amy, report, "notes") == "n", "what stood there before"


async def test_import_is_refused_whole_and_may_name_what_is_read_only_and_the_same(
    call: Caller, report: str
) -> None:
    content = {"notes": "fine", "task": {"effort": "wrong", "open": 3}, "extra": 1}
    error = await call.refused("block.import", block_id=report, content=content)
    broken = {one["path"] for one in error.details["violations"]}
    assert broken == {"task/effort", "task/open", "extra"}
    content = (await call("block.export", block_id=report))["content"]
    content["notes"] = "new"
    done = await call("block.import", block_id=report, content=content)
    assert done["version"] == 2
    assert await value(call.kernel, call.actor, report) == content


BAD_WRITES: list[tuple[str, Params]] = [
    ("block.set_field", {"section": "task", "field": "Found by", "value": 3}),
    ("block.set_field", {"section": "diagnostics", "field": "none", "value": 3}),
    ("block.push_item", {"section": "diagnostics/errors", "value": 3}),
    ("block.increment", {"section": "task", "field": "Found by"}),
    ("block.delete_item", {"section": "diagnostics/errors", "index": 9}),
    ("block.append_log", {"section": "diagnostics/raw", "entry": 3}),
    ("block.append", {"section": "diagnostics/errors", "text": "x"}),
    ("block.import", {"content": {"notes": 3, "diagnostics": {"raw": 3}}}),
    ("block.import", {"section": "diagnostics", "content": [3]}),
    ("block.restore", {"section": "diagnostics/raw", "version": 9}),
]


async def test_a_write_to_what_is_read_only_names_that_before_any_other_error(
    call: Caller, report: str
) -> None:
    for tool, params in BAD_WRITES:
        error = await call.refused(tool, block_id=report, **params)
        assert error.code in (READ_ONLY_FIELD, READ_ONLY_SECTION)


async def test_a_section_that_is_rendered_alone_says_that_it_is_read_only(
    kernel: Kernel, call: Caller, lsp: Actor, report: str
) -> None:
    raw = {"block_id": report, "section": "diagnostics/raw", "text": "seen"}
    await kernel.call(lsp, "block.append", raw)
    for section, shown in (
        ("diagnostics", "## diagnostics [read-only]\n## diagnostics/errors\n"),
        ("diagnostics/raw", "## diagnostics/raw [read-only]\nseen"),
        ("task/Found by", "Found by [read-only]: lsp\n"),
        ("task/effort", "effort:\n"),
        ("notes", ""),
    ):
        text = (await call("block.render", block_id=report, section=section))["text"]
        assert text.startswith(shown) and bool(text) is bool(shown), section
