"""Databases of every released version open for ever, with everything in them."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from antiphon_kernel.journal.schema import MIGRATIONS
from antiphon_kernel.kernel.at_rest.doctor.examination import examine
from antiphon_kernel.kernel.kernel import Kernel
from antiphon_kernel.kernel.registry import Registry
from antiphon_kernel.kernel.tools.catalogue import KERNEL_TOOLS

FIXTURES = Path(__file__).parent / "fixtures"
CONTEXT = "01a1fce8eb30729b82544c05cc43bd74"
AMY = "01a1fce8eb2f71a4b59a1581faeb2589"


def unpack(version: int, data: Path) -> None:
    with sqlite3.connect(data / "journal.db") as database:
        database.executescript((FIXTURES / f"v{version}.sql").read_text("utf-8"))


@pytest.mark.parametrize("version", [1])
async def test_a_database_of_an_old_version_has_its_texts_and_authors(
    tmp_path: Path, version: int
) -> None:
    unpack(version, tmp_path)
    assert (await examine(tmp_path)).clean
    registry = Registry(KERNEL_TOOLS)
    for _ in range(2):
        kernel = await Kernel.open(tmp_path, tmp_path, registry=registry)
        assert kernel.owner.username == "amy"
        amy = kernel.open_session(kernel.owner, "test")
        document = (await kernel.context()).document
        first, second = (f"{CONTEXT}.{AMY}.{number}" for number in (1, 2))
        assert document.text(first) == "one\ntwo漢字\n\nthree\n"
        assert document.text(second) == "a message"
        assert {kernel.owner.id} == {document.header(one).author for one in (first, second)}
        runs = (await kernel.call(amy, "block.blame", {"block_id": first}))["runs"]
        assert "".join(document.text(first)[run["start"] : run["end"]] for run in runs) == (
            document.text(first)
        )
        own = [run for run in runs if document.text(first)[run["start"] : run["end"]] != "two"]
        assert {(run["username"], run["version"]) for run in own} == {("amy", 1), ("amy", 3)}
        read = await kernel.call(amy, "block.read", {"block_id": first})
        assert read["version"] == 4
        await kernel.close()
    with sqlite3.connect(tmp_path / "journal.db") as database:
        assert database.execute("PRAGMA user_version").fetchone() == (len(MIGRATIONS),)
    assert (await examine(tmp_path)).clean


async def test_what_was_only_written_in_version_1_can_still_be_undone(tmp_path: Path) -> None:
    unpack(1, tmp_path)
    kernel = await Kernel.open(tmp_path, tmp_path, registry=Registry(KERNEL_TOOLS))
    amy = kernel.open_session(kernel.owner, "test")
    document = (await kernel.context()).document
    await kernel.call(amy, "block.undo", {"block_id": f"{CONTEXT}.{AMY}.2"})
    assert document.text(f"{CONTEXT}.{AMY}.2") == ""
    await kernel.call(amy, "block.undo", {"block_id": f"{CONTEXT}.{AMY}.1"})
    assert "漢字" not in document.text(f"{CONTEXT}.{AMY}.1")
    await kernel.close()
