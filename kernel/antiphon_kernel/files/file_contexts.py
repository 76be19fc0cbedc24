"""The files of the project that are contexts: which there are, and those that are open."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final
from weakref import WeakValueDictionary

from antiphon_kernel.contexts import Context
from antiphon_kernel.contexts.lineage import InitialChange, start_with
from antiphon_kernel.contexts.opening import ContextRegistry, InitialContent, OpenContexts
from antiphon_kernel.contexts.ordering import order_at_end
from antiphon_kernel.document.document import Document
from antiphon_kernel.files.disk_file import digest_of, read, restore_interrupted
from antiphon_kernel.files.open_file import FROM_DISK, OpenFile, as_json
from antiphon_kernel.files.text_format import Binary, decode
from antiphon_kernel.limits import Limits
from antiphon_kernel.storage import ContextRow, FileRow
from antiphon_kernel.types.clock import iso_time
from antiphon_kernel.types.enums import BlockKind, ContextKind, Role, Status
from antiphon_kernel.types.errors import AntiphonError, invalid_params
from antiphon_kernel.types.ids import ContextId, as_name
from antiphon_kernel.types.project_paths import ProjectPath, find_path
from antiphon_kernel.types.quoting import quote
from antiphon_kernel.types.records import Actor, BlockHeader

_COPIES: Final = "copies"
"""Folder in the kernel's data folder with what is written in place just now."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class FileSettings:
    """Where the files of a kernel are."""

    project: Path
    data: Path
    """The kernel's own folder."""


class FileContexts:
    """Every file of the project that is a context. Belongs to one event loop."""

    def __init__(
        self,
        contexts: ContextRegistry,
        open_contexts: OpenContexts,
        settings: FileSettings,
        limits: Limits,
        disk: Callable[[], Awaitable[Actor]],
    ) -> None:
        """`disk` gives the actor who makes the edits that come from disk."""
        self._contexts, self._open_contexts = contexts, open_contexts
        self._settings, self._limits = settings, limits
        self._disk_actor = disk
        self._copies = settings.data / _COPIES
        self._rows: dict[ContextId, FileRow] = {}
        self._paths: dict[str, ContextId] = {}
        self._open: dict[ContextId, OpenFile] = {}
        self._opening = WeakValueDictionary[str, asyncio.Lock]()
        """Held by those who open a file."""
        open_contexts.closed.listen(self._closed)

    async def load(self) -> None:
        """Read which files there are, and finish what a kill has interrupted."""
        numbers = {row.number: row.id for row in self._contexts.rows()}
        for row in await self._contexts.journal.files():
            self._store(numbers[row.context], row)
        if self._copies.is_dir():
            project = self._settings.project
            for path in await asyncio.to_thread(restore_interrupted, project, self._copies):
                _log.warning("a write of %s was interrupted and is undone", path.shown)

    def _store(self, context: ContextId, row: FileRow) -> None:
        self._rows[context] = row
        self._paths[row.path] = context

    def _closed(self, context: Context) -> None:
        file = self._open.pop(context.id, None)
        if file is not None:
            self._store(context.id, file.row)

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
        found = await asyncio.to_thread(find_path, self._settings.project, path)
        async with self._opening.setdefault(found.shown, asyncio.Lock()):
            context = self._paths.get(found.shown)
            if context is None:
                context = await self._create(found)
            return await self._opened(context, found)

    async def of_context(self, context: Context) -> OpenFile:
        """Return the file of an open context of this kind."""
        row = self._rows[context.id]
        path = await asyncio.to_thread(find_path, self._settings.project, row.path)
        async with self._opening.setdefault(row.path, asyncio.Lock()):
            return await self._opened(context.id, path)

    async def _opened(self, context: ContextId, path: ProjectPath) -> OpenFile:
        found = self._open_contexts.get(context) or await self._open_contexts.open(context)
        file = self._open.get(context)
        if file is None or file.context is not found:
            if file is not None:  # its context has failed
                self._store(context, file.row)
            file = self._open[context] = OpenFile(
                found,
                path,
                self._rows[context],
                self._contexts.journal,
                await self._disk_actor(),
                copies=self._copies,
                limit=self._limits.file_bytes,
            )
        await file.look()
        return file

    async def _create(self, path: ProjectPath) -> ContextId:
        limit = self._limits.file_bytes
        _, data = await asyncio.to_thread(read, path, limit, "file_bytes")
        decoded = await asyncio.to_thread(decode, data)
        if isinstance(decoded, Binary):
            raise invalid_params(
                f"The file {quote(path.shown)} is not opened: {decoded.reason}",
                field="path",
                found=path.shown,
            )
        disk, time = await self._disk_actor(), self._contexts.clock.now_ms()
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
                language=PurePosixPath(path.name).suffix[1:] or None,
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
        self._store(row.id, made[0])
        return row.id
