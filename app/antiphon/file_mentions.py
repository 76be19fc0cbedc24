"""Files and names behind an `@` in a message: finding and reading files, completing both."""

from __future__ import annotations

import os
import re
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from antiphon.completion import Completion, CompletionChoice
from antiphon_kernel.types.constants import ATTACHMENT_BYTES, DATA_FOLDER
from antiphon_kernel.types.errors import AntiphonError
from antiphon_kernel.types.project_files import read_project_file

_MENTION: Final = re.compile(r'(?<!\S)@(?:"([^"\n]+)"|([^\s"]+))')
_AFTER: Final = ".,:;!?)]}'…"
"""Characters that end a sentence, and not the path in it."""
_BEGUN: Final = re.compile(r"(?<!\S)@([^\s\"]*)\Z")
_NOT_OFFERED: Final = (DATA_FOLDER, ".git")


def mentioned_paths(text: str) -> list[str]:
    """Return the paths that a message names, each once, in order.

    A path has a slash or a dot in it; without, it is the name of a person or a model.
    """
    said = (quoted or bare.rstrip(_AFTER) for quoted, bare in _MENTION.findall(text))
    return list(dict.fromkeys(path for path in said if _is_path(path)))


def read_mentioned(root: Path, paths: Iterable[str]) -> list[dict[str, Any]]:
    """Read files as `block.attach` takes them.

    Raises:
        AntiphonError: invalid_params or too_large, naming the file.
    """
    files: list[dict[str, Any]] = []
    for path in paths:
        try:
            data = read_project_file(root, path, ATTACHMENT_BYTES, "attachment_bytes")
        except AntiphonError as error:
            error.message += " If no file is meant, put a space behind the @."
            raise
        files.append({"name": Path(path).name, "data": b64encode(data).decode()})
    return files


def complete_address(before: str, known: Mapping[str, str], root: Path) -> Completion | None:
    """Return what an `@…` at the end of a text can stand for; None if there is none.

    That is whole names, or paths up to the next slash. People and models come first: files are
    offered where no name begins like it, and behind the names where nothing has been typed yet.

    Args:
        known: what each name is that can stand there.
    """
    found = _BEGUN.search(before)
    if found is None:
        return None
    begun = found[1]
    offered = [(one, known[one]) for one in sorted(known) if one.startswith(begun)]
    if not (offered and begun):
        files = _files(root, begun)
        offered += [(one, "folder" if one.endswith("/") else "file") for one in files]
    choices = tuple(CompletionChoice(f"@{one}", kind) for one, kind in offered)
    return Completion(f"@{begun}", choices)


def _files(root: Path, begun: str) -> Sequence[str]:
    folder, _, start = begun.rpartition("/")
    place = Path(os.path.realpath(root / folder))
    if begun.startswith("/") or not place.is_relative_to(os.path.realpath(root)):
        return ()
    try:
        with os.scandir(place) as entries:
            there = [(one.name, one.is_dir()) for one in entries]
    except OSError:
        return ()
    # Without a slash or a dot it would be the name of a person.
    before = f"{folder}/" if folder else ""
    offered: list[str] = []
    for name, is_folder in sorted(there):
        is_hidden = name.startswith(".") and not start.startswith(".")
        needs_quotes = re.search(r'[\s"]', name) or name.rstrip(_AFTER) != name
        if not name.startswith(start) or is_hidden or name in _NOT_OFFERED or needs_quotes:
            continue
        path = f"{before}{name}/" if is_folder else before + name
        offered.append(path if _is_path(path) else f"./{path}")
    return offered


def _is_path(said: str) -> bool:
    return "/" in said or "." in said
