"""Search in the files of a project: on disk, or in their blocks where they are open."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final

from antiphon_kernel.files.disk_file import read
from antiphon_kernel.files.text_format import Decoded, decode
from antiphon_kernel.shell import run_program
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


def search_files(
    paths: Iterable[str], text_of: Callable[[str], str], query: Query, limit: int, max_size: int
) -> list[FileHit]:
    """Return the first lines of files that match.

    Args:
        limit: how many lines are given at most.
        max_size: code points of lines that are looked at in one file.
    """

    def hits() -> Iterator[FileHit]:
        for path in paths:
            found = search_text(
                text_of(path), query, max_matches=limit, context_lines=0, max_size=max_size
            )
            lines = {one.line: one.content for one in found.matches}
            yield from (FileHit(path, line, text[:_SHOWN]) for line, text in lines.items())

    return list(islice(hits(), limit))


def disk_text(
    root: str, path: str, limit: int, literals: Sequence[str], *, has_one_name: bool
) -> str:
    """Return the text of a file on disk; empty if it has none, too much, or is behind a link.

    Args:
        root: the project, without links.
        literals: strings without all of which it need not be read as text.
        has_one_name: leave it out if it has several hard links, and may be another than it seems.
    """
    place = ProjectPath(root, tuple(path.split("/")), path)
    try:
        state, data = read(place, limit)
    except AntiphonError:
        return ""
    if has_one_name and state.links > 1:
        return ""
    if b"\0" not in data and not all(one.encode() in data for one in literals if one.isascii()):
        return ""
    decoded = decode(data)
    return decoded.text if isinstance(decoded, Decoded) else ""


async def ripgrep(project: Path, pattern: str, *, is_regex: bool) -> frozenset[str] | None:
    """Return the files that ripgrep finds a pattern in; None if it is not here, or fails.

    A pattern that is not ASCII stands in files of other encodings as other bytes.
    """
    program = shutil.which("rg")
    if program is None or not pattern.isascii():
        return None
    how = () if is_regex else ("--fixed-strings",)
    command = program, *_OPTIONS, *how, "--regexp", pattern, "."
    try:
        code, output = await run_program(command, project, _SECONDS)
    except TimeoutError:
        return None
    if code not in (0, 1):
        return None
    return frozenset(one.removeprefix("./") for one in os.fsdecode(output).split("\0"))
