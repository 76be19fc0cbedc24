"""The doctor finds each kind of damage, and nothing where there is none."""

from __future__ import annotations

import sqlite3
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from antiphon_kernel.kernel.at_rest.doctor.examination import examine
from antiphon_kernel.kernel.kernel import Kernel
from antiphon_kernel.types.clock import iso_time
from antiphon_kernel.types.enums import BlockKind, PrincipalKind, Role, Status
from antiphon_kernel.types.records import BlockHeader
from antiphon_kernel.wire.update import decode_update


@pytest.fixture
async def sound(kernel: Kernel, data: Path) -> Path:
    """A folder with a prompt, an answer with a tool call and its result, undone edits and more."""
    amy = kernel.open_session(kernel.owner, "test")
    aria = kernel.open_session(await kernel.principal("aria", PrincipalKind.MODEL), "turn")

    async def make(actor: Any, **fields: Any) -> str:
        request = {"kind": "text", "content": "text 😀\n", "status": "done", **fields}
        return str((await kernel.call(actor, "block.create", request))["block_id"])

    prompt = await make(amy, role="user")
    context = await kernel.context()
    call = str(context.next_block_id(aria.principal.id))
    for block, kind, parent in (
        (call, BlockKind.TOOL_CALL, prompt),
        (str(context.next_block_id(aria.principal.id)), BlockKind.TOOL_RESULT, call),
    ):
        header = BlockHeader(
            block,
            kind,
            Role.TOOL,
            Status.DONE,
            order=f"b{kind}",
            created=iso_time(kernel.clock.now_ms()),
            author=aria.principal.id,
            parent=parent,
            tool_kind="shell",
            tool_call_id="t1",
        )
        await context.write(
            aria, "create", partial(context.document.create_block, header, "ls")
        ).saved()
    for number in range(4):
        insert = {"block_id": prompt, "offset": 0, "insert": f"{number} "}
        await kernel.call(amy, "block.splice", insert)
    await kernel.call(amy, "block.undo", {"block_id": prompt})
    await kernel.create_context("other")
    await kernel.close()
    return data


async def test_a_sound_journal_is_clean_open_or_closed(sound: Path, open_kernel: Any) -> None:
    report = await examine(sound)
    assert [str(finding) for finding in report.all()] == []
    assert [(one.row.label, one.blocks) for one in report.contexts] == [
        ("default", 3),
        ("other", 0),
    ]
    kernel: Kernel = await open_kernel()
    amy = kernel.open_session(kernel.owner, "test")
    await kernel.call(amy, "block.create", {"role": "user", "kind": "text", "content": "x"})
    report = await examine(sound)
    assert report.clean
    assert report.contexts[0].blocks == 4


DAMAGES = {
    "sequence": "DELETE FROM ops WHERE context = 1 AND seq = 4",
    "transaction": "UPDATE ops SET changes = substr(changes, 1, 9) WHERE context = 1 AND seq = 4",
    "versions": "UPDATE blocks SET version = version + 1 WHERE number = 1",
    "index": "UPDATE blocks SET id = id || '0' WHERE number = 2",
    "undo": "UPDATE undo SET unit = unit + 1000 WHERE unit = (SELECT max(unit) FROM undo)",
    "file": "UPDATE ops SET principal = 77 WHERE context = 1 AND seq = 5",
}


@pytest.mark.parametrize("check", DAMAGES)
async def test_each_kind_of_damage_is_found_and_named(sound: Path, check: str) -> None:
    with sqlite3.connect(sound / "journal.db") as database:
        assert database.execute(DAMAGES[check]).rowcount == 1
    before = (sound / "journal.db").read_bytes()
    report = await examine(sound)
    assert check in {finding.check for finding in report.all()}
    assert {finding.context for finding in report.all()} <= {"default", None}
    assert report.contexts[1].findings == []
    assert (sound / "journal.db").read_bytes() == before


async def test_another_epoch_in_the_index_is_found(sound: Path) -> None:
    with sqlite3.connect(sound / "journal.db") as database:
        database.execute("UPDATE contexts SET epoch = '0' WHERE number = 1")
    assert [finding.check for finding in (await examine(sound)).all()] == ["index"]


async def test_a_client_id_used_by_somebody_else_is_found(sound: Path) -> None:
    with sqlite3.connect(sound / "journal.db") as database:
        aria = database.execute("SELECT number FROM principals WHERE username = 'aria'").fetchone()
        changes = database.execute("SELECT changes FROM ops WHERE context = 1 AND seq = 2")
        client = first_client(changes.fetchone()[0])
        database.execute("INSERT INTO clients VALUES (1, ?, ?)", (client, *aria))
    assert "clients" in {finding.check for finding in (await examine(sound)).all()}


def first_client(update: bytes) -> int:
    return decode_update(update).structs[0].client


async def test_pages_that_are_broken_are_said_to_be(sound: Path) -> None:
    path = sound / "journal.db"
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        (page,) = database.execute(
            "SELECT rootpage FROM sqlite_schema WHERE name = 'principals'"
        ).fetchone()
        (size,) = database.execute("PRAGMA page_size").fetchone()
    database.close()
    content = bytearray(path.read_bytes())
    content[(page - 1) * size : (page - 1) * size + 200] = b"\xee" * 200
    path.write_bytes(content)
    assert "file" in {finding.check for finding in (await examine(sound)).all()}
