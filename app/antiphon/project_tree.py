"""The project as folders and files, of which only what is in open folders is looked at."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from time import monotonic
from typing import Final, NamedTuple

from antiphon.session import KernelCalls

ROOT: Final = "/"
"""Id of the project's own folder."""

_BEHIND: Final = "0"
"""The character that follows the slash."""

_CHANGED: Final = "•"
"""Mark of a folder with files that differ from the last commit."""

MARKED_SECONDS: Final = 5.0
"""How long the marks may show what is no longer so."""

_MOST: Final = 10_000
"""Changed files that are marked at most."""


class TreeRow(NamedTuple):
    """A folder or a file of the project."""

    id: str
    """Its path behind a slash; that of a folder ends with one."""
    depth: int
    mark: str
    """How it differs from the last commit."""
    is_open: bool = False

    @property
    def is_folder(self) -> bool:
        return self.id.endswith("/")

    @property
    def name(self) -> str:
        return self.id.rstrip("/").rpartition("/")[2]


PROJECT: Final = (TreeRow(ROOT, 0, ""),)
"""The rows of a tree that is closed."""


def folder_of(id: str) -> str:
    """Return the id of the folder that an entry is in; the project is in itself."""
    return id.rstrip("/").rpartition("/")[0] + "/"


class ProjectTree:
    """The entries of the project that are shown; its first is the project."""

    def __init__(self) -> None:
        self.paths: list[str] = []
        """All files, sorted."""
        self._open: set[str] = set()
        self._marks: Mapping[str, str] = {}
        self._marked_at: float | None = None

    @property
    def is_open(self) -> bool:
        return ROOT in self._open

    def fold(self, folder: str, *, opens: bool | None = None) -> None:
        """Open a folder, or close it; without `opens` it is changed."""
        if opens is None:
            opens = folder not in self._open
        (self._open.add if opens else self._open.discard)(folder)

    async def fetch_marks(self, kernel: KernelCalls) -> None:
        """Ask which files differ from the last commit, unless that was asked a moment ago."""
        is_known = self._marked_at is not None and monotonic() - self._marked_at < MARKED_SECONDS
        if is_known or not kernel.session.user.works_on_host:
            return
        params = {"changed": True, "limit": _MOST}
        told = await kernel.call("file.list", params, "The files cannot be listed")
        if told is None:
            return
        marks = {f"/{path}": mark.strip()[:1] for path, mark in told["marks"].items()}
        for path in told["paths"]:
            at = bisect_left(self.paths, path)
            if self.paths[at : at + 1] != [path]:
                self.paths.insert(at, path)  # it is new
            folders = accumulate(f"/{path}".split("/")[:-1], lambda a, b: f"{a}/{b}")
            marks |= {f"{one}/": _CHANGED for one in folders}
        self._marks, self._marked_at = marks, monotonic()

    def rows(self) -> Sequence[TreeRow]:
        return list(self._below(ROOT, 0))

    def _below(self, folder: str, depth: int) -> Iterator[TreeRow]:
        is_open = folder in self._open
        yield TreeRow(folder, depth, self._marks.get(folder, ""), is_open)
        if not is_open:
            return
        files, prefix = [], folder[1:]
        at = bisect_left(self.paths, prefix)
        while at < len(self.paths) and self.paths[at].startswith(prefix):
            name, slash, _ = self.paths[at][len(prefix) :].partition("/")
            if slash:
                yield from self._below(f"{folder}{name}/", depth + 1)
                at = bisect_left(self.paths, f"{prefix}{name}{_BEHIND}", at)
            else:
                files.append(f"{folder}{name}")
                at += 1
        yield from (TreeRow(one, depth + 1, self._marks.get(one, "")) for one in files)
