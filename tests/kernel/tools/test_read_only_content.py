"""Read-only content, which the system and sources alone write."""

from __future__ import annotations

from typing import Any

import pytest

from antiphon_kernel.kernel import Kernel
from antiphon_kernel.types.enums import PrincipalKind
from antiphon_kernel.types.errors import ErrorCode
from antiphon_kernel.types.records import Actor
from tests.kernel.kernel.calls import Caller, refused
from tests.kernel.tools.report import value

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


@pytest.mark.parametrize(("tool", "params", "code"), WRITES)
async def test_read_only_content_is_written_by_system_and_sources_only(
    kernel: Kernel, amy: Actor, lsp: Actor, report: str, tool: str, params: Params, code: ErrorCode
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


READ_ONLY_EDITS: list[tuple[str, Params, ErrorCode]] = [
    ("block.append", {"section": "diagnostics/raw", "text": "x"}, READ_ONLY_SECTION),
    ("block.append_log", {"section": "diagnostics/errors", "entry": 1}, READ_ONLY_SECTION),
    ("block.import", {"content": {"notes": "n", "diagnostics": {"raw": "y"}}}, READ_ONLY_SECTION),
    ("block.set_field", {"section": "task", "field": "Found by", "value": "me"}, READ_ONLY_FIELD),
]


@pytest.mark.parametrize(("tool", "params", "code"), READ_ONLY_EDITS)
async def test_undo_of_source_write_by_others_is_denied(
    kernel: Kernel, amy: Actor, lsp: Actor, report: str, tool: str, params: Params, code: ErrorCode
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


async def test_source_write_outside_read_only_content_can_be_undone_by_owner(
    kernel: Kernel, amy: Actor, lsp: Actor, report: str
) -> None:
    await kernel.call(
        lsp, "block.append", {"block_id": report, "section": "notes", "text": "here too"}
    )
    await kernel.call(amy, "block.undo", {"block_id": report, "principal": "lsp"})
    assert await value(kernel, amy, report, "notes") == ""


async def test_import_may_name_what_is_read_only_and_the_same(
    kernel: Kernel, amy: Actor, report: str
) -> None:
    content = (await kernel.call(amy, "block.export", {"block_id": report}))["content"]
    content["notes"] = "new"
    done = await kernel.call(amy, "block.import", {"block_id": report, "content": content})
    assert done["version"] == 2
    assert await value(kernel, amy, report) == content


@pytest.mark.parametrize(
    ("tool", "params"),
    [
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
    ],
)
async def test_a_write_to_what_is_read_only_names_that_before_any_other_error(
    call: Caller, report: str, tool: str, params: dict[str, Any]
) -> None:
    error = await call.refused(tool, block_id=report, **params)
    assert error.code in (READ_ONLY_FIELD, READ_ONLY_SECTION)


@pytest.mark.parametrize(
    ("section", "shown"),
    [
        ("diagnostics", "## diagnostics [read-only]\n## diagnostics/errors\n"),
        ("diagnostics/raw", "## diagnostics/raw [read-only]\nseen"),
        ("task/Found by", "Found by [read-only]: lsp\n"),
        ("task/effort", "effort:\n"),
        ("notes", ""),
    ],
)
async def test_a_section_that_is_rendered_alone_says_that_it_is_read_only(
    kernel: Kernel, call: Caller, lsp: Actor, report: str, section: str, shown: str
) -> None:
    raw = {"block_id": report, "section": "diagnostics/raw", "text": "seen"}
    await kernel.call(lsp, "block.append", raw)
    found = await call("block.render", block_id=report, section=section)
    assert found["text"].startswith(shown) and bool(found["text"]) is bool(shown)
