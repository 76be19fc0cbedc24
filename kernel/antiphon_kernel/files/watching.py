"""Watching the folders of open files for what other programs write."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Set
from contextlib import aclosing
from pathlib import Path
from typing import Final

from antiphon_kernel.tasks import BackgroundTasks

_STEP_MS: Final = 20
"""Changes that come within this time are told together."""

_LONGEST_MS: Final = 200
"""The same where they do not end."""

_POLL_MS: Final = 500
"""How often is looked where the system does not tell of changes."""

_log = logging.getLogger(__name__)


class FolderWatcher:
    """Tells of changed files in a set of folders, also of such as are made and deleted."""

    def __init__(self, changed: Callable[[Set[str]], None]) -> None:
        """`changed` gets the paths of files that may have changed, and of folders: all in them."""
        self._changed = changed
        self._folders: frozenset[Path] = frozenset()
        self._watching: asyncio.Task[None] | None = None
        self._tasks = BackgroundTasks(_log)
        self.close = self._tasks.close

    def watch(self, folders: Collection[Path]) -> None:
        """Watch these folders from now on, and no others."""
        is_watching = self._watching is not None and not self._watching.done()
        if is_watching and self._folders == frozenset(folders):
            return
        self._folders = frozenset(folders)
        if self._watching is not None:
            self._watching.cancel()
        self._watching = None
        if folders:
            self._watching = self._tasks.start(self._watch(sorted(folders)), "watching folders")

    async def _watch(self, folders: list[Path]) -> None:
        from watchfiles import awatch

        await asyncio.sleep(_STEP_MS / 1_000)  # several files are opened at a time
        is_polling, names = False, {str(one) for one in folders}
        while True:
            changes = awatch(
                *(one for one in folders if one.is_dir()),
                watch_filter=None,
                step=_STEP_MS,
                debounce=_LONGEST_MS,
                recursive=False,
                force_polling=is_polling,
                poll_delay_ms=_POLL_MS,
                ignore_permission_denied=True,
            )
            # What has happened before it watches is told by nobody.
            asyncio.get_running_loop().call_soon(self._changed, names)
            try:
                async with aclosing(changes):
                    async for found in changes:
                        paths = {path for _, path in found}
                        self._changed(paths)
                        if not paths.isdisjoint(names):
                            break  # a folder is gone, or there again
            except OSError as error:  # too many watches, or a disk that has none
                if is_polling:
                    raise
                is_polling = True
                _log.warning("files are looked at every %d ms: %s", _POLL_MS, error)
            except ExceptionGroup as error:  # of the library: a name that is no UTF-8
                _log.warning("watching files begins again: %s", error.exceptions[0])
                await asyncio.sleep(_POLL_MS / 1_000)
