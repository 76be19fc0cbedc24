"""Files of the project: the one that is shown, the paths of all, and those that a text names."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import nsmallest
from pathlib import Path
from time import monotonic
from typing import Any, Final, NamedTuple, Protocol

from antiphon.project_tree import ProjectTree
from antiphon.render.display import displayable_in_a_row
from antiphon.session import KernelCalls

UTF_8: Final = "utf-8"

CONFLICT: Final = "conflict"
"""State of a file that was changed here and on disk in the same place."""

DELETED: Final = "deleted"
"""State of a file that is not on disk any more."""

ONLY_OPEN: Final = "only the owner of the kernel opens others."

LISTED_SECONDS: Final = 10.0
"""How long the list of paths may show what is no longer so."""

_PAGE: Final = 10_000
"""Paths that the kernel names in one answer."""

_SLICE: Final = 4_000
"""Paths that are looked through before a key may be handled."""

_MOST: Final = 100
"""Paths that are offered at once."""

_MENTION: Final = re.compile(
    r'"(?P<quoted>[^"\n]{1,400})", line (?P<row>\d+)'
    r"|(?<![\w/.:@])(?P<path>[\w.+@~/-]{1,400})(?::(?P<line>\d+))?"
)
_NOT_LAST: Final = "./-+@~"


@dataclass(frozen=True, slots=True)
class KernelFile:
    """A file that is open, as the kernel told of it last."""

    path: str
    context: str
    block: str
    encoding: str
    is_dirty: bool
    state: str
    git: str = ""
    """The letters of `git status --short`; only `file.status` tells them."""

    @classmethod
    def of(cls, told: Mapping[str, Any]) -> KernelFile:
        """Return the file that the result of a tool is about."""
        path, context, block = told["path"], told["context_id"], told["block_id"]
        encoding, is_dirty, state = told["encoding"], told["dirty"], told["state"]
        return cls(path, context, block, encoding, is_dirty, state, told.get("mark", ""))

    @property
    def mark(self) -> str:
        """How it differs from the disk, `!` for a conflict, and from the last commit."""
        return ("!" if self.state else "●" if self.is_dirty else "") + self.git.strip()[:1]

    @property
    def notes(self) -> Sequence[str]:
        """Words beside its path for people."""
        words = {CONFLICT: "conflict", DELETED: "deleted on disk", "": ""}
        state = words.get(self.state, f"{self.state} on disk")
        notes = [state or ("● unsaved" if self.is_dirty else "")]
        if self.encoding.lower().replace("_", "-") != UTF_8:
            notes.append(self.encoding)
        return [displayable_in_a_row(one) for one in notes if one]


class FileMention(NamedTuple):
    """A place in a text that may name a file, and a line of it."""

    start: int
    end: int
    path: str
    line: int | None
    """Counted from 0."""


def mentions(text: str) -> Iterator[FileMention]:
    """Yield what may be paths: `a/b.py`, `b.py:12`, `b.py:12:3`, `"a/b.py", line 12`."""
    for found in _MENTION.finditer(text):
        path = found["quoted"] or found["path"].rstrip(_NOT_LAST)
        number = found["row"] or found["line"]
        line = max(int(number) - 1, 0) if number else None
        if "/" in path or "." in path or line is not None:
            yield FileMention(found.start(), found.end(), path, line)


class ContextPages(Protocol):
    """The conversation and the file that are shown."""

    @property
    def file_page(self) -> object | None:
        """The page of a file; None if none is open."""

    def open(
        self, context: str, block: str | None = None, query: str = "", version: int | None = None
    ) -> None:
        """Show a context, and there a cell, a text in it, or a version of it."""

    def open_file(self, path: str, line: int | None = None) -> None:
        """Show a file, and there a line, counted from 0."""

    def go_back(self) -> None: ...

    def come(self, page: None = None, action: str = "") -> None:
        """Bring the page that is not in front there, and do an action."""


class ProjectFiles:
    """The files of the kernel's project, and the way to one and back."""

    def __init__(self, pages: ContextPages, project: Path) -> None:
        self.open = pages.open_file
        self.pages = pages
        self._project = project.as_posix()
        self.tree = ProjectTree()
        self.recent: list[str] = []
        """Paths that were opened here, the latest first."""
        self._paths: dict[str, tuple[str, str]] = {}
        """Each path, and the name that it ends with, in lower case, by the path."""
        self._named: dict[str, list[str]] = {}
        """The paths by the names that they end with."""
        self._listed_at: float | None = None
        self._listing = asyncio.Lock()
        self.has_paths = asyncio.Event()
        """The kernel has named some paths, or none."""

    def opened(self, path: str) -> None:
        """Remember that a file was opened."""
        self.recent = [path, *(one for one in self.recent if one != path)][:_MOST]

    async def fetch(self, kernel: KernelCalls) -> None:
        """Ask the kernel for the paths, unless it has named them a moment ago.

        Who does not work on its host learns which files are open.
        """
        async with self._listing:
            if self._listed_at is None or monotonic() - self._listed_at >= LISTED_SECONDS:
                await self._fetch(kernel)
        self.has_paths.set()

    async def _fetch(self, kernel: KernelCalls) -> None:
        paths: dict[str, tuple[str, str]] = {}
        after: str | None = None
        while True:
            params = {"limit": _PAGE} | ({} if after is None else {"after": after})
            is_host = kernel.session.user.works_on_host
            asked = ("file.list", params) if is_host else ("file.status", {})
            told = await kernel.call(*asked, "The files cannot be listed")
            if told is None:
                return
            for path in told["paths"] if is_host else [one["path"] for one in told["files"]]:
                lower = path.lower()
                paths[path] = lower, lower.rpartition("/")[2]
            if len(paths) > len(self._paths):
                self._paths = dict(paths)
                self.has_paths.set()
            after = told.get("next_path")
            if after is None:
                break
        self._paths, self._listed_at = paths, monotonic() if is_host else None
        self.tree.paths = list(paths)
        self._named = {}
        for path in paths:
            self._named.setdefault(path.rpartition("/")[2], []).append(path)

    def find(self, said: str) -> str | None:
        """Return the one file that a text means by a path; None if there is none, or several.

        A path may be absolute, begin as in a difference of git, or lack its first folders.
        """
        tried = said.removeprefix(f"{self._project}/").removeprefix("./")
        for path in (tried, tried[2:] if tried[:2] in ("a/", "b/") else tried):
            if path in self._paths:
                return path
        named = self._named.get(tried.rpartition("/")[2], ())
        if tried.startswith("/"):
            found = [path for path in named if "/" in path and tried.endswith(f"/{path}")]
        else:
            found = [path for path in named if path.endswith(f"/{tried}")]
        return found[0] if len(found) == 1 else None

    def named_in(self, text: str) -> Mapping[tuple[str, int | None], None]:
        """Return the files that a text names, each with its line, in order."""
        found: dict[tuple[str, int | None], None] = {}
        tried: dict[str, str | None] = {}
        for one in mentions(text):
            if one.path not in tried:
                tried[one.path] = self.find(one.path)
            path = tried[one.path]
            if path is not None:
                found[path, one.line] = None
        return found

    async def matching(self, typed: str) -> list[str]:
        """Return the paths that have these letters in this order, the likeliest first."""
        letters = "".join(typed.lower().split())
        recent = {path: at for at, path in enumerate(self.recent)}
        if not letters:
            others = (path for path in self._paths if path not in recent)
            return [*self.recent, *others][:_MOST]

        def rank(path: str) -> tuple[int, int]:
            return recent.get(path, _MOST), len(path)

        # No letter can be matched in two ways: time grows with the length of a path only.
        scattered = re.compile("".join(f"[^{one}]*+{one}" for one in map(re.escape, letters)))
        kinds: Sequence[Callable[[str, str], object]] = (
            lambda _, name: name.startswith(letters),
            lambda _, name: letters in name,
            lambda path, _: letters in path,
            lambda path, _: scattered.match(path),
        )
        likely: dict[str, None] = {}
        paths = list(self._paths.items())
        for is_match in kinds:
            found: list[str] = []
            for start in range(0, len(paths), _SLICE):
                some = paths[start : start + _SLICE]
                found += [path for path, lower in some if is_match(*lower)]
                await asyncio.sleep(0)
            likely |= dict.fromkeys(nsmallest(_MOST, found, key=rank))
            if len(likely) >= _MOST:
                break
        return list(likely)[:_MOST]
