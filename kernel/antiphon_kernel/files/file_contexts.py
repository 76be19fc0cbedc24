"""The files of the project that are contexts: which there are, and those that are open."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import time
from collections.abc import Callable, Collection, Iterable, Set
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple
from weakref import WeakValueDictionary

from antiphon_kernel.contexts import Context
from antiphon_kernel.contexts.commit_types import Applied
from antiphon_kernel.contexts.lineage.forking import InitialChange, start_with
from antiphon_kernel.contexts.opening import ContextRegistry, InitialContent, OpenContexts
from antiphon_kernel.contexts.ordering import order_at_end
from antiphon_kernel.document.document import Document
from antiphon_kernel.files.checks import CHECKS, FileChecks
from antiphon_kernel.files.disk_file import (
    TEMPORARY,
    ChangedOnDisk,
    DiskKind,
    DiskState,
    delete_to,
    digest_of,
    is_temporary,
    look,
    read,
    rename,
    restore_interrupted,
    write,
)
from antiphon_kernel.files.findings import SourceActors, forget_findings
from antiphon_kernel.files.git import Git
from antiphon_kernel.files.language_servers import LanguageServers
from antiphon_kernel.files.open_file import (
    CHECKED,
    FROM_DISK,
    RENAME,
    FileState,
    OpenFile,
    as_json,
    language_of,
)
from antiphon_kernel.files.text_format import Binary, Decoded, decode
from antiphon_kernel.files.watching import FolderWatcher
from antiphon_kernel.limits import Limits
from antiphon_kernel.storage import ContextRow, FileRow, TakenError
from antiphon_kernel.tasks import BackgroundTasks
from antiphon_kernel.text.path_patterns import matches_path
from antiphon_kernel.types.clock import iso_time
from antiphon_kernel.types.constants import DATA_FOLDER
from antiphon_kernel.types.enums import ANSWERING_KINDS, BlockKind, ContextKind, Role, Status
from antiphon_kernel.types.errors import AntiphonError, invalid_params, permission_denied
from antiphon_kernel.types.ids import DISK_NAME, ContextId, as_name
from antiphon_kernel.types.project_paths import ProjectPath, find_path, is_printable, unusable
from antiphon_kernel.types.quoting import quote
from antiphon_kernel.types.records import Actor, BlockHeader, Principal

FILE_PREFIX: Final = "file:"
"""How a reference to the block of a file begins; its path follows, and perhaps lines of it."""

_LINES: Final = re.compile(r"#L([1-9]\d{0,8})(?:-L?([1-9]\d{0,8}))?$", re.ASCII)

_COPIES: Final = "copies"
"""Folder in the kernel's data folder with what is written in place just now."""

_BIN: Final = "deleted"
"""Folder beside it with the files that were deleted here."""

AUTOSAVE_SECONDS: Final = 1.0
"""How long nobody has written into a file when it is saved."""

_GONE_SECONDS: Final = 1.0
"""How long a file may be gone before it is looked for by another name."""

_WAIT_SECONDS: Final = 0.5
"""How often is looked whether git, or another program, has finished writing."""

_NOT_TYPED: Final = (FROM_DISK, RENAME, CHECKED)
"""Operations after which there is nothing to be saved."""

_log = logging.getLogger(__name__)


class FilePlace(NamedTuple):
    """A file, or some lines of it, as they are named."""

    path: str
    lines: range | None = None
    """Counted from 0."""

    @classmethod
    def parse(cls, text: str) -> FilePlace:
        """Return what `PATH`, `PATH#L10` or `PATH#L10-L20` names, after `file:` or not."""
        text = text.removeprefix(FILE_PREFIX)
        found = _LINES.search(text)
        if found is None:
            return cls(text)
        first, last = int(found[1]), int(found[2] or found[1])
        return cls(text[: found.start()], range(first - 1, last))


class FileContexts:
    """Every file of the project that is a context. Belongs to one event loop."""

    def __init__(
        self,
        contexts: ContextRegistry,
        open_contexts: OpenContexts,
        project: Path,
        data: Path,
        limits: Limits,
        sources: SourceActors,
    ) -> None:
        """
        Args:
            data: the kernel's own folder.
            sources: gives the disk, and those who find something in files.
        """
        self._contexts, self._open_contexts = contexts, open_contexts
        self._project, self._limits = project, limits
        self._source = sources
        self._copies = data.resolve() / _COPIES
        self._own = f"{os.path.relpath(self._copies.parent, os.path.realpath(project))}/"
        self._rows: dict[ContextId, FileRow] = {}
        self._open: dict[ContextId, OpenFile] = {}
        self._opening = WeakValueDictionary[str, asyncio.Lock]()
        """Held by those who open a file."""
        self._watcher = FolderWatcher(self._changed_on_disk)
        self._saves = WeakValueDictionary[ContextId, asyncio.Task[None]]()
        self._changed: dict[ContextId, set[str]] = {}
        """Paths that have changed since a file was looked at, of those that are being looked at."""
        self._tasks = BackgroundTasks(_log)
        self.git = Git(project)
        self.checks = FileChecks(project, sources)
        self.servers = LanguageServers(project, sources)
        self.saves_itself = True
        """Whether files are saved after a pause, and not only when somebody asks for it."""
        self.is_denied: Callable[[Principal, str], bool] = lambda principal, path: False
        """Whether a principal sees nothing of the file of a path, as the policy of models says."""
        open_contexts.opened.listen(self._context_opened)
        open_contexts.closed.listen(self._closed)

    async def load(self) -> None:
        """Read which files there are, and finish what a kill has interrupted."""
        await self.read_rows()
        if self._copies.is_dir():
            for path in await asyncio.to_thread(restore_interrupted, self._project, self._copies):
                _log.warning("a write of %s was interrupted and is undone", path.shown)

    async def read_rows(self) -> None:
        """Read which files there are; what is known of those that are open is newer."""
        for row in await self._contexts.journal.files():
            if self._contexts.has_number(row.context):
                context = self._contexts.of_number(row.context).id
                if context not in self._open:
                    self._rows[context] = row

    def _context_of(self, path: str) -> ContextId | None:
        return next((one for one, row in self._rows.items() if row.path == path), None)

    async def close(self) -> None:
        """Look at no file any more, and save none unasked; what is under way is finished."""
        await self._watcher.close()
        await self._tasks.close()  # what has begun to be written is finished
        await self.checks.close()
        await self.servers.close()

    def _context_opened(self, context: Context) -> None:
        """Follow the disk also for whoever has opened the context of a file by its id."""
        if context.id in self._rows:
            self._tasks.start(self.of_context(context), f"opening {self._rows[context.id].path}")

    def _closed(self, context: Context) -> None:
        file = self._open.pop(context.id, None)
        if file is not None:
            self._rows[context.id] = file.row
            self._watch()
            self.servers.closed(file)

    def _watch(self) -> None:
        folders = {one for file in self._open.values() for one in _places(file.path)[1:]}
        self._watcher.watch(folders)

    def _changed_on_disk(self, paths: Set[str]) -> None:
        for context, file in self._open.items():
            if not paths.isdisjoint(map(str, _places(file.path))):
                is_new = context not in self._changed
                self._changed.setdefault(context, set()).update(paths)
                if is_new:
                    self._tasks.start(self._follow(file), f"looking at {file.path.shown}")

    async def _follow(self, file: OpenFile) -> None:
        """Look at a file as often as it has changed meanwhile."""
        context = file.context.id
        try:
            while paths := self._changed[context]:
                self._changed[context] = set()
                before = file.disk_state
                self._save_later(file)  # what could not be saved as the disk was
                if await _is_gone(file) and before.kind is DiskKind.FILE:
                    work = self._find_renamed(file, before, paths)
                    self._tasks.start(work, f"looking for {file.path.shown}")
        finally:
            del self._changed[context]

    async def _find_renamed(self, file: OpenFile, before: DiskState, paths: Set[str]) -> None:
        """Look whether a file that is gone has one of these paths, or is beside."""
        # Programs that write a file anew move the old one away first.
        await asyncio.sleep(_GONE_SECONDS)
        if await _is_gone(file):
            path = await asyncio.to_thread(_renamed, file.path, before, paths)
            if path is not None and self._context_of(path.shown) is None:
                await self._moved(file, path, file.disk)

    async def _moved(self, file: OpenFile, path: ProjectPath, by: Actor) -> None:
        await file.take_path(path, by)
        self.servers.closed(file)
        self.servers.opened(file)
        self._rows[file.context.id] = file.row
        self._watch()
        self._save_later(file)
        await file.look()

    # Saving by itself

    def _applied(self, file: OpenFile, change: Applied) -> None:
        if change.operation not in _NOT_TYPED:
            self._save_later(file)

    def _save_later(self, file: OpenFile) -> None:
        context = file.context.id
        if (waiting := self._saves.get(context)) is not None:
            waiting.cancel()
        if self.saves_itself:
            self._saves[context] = self._tasks.start(self._save(file), f"saving {file.path.shown}")

    async def _save(self, file: OpenFile) -> None:
        """Save a file when it has been left alone, and nobody else may be writing it."""
        await asyncio.sleep(AUTOSAVE_SECONDS)
        if self._open.get(file.context.id) is not file or file.state is not FileState.USUAL:
            return
        stop = file.context.users.add()
        try:
            while await self._is_being_written(file):  # noqa: ASYNC110  another process
                await asyncio.sleep(_WAIT_SECONDS)
            if file.state is FileState.USUAL:
                await file.save()
        finally:
            stop()

    async def _is_being_written(self, file: OpenFile) -> bool:
        """Return whether git, or another program, may be half-way through writing a file."""
        if await self.git.operation() is not None:
            return True
        await file.look()
        return 0 <= time.time() - file.disk_state.mtime_ns / 1e9 < AUTOSAVE_SECONDS

    def is_known(self, path: str) -> bool:
        """Return whether a file of this path, as it is shown, has been opened once."""
        return self._context_of(path) is not None or ContextId(path) in self._rows

    async def find(self, path: str) -> ProjectPath:
        """Return the place of a file, without links.

        Args:
            path: the id of its context does, too: that stays when the file is renamed.

        Raises:
            AntiphonError: invalid_params, if it is none of the project, or one of the kernel's own.
        """
        named = self.path_of(ContextId(path)) or path
        found = await asyncio.to_thread(find_path, self._project, named)
        if self._copies.parent in _places(found):
            raise unusable(path, "it is one of the kernel's own files")
        return found

    def path_of(self, context: ContextId) -> str | None:
        """Return the path of the file that a context is; None if it is none."""
        row = self._rows.get(context)
        return row.path if row is not None else None

    def check_shown(self, principal: Principal, path: str | None) -> None:
        """Raises AntiphonError permission_denied if somebody sees nothing of a file."""
        if path is not None and self.is_denied(principal, path):
            raise permission_denied(
                f"The file {quote(path)} may hold secrets: the policy of this kernel denies it to"
                " models. Do without it, or ask a person for what you need."
            )

    async def find_shown(self, path: str, principal: Principal | None) -> ProjectPath:
        """Return the place of a file, without links, that a model or an agent names.

        Raises:
            AntiphonError: as `find` and `check_shown`; invalid_params for a hard link.
        """
        found = await self.find(path)
        if principal is not None:
            self.check_shown(principal, found.shown)
        if (await asyncio.to_thread(look, found)).links > 1:
            raise unusable(path, "it is also another file (a hard link)")
        return found

    async def listed(self, glob: str | None = None, by: Principal | None = None) -> list[str]:
        """Return the paths of the files that git does not ignore, sorted; all without git.

        What cannot be named, what is being written, and the kernel's own files are left out.

        Args:
            by: who is to see them; models see no links, which are other names of other files.
        """
        found = await self.git.listed()
        if found is None:
            found = await asyncio.to_thread(_every_file, self._project)
        if glob is not None:
            found = [one for one in found if matches_path(one, [glob])]
        if by is not None and by.kind in ANSWERING_KINDS:
            found = await asyncio.to_thread(self._shown_to, by, found)
        whole = "".join(found)
        if not whole.isprintable() or TEMPORARY in whole or self._own in whole:
            found = [
                one
                for one in found
                if is_printable(one) and not is_temporary(one) and not one.startswith(self._own)
            ]
        return sorted(found)

    def _shown_to(self, model: Principal, paths: Iterable[str]) -> list[str]:
        return [
            one
            for one in paths
            if not self.is_denied(model, one) and not (self._project / one).is_symlink()
        ]

    async def save_open(self, paths: Collection[str] | None = None) -> list[str]:
        """Save what is not on disk of these files, or of all that are open.

        Returns a sentence about each file that was not saved.
        """
        problems: list[str] = []
        if paths is None:
            paths = [one.path.shown for one in self.opened()]
        for path in paths:
            try:
                file = await self.open(path)
                if file.state in (FileState.USUAL, FileState.CONFLICT) and await file.is_dirty():
                    await file.save()
            except AntiphonError as error:
                problems.append(error.message)
        return problems

    async def look(self) -> None:
        """Bring what other programs have written into all files that are open."""
        for file in self.opened():
            try:
                await file.look()
            except AntiphonError as error:
                _log.warning("looking at %s failed: %s", file.path.shown, error)

    async def create(self, path: str) -> OpenFile:
        """Make an empty file, and open it.

        Raises:
            AntiphonError: invalid_params, if there is one; storage_failed.
        """
        found, limit = await self.find(path), self._limits.file_bytes
        try:
            await asyncio.to_thread(write, found, b"", None, copies=self._copies, limit=limit)
        except ChangedOnDisk as error:
            raise _taken(found) from error
        return await self.open(path)

    async def rename(self, path: str, to: str, by: Actor) -> OpenFile:
        """Give a file another name, in another folder too; its context goes with it.

        Raises:
            AntiphonError: invalid_params, if there is no such file, or one of the other name, on
                disk or as a context; permission_denied, storage_failed.
        """
        file = await self.open(path)
        target = await self.find(to)
        if self._context_of(target.shown) is not None:
            raise _taken(target)
        try:
            await asyncio.to_thread(rename, file.path, target)
        except ChangedOnDisk as error:
            raise _taken(target) from error
        await self._moved(file, target, by)
        return file

    async def delete(self, path: str) -> OpenFile:
        """Move a file from disk into the bin in the kernel's folder; its context stays."""
        file = await self.open(path)
        await asyncio.to_thread(delete_to, file.path, self._copies.with_name(_BIN))
        await file.look()
        return file

    async def check_free(self, path: str) -> None:
        """Raises AntiphonError invalid_params if there is a file of this path."""
        found = await self.find(path)
        if (await asyncio.to_thread(look, found)).kind is not DiskKind.MISSING:
            raise _taken(found)

    def opened(self) -> list[OpenFile]:
        """Return the files that are open."""
        return list(self._open.values())

    async def open(self, path: str) -> OpenFile:
        """Open a file by its path, as a new context if it has never been one.

        It stays open until the work that asks is over.

        Raises:
            AntiphonError: invalid_params, if there is no such file or it holds no text; too_large,
                storage_failed.
        """
        found = await self.find(path)
        async with self._opening.setdefault(found.shown, asyncio.Lock()):
            if self._context_of(found.shown) is None and self._contexts.is_shared:
                await self._contexts.load()
                await self.read_rows()
            context = self._context_of(found.shown)
            if context is None:
                try:
                    context = await self._create(found)
                except TakenError:
                    await self._contexts.load()
                    await self.read_rows()
                    context = self._context_of(found.shown)
                    if context is None:
                        raise
            return await self._opened(context, found)

    async def of_context(self, context: Context) -> OpenFile:
        """Return the file of an open context of this kind."""
        row = self._rows[context.id]
        path = await asyncio.to_thread(find_path, self._project, row.path)
        async with self._opening.setdefault(row.path, asyncio.Lock()):
            return await self._opened(context.id, path)

    async def _opened(self, context: ContextId, path: ProjectPath) -> OpenFile:
        found = self._open_contexts.get(context) or await self._open_contexts.open(context)
        file = self._open.get(context)
        if file is None or file.context is not found:
            if file is not None:  # its context has failed
                self._rows[context] = file.row
                self.servers.closed(file)
            file = self._open[context] = OpenFile(
                found,
                path,
                self._rows[context],
                self._contexts.journal,
                await self._source(DISK_NAME),
                copies=self._copies,
                limit=self._limits.file_bytes,
            )
            found.applied.listen(partial(self._applied, file))
            self._watch()
            kept = CHECKS if self.checks.of(file) else None
            await forget_findings(file, self._source, kept=kept)
            self.checks.opened(file)
            self.servers.opened(file)
        await file.look()
        return file

    async def read(self, path: ProjectPath) -> tuple[bytes, Decoded]:
        """Return the bytes and the text of a file on disk, without opening it.

        Raises:
            AntiphonError: as `open`.
        """
        _, data = await asyncio.to_thread(read, path, self._limits.file_bytes)
        decoded = await asyncio.to_thread(decode, data)
        if isinstance(decoded, Binary):
            raise invalid_params(
                f"The file {quote(path.shown)} is not opened: {decoded.reason}",
                field="path",
                found=path.shown,
            )
        return data, decoded

    async def _create(self, path: ProjectPath) -> ContextId:
        data, decoded = await self.read(path)
        disk, time = await self._source(DISK_NAME), self._contexts.clock.now_ms()
        made: list[FileRow] = []

        def add(document: Document, next_id: Callable[[], str]) -> None:
            header = BlockHeader(
                id=next_id(),
                kind=BlockKind.FILE,
                role=Role.SYSTEM,
                status=Status.DONE,
                order=order_at_end(document),
                created=iso_time(time),
                author=disk.principal.id,
                path=path.shown,
                language=language_of(path),
            )
            document.create_block(header, decoded.text)

        async def first(row: ContextRow) -> InitialContent:
            client, change = self._contexts.ids.client_id(), InitialChange(FROM_DISK, add)
            commits = (await start_with(row, [change], disk, time, client)).commits
            file = FileRow(row.number, path.shown, as_json(decoded.format), digest_of(data), 1)
            made.append(file)
            return InitialContent([*commits[:-1], commits[-1]._replace(file=file)])

        label = self._contexts.free_label(f"file-{as_name(path.name) or 'unnamed'}")
        row = await self._contexts.create(label, disk, first, asker=disk, kind=ContextKind.FILE)
        self._rows[row.id] = made[0]
        return row.id


async def _is_gone(file: OpenFile) -> bool:
    await file.look()
    return file.state is FileState.DELETED


def _renamed(path: ProjectPath, before: DiskState, paths: Iterable[str]) -> ProjectPath | None:
    """Return what a file is called now that was at a path; None if it is not found."""
    places = [Path(one) for one in paths]
    with suppress(OSError):
        places += _places(path)[1].iterdir()
    for place in places:
        with suppress(OSError, AntiphonError):  # gone, or no file of the project
            if place.lstat().st_ino == before.inode:
                found = find_path(Path(path.project), str(place))
                if look(found).same_file(before):
                    return found
    return None


def _taken(path: ProjectPath) -> AntiphonError:
    return invalid_params(
        f"There is a file {quote(path.shown)} already, or there was one whose text is kept: open"
        " it, or give another path.",
        field="path",
        found=path.shown,
    )


def _places(path: ProjectPath) -> list[Path]:
    """Return where a file is, and its folders up to the project's."""
    return [path.place, *path.place.parents[: len(path.names)]]


def _every_file(project: Path) -> list[str]:
    """Return the paths of all files of a project, but for those of the kernel and of git."""
    found: list[str] = []
    for folder, folders, names in os.walk(project):
        folders[:] = [one for one in folders if one not in (DATA_FOLDER, ".git")]
        above = Path(folder).relative_to(project)
        found += [(above / name).as_posix() for name in names]
    return found
