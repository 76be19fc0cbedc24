"""Reading files of a project by their paths, without leaving it."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from antiphon_kernel.types.constants import DATA_FOLDER
from antiphon_kernel.types.errors import AntiphonError, ErrorCode, invalid_params
from antiphon_kernel.types.quoting import quote, truncate

_PIECE: Final = 1_000_000


def read_project_file(project: Path, path: str, limit: int, limit_name: str) -> bytes:
    """Read a file of a project.

    Symbolic links are followed as long as they stay inside the project; the kernel's data folder is
    none of its files. A link that is put in the way meanwhile is not followed.

    Args:
        path: relative to the project's root.
        limit: bytes it may have.
        limit_name: the name of that limit.

    Raises:
        AntiphonError: invalid_params, too_large.
    """
    try:
        root = os.path.realpath(project)
        resolved = Path(os.path.relpath(os.path.realpath(Path(root, path)), root))
    except (OSError, ValueError) as error:  # a null character, or too many links
        raise _refusal(path, "it cannot be a path") from error
    parts = resolved.parts
    if not parts:
        raise _refusal(path, "it is the project's folder")
    if Path(path).is_absolute() or os.pardir in parts:
        raise _refusal(path, "it leads out of the project")
    if DATA_FOLDER in parts:
        raise _refusal(path, "it is one of the kernel's own files")
    try:
        with ExitStack() as opened:
            data, size = _read(opened, root, parts, limit)
    except OSError as error:
        raise _refusal(path, error.strerror or str(error)) from error
    if size > limit:
        raise AntiphonError(
            ErrorCode.TOO_LARGE,
            f"The file {quote(path)} has {size} bytes, {limit} are allowed: attach a part of it.",
            limit=limit,
            limit_name=limit_name,
            found=size,
        )
    return data


def _read(opened: ExitStack, root: str, parts: Sequence[str], limit: int) -> tuple[bytes, int]:
    """Open each folder of the path, which has no links, from the one above it, and read.

    Return the bytes, and how many there are: more than the limit of a file that is too large.
    """
    folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    opened.callback(os.close, folder)
    for name in parts[:-1]:
        folder = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)
        opened.callback(os.close, folder)
    # A pipe or a device must not keep the reader waiting.
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
    file = os.open(parts[-1], flags, dir_fd=folder)
    opened.callback(os.close, file)
    status = os.fstat(file)
    if not stat.S_ISREG(status.st_mode):
        raise OSError("it is not a file")
    if status.st_size > limit:
        return b"", status.st_size
    data = bytearray()
    while len(data) <= limit and (piece := os.read(file, _PIECE)):
        data += piece
    return bytes(data), len(data)


def _refusal(path: str, why: str) -> AntiphonError:
    return invalid_params(
        f"The file {quote(path)} of the project cannot be read: {why}. Name a file inside the"
        " project, relative to its root.",
        field="path",
        found=truncate(path),
    )
