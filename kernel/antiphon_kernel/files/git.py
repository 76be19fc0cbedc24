"""Git, run as a program: what it ignores, what it says of files, what HEAD holds; commits.

Only a commit writes, and is made as the user of this machine makes one, with hooks. For everything
else no hook, pager or prompt runs: the environment is fixed, and the index is not even refreshed on
disk.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from antiphon_kernel.shell import run_program, run_shell
from antiphon_kernel.types.errors import invalid_params
from antiphon_kernel.types.project_paths import ProjectPath

_SECONDS: Final = 30.0
"""How long one call may take."""

_COMMIT_SECONDS: Final = 600.0
"""How long a commit may take, with its hooks."""

_SAID: Final = 2_000
"""Code points at the end of what a failed commit has printed that are told."""

_EXACTLY: Final = ("--no-pager", "--literal-pathspecs")

_OPTIONS: Final = (
    *("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"),
    *("-c", "core.quotePath=false", *_EXACTLY),
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

    async def folder(self) -> Path | None:
        """Return git's own folder; None if the project is in no repository."""
        if self._folder is None:
            found = await self._run("rev-parse", "--absolute-git-dir")
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
        asked = ("ls-files", "-z", "--cached", "--others", "--exclude-standard")
        found = None if await self._above() is None else await self._run(*asked)
        return None if found is None else list(dict.fromkeys(_paths(found)))

    async def _above(self) -> bytes | None:
        """Return git's name of the project; None if the work tree, which may be any, lacks it."""
        found = await self._run("rev-parse", "--is-inside-work-tree", "--show-prefix")
        return found[5:] if found and found.startswith(b"true\n") else None

    async def marks(self, paths: Sequence[str] = ()) -> Mapping[str, str]:
        """Return the two letters of `git status --short` for the files that have changed.

        Args:
            paths: those that are wanted; all if there are none.
        """
        if (above := await self._above()) is None:
            return {}
        arguments = ["status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=all"]
        arguments += ["--ignore-submodules=dirty", "--", *(paths or (".",))]
        found = await self._run(*arguments, **await self._without_filters())
        prefix = os.fsdecode(above[:-1])
        return {one[3:].removeprefix(prefix): one[:2] for one in _paths(found or b"")}

    async def _without_filters(self) -> dict[str, str]:
        """Return variables that leave out the filters that the repository itself configures.

        It may have come from somebody else, in an archive. The user's own filters stay.
        """
        asked = ("config", "-z", "--show-scope", "--name-only", "--get-regexp", r"^filter\.")
        found = _paths(await self._run(*asked) or b"")
        scoped = zip(found[::2], found[1::2], strict=False)
        own = {name.rpartition(".")[0] for scope, name in scoped if scope in ("local", "worktree")}
        keys = [f"{one}.{end}" for one in own for end in ("process", "required")]
        variables = {f"GIT_CONFIG_KEY_{number}": key for number, key in enumerate(keys)}
        variables |= {f"GIT_CONFIG_VALUE_{number}": "" for number in range(len(keys))}
        return {**variables, "GIT_CONFIG_COUNT": str(len(keys))}

    async def head(self, path: ProjectPath) -> bytes | None:
        """Return the bytes of a file at HEAD; None if it is not there."""
        return await self._run("cat-file", "blob", f"HEAD:./{'/'.join(path.names)}")

    async def commit(self, paths: Sequence[ProjectPath], message: str) -> str:
        """Commit these files as they are on disk, and nothing else that is staged; hooks run.

        Returns the id of the commit.

        Raises:
            AntiphonError: invalid_params, saying why there is none; the index is as it was then.
        """
        if await self.folder() is None:
            raise invalid_params("the project is in no repository of git, or there is no git.")
        if (name := await self.operation()) is not None:
            raise invalid_params(f"git has not finished what it is doing ({name}).")
        names = ["/".join(one.names) for one in paths]
        known = _paths(await self._run("ls-files", "-z", "--cached", "--", *names) or b"")
        git = f"git {shlex.join(_EXACTLY)}"
        commit = f"{git} commit -q -m {shlex.quote(message)} --only -- {shlex.join(names)}"
        if new := [one for one in names if one not in known]:
            commit = f"{git} add -N -- {shlex.join(new)} && {commit}"
        said, code = list[str](), 1

        async def hear(output: str) -> None:
            said.append(output)

        try:
            async with asyncio.timeout(_COMMIT_SECONDS):
                command = f"unset $(git rev-parse --local-env-vars); {commit}"
                code = await run_shell(command, self._project, hear)
        except OSError as error:  # so many files that no command line holds them; a hook that waits
            said.append(str(error) or f"nothing for {_COMMIT_SECONDS:.0f} seconds, and was ended.")
        if code:
            if new:
                await self._run("rm", "-q", "--cached", "--ignore-unmatch", "--", *new)
            raise invalid_params(f"git says: {''.join(said).strip()[-_SAID:]}")
        return os.fsdecode(await self._run("rev-parse", "HEAD") or b"").strip()

    async def _run(self, *arguments: str, **variables: str) -> bytes | None:
        """Return the output of git; None if it fails, or is not here."""
        program = shutil.which("git")
        if program is None:
            return None
        kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        fixed = {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
        fixed["GIT_ALLOW_PROTOCOL"] = "none"  # of a partial clone nothing more is fetched
        command, variables = (program, *_OPTIONS, *arguments), kept | fixed | variables
        code, output = await run_program(command, self._project, _SECONDS, variables)
        return output if code == 0 else None


def _paths(output: bytes) -> list[str]:
    """Return what stands between NULs; what is not UTF-8 as halves of surrogate pairs."""
    return [one for one in output.decode(errors="surrogateescape").split("\0") if one]
