"""One file of the project that is open: the text of its block, the disk, what both had in common.

The *base* is the text that block and disk last had in common. What differs from it in the block was
written here and is not saved; what differs from it on disk was written by another program, and is
brought into the block as few small edits, so that cursors, authors and typing stay. Where both have
changed the same words there is a conflict: the block keeps its text, the disk keeps its file, and
nothing is written until somebody has decided.

The base is a version of the block, by its number, or a text of its own. It is stored together with
the edit that brings it in. A write that may have happened is stored before it is made: after a kill
the disk has either the base or what the write holds, and both are known.
"""

from __future__ import annotations

import asyncio
import json
import zlib
from collections.abc import Mapping
from dataclasses import asdict, replace
from enum import StrEnum
from pathlib import Path, PurePosixPath
from typing import Final, NamedTuple

from antiphon_kernel.contexts import Context
from antiphon_kernel.files.disk_file import (
    ChangedOnDisk,
    Digest,
    DiskKind,
    DiskState,
    digest_of,
    look,
    read,
    write,
)
from antiphon_kernel.files.text_format import Binary, Decoded, TextFormat, decode, encode
from antiphon_kernel.storage import FileRow, Journal
from antiphon_kernel.tasks import run_uninterrupted
from antiphon_kernel.text.merge_edits import EditMerge, Resolution, merge_texts, resolved
from antiphon_kernel.text.splice_diff import apply_script, plan_difference
from antiphon_kernel.types.errors import AntiphonError, ErrorCode, invalid_params, storage_failed
from antiphon_kernel.types.project_files import too_large
from antiphon_kernel.types.project_paths import ProjectPath
from antiphon_kernel.types.quoting import quote
from antiphon_kernel.types.records import Actor, TextSplice
from antiphon_kernel.types.signal import Signal

FROM_DISK: Final = "disk"
"""The operation of an edit that another program has made on disk."""

RENAME: Final = "rename"
"""The operation of a rename."""

CHECKED: Final = "check"
"""The operation that says what checks have found."""

_EMPTY_SECONDS: Final = 0.25
"""How long a file may be empty while another program writes it."""

_TRIES: Final = 8
"""How often a write, or a merge, is begun again because somebody else was faster."""


class FileState(StrEnum):
    """Why an open file is not written; empty if it is."""

    USUAL = ""
    CONFLICT = "conflict"
    """Block and disk have changed the same words."""
    DELETED = "deleted"
    """Nothing has its name any more."""
    REPLACED = "replaced"
    """Its name is that of something else than a text."""


class BlockText(NamedTuple):
    """The text of a block, and the version of the block that has it."""

    text: str
    version: int


class AnnouncedWrite(NamedTuple):
    """A change that an agent has shown, which it may write to disk by itself."""

    old: str
    """The text that it is a change of: the agent has read it, whatever was saved since."""
    new: str
    actor: Actor


class OpenFile:
    """A file of the project, as long as its context is open. Belongs to one event loop."""

    def __init__(
        self,
        context: Context,
        path: ProjectPath,
        row: FileRow,
        journal: Journal,
        disk: Actor,
        *,
        copies: Path,
        limit: int,
    ) -> None:
        """
        Args:
            disk: who makes the edits that come from disk.
            copies: a folder of the kernel, for writes that cannot be made by renaming.
            limit: bytes that a file may have.
        """
        self.context, self.path = context, path
        self.row = row
        """As it is stored, or is on its way to be."""
        self.disk_state = DiskState(DiskKind.MISSING)
        """The file as it was looked at last."""
        self.problem = ""
        """Why it is in its state, as a sentence; empty where the state says it."""
        self.announced: AnnouncedWrite | None = None
        """The write that is known to be coming."""
        self.written = Signal[()]()
        """The text has been written to disk."""
        (self.block,) = context.document.block_ids()
        self._journal = journal
        self.disk = disk
        self._copies, self._limit = copies, limit
        self._lock = asyncio.Lock()
        self._base: str | None = None
        self._seen: tuple[DiskState, Digest] | None = None
        """State and content of the file when it was read last."""

    @property
    def state(self) -> FileState:
        return FileState(self.row.state)

    @property
    def format(self) -> TextFormat:
        """The way in which the file holds its text."""
        return TextFormat(**json.loads(self.row.format))

    def now(self) -> BlockText:
        """Return the text as it is, with every streamed append in it."""
        self.context.appends.flush(self.block)
        text = self.context.document.text(self.block)
        return BlockText(text, self.context.blocks.version(self.block))

    async def base(self) -> str:
        """Return the text that block and disk last had in common."""
        if self._base is None:
            row, now = self.row, self.now()
            if not row.version:
                self._base = zlib.decompress(row.base).decode()
            elif row.version == now.version:
                self._base = now.text
            else:
                history = await self.context.history(self.block)
                self._base = history.text(None, row.version)
        return self._base

    async def disk_text(self) -> str:
        """Return the text on disk as it was looked at last; empty if there is none."""
        if self.state is FileState.CONFLICT:
            return self._theirs()
        return await self.base() if self.state is FileState.USUAL else ""

    async def is_dirty(self) -> bool:
        """Return whether the block has text that is not on disk."""
        return self.state is not FileState.USUAL or self.now().text != await self.base()

    # What other programs write

    async def look(self) -> None:
        """Bring what other programs have written into the block.

        Raises:
            AntiphonError: storage_failed, if the disk cannot be read.
        """
        async with self._lock:
            await run_uninterrupted(self._look())

    async def _look(self) -> None:
        self.disk_state = await asyncio.to_thread(look, self.path)
        if self.disk_state.kind is DiskKind.FILE and not self.disk_state.size and await self.base():
            # Whoever writes a file anew empties it first.
            await asyncio.sleep(_EMPTY_SECONDS)
            self.disk_state = await asyncio.to_thread(look, self.path)
        if self.disk_state.kind is not DiskKind.FILE:
            is_gone = self.disk_state.kind is DiskKind.MISSING
            await self._mark(FileState.DELETED if is_gone else FileState.REPLACED)
            return
        if self.state is FileState.USUAL and (self.disk_state, self.row.digest) == self._seen:
            return
        try:
            self.disk_state, data = await asyncio.to_thread(read, self.path, self._limit)
        except AntiphonError as error:
            if error.code is ErrorCode.TOO_LARGE:
                await self._mark(FileState.REPLACED, error.message)
            elif error.code is ErrorCode.INVALID_PARAMS and (
                await asyncio.to_thread(look, self.path) != self.disk_state
            ):
                await self._look()
            else:
                raise
            return
        self._seen = self.disk_state, digest_of(data)
        await self._take(data)

    async def _take(self, data: bytes) -> None:
        """Bring the bytes that are on disk into the block, if they are not those it knows."""
        digest, row = digest_of(data), self.row
        if digest == row.digest:
            await self._mark(FileState.USUAL)
            return
        if digest == row.next_digest:
            if self.state is not FileState.CONFLICT:
                await self._written(data)
            return
        decoded = await asyncio.to_thread(self._decode, data)
        if isinstance(decoded, Binary):
            await self._mark(FileState.REPLACED, decoded.reason)
            return
        await self._merge(digest, decoded)

    def _decode(self, data: bytes) -> Decoded | Binary:
        decoded = decode(data)
        return decode(data, self.format.encoding) if isinstance(decoded, Binary) else decoded

    async def _merge(self, digest: Digest, disk: Decoded) -> None:
        announced: AnnouncedWrite | None = None
        if self.announced is not None and self.announced.new == disk.text:
            announced, self.announced = self.announced, None
        for attempt in range(_TRIES):
            now, base = self.now(), announced.old if announced else await self.base()
            if now.text in (base, disk.text):
                merged = EditMerge(disk.text, ())
            elif attempt < _TRIES - 1:
                merged = await asyncio.to_thread(merge_texts, base, now.text, disk.text)
            else:
                merged = merge_texts(base, now.text, disk.text)
            if self.now() != now:
                continue
            if merged.conflicts and announced:
                announced = None
                continue
            if merged.conflicts:
                row = replace(self.row, state=FileState.CONFLICT, theirs=_compressed(disk.text))
                await self._store(replace(row, next_digest=digest, next_version=0))
            else:
                row = replace(_settled(self.row, digest), format=as_json(disk.format))
                by = (announced.actor, "edit") if announced else (self.disk, FROM_DISK)
                await self._apply(*by, now, merged.text, disk.text, row)
            return

    async def _apply(
        self, actor: Actor, operation: str, now: BlockText, text: str, base: str, row: FileRow
    ) -> None:
        """Give the block a text by small edits, and the file its new base, both or neither."""
        splices = plan_difference(now.text, text)
        if text == base:
            row = replace(row, version=now.version + bool(splices), base=b"")
        else:
            row = replace(row, version=0, base=_compressed(base))
        if not splices:
            await self._store(row, base)
            return
        context, block = self.context, self.block
        written = context.write(
            actor,
            operation,
            lambda: context.document.splice_all(block, splices),
            blocks=[block],
            file=row,
        )
        self.row, self._base = row, base
        await written.saved()

    async def _mark(self, state: FileState, problem: str = "") -> None:
        self.problem = problem
        if state is self.state:
            return
        row = replace(self.row, state=state, theirs=b"")
        if self.state is FileState.CONFLICT:
            row = replace(row, next_digest="", next_version=0)
        await self._store(row, self._base)

    async def _store(self, row: FileRow, base: str | None = None) -> None:
        await self.context.wait_persisted()  # the version of the block that it names
        await self._journal.write_file(row)
        self.row, self._base = row, base

    # What is written to disk

    async def save(self, *, anew: bool = False) -> bool:
        """Write the text to disk; return whether there was something to write.

        Args:
            anew: whether a file that is not there any more is made again.

        Raises:
            AntiphonError: invalid_params, if there is a conflict, the file is gone, or its encoding
                lacks a character; permission_denied, storage_failed.
        """
        async with self._lock:
            return await run_uninterrupted(self._save(anew))

    async def _save(self, anew: bool) -> bool:
        for _ in range(_TRIES):
            await self._look()
            is_new = self.state is FileState.DELETED and anew
            if self.state is not FileState.USUAL and not is_new:
                raise self._not_written()
            now, base = self.now(), await self.base()
            if now.text == base and not is_new:
                return False
            data = encode(now.text, self.format, base)
            if len(data) > self._limit:
                raise too_large(self.path.shown, len(data), self._limit, "file_bytes")
            written = replace(self.row, next_digest=digest_of(data), next_version=now.version)
            await self._store(written, base)
            if written.next_digest == written.digest and not is_new:
                await self._written(data, now.text)  # only the block has other line ends
                return False
            try:
                self.disk_state = await asyncio.to_thread(
                    write,
                    self.path,
                    data,
                    None if is_new else Digest(self.row.digest),
                    copies=self._copies,
                    limit=self._limit,
                )
            except ChangedOnDisk:
                continue
            await self._written(data, now.text)
            self.written.notify()
            return True
        raise storage_failed(
            f"The file {quote(self.path.shown)} was not written: another program changes it again"
            " and again. Save it once more when that is done.",
        )

    async def _written(self, data: bytes, text: str | None = None) -> None:
        """Take what was written here for the base; `text` is what it was made of, if known."""
        self.row, self._base = replace(self.row, version=self.row.next_version, base=b""), text
        digest, read_back = digest_of(data), decode(data, self.format.encoding)
        assert isinstance(read_back, Decoded), "what was encoded can be decoded"
        if read_back.text == await self.base():
            row = replace(_settled(self.row, digest), format=as_json(read_back.format))
            await self._store(row, read_back.text)
        else:  # it has other line ends, or a mark that was typed
            await self._merge(digest, read_back)

    def _not_written(self) -> AntiphonError:
        why, advice = {
            FileState.CONFLICT: (
                "it was changed here and on disk in the same place",
                "Look at both with file.diff, decide with file.resolve",
            ),
            FileState.DELETED: (
                "it was deleted on disk",
                "Save it with anew to bring it back",
            ),
        }.get(self.state, (self.problem or "something else has its name", "Look at what it is"))
        return invalid_params(
            f"The file {quote(self.path.shown)} is not written: {why}. {advice}.",
            found=self.path.shown,
            problem=self.state,
        )

    async def revert(self, actor: Actor) -> None:
        """Give the block the text that is on disk; an edit like any other, to be undone.

        Raises:
            AntiphonError: invalid_params if no text is on disk; permission_denied, storage_failed.
        """
        async with self._lock:
            await run_uninterrupted(self._revert(actor))

    async def _revert(self, actor: Actor) -> None:
        await self._look()
        if self.state in (FileState.DELETED, FileState.REPLACED):
            raise self._not_written()
        text = await self.disk_text()
        await self._apply(actor, "revert", self.now(), text, text, self._with_theirs())

    async def take_path(self, path: ProjectPath, by: Actor) -> None:
        """Take another path for the file's, after it has got this name on disk.

        Raises:
            AntiphonError: permission_denied, storage_failed.
        """
        async with self._lock:
            await run_uninterrupted(self._take_path(path, by))

    async def _take_path(self, path: ProjectPath, by: Actor) -> None:
        row = replace(self.row, path=path.shown)
        fields = {"path": path.shown, "language": language_of(path)}
        written = self.context.set_fields(by, RENAME, self.block, fields, row)
        self.path, self.row = path, row
        await written.saved()

    # Conflicts

    async def conflicts(self) -> EditMerge:
        """Return the merge with the disk as it stands; without conflicts if there are none."""
        if self.state is not FileState.CONFLICT:
            return EditMerge(self.now().text, ())
        return merge_texts(await self.base(), self.now().text, self._theirs())

    async def resolve(self, actor: Actor, choices: Mapping[int, Resolution | str]) -> int:
        """Decide about conflicts, by their index; return how many are left.

        A newline is added to a text that would run into the next line.

        Raises:
            AntiphonError: invalid_params if there is no such conflict; permission_denied.
        """
        async with self._lock:
            return await run_uninterrupted(self._resolve(actor, choices))

    async def _resolve(self, actor: Actor, choices: Mapping[int, Resolution | str]) -> int:
        found = await self.conflicts()
        splices = resolved(found, choices)
        if self.state is not FileState.CONFLICT:
            return 0
        left = [one for at, one in enumerate(found.conflicts) if at not in choices]
        kept = [TextSplice(one.theirs.start, len(one.theirs.text), one.base.text) for one in left]
        now, base = self.now(), apply_script(self._theirs(), kept)
        text = apply_script(now.text, splices)
        await self._apply(actor, "resolve", now, text, base, self._with_theirs())
        return len(left)

    def _theirs(self) -> str:
        return zlib.decompress(self.row.theirs).decode()

    def _with_theirs(self) -> FileRow:
        """The row for a base that is the text on disk; the next look finds its format."""
        if self.state is not FileState.CONFLICT:
            return self.row
        return replace(_settled(self.row, ""), format=as_json(replace(self.format, ends=None)))


def language_of(path: ProjectPath) -> str | None:
    """Return the ending of a file's name, by which its language is known."""
    return PurePosixPath(path.name).suffix[1:] or None


def _settled(row: FileRow, digest: str) -> FileRow:
    """Return a row for bytes that are on disk, and with which nothing is open."""
    return replace(row, digest=digest, next_digest="", next_version=0, state="", theirs=b"")


def as_json(format: TextFormat) -> str:
    """Return a format as it is stored."""
    return json.dumps(asdict(format))


def _compressed(text: str) -> bytes:
    return zlib.compress(text.encode(), 1)
