"""Summary of a data folder of unknown origin, before it is trusted."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from antiphon_kernel.maintenance import survey

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
