"""A damaged context is named and left alone; the others open."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from antiphon_kernel.kernel import Kernel
from antiphon_kernel.maintenance.run_checks import run_checks
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.records import Actor
from tests.kernel.kernel.calls import Caller, OpenKernel
from tests.waiting import until

BROKEN = "broken"

RECORDS = "SELECT context, seq, format, hex(changes) FROM ops WHERE context = 2 ORDER BY seq"


@pytest.fixture
async def damaged(kernel: Kernel, amy: Actor, data: Path) -> Path:
    """The folder of a closed kernel with the contexts default and broken."""
    await kernel.create_context(BROKEN)
    for label in ("default", BROKEN):
        for number in range(5):
            request = {"role": "user", "kind": "text", "content": f"{label} {number} 😀"}
            await kernel.call(amy, "block.create", {**request, "context": label})
    await kernel.close()
    return data


DAMAGES = {
    "bytes": (
        "UPDATE ops SET changes = CAST(x'ff' || changes AS BLOB) WHERE context = 2 AND seq = 3",
        3,
    ),
    "cut short": (
        "UPDATE ops SET changes = substr(changes, 1, 20) WHERE context = 2 AND seq = 4",
        4,
    ),
    "no bytes": ("UPDATE ops SET changes = x'ff' || changes WHERE context = 2 AND seq = 4", 4),
    "missing": ("DELETE FROM ops WHERE context = 2 AND seq = 3", 3),
    "the first missing": ("DELETE FROM ops WHERE context = 2 AND seq = 1", 1),
    "format": ("UPDATE ops SET format = 99 WHERE context = 2 AND seq = 2", 2),
}


@pytest.mark.sqlite
@pytest.mark.parametrize("damage", DAMAGES)
async def test_damaged_context_is_named_and_the_others_open(
    damaged: Path, open_kernel: OpenKernel, damage: str
) -> None:
    sql, seq = DAMAGES[damage]
    with sqlite3.connect(damaged / "journal.db") as database:
        assert database.execute(sql).rowcount == 1
        kept = database.execute(RECORDS).fetchall()
    kernel = await open_kernel()
    amy = kernel.open_session(kernel.owner, "test")
    for _ in range(2):
        with pytest.raises(AntiphonError) as caught:
            await kernel.call(amy, "block.list", {"context": BROKEN})
        error = caught.value
        assert error.code is ErrorCode.STORAGE_FAILED
        assert (error.details["label"], error.details["quarantined"]) == (BROKEN, True)
        assert error.details["seq"] == seq
        assert "antiphon doctor" in error.message
    assert len((await kernel.call(amy, "block.list", {}))["blocks"]) == 5
    listed = (await kernel.call(amy, "context.list", {}))["contexts"]
    assert {one["label"]: "damaged" in one for one in listed} == {"default": False, BROKEN: True}
    await kernel.close()
    with sqlite3.connect(damaged / "journal.db") as database:
        assert database.execute(RECORDS).fetchall() == kept
    report = await run_checks(damaged)
    assert {finding.context for finding in report.all()} == {BROKEN}
    assert min(finding.seq or 0 for finding in report.all() if finding.seq) == seq


@pytest.mark.sqlite
async def test_damage_is_listed_before_anybody_opens_the_context_and_named_by_a_search(
    damaged: Path, open_kernel: OpenKernel
) -> None:
    with sqlite3.connect(damaged / "journal.db") as database:
        database.execute("DELETE FROM ops WHERE context = 2 AND seq = 3")
    kernel = await open_kernel()
    call = Caller(kernel, kernel.open_session(kernel.owner, "test"))
    await until(lambda: bool(kernel.quarantine.damaged))
    listed = (await call("context.list"))["contexts"]
    assert {one["label"]: "damaged" in one for one in listed} == {"default": False, BROKEN: True}
    for _ in range(2):
        found = await call("kernel.search", query="😀", kinds=["text"])
        assert len(found["results"]) == 5
        assert found["unsearched"] == [BROKEN]
