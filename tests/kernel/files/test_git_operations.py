"""Git changes the working tree under open files, clean and dirty, in a repository of 100 files."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

from antiphon_kernel.files import file_contexts
from antiphon_kernel.files.open_file import FileState, OpenFile
from antiphon_kernel.types.errors import AntiphonError
from tests.kernel.files.editor import Editor
from tests.waiting import PATIENCE, until

CLEAN: Final = (
    "d00/f00",  # changed in both branches in the same place
    "d00/f02",  # changed in the other branch
    "d01/f01",  # the same in both
    "d05/f01",  # changed in this branch
    "d24/f00",  # deleted in the other branch, with its folder
)
DIRTY: Final = {
    "d02/f00": 7,  # changed in the other branch, elsewhere
    "d02/f02": 3,  # changed in the other branch, in the same place
    "d03/f01": 2,  # the same in both
    "d24/f02": 2,  # deleted in the other branch, with its folder
    "notes": 2,  # not known to git
}
OPERATIONS: Final = {
    "checkout": ["checkout -q other", "checkout -q mine"],
    "rebase": ["rebase -q other", "rebase --abort"],
    "stash": ["stash -q", "checkout -q other", "checkout -q mine", "stash pop -q"],
    "clean": ["clean -fdq"],
    "reset": ["reset -q --hard", "reset -q --hard other", "reset -q --hard ORIG_HEAD"],
}


def git(folder: Path, *commands: str) -> None:
    """Run git; a conflict makes it fail."""
    for command in commands:
        who = ("-c", "user.name=a", "-c", "user.email=a@b")
        subprocess.run(
            ["git", *who, *command.split()], cwd=folder, capture_output=True, check=False
        )


def put(place: Path, line: int, text: str) -> None:
    """Change a line of a file."""
    lines = place.read_text().splitlines(keepends=True)
    lines[line] = f"{text}\n"
    place.write_text("".join(lines))


def tree(folder: Path) -> Mapping[str, tuple[bytes, int]]:
    """The contents and modes of all files that are not git's own, or the kernel's."""
    places = [one for one in (*folder.glob("[dn]*/f*"), folder / "notes") if one.is_file()]
    return {str(one.relative_to(folder)): (one.read_bytes(), one.stat().st_mode) for one in places}


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository on its branch `mine`, with another branch from the same commit."""
    folder = tmp_path_factory.mktemp("repository")
    names = [f"d{at // 4:02}/f{at % 4:02}" for at in range(100)]
    for name in names:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("".join(f"{name} line {at}\n" for at in range(10)))
    git(folder, "init -q -b mine", "add .", "commit -qm first", "checkout -qb other")
    for name in names[::2]:
        put(folder / name, 3, f"{name} of the other branch")
    git(folder, "rm -qrf d24", "mv d23 new", "add .", "commit -qm other", "checkout -q mine")
    put(folder / "d05/f01", 7, "of this branch")
    git(folder, "commit -qam apart")
    put(folder / "d00/f00", 3, "of this branch")
    git(folder, "commit -qam conflict")
    (folder / ".git" / "info" / "exclude").write_text("/data\n")
    (folder / "notes").write_text("one\ntwo\nthree\n")
    return folder


class OpenRepository:
    """A copy of the repository with open files, and one beside it where nobody but git writes."""

    def __init__(self, editor: Editor, control: Path) -> None:
        self.editor, self.folder, self._control = editor, editor.project, control
        self.files: dict[str, OpenFile] = {}
        self.typed: dict[str, str] = {}

    async def open(self, *names: str) -> None:
        for name in names:
            self.files[name] = await self.editor.open(name)

    async def type(self, name: str, line: int) -> None:
        """Write a word at the end of a line."""
        word = self.typed[name] = f" typed-{name}"
        lines = self.text(name).splitlines(keepends=True)
        await self.editor.insert(name, len("".join(lines[: line + 1])) - 1, word)

    def text(self, name: str) -> str:
        return self.files[name].now().text

    def is_saved(self, name: str) -> bool:
        """Return whether what was typed is on disk."""
        return self.typed[name] in (self.folder / name).read_text()

    async def git(self, command: str) -> None:
        """Run git, and check that disk and blocks are what it makes of them."""
        for folder in (self.folder, self._control):
            git(folder, command)
        self.check_disk()
        await self.check_blocks()

    def change(self, name: str) -> None:
        """Let another program change a file."""
        for folder in (self.folder, self._control):
            put(folder / name, 7, "by another program")

    def check_disk(self) -> None:
        """Check that git alone has changed the disk."""
        assert tree(self.folder) == tree(self._control)

    async def check_blocks(self) -> None:
        """Wait until the blocks follow the disk, with every word that was typed."""
        async with asyncio.timeout(PATIENCE):
            while [name for name in self.files if not await self._follows(name)]:
                await asyncio.sleep(0.02)
        for name, word in self.typed.items():
            assert word in self.text(name)

    async def _follows(self, name: str) -> bool:
        file, place = self.files[name], self.folder / name
        if not place.exists():
            return file.state is FileState.DELETED
        on_disk = place.read_text()
        is_same = name in self.typed or self.text(name) == on_disk
        return is_same and await file.disk_text() == on_disk


@pytest.fixture
def opened(
    repository: Path, editor: Editor, tmp_path_factory: pytest.TempPathFactory
) -> OpenRepository:
    control = tmp_path_factory.mktemp("control")
    for folder in (editor.project, control):
        shutil.copytree(repository, folder, dirs_exist_ok=True)
    return OpenRepository(editor, control)


@pytest.mark.parametrize("name", OPERATIONS)
async def test_git_changes_files_that_are_open_and_no_typed_text_is_lost(
    opened: OpenRepository, name: str
) -> None:
    await opened.open(*CLEAN, *DIRTY)
    for one, line in DIRTY.items():
        await opened.type(one, line)
    if name in ("stash", "reset"):
        opened.change("d00/f02")
        opened.change("d07/f00")
    for command in OPERATIONS[name]:
        await opened.git(command)
    for one, word in opened.typed.items():  # saved now, it is all that gets to disk
        file, place = opened.files[one], opened.folder / one
        if file.state is FileState.USUAL:
            before = place.read_text()
            await file.save()
            assert place.read_text().replace(word, "") == before != place.read_text()
        else:
            with pytest.raises(AntiphonError):
                await file.save()


async def test_nothing_is_saved_by_itself_as_long_as_an_operation_of_git_is_stopped(
    opened: OpenRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_contexts, "_WAIT_SECONDS", 0.02)
    monkeypatch.setattr(file_contexts, "AUTOSAVE_SECONDS", 0.05)
    await opened.open("d03/f01", "d00/f00")
    await opened.git("merge -q other")
    for name in opened.files:
        await opened.type(name, 0)
    await asyncio.sleep(0.3)
    opened.check_disk()
    git(opened.folder, "merge --abort")
    await until(lambda: all(map(opened.is_saved, opened.files)), "the saves")


async def test_conflict_of_a_rebase_is_decided_in_the_block(opened: OpenRepository) -> None:
    await opened.open("d00/f00")
    await opened.git("rebase -q other")
    file = opened.files["d00/f00"]
    assert "<<<<<<<" in file.now().text
    text = "".join(f"decided {line}\n" for line in range(10))
    await opened.editor.call("block.import", block_id="file:d00/f00", content=text)
    assert await file.save()
    git(opened.folder, "add .", "-c core.editor=true rebase --continue")
    assert not (opened.folder / ".git" / "rebase-merge").exists()
    assert (opened.folder / "d00/f00").read_text() == text == file.now().text


async def test_change_of_many_open_files_is_one_step_of_undo_for_each(
    opened: OpenRepository,
) -> None:
    names = [f"d{at // 2:02}/f{at % 2 * 2:02}" for at in range(12)]
    await opened.open(*names)
    before = {name: opened.text(name) for name in names}
    await opened.git("checkout -q other")
    for name in names:
        assert opened.text(name) != before[name]
        await opened.editor.call("block.undo", block_id=f"file:{name}", principal="disk")
        assert opened.text(name) == before[name]
