"""Git, run as a program: what it ignores, what it says of files, what HEAD holds.

Nothing here writes, and no hook, pager or prompt runs: the environment is fixed, and the index is
not even refreshed on disk.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from antiphon_kernel.types.project_paths import ProjectPath

_SECONDS: Final = 30.0
"""How long one call may take."""

_OPTIONS: Final = (
    *("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"),
    *("-c", "core.quotePath=false", "--no-pager", "--literal-pathspecs"),
)

_UNDER_WAY: Final = (
    *("index.lock", "MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "BISECT_LOG"),
    *("rebase-merge", "rebase-apply"),
)
"""Names in git's folder as long as an operation is under way."""


class Git:
    """Git's view of one project; where git, or a repository, is missing it knows nothing."""

    def __init__(self, project: Path) -> None:
        self._project = project
        self._folder: Path | None = None
        self._is_missing = False

    async def folder(self) -> Path | None:
        """Return git's own folder; None if the project is in no repository."""
        is_new = self._is_missing and (self._project / ".git").exists()
        if self._folder is None and (is_new or not self._is_missing):
            found = await self._run("rev-parse", "--absolute-git-dir")
            self._is_missing = found is None
            self._folder = Path(os.fsdecode(found[:-1])) if found else None
        return self._folder

    async def operation(self) -> str | None:
        """Return the file that says that an operation of git is under way; None if none is."""
        folder = await self.folder()
        if folder is None:
            return None
        return next((name for name in _UNDER_WAY if (folder / name).exists()), None)

    async def listed(self) -> list[str] | None:
        """Return the paths of all files that are not ignored; None without a repository."""
        found = await self._run("ls-files", "-z", "--cached", "--others", "--exclude-standard")
        return None if found is None else list(dict.fromkeys(_paths(found)))

    async def marks(self, paths: Sequence[str] = ()) -> Mapping[str, str]:
        """Return the two letters of `git status --short` for the files that have changed.

        Args:
            paths: those that are wanted; all if there are none.
        """
        above = await self._run("rev-parse", "--show-prefix")
        if above is None:
            return {}
        arguments = ("status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=all")
        found = await self._run(*arguments, "--", *(paths or (".",)))
        prefix = os.fsdecode(above[:-1])
        return {one[3:].removeprefix(prefix): one[:2] for one in _paths(found or b"")}

    async def head(self, path: ProjectPath) -> bytes | None:
        """Return the bytes of a file at HEAD; None if it is not there."""
        return await self._run("cat-file", "blob", f"HEAD:./{'/'.join(path.names)}")

    async def _run(self, *arguments: str) -> bytes | None:
        """Return the output of git; None if it fails, or is not here."""
        program = shutil.which("git")
        if program is None:
            return None
        kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        fixed = {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
        process = await asyncio.create_subprocess_exec(
            program,
            *_OPTIONS,
            *arguments,
            cwd=self._project,
            env=kept | fixed,
            stdin=DEVNULL,
            stdout=PIPE,
            stderr=DEVNULL,
        )
        try:
            async with asyncio.timeout(_SECONDS):
                output, _ = await process.communicate()
        except BaseException:
            process.kill()
            await process.wait()
            raise
        return output if process.returncode == 0 else None


def _paths(output: bytes) -> list[str]:
    """Return what stands between NULs; what is not UTF-8 as halves of surrogate pairs."""
    return [one for one in output.decode(errors="surrogateescape").split("\0") if one]
