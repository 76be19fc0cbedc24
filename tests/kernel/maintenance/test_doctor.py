"""The doctor finds each kind of damage, and nothing where there is none."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from antiphon_kernel.contexts import Context, apply_update
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.maintenance.run_checks import run_checks
from antiphon_kernel.types.enums import BlockKind
from antiphon_kernel.yjs.id_set import IdRange
from antiphon_kernel.yjs.update import ContentKind, ItemId, SharedType, Struct, decode_update
from antiphon_kernel.yjs.update_writer import encode_update
from tests.kernel.kernel.calls import OpenKernel

pytestmark = pytest.mark.sqlite


async def test_sound_journal_is_clean_open_or_closed(sound: Path, open_kernel: Any) -> None:
    report = await run_checks(sound)
    assert [str(finding) for finding in report.all()] == []
    assert [(one.row.label, one.blocks) for one in report.contexts] == [
        ("default", 3),
        ("other", 0),
        ("copy", 3),
        ("imported", 3),
        ("file-listtxt", 1),
    ]
    kernel: Kernel = await open_kernel()
    amy = kernel.open_session(kernel.owner, "test")
    await kernel.call(amy, "block.create", {"role": "user", "kind": "text", "content": "x"})
    report = await run_checks(sound)
    assert report.clean
    assert report.contexts[0].blocks == 4


FIRST = "(SELECT min(row) FROM searched)"
DAMAGES = {
    "sequence": "DELETE FROM ops WHERE context = 1 AND seq = 4",
    "transaction": "UPDATE ops SET changes = substr(changes, 1, 9) WHERE context = 1 AND seq = 4",
    "versions": "UPDATE blocks SET version = version + 1 WHERE context = 1 AND number = 1",
    "index": "UPDATE blocks SET id = id || '0' WHERE context = 1 AND number = 2",
    "index: epoch": "UPDATE contexts SET epoch = '0' WHERE number = 1",
    "undo": "UPDATE undo SET unit = unit + 1000 WHERE unit = (SELECT max(unit) FROM undo)",
    "file": "UPDATE ops SET principal = 77 WHERE context = 1 AND seq = 5",
    "snapshot: bytes": "UPDATE snapshots SET state = zeroblob(9) WHERE context = 1",
    "snapshot: too new": "UPDATE snapshots SET seq = seq + 1 WHERE context = 1",
    "revived: format": "UPDATE revived SET format = 9",
    "revived: bytes": "UPDATE revived SET revivals = x'01'",
    "revived: elsewhere": "UPDATE revived SET seq = seq - 1",
    "inherited: format": "UPDATE inherited_blame SET format = 9 WHERE block = 1",
    "inherited: short": "UPDATE inherited_blame SET runs = '[]' WHERE block = 1",
    "inherited: nobody": "UPDATE inherited_blame SET runs = replace(runs, '0', '1')",
    "inherited: no version": "UPDATE contexts SET source_seq = 9999 WHERE source",
    "inherited: no original": "UPDATE contexts SET copied = copied + 1 WHERE source",
    "inherited: no block": "UPDATE inherited_blame SET block = 99 WHERE block = 1",
    "search: version": f"UPDATE searched SET version = 99 WHERE row = {FIRST}",
    "search: length": f"UPDATE searched SET length = 99 WHERE row = {FIRST}",
    "search: text": f"UPDATE search SET text = 'other' WHERE rowid = {FIRST}",
    "search: lacks": f"DELETE FROM searched WHERE row = {FIRST}",
    "search: ahead": "UPDATE searched_contexts SET seq = seq + 1 WHERE context = 1",
    "search: trigrams": "UPDATE search_data SET block = zeroblob(4) WHERE id > 10",
    "project_files: version": "UPDATE files SET version = 99",
    "project_files: path": "UPDATE files SET path = 'other'",
    "project_files: no row": "DELETE FROM files",
    "project_files: no file": "UPDATE contexts SET kind = 'conversation'",
    "auth: principal": "UPDATE users SET principal = '0' WHERE username = 'aria'",
    "auth: role": "UPDATE users SET role = 'king' WHERE username = 'aria'",
    "auth: founder": "UPDATE users SET role = 'viewer' WHERE username = 'amy'",
    "auth: uses": "UPDATE credentials SET uses = uses_allowed + 1",
    "auth: kind": "UPDATE credentials SET kind = 'charm'",
    "auth: no user": "UPDATE credentials SET user = 99",
}


@pytest.mark.parametrize("damage", DAMAGES)
async def test_doctor_reports_each_kind_of_damage(sound: Path, damage: str) -> None:
    check = damage.partition(":")[0]
    path = sound / ("auth.db" if check == "auth" else "journal.db")
    with sqlite3.connect(path) as database:
        assert database.execute(DAMAGES[damage]).rowcount >= 1
    database.close()
    before = path.read_bytes()
    report = await run_checks(sound)
    found = {str(finding.check) for finding in report.all()}
    assert check in found
    if ":" in damage:
        assert found == {check}
    assert {finding.context for finding in report.all()} <= {
        *("default", "copy", "imported", "file-listtxt", None)
    }
    assert report.contexts[1].findings == []
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("check", "fields"),
    [
        ("parents", {"parent": "nobody"}),
        ("parents", {"parent": "itself"}),
        ("answers", {"parent": None}),
        ("answers", {"tool_call_id": "another"}),
        ("answers", {"order": "A0"}),
        ("summary", {"metadata": {"type": "conv.range.summary"}}),
    ],
)
async def test_document_that_does_not_hang_together_is_found(
    sound: Path, open_kernel: Any, check: str, fields: dict[str, Any]
) -> None:
    """Written past every check, as a bug might."""
    kernel: Kernel = await open_kernel()
    context = await kernel.context()
    document = context.document
    (result,) = [
        block
        for block in document.block_ids()
        if document.header(block).kind is BlockKind.TOOL_RESULT
    ]
    if fields.get("parent") == "itself":
        fields = {"parent": result}
    amy = kernel.open_session(kernel.owner, "test")
    await context.write(
        amy, "bug", lambda: document.set_fields(result, **fields), blocks=[result]
    ).saved()
    await kernel.close()
    assert check in {finding.check for finding in (await run_checks(sound)).all()}


async def test_auth_file_may_be_missing_and_is_a_database(sound: Path) -> None:
    """A backup does not say who may come in."""
    (sound / "auth.db").unlink()
    assert (await run_checks(sound)).clean
    (sound / "auth.db").write_bytes(b"no database at all" * 100)
    assert {finding.check for finding in (await run_checks(sound)).all()} == {"auth"}


async def test_client_id_used_by_somebody_else_is_found(sound: Path) -> None:
    with sqlite3.connect(sound / "journal.db") as database:
        aria = database.execute("SELECT number FROM principals WHERE username = 'aria'").fetchone()
        changes = database.execute("SELECT changes FROM ops WHERE context = 1 AND seq = 2")
        client = first_client(changes.fetchone()[0])
        database.execute("INSERT INTO clients VALUES (1, ?, ?)", (client, *aria))
    assert "clients" in {finding.check for finding in (await run_checks(sound)).all()}


def first_client(update: bytes) -> int:
    return decode_update(update).structs[0].client


async def test_item_that_a_client_repeats_with_other_neighbours_is_no_damage(
    sound: Path, open_kernel: OpenKernel
) -> None:
    kernel = await open_kernel()
    amy, context = kernel.open_session(kernel.owner, "test"), await kernel.context()
    (first, *_) = decode_update(context.document.update_since()).structs
    written = Struct(5, 0, 1, ContentKind.STRING, parent=content_of(context), content="x")
    repeated = written._replace(parent=None, origin=ItemId(first.client, 9_999))
    await apply_update(context, amy, encode_update([written], ()), "client")
    deleted = IdRange(5, 0, 1)
    await apply_update(context, amy, encode_update([repeated], (deleted,)), "client")
    await kernel.close()
    assert [str(finding) for finding in (await run_checks(sound)).all()] == []


def content_of(context: Context) -> ItemId:
    """The id of the text of the first block."""
    structs = decode_update(context.document.update_since()).structs
    made = next(one for one in structs if one.content is SharedType.TEXT)
    return ItemId(made.client, made.clock)


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
    assert "file" in {finding.check for finding in (await run_checks(sound)).all()}
