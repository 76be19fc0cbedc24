"""Names of files of a project: found from what somebody typed, and opened without leaving it."""

from __future__ import annotations

import os
import re
import stat
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from antiphon_kernel.types.constants import DATA_FOLDER
from antiphon_kernel.types.errors import AntiphonError, invalid_params
from antiphon_kernel.types.quoting import quote, truncate

_PATH_BYTES: Final = 4_096
_NAME_BYTES: Final = 255
_DEPTH: Final = 100
_LINKS: Final = 40
_UNPRINTABLE: Final = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
"""Controls, line separators, what turns the direction of writing, halves of surrogate pairs."""
OUTSIDE: Final = "it leads out of the project"
_FORBIDDEN: Final = {
    DATA_FOLDER: "it is one of the kernel's own files",
    ".git": "it is one of git's own files",
}


@dataclass(frozen=True, slots=True)
class ProjectPath:
    """Place of a file in a project, free of links; the file need not exist.

    Two names of one place make equal values. Hard links do not: they share device and inode.
    """

    project: str
    """The project's folder, without links."""
    names: tuple[str, ...]
    """Of the folders on the way and of the file, as the folders list them."""
    shown: str
    """Relative, with `/`; in NFC where no other file has that name."""

    @property
    def name(self) -> str:
        """The name of the file in its folder."""
        return self.names[-1]

    @property
    def place(self) -> Path:
        """The whole path."""
        return Path(self.project, *self.names)

    @contextmanager
    def folder(self, *, make: bool = False) -> Iterator[int]:
        """Open the folder of the file, and make what is missing of it if that is asked for.

        Every folder is opened from the one above it, and no link is followed: a folder that was
        replaced by a link since the path was found is an error.

        Raises:
            OSError: if it is not there, no folder, or closed to this process.
        """
        flags = os.O_RDONLY | os.O_DIRECTORY
        folder = os.open(self.project, flags)
        try:
            for name in self.names[:-1]:
                if make:
                    with suppress(FileExistsError):
                        os.mkdir(name, dir_fd=folder)
                        os.fsync(folder)
                inner = os.open(name, flags | os.O_NOFOLLOW, dir_fd=folder)
                os.close(folder)
                folder = inner
            yield folder
        finally:
            os.close(folder)


def find_path(project: Path, path: str) -> ProjectPath:
    """Find the file that a person, a model or a script names.

    Links are followed as long as they stay inside the project. A name counts as its folder lists
    it: the one that is equal, else the only one that is equal in NFC, else on a disk that does not
    tell cases apart the one that is the same file.

    Args:
        path: relative to the project's root, or absolute and inside the project.

    Raises:
        AntiphonError: invalid_params if it leads out of the project, to files of the kernel or of
            git, or to something else than a file, or cannot be a name.
    """
    root = os.path.realpath(project)
    try:
        steps = _steps(root, (str(project.absolute()), root), path)
        if path.endswith("/"):
            raise _UnusableError("it names a folder")
        return _walk(root, steps)
    except _UnusableError as error:
        raise unusable(path, str(error)) from error
    except OSError as error:
        raise unusable(path, error.strerror or str(error)) from error


def unusable(path: str, why: str) -> AntiphonError:
    """Return the error for a path that names no file of the project."""
    return invalid_params(
        f"The file {quote(path)} of the project cannot be used: {why}. Name a file inside the"
        " project, relative to its root.",
        field="path",
        found=truncate(path),
    )


def is_printable(path: str) -> bool:
    """Return whether a path has no characters that no name may have."""
    return path.isprintable() or not _UNPRINTABLE.search(path)


class _UnusableError(Exception):
    """Reason against a path."""


def _steps(root: str, spellings: Sequence[str], path: str) -> list[str]:
    """Return the names of a path below the root, the last one first."""
    if "\0" in path:
        raise _UnusableError("it has characters that no name may have")
    if len(path.encode("utf-8", "surrogatepass")) > _PATH_BYTES:
        raise _UnusableError(f"it has more than {_PATH_BYTES} bytes")
    if path.startswith("/"):
        path = re.sub("/+", "/", path)
        for spelling in (one.rstrip("/") for one in spellings):
            if path == spelling or path.startswith(f"{spelling}/"):
                path = path[len(spelling) :]
                break
        else:
            raise _UnusableError(OUTSIDE)
    return [step for step in path.split("/") if step not in ("", os.curdir)][::-1]


def _walk(root: str, waiting: list[str]) -> ProjectPath:
    """Take one step after the other from the root, through links."""
    names: list[str] = []
    shown: list[str] = []
    links = 0
    mode: int | None = stat.S_IFDIR  # of the last name; None where nothing has it
    while waiting:
        step = waiting.pop()
        if step == os.pardir:
            if not names or mode is None:
                raise _UnusableError(OUTSIDE if mode else "there is no folder on its way")
            names.pop()
            shown.pop()
            mode = stat.S_IFDIR
            continue
        _check_name(step)
        if mode is None:
            name, label = (unicodedata.normalize("NFC", step),) * 2
        else:
            with ProjectPath(root, (*names, step), "").folder() as folder:
                name, label, mode = _entry(folder, step)
                _check_name(name)
                if mode is not None and stat.S_ISLNK(mode):
                    links += 1
                    if links > _LINKS:
                        raise _UnusableError("there are too many symbolic links on its way")
                    target = os.readlink(name, dir_fd=folder)
                    if target.startswith("/"):
                        names, shown = [], []
                    waiting += _steps(root, (root,), target)
                    mode = stat.S_IFDIR
                    continue
        names.append(name)
        shown.append(label)
        if len(names) > _DEPTH:
            raise _UnusableError(f"it has more than {_DEPTH} folders")
    if mode is not None and not stat.S_ISREG(mode):
        what = "the project's folder" if not names else "not a file"
        raise _UnusableError(f"it is {what}")
    return ProjectPath(root, tuple(names), "/".join(shown))


def _check_name(name: str) -> None:
    if not is_printable(name):
        raise _UnusableError("it has characters that no name may have")
    if len(name.encode()) > _NAME_BYTES:
        raise _UnusableError(f"a name in it has more than {_NAME_BYTES} bytes")
    # Some file systems take these for the name without the characters that are left out here.
    visible = "".join(one for one in name if unicodedata.category(one) != "Cf").rstrip(". ")
    if (why := _FORBIDDEN.get(visible.casefold())) is not None:
        raise _UnusableError(why)


def _entry(folder: int, name: str) -> tuple[str, str, int | None]:
    """Return a name as its folder lists it, as it is shown, and the mode of what has it."""
    wanted = unicodedata.normalize("NFC", name)
    every = os.listdir(folder)
    equal = [one for one in every if unicodedata.normalize("NFC", one) == wanted]
    if name in equal or len(equal) == 1:
        found = name if name in equal else equal[0]
        status = os.stat(found, dir_fd=folder, follow_symlinks=False)
        return found, wanted if len(equal) == 1 else found, status.st_mode
    try:
        status = os.stat(wanted, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return wanted, wanted, None
    folded = _fold(name)
    for one in every:
        if _fold(one) == folded:
            same = os.stat(one, dir_fd=folder, follow_symlinks=False)
            if os.path.samestat(same, status):
                return one, unicodedata.normalize("NFC", one), status.st_mode
    raise _UnusableError("its folder lists it by another name: use that")


def _fold(name: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())
