"""Checks of a journal: its contexts (transactions, document, indexes), and of `auth.db`.

A copy is examined, so that the kernel that writes it is not in the way.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any, Final, NamedTuple

from antiphon_kernel.contexts.lineage.forking import load
from antiphon_kernel.document.document import Document
from antiphon_kernel.document.header import FIELDS
from antiphon_kernel.document.rendering import render
from antiphon_kernel.layout import read_record
from antiphon_kernel.limits import DEFAULT_LIMITS
from antiphon_kernel.storage import (
    AUTH_FILE,
    AUTH_SCHEMA,
    BYTES_ONLY,
    JOURNAL_FILE,
    LAST_SEQ,
    READABLE_FORMATS,
    SNAPSHOTS,
    ContextRow,
    CorruptContextError,
    Database,
    InheritedText,
    JournalReader,
    Records,
    SearchTable,
    copy_pages,
    op_id,
    row_number,
    versions_of,
)
from antiphon_kernel.types.block_metadata import SUMMARY_TYPE
from antiphon_kernel.types.drift import is_drifted
from antiphon_kernel.types.enums import BlockKind, ContextKind
from antiphon_kernel.types.errors import AntiphonError
from antiphon_kernel.types.roles import AccessRole, CredentialKind
from antiphon_kernel.validation import check_field
from antiphon_kernel.yjs.id_set import IdSet, decode_state_vector
from antiphon_kernel.yjs.restored_ids import RestoredRange, decode_restored
from antiphon_kernel.yjs.update import DecodedUpdate, ItemId, Struct, decode_update


class Check(StrEnum):
    """Kind of check."""

    FILE = "file"
    """The database itself is sound, and every row refers to rows that are there."""
    SEQUENCE = "sequence"
    """The transactions of a context are numbered without a hole."""
    TRANSACTION = "transaction"
    """Every transaction can be read and builds only on what came before it."""
    VERSIONS = "versions"
    """A block's version is the number of transactions that touched it."""
    INDEX = "index"
    """The index of blocks, the epoch and the label are those of the document."""
    PARENTS = "parents"
    """Parents exist and nothing is its own ancestor."""
    HEADER = "header"
    """Every header field is as a tool would have written it."""
    ANSWERS = "answers"
    """A tool result answers a tool call."""
    SUMMARY = "summary"
    """A summary that models read from says what it stands for."""
    UNDO = "undo"
    """The units that can be undone or redone are in the transactions."""
    CLIENTS = "clients"
    """With a CRDT client id that belongs to a principal nobody else has written."""
    SNAPSHOT = "snapshot"
    """A snapshot is what the transactions make."""
    REVIVED = "revived"
    """The characters that an undo brought back had been there before."""
    INHERITED = "inherited"
    """A copied text is somebody's from its beginning to its end."""
    SEARCH = "search"
    """The search index says of each block what its document says, as far as it has come."""
    BLOBS = "blobs"
    """The bytes of every attached file are there as they were, and there are no others."""
    PROJECT_FILES = "project_files"
    """A context of kind file has one block of that kind, and what is known of its file fits it."""
    AUTH = "auth"
    """Everybody who may come in is known to the journal, in a role that there is."""


class Finding(NamedTuple):
    """Something that does not hold."""

    check: Check
    context: str | None
    """Label of the context; None if it is about the whole file."""
    seq: int | None
    message: str

    def as_json(self) -> dict[str, Any]:
        return {name: value for name, value in self._asdict().items() if value is not None}

    def __str__(self) -> str:
        where = f"{self.context}: " if self.context is not None else ""
        return f"{where}{self.check}: {self.message}"


@dataclass(slots=True)
class ContextReport:
    """Scope and findings of the checks of one context."""

    row: ContextRow
    transactions: int = 0
    blocks: int = 0
    blobs: dict[str, str] = field(default_factory=dict)
    """Hash of each attached file to a block that it is attached with."""
    findings: list[Finding] = field(default_factory=list)

    def find(self, check: Check, message: str, seq: int | None = None) -> None:
        """Take note of something that does not hold."""
        self.findings.append(Finding(check, self.row.label, seq, message))


@dataclass(slots=True)
class Report:
    """Report of the doctor on a journal."""

    contexts: list[ContextReport] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    """About the file as a whole."""

    def find(self, check: Check, message: str) -> None:
        """Take note of something about the file as a whole that does not hold."""
        self.findings.append(Finding(check, None, None, message))

    def all(self) -> Iterator[Finding]:
        """Every finding."""
        yield from self.findings
        for context in self.contexts:
            yield from context.findings

    @property
    def clean(self) -> bool:
        return not any(self.all())

    def as_json(self) -> dict[str, Any]:
        return {
            "clean": self.clean,
            "contexts": [
                {
                    "context_id": one.row.id,
                    "label": one.row.label,
                    "transactions": one.transactions,
                    "blocks": one.blocks,
                    "clean": not one.findings,
                }
                for one in self.contexts
            ],
            "findings": [finding.as_json() for finding in self.all()],
        }


class _ContextChecks:
    """The checks of one context, most of them on what its transactions make, one by one."""

    def __init__(self, database: Database, row: ContextRow) -> None:
        self._database, self._journal, self._row = database, JournalReader(database), row
        self.report = ContextReport(row)
        self._find, self._select = self.report.find, database.select
        self._document = Document(client_id=1)
        """The context as of the last transaction that could be applied."""
        self._seq = 0
        self._owners: dict[int, int] = {}
        """CRDT client id to the number of the principal that it belongs to."""
        self._numbers: dict[int, str] = {}
        """Number of a block to its id."""
        self._versions: dict[int, int] = {}
        """Number of a block to how many transactions touched it."""
        self._units: set[int] = set()
        self._clocks: dict[int, int] = {}
        """CRDT client id to the clock after its last item."""
        self._revived: dict[int, tuple[RestoredRange, ...]] = {}
        """The revivals of each transaction that has some."""
        self._inserted: dict[int, IdSet] = {}
        """The ids that each of them brought."""
        self._inherited: list[InheritedText] = []
        self._sections = defaultdict[int, list[str | None]](list)
        """Number of a copied block to the sections whose authors are stated."""
        self._copied: dict[tuple[int, str | None], int] = {}
        """How long the texts were that blocks, by their number, were copied with."""

    async def run(self) -> ContextReport:
        """Check everything."""
        here = (self._row.number,)
        sql = "SELECT client, principal FROM clients WHERE context = ?"
        self._owners = {int(one[0]): int(one[1]) for one in await self._select(sql, here)}
        blocks = await self._journal.blocks(self._row)
        self._numbers = {one.number: one.id for one in blocks}
        snapshot = await self._read_snapshot()
        await self._read_restored()
        try:
            self._inherited = await self._journal.inherited(self._row)
        except CorruptContextError as error:
            self._find(Check.INHERITED, error.what)
        for text in self._inherited:
            self._sections[text.block].append(text.section)
        is_whole = await self._replay(snapshot)
        self.report.blocks = len(self._document)
        self._check_headers()
        self._check_parents()
        self._check_meaning()
        if not is_whole:
            return self.report
        for number, block, version in blocks:
            counted = self._versions.get(number)
            if counted != version:
                found = f"block {block} has version {version}, counted {counted}"
                self._find(Check.VERSIONS, found)
        document, ids = self._document, set(self._numbers.values())
        if odd := ids ^ set(document.block_ids()):
            what = f"the index and the document do not agree about block {min(odd)}"
            self._find(Check.INDEX, what)
        if (document.context, document.epoch) != (self._row.id, self._row.epoch):
            self._find(Check.INDEX, "the document belongs to another context or epoch")
        for (unit,) in await self._select("SELECT unit FROM undo WHERE context = ?", here):
            if unit not in self._units:
                self._find(Check.UNDO, f"unit {unit} is in no transaction", unit)
        self._check_restored()
        await self._check_authors()
        await self._check_origin()
        await self._check_search()
        await self._check_project_file()
        return self.report

    # Transactions

    async def _replay(self, snapshot: tuple[int, Document] | None) -> bool:
        """Follow all transactions; return whether each could be, from the first one on."""
        sql = (
            f"SELECT seq, format, principal, touched, unit, {BYTES_ONLY} FROM ops"
            " WHERE id BETWEEN ? AND ? ORDER BY id LIMIT ?"
        )
        number, last = self._row.number, op_id(self._row.number, LAST_SEQ)
        while rows := await self._select(sql, (op_id(number, self._seq + 1), last, _PAGE)):
            for row in rows:
                if not self._follow(*row):
                    return False
                if snapshot is not None and self._seq == snapshot[0]:
                    if (differs := difference(snapshot[1], self._document)) is not None:
                        found = f"it is not what the transactions up to {self._seq} make: {differs}"
                        self._find(Check.SNAPSHOT, found, self._seq)
        if self._seq == 0:
            self._find(Check.SEQUENCE, "the transaction that founds it is missing", 1)
            return False
        if snapshot is not None and snapshot[0] > self._seq:
            found = f"it is of seq {snapshot[0]}, the last transaction is {self._seq}"
            self._find(Check.SNAPSHOT, found, snapshot[0])
        return True

    def _follow(
        self, seq: int, format_: int, principal: int, touched: str, unit: int | None, changes: bytes
    ) -> bool:
        """Take in a transaction; return whether those behind it can be taken in, too."""
        if seq != self._seq + 1:
            missing = f"the transactions from {self._seq + 1} to {seq - 1} are missing"
            self._find(Check.SEQUENCE, missing, self._seq + 1)
            return False
        self._seq = seq
        self.report.transactions += 1
        if unit is not None:
            self._units.add(unit)
        if format_ not in READABLE_FORMATS or not isinstance(changes, bytes):
            what = f"has the unknown format {format_!r}" if changes else "holds no bytes"
            self._find_here(Check.TRANSACTION, what)
            return False
        try:
            decoded = decode_update(changes)
            self._check_base(principal, decoded)
            if seq in self._revived:
                self._inserted[seq] = decoded.inserted()
            changed = self._document.apply_update(changes).change.touched
        except ValueError as error:
            self._find_here(Check.TRANSACTION, f"cannot be applied: {error}")
            return False
        self._count(touched, changed)
        return True

    def _find_here(self, check: Check, what: str) -> None:
        """Take note of something that is wrong with the last transaction."""
        self._find(check, f"transaction {self._seq} {what}", self._seq)

    def _check_base(self, principal: int, decoded: DecodedUpdate) -> None:
        new: list[Struct] = []
        for struct in decoded.structs:
            known, client = self._clocks.get(struct.client, 0), struct.client
            end = struct.clock + struct.length
            if struct.clock > known:
                what = f"skips from clock {known} to {struct.clock} of client {client}"
                self._find_here(Check.TRANSACTION, what)
            if end > known:
                new.append(struct)
                self._clocks[client] = end
                if self._owners.get(client, principal) != principal:
                    what = f"writes with the client id {client} of somebody else"
                    self._find_here(Check.CLIENTS, what)
        for struct in new:  # what a client repeats says nothing
            for needed in (struct.origin, struct.right_origin, struct.parent):
                if isinstance(needed, ItemId) and needed.clock >= self._clocks.get(
                    needed.client, 0
                ):
                    self._find_here(Check.TRANSACTION, "stands on an item that is not there yet")
                    return

    def _count(self, touched: str, changed: Iterable[str]) -> None:
        try:
            stated = versions_of(touched)
        except (ValueError, AttributeError):
            self._find_here(Check.VERSIONS, "does not say what it touched")
            return
        for number, version in stated.items():
            counted = self._versions[number] = self._versions.get(number, 0) + 1
            for section in self._sections.get(number, ()) if counted == 1 else ():
                with suppress(KeyError, ValueError):  # there is no such text
                    text = self._document.text(str(self._numbers.get(number)), section)
                    self._copied[number, section] = len(text)
            if version != counted:
                block = self._numbers.get(number, number)
                what = f"made version {version} of block {block}, counted {counted}"
                self._find_here(Check.VERSIONS, what)
        unsaid = set(changed) - {self._numbers.get(number) for number in stated}
        if unsaid:
            what = f"touched {len(unsaid)} blocks that it does not name: {min(unsaid)}"
            self._find_here(Check.VERSIONS, what)

    # Blocks

    def _check_headers(self) -> None:
        for block in self._document.block_ids():
            for name, stored in self._document.stored_fields(block).items():
                try:
                    if name in FIELDS:
                        check_field(name, stored, DEFAULT_LIMITS)
                except AntiphonError as error:
                    what = f"block {block}: {error.message.removesuffix('.')}"
                    self._find(Check.HEADER, what)

    def _check_meaning(self) -> None:
        """Check answers and summaries, and take note of attached files."""
        document = self._document
        for block in document.block_ids():
            header = document.header(block)
            said = header.metadata
            if header.blob is not None:
                self.report.blobs[header.blob] = block
            if (header.blob is None) != (header.media_type is None):
                self._find(Check.BLOBS, f"block {block} says half of what file is attached with it")
            if said.get("type") == SUMMARY_TYPE and read_record(said) is None:
                self._find(Check.SUMMARY, f"the summary {block} does not say what it stands for")
            if header.kind != BlockKind.TOOL_RESULT or is_drifted(said):
                continue
            if header.parent is None or header.parent not in document:
                self._find(Check.ANSWERS, f"the tool result {block} answers no call")
                continue
            call = document.header(header.parent)
            what = f"the tool result {block}"
            if call.kind != BlockKind.TOOL_CALL or call.tool_call_id != header.tool_call_id:
                self._find(Check.ANSWERS, f"{what} answers {call.id}, which is not its call")
            elif document.order.index(block) < document.order.index(call.id):
                self._find(Check.ANSWERS, f"{what} stands before its call {call.id}")

    def _check_parents(self) -> None:
        document = self._document
        headers = map(document.header, document.block_ids())
        parents = {one.id: one.parent for one in headers if one.parent is not None}
        for block, parent in parents.items():
            if parent not in document:
                self._find(Check.PARENTS, f"block {block} has the parent {parent}, not there")
        try:
            TopologicalSorter({block: [parent] for block, parent in parents.items()}).prepare()
        except CycleError as error:
            self._find(Check.PARENTS, f"block {error.args[1][0]} is its own ancestor")

    # Other tables

    async def _read_snapshot(self) -> tuple[int, Document] | None:
        sql = "SELECT count(*) FROM snapshots WHERE context = ?"
        if not (await self._select(sql, (self._row.number,)))[0][0]:
            return None
        snapshot = await Records(self._database, SNAPSHOTS).read(self._row)
        if snapshot is None:
            self._find(Check.SNAPSHOT, "it is damaged; the kernel reads the transactions instead")
            return None
        try:
            return snapshot.seq, load(snapshot.state, client_id=2)
        except ValueError as error:
            self._find(Check.SNAPSHOT, f"it cannot be read: {error}")
            return None

    async def _read_restored(self) -> None:
        """Read the revivals of each transaction; those that cannot be read are findings."""
        sql = "SELECT seq, format, revivals FROM revived WHERE context = ?"
        for seq, format_, revivals in await self._select(sql, (self._row.number,)):
            try:
                if format_ not in READABLE_FORMATS:
                    raise ValueError(f"it has the format {format_!r}")
                self._revived[seq] = decode_restored(revivals)
            except (ValueError, TypeError) as error:
                what = f"what transaction {seq} brought back cannot be read: {error}"
                self._find(Check.REVIVED, what, seq)

    def _check_restored(self) -> None:
        """Check that restored ranges came with their transaction and existed before."""
        for seq, revivals in self._revived.items():
            inserted, clocks = self._inserted.get(seq, ()), self._clocks
            for again, source, length in revivals:
                is_there = any(
                    one.client == again.client
                    and one.start <= again.clock
                    and again.clock + length <= one.end
                    for one in inserted
                )
                if not is_there or source.clock + length > clocks.get(source.client, 0):
                    what = f"transaction {seq} is said to bring back what it does not hold"
                    self._find(Check.REVIVED, what, seq)
                    break

    async def _check_authors(self) -> None:
        """Each text that a block was copied with is somebody's from its beginning to its end."""
        known = {row[0] for row in await self._select("SELECT id FROM principals")}
        for text in self._inherited:
            block = self._numbers.get(text.block)
            length = self._copied.get((text.block, text.section))
            at = 0
            for run in text.runs:
                if run.length <= 0 or run.stamp.principal not in known:
                    break
                at += run.length
            ends = length if text.version == 1 else at
            if block is None or ends is None or at != ends:
                what = f"the authors of the text that block {block or text.block} was copied with"
                self._find(Check.INHERITED, f"{what} do not add up to it")

    async def _check_origin(self) -> None:
        """The copied blocks of a fork are in its source, which has had the copied version."""
        origin = self._row.origin
        if origin is None:
            return
        copied = op_id(origin.source, origin.seq)
        if not await self._select("SELECT 1 FROM ops WHERE id = ?", (copied,)):
            what = f"it is said to be copied from version {origin.seq}, which its source"
            self._find(Check.INHERITED, f"{what} does not have")
        sql = (
            "SELECT count(*) FROM blocks b JOIN contexts c ON c.number = ?"
            " JOIN blocks s ON s.id = c.id || substr(b.id, length(c.id) + 1)"
            " WHERE b.context = ? AND b.number BETWEEN 1 AND ?"
        )
        rows = await self._select(sql, (origin.source, self._row.number, origin.blocks))
        if rows[0][0] != origin.blocks:
            what = f"{origin.blocks} blocks are said to be copied, of {rows[0][0]}"
            self._find(Check.INHERITED, f"{what} there is an original")

    async def _check_search(self) -> None:
        """The search index says of every block what its document says, as far as it has come."""
        document = self._document
        sql = "SELECT seq FROM searched_contexts WHERE context = ?"
        reached = [int(one[0]) for one in await self._select(sql, (self._row.number,))]
        if reached and reached[0] > self._seq:
            what = f"it has come to {reached[0]}, the last transaction is {self._seq}"
            self._find(Check.SEARCH, what)
        first, last = row_number(self._row.number, 0), row_number(self._row.number + 1, 0)
        sql = "SELECT row, version, kind, path, length FROM searched WHERE row >= ? AND row < ?"
        table = SearchTable(self._database)
        current: dict[int, tuple[str, str]] = {}
        for at, version, kind, path, length in await self._select(sql, (first, last)):
            number = at - first
            block = self._numbers.get(number, "")
            if block not in document:
                continue  # which is a finding already, about the index of blocks
            if version > self._versions.get(number, 0):
                self._find(Check.SEARCH, f"it has version {version} of block {block}")
            elif version == self._versions[number]:
                text = render(document, block)
                header = document.header(block)
                if (kind, path, length) != (str(header.kind), header.path, len(text)):
                    self._find(Check.SEARCH, f"it knows block {block} as it is not")
                else:
                    current[at] = block, text
        rows = list(current)
        for begin in range(0, len(rows), _TEXTS):
            portion = rows[begin : begin + _TEXTS]
            texts = {one.row: one.text for one in await table.texts(portion)}
            for at in portion:
                block, text = current[at]
                if texts.get(at) != text:
                    self._find(Check.SEARCH, f"it has another text of block {block}")
        behind = set(self._versions) - {at - first for at in current}
        if reached and reached[0] == self._seq and behind:
            block = self._numbers.get(min(behind), str(min(behind)))
            self._find(Check.SEARCH, f"it is said to be complete and lacks block {block}")

    async def _check_project_file(self) -> None:
        """A context that is a file has one block, and a base that this block has had."""
        sql = "SELECT path, version, next_version FROM files WHERE context = ?"
        found = await self._select(sql, (self._row.number,))
        if self._row.kind is not ContextKind.FILE:
            if found:
                what = f"it is no file, and is said to be {found[0][0]}"
                self._find(Check.PROJECT_FILES, what)
            return
        headers = [self._document.header(one) for one in self._document.block_ids()]
        if len(headers) != 1 or headers[0].kind != BlockKind.FILE or not found:
            what = f"it has {len(headers)} blocks, and {len(found)} files are known to be it"
            self._find(Check.PROJECT_FILES, what)
            return
        path, *versions = found[0]
        version = max(self._versions.values())
        if path != headers[0].path or max(versions) > version:
            what = f"{path} is known in version {max(versions)}, the block is {headers[0].path} in"
            self._find(Check.PROJECT_FILES, f"{what} version {version}")


async def check_blobs(database: Database, report: Report) -> None:
    """Check stored bytes, and whether each are some block's.

    A context that could not be read to its end may name more than what was found.
    """
    sound: set[str] = set()
    named = {one for context in report.contexts for one in context.blobs}
    is_whole = report.clean
    for (hash_,) in await database.select("SELECT hash FROM blobs"):
        if await JournalReader(database).blob(hash_) is not None:
            sound.add(hash_)
        elif hash_ not in named:
            what = f"the bytes stored as {hash_} are others, and no block names them"
            report.find(Check.BLOBS, what)
    for context in report.contexts:
        for hash_, block in context.blobs.items():
            if hash_ not in sound:
                what = f"the file attached with block {block} is not there as it was"
                context.find(Check.BLOBS, what)
    for hash_ in sorted(sound - named) if is_whole else ():
        report.find(Check.BLOBS, f"no block names the bytes of {hash_}")


def difference(one: Document, other: Document) -> str | None:
    """In what two documents differ; None if they are equal."""
    vectors = decode_state_vector(one.state_vector()), decode_state_vector(other.state_vector())
    if vectors[0] != vectors[1]:
        return "they have seen different items"
    if list(one.block_ids()) != list(other.block_ids()):
        return "they have different blocks, or another order"
    for block in one.block_ids():
        if one.header(block) != other.header(block):
            return f"the header of block {block}"
        if one.text(block) != other.text(block):
            return f"the text of block {block}"
    if (one.epoch, one.label) != (other.epoch, other.label):
        return "the epoch or the label"
    return None


_TEXTS: Final = 200
"""Texts read at once."""


async def check_trigrams(database: Database, report: Report) -> None:
    """The full-text index agrees with the texts in it."""
    try:
        await database.insert("INSERT INTO search (search) VALUES ('integrity-check')", ())
    except AntiphonError as error:
        report.find(Check.SEARCH, f"it is damaged: {error.message}")


_COUNTED = (
    "SELECT c.number, c.kind, c.uses_allowed, c.uses,"
    " (SELECT count(*) FROM clients WHERE credential = c.number) FROM credentials c"
)


async def check_file(database: Database, check: Check, report: Report) -> None:
    """Check a file by the means of SQLite itself."""
    for (said,) in await database.select("PRAGMA integrity_check(20)"):
        if said != "ok":
            report.find(check, f"the database is damaged: {said}")
    for table, row, parent, _ in await database.select("PRAGMA foreign_key_check"):
        what = f"row {row} of {table} refers to a row of {parent} that is not there"
        report.find(check, what)


async def check_auth(data: Path, folder: Path, journal: Database, report: Report) -> None:
    """Check a copy of the file in `data`, made in `folder`; without a file there is nothing.

    Args:
        journal: the kernel's journal, which knows the principals.
    """
    if not (data / AUTH_FILE).exists():
        return

    copy = folder / AUTH_FILE
    rows = await journal.select("SELECT username, id FROM principals")
    names = {str(row[0]): str(row[1]) for row in rows}
    try:
        await asyncio.to_thread(copy_pages, data / AUTH_FILE, copy)
        database = await Database.open(copy, AUTH_SCHEMA)
    except AntiphonError as error:
        report.find(Check.AUTH, error.message)
        return
    try:
        await check_file(database, Check.AUTH, report)
        sql = "SELECT username, principal, role FROM users"
        for username, principal, role in await database.select(sql):
            # Whom the journal does not know yet was being added; the next kernel goes on there.
            if names.get(username, principal) != principal:
                what = f"{username} is not the principal that the journal knows by this name"
                report.find(Check.AUTH, what)
            if role not in tuple(AccessRole):
                report.find(Check.AUTH, f"{username} has the unknown role {role!r}")
        owner = await journal.select("SELECT value FROM kernel WHERE key = 'owner'")
        sql = "SELECT count(*) FROM users WHERE role = ? AND username = ?"
        for (name,) in owner:
            if not (await database.select(sql, (AccessRole.OWNER, name)))[0][0]:
                report.find(Check.AUTH, f"{name}, who founded the kernel, is no owner")
        for number, kind, allowed, uses, clients in await database.select(_COUNTED):
            if kind not in tuple(CredentialKind):
                report.find(Check.AUTH, f"credential {number} has the unknown kind {kind!r}")
            if clients > uses or (allowed is not None and uses > allowed):
                report.find(Check.AUTH, f"credential {number} has let in more than it was made for")
    except AntiphonError as error:
        report.find(Check.AUTH, error.message)
    finally:
        await database.close()


_PAGE: Final = 500
"""Transactions read at once."""


async def run_checks(data: Path) -> Report:
    """Check everything that must hold for the journal of a data folder. Nothing is changed.

    Raises:
        AntiphonError: storage_failed if there is no journal that could be copied.
    """
    with tempfile.TemporaryDirectory(prefix="antiphon-doctor-") as folder:
        copy = Path(folder) / JOURNAL_FILE
        await asyncio.to_thread(copy_pages, data / JOURNAL_FILE, copy)
        report = Report()
        try:
            database = await Database.open(copy)
        except AntiphonError as error:
            report.find(Check.FILE, error.message)
            return report
        try:
            await check_file(database, Check.FILE, report)
            await check_trigrams(database, report)
            await check_auth(data, Path(folder), database, report)
            for row in await JournalReader(database).contexts():
                report.contexts.append(await _ContextChecks(database, row).run())
            await check_blobs(database, report)
        except AntiphonError as error:
            report.find(Check.FILE, error.message)
        finally:
            await database.close()
        return report
