"""What is read-only in a schema is written by the system and sources alone."""

from __future__ import annotations

from typing import Any

import pytest

from antiphon_kernel.kernel import Kernel
from antiphon_kernel.types.enums import PrincipalKind
from antiphon_kernel.types.errors import ErrorCode
from antiphon_kernel.types.records import Actor
from tests.kernel.kernel.calls import refused
from tests.kernel.tools.report import value

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
