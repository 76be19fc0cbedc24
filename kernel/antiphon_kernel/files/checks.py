"""Checks of files: commands that run when a file has been saved, and what they find in it."""

from __future__ import annotations

import asyncio
import logging
import shlex
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final
from weakref import WeakValueDictionary

from antiphon_kernel.files.findings import SourceActors, store_findings
from antiphon_kernel.files.open_file import OpenFile, language_of
from antiphon_kernel.shell import run_shell
from antiphon_kernel.tasks import BackgroundTasks
from antiphon_kernel.text.findings import CheckFinding, parse_findings
from antiphon_kernel.types.ids import ContextId

CHECKS: Final = "checks"
"""Name of the source that they are."""

_SECONDS: Final = 60.0
"""How long one command may take."""
_MOST: Final = 2_000_000
"""Code points of an output that are read."""

_log = logging.getLogger(__name__)


class FileChecks:
    """Runs the configured commands on each file that is saved, the last save of each counts."""

    def __init__(self, project: Path, sources: SourceActors) -> None:
        self.commands: Mapping[str, Sequence[str]] = {}
        """By the ending of the names of files, without the dot."""
        self._project, self._sources = project, sources
        self._checks = WeakValueDictionary[ContextId, asyncio.Task[None]]()
        self._tasks = BackgroundTasks(_log)
        self.close = self._tasks.close

    def of(self, file: OpenFile) -> Sequence[str]:
        """Return the commands for a file."""
        return self.commands.get(language_of(file.path) or "", ())

    def opened(self, file: OpenFile) -> None:
        """Check a file whenever it has been saved."""
        file.written.listen(partial(self._saved, file))

    def _saved(self, file: OpenFile) -> None:
        commands = self.of(file)
        if not commands:
            return
        if (before := self._checks.get(file.context.id)) is not None:
            before.cancel()
        work = self._tasks.start(self._check(file, commands), f"checks of {file.path.shown}")
        self._checks[file.context.id] = work

    async def _check(self, file: OpenFile, commands: Sequence[str]) -> None:
        place = file.path.place
        found: list[CheckFinding] = []
        for command in commands:
            output = await self._output(f"{command} {shlex.quote(file.path.shown)}")
            found += [one for one in parse_findings(output) if (self._project / one.path) == place]
        store_findings(file, await self._sources(CHECKS), found)

    async def _output(self, command: str) -> str:
        parts: list[str] = []

        async def take(part: str) -> None:
            if sum(map(len, parts)) < _MOST:
                parts.append(part)

        try:
            async with asyncio.timeout(_SECONDS):
                await run_shell(command, self._project, take)
        except TimeoutError:
            _log.warning("%s took more than %d s and was ended", command, _SECONDS)
        return "".join(parts)
