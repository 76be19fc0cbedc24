"""Blocks with a schema through the tools: what is written reads back, what is wrong is refused."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from antiphon_kernel.kernel import Kernel
from antiphon_kernel.types.errors import ErrorCode
from antiphon_kernel.types.records import Actor
from tests.kernel.kernel.calls import Caller, Make, refused
from tests.kernel.tools.report import value


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
async def test_field_reads_as_it_was_set(
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
async def test_value_that_the_schema_does_not_allow_is_refused(
    call: Caller, report: str, field: str, given: Any, rule: str
) -> None:
    request = {"block_id": report, "section": "task", "field": field, "value": given}
    error = await call.refused("block.set_field", **request)
    assert error.code is ErrorCode.SCHEMA_VIOLATION
    assert (error.details["rule"], error.details["path"]) == (rule, f"task/{field}")
    assert error.details["expected"] and error.details["found"]


async def test_import_is_refused_whole(call: Caller, report: str) -> None:
    content = {"notes": "fine", "task": {"effort": "wrong", "open": 3}, "extra": 1}
    error = await call.refused("block.import", block_id=report, content=content)
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


async def test_list_field_is_full_at_its_limit(call: Caller, report: str) -> None:
    tags = {"block_id": report, "section": "task", "field": "tags"}
    for item in "abc":
        await call("block.push_item", **tags, value=item)
    error = await call.refused("block.push_item", **tags, value="d")
    assert (error.code, error.details["rule"]) == (ErrorCode.SCHEMA_VIOLATION, "max_items")
    error = await call.refused("block.insert_item", **tags, index=0, value=1)
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


async def test_structured_block_survives_a_restart(
    kernel: Kernel, open_kernel: Callable[[], Awaitable[Kernel]], call: Caller, report: str
) -> None:
    task = {"block_id": report, "section": "task"}
    await call("block.set_field", **task, field="title", value="漢")
    await call("block.increment", **task, field="votes")
    before = await call("block.export", block_id=report)
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


async def test_set_text_keeps_what_others_write_in_it(call: Caller, report: str) -> None:
    title = {"block_id": report, "section": "task", "field": "title"}
    await call("block.set_field", **title, value="one two three\n")
    context, block = await call.kernel.find_block(report)
    seen: list[int] = []
    context.document.watch(
        lambda change: seen.extend(
            splice.deleted for text in change.texts for splice in text.splices
        )
    )
    await call("block.set_field", **title, value="one 2 three\n")
    assert context.document.text(block, "task/title") == "one 2 three\n"
    assert sum(seen) == len("two")
