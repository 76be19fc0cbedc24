"""A project with one file, and the kernel's folders for copies and deleted files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from antiphon_kernel.files import file_contexts
from antiphon_kernel.files.disk_file import DiskState, digest_of, write
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.types.project_paths import ProjectPath, find_path
from tests.kernel.files.editor import Editor

LIMIT = 1_000
OLD = b"the old text: " + bytes(range(48, 90))
MODE = 0o640


class FileOnDisk:
    """The file `src/a.py` of a project."""

    def __init__(self, folder: Path) -> None:
        self.project = folder / "project"
        self.place = self.project / "src" / "a.py"
        self.other_link = self.project / "b.py"
        self.copies = folder / "data" / "copies"
        self.bin = folder / "data" / "bin"
        self.project.mkdir()
        self.path: ProjectPath = find_path(self.project, "src/a.py")

    def put(self, data: bytes = OLD) -> None:
        """Write it as another program would have long ago, as a new file."""
        self.place.parent.mkdir(parents=True, exist_ok=True)
        self.place.unlink(missing_ok=True)
        self.place.write_bytes(data)
        self.place.chmod(MODE)
        os.utime(self.place, (1_700_000_000, 1_700_000_000))

    def put_linked(self) -> None:
        """Give it a second hard link."""
        self.put()
        self.other_link.unlink(missing_ok=True)
        self.other_link.hardlink_to(self.place)

    def write(self, data: bytes, expected: bytes | None = OLD) -> DiskState:
        digest = None if expected is None else digest_of(expected)
        return write(self.path, data, digest, copies=self.copies, limit=LIMIT)

    def left(self) -> list[str]:
        """Names beside the file, and of copies."""
        beside = [one.name for one in self.place.parent.iterdir() if one != self.place]
        return beside + [one.name for one in self.copies.glob("*")]

    def mode(self) -> int:
        return self.place.stat().st_mode & 0o7777


@pytest.fixture
def file(tmp_path: Path) -> FileOnDisk:
    file = FileOnDisk(tmp_path)
    file.put()
    return file


@pytest.fixture
def editor(kernel: Kernel, data: Path, monkeypatch: pytest.MonkeyPatch) -> Editor:
    """A person in a project where nothing is saved unasked."""
    monkeypatch.setattr(file_contexts, "AUTOSAVE_SECONDS", 1e6)
    return Editor(kernel, data.parent)
