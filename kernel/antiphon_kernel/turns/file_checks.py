"""Checks of files: commands that run when a file has been saved, and what they find in it."""

from __future__ import annotations

import asyncio
import logging
import shlex
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from antiphon_kernel.files.open_file import CHECKED, OpenFile
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.text.findings import CheckFinding, parse_findings
from antiphon_kernel.turns.shell import run_shell
from antiphon_kernel.types.block_metadata import FINDINGS
from antiphon_kernel.types.ids import ContextId

_SECONDS: Final = 60.0
"""How long one command may take."""
_MOST: Final = 2_000_000
"""Code points of an output that are read."""

_log = logging.getLogger(__name__)


class FileChecks:
    """Runs the configured commands on each file that is saved, the last save of each counts."""

    def __init__(self, kernel: Kernel, commands: Mapping[str, Sequence[str]]) -> None:
        """`commands` are by the ending of the names of files, without the dot."""
        self._kernel = kernel
        self._commands = commands
        self._running: dict[ContextId, asyncio.Task[None]] = {}
        kernel.files.saved.listen(self._saved)

    async def close(self) -> None:
        """End the commands that run."""
        running = list(self._running.values())
        for task in running:
            task.cancel()
        if running:
            await asyncio.wait(running)

    def _saved(self, file: OpenFile) -> None:
        commands = self._commands.get(Path(file.path.name).suffix[1:], ())
        if not commands:
            return
        context = file.context.id
        if (before := self._running.pop(context, None)) is not None:
            before.cancel()
        task = asyncio.create_task(self._check(file, commands), name=f"checks of {file.path.shown}")
        self._running[context] = task
        task.add_done_callback(partial(self._done, context))

    def _done(self, context: ContextId, task: asyncio.Task[None]) -> None:
        if self._running.get(context) is task:
            del self._running[context]
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("%s have failed", task.get_name(), exc_info=error)

    async def _check(self, file: OpenFile, commands: Sequence[str]) -> None:
        version, project = file.now().version, self._kernel.project
        place = Path(file.path.project, *file.path.names)
        found: list[CheckFinding] = []
        for command in commands:
            output = await self._output(f"{command} {shlex.quote(file.path.shown)}")
            found += [one for one in parse_findings(output) if (project / one.path) == place]
        context, block = file.context, file.block
        metadata = dict(context.document.header(block).metadata)
        before = metadata.pop(FINDINGS, {"rows": []})
        rows = [_row(one) for one in found]
        if rows == [dict(one) for one in before["rows"]]:
            return
        if rows:
            metadata[FINDINGS] = {"version": version, "rows": rows}
        actor = await self._kernel.source_actor("checks")
        written = context.write(
            actor,
            CHECKED,
            lambda: context.document.set_fields(block, metadata=metadata),
            blocks=[block],
            undo=None,
        )
        await written.saved()

    async def _output(self, command: str) -> str:
        parts: list[str] = []

        async def take(part: str) -> None:
            if sum(map(len, parts)) < _MOST:
                parts.append(part)

        try:
            async with asyncio.timeout(_SECONDS):
                await run_shell(command, self._kernel.project, take)
        except TimeoutError:
            _log.warning("%s took more than %d s and was ended", command, _SECONDS)
        return "".join(parts)


def _row(finding: CheckFinding) -> dict[str, Any]:
    fields = finding._asdict() | {"severity": str(finding.severity)}
    return {name: one for name, one in fields.items() if one is not None and name != "path"}
