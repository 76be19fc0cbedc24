"""Search in the files of a project: on disk, or in their blocks where they are open."""

from __future__ import annotations

import asyncio
import os
import shutil
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from antiphon_kernel.files.disk_file import read
from antiphon_kernel.files.text_format import Decoded, decode
from antiphon_kernel.text.search import Query, search_text
from antiphon_kernel.types.constants import DATA_FOLDER
from antiphon_kernel.types.errors import AntiphonError
from antiphon_kernel.types.project_paths import ProjectPath

_SECONDS: Final = 30.0
"""How long ripgrep may take."""

_SHOWN: Final = 300
"""Code points of a line that are given."""

_OPTIONS: Final = (
    *("--no-config", "--no-messages", "--no-ignore-dot", "--hidden", "--crlf"),
    *("--glob", f"!{DATA_FOLDER}", "--glob", "!.git", "--files-with-matches", "--null"),
)


@dataclass(frozen=True, slots=True)
class FileHit:
    """A line of a file that matches."""

    path: str
    """Relative to the root."""
    line: int
    """Its number, from 0."""
    text: str
    """The line, shortened."""


@dataclass(frozen=True, slots=True)
class FileSearch:
    """What is looked for in which files."""

    project: Path
    paths: Sequence[str]
    """Files, as they are listed."""
    query: Query
    limit: int
    """Lines that are given."""
    file_bytes: int
    """Files that have more are left out."""
    has_one_name: bool
    """Whether files with several hard links are left out, which may be others than they seem."""

    async def run(self, pattern: str, is_regex: bool, texts: Mapping[str, str]) -> list[FileHit]:
        """Return the first lines that match, by path, and one more if there are more.

        Args:
            pattern: as the query was made from.
            texts: what open files say, by path.
        """
        paths = self.paths
        likely = await _ripgrep(self.project, pattern, is_regex)
        if likely is not None:
            paths = [one for one in paths if one in likely or one in texts]
        return await asyncio.to_thread(self._search, paths, texts)

    def _search(self, paths: Iterable[str], texts: Mapping[str, str]) -> list[FileHit]:
        root, hits = os.path.realpath(self.project), list[FileHit]()
        for path in paths:
            text = texts[path] if path in texts else self._text(root, path)
            found = search_text(
                text,
                self.query,
                max_matches=self.limit + 1 - len(hits),
                context_lines=0,
                max_size=self.file_bytes,
            )
            lines = {one.line: one.content for one in found.matches}
            hits += [FileHit(path, line, text[:_SHOWN]) for line, text in lines.items()]
            if len(hits) > self.limit:
                break
        return hits

    def _text(self, root: str, path: str) -> str:
        """Return the text of a file on disk; empty if it has none, or is reached by a link."""
        try:
            state, data = read(
                ProjectPath(root, tuple(path.split("/")), path), self.file_bytes, "file_bytes"
            )
        except AntiphonError:
            return ""
        if self.has_one_name and state.links > 1:
            return ""
        decoded = decode(data)
        return decoded.text if isinstance(decoded, Decoded) else ""


async def _ripgrep(project: Path, pattern: str, is_regex: bool) -> frozenset[str] | None:
    """Return the files that ripgrep finds a pattern in; None if it is not here, or fails.

    A pattern that is not ASCII stands in files of other encodings as other bytes.
    """
    program = shutil.which("rg")
    if program is None or not pattern.isascii():
        return None
    how = () if is_regex else ("--fixed-strings",)
    process = await asyncio.create_subprocess_exec(
        *(program, *_OPTIONS, *how, "--regexp", pattern, "."),
        cwd=project,
        stdin=DEVNULL,
        stdout=PIPE,
        stderr=DEVNULL,
    )
    try:
        async with asyncio.timeout(_SECONDS):
            output, _ = await process.communicate()
    except TimeoutError:
        return None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode not in (0, 1):
        return None
    return frozenset(one.removeprefix("./") for one in os.fsdecode(output).split("\0"))
