"""`antiphon log`, and the summary of a data folder of unknown origin, before it is trusted."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from antiphon_kernel.kernel import Kernel
from antiphon_kernel.maintenance import survey
from antiphon_kernel.maintenance.audit_log import AuditKind, audit_log
from antiphon_kernel.types.errors import AntiphonError, ErrorCode

pytestmark = pytest.mark.sqlite


async def test_audit_log_of_one_context_omits_others(kernel: Kernel, make: Any, data: Path) -> None:
    await make("in default")
    await kernel.create_context("notes")
    wrote = [one for one in await audit_log(data) if one.kind is AuditKind.WROTE]
    assert {one.context for one in wrote} == {"default", "notes"}
    wrote = [one for one in await audit_log(data, "notes") if one.kind is AuditKind.WROTE]
    assert {one.context for one in wrote} == {"notes"}


async def test_context_that_is_not_there_is_an_error_and_not_an_empty_log(
    kernel: Kernel, data: Path
) -> None:
    with pytest.raises(AntiphonError, match="Known: default") as caught:
        await audit_log(data, "nowhere")
    assert caught.value.code is ErrorCode.CONTEXT_NOT_FOUND


TABLES = "CREATE TABLE kernel (key, value); CREATE TABLE principals (created);"


@pytest.mark.parametrize(
    "contexts",
    [
        "CREATE VIEW CONTEXTS AS SELECT 'ran' AS label, 1 AS created",
        "CREATE VIRTUAL TABLE contexts USING fts5(label, created)",
    ],
)
def test_survey_runs_no_view_and_no_virtual_table(tmp_path: Path, contexts: str) -> None:
    with closing(sqlite3.connect(tmp_path / "journal.db")) as database:
        database.executescript(TABLES + contexts)
    lines = list(survey(tmp_path, now=0))
    assert any("cannot be read (contexts is no ordinary table)" in line for line in lines)
    assert not any("ran" in line.split() for line in lines)
