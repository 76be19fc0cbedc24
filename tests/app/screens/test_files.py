"""Files of the project in the app: opened, edited, saved, decided about, and gone to."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from antiphon.actions import Mode
from antiphon.screens import file_view
from antiphon.screens.conflicts import ConflictModal
from antiphon.screens.picker import PickerModal
from tests.app.opened import Opened, World, opened
from tests.waiting import until

SOURCE = "def one():\n    return 1\n\n\ndef two():\n    return 2\n"


@pytest.fixture(autouse=True)
def frequent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_view, "LOOK_SECONDS", 0.1)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository with a few files; the kernel's data is in a folder that it ignores."""
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.py").write_text(SOURCE)
    (tmp_path / "long.txt").write_text("".join(f"line {number}\n" for number in range(35_000)))
    (tmp_path / ".gitignore").write_text("data\nkernel.sock\n")
    git = ("git", "-c", "user.name=amy", "-c", "user.email=amy@example.org")
    for command in (("init", "-q"), ("add", "."), ("commit", "-qm", "Begin")):
        subprocess.run([*git, *command], cwd=tmp_path, check=True)
    return tmp_path


async def open_by_name(there: Opened, letters: str, path: str, *, by_palette: bool = False) -> None:
    if by_palette:
        await there.press("ctrl+p")
        there.burst(*f"@{letters}")
    else:
        await there.press("f6")
        await until(lambda: isinstance(there.app.screen, PickerModal), "the finder")
        await there.type(letters)
    await there.sees(path)
    await there.press("enter")
    await until(lambda: there.screen.source.is_file and there.screen.view.is_restored, "the file")
    await there.live()


async def test_file_is_opened_edited_saved_and_left(project: Path, here: World) -> None:
    await here.cell("Look at src/a.py:6, and at src/a.py")
    async with opened(here) as there:
        await there.sees("Look at")
        await there.press("up", mode=Mode.NAVIGATE)
        await open_by_name(there, "sap", "src/a.py")
        await there.sees("  5  def two():")
        assert there.shows("· src/a.py") and not there.shows("›")
        # In place, and to disk.
        await there.press("enter", mode=Mode.EDIT)
        await there.type("# x")
        await there.sees("● unsaved")
        await there.press("enter", "ctrl+s")
        await there.hint("Saved")
        assert (project / "src" / "a.py").read_text() == "# x\n" + SOURCE
        await until(lambda: not there.shows("unsaved"), "saved")
        await there.sees("  1+ # x")
        # Others' lines come in while one is in it; nothing is said of what is usual.
        changed = (project / "src" / "a.py").read_text().replace("return 2", "return 22")
        (project / "src" / "a.py").write_text(changed)
        await there.sees("  7~     return 22")
        await until(lambda: there.screen.controllers.file.still >= 10, "a while")
        assert "disk" not in str(there.screen.hint_shown), "it may be a formatter"
        (project / "src" / "a.py").write_text(changed.replace("return 1", "return 11"))
        await there.hint("Changed on disk by another program: 1 line.")
        await here.call("file.rename", path="src/a.py", to="src/b.py")
        await there.sees("· src/b.py")
        await there.hint("Its name is src/b.py now.")
        await here.call("file.rename", path="src/b.py", to="src/a.py")
        await there.sees("· src/a.py")
        await there.press("escape", mode=Mode.NAVIGATE)
        await there.press("x")
        await there.hint("does nothing here")
        await there.press("escape")
        await there.sees("Look at")
        await there.live()
        assert there.screen.mode is Mode.NAVIGATE
        # The cell names two places: the line of the first is shown.
        await there.press("g", "f")
        await there.sees("Open which file?")
        await there.press("enter")
        await there.sees("def two():")
        await there.live()
        page = there.screen.area
        await until(lambda: there.screen.view.is_restored, "the line")
        await there.press("enter", mode=Mode.EDIT)
        assert page is there.screen.area
        editor = there.screen.area.editor
        assert editor is not None and editor.cursor_location == (5, 0)


async def test_conflict_is_decided_hunk_by_hunk_and_deleted_file_made_again(
    project: Path, here: World
) -> None:
    file = project / "src" / "a.py"
    async with opened(here, size=(100, 30)) as there:
        await open_by_name(there, "a.py", "src/a.py")
        block = there.screen.source.ids()[0]
        ours = SOURCE.replace("return 1", "return 10").replace("return 2", "return 20")
        theirs = SOURCE.replace("return 1", "return 11").replace("return 2", "return 21")
        for number in ("2", "1"):
            offset = SOURCE.index(f"return {number}") + len("return 1")
            await here.call("block.splice", block_id=block, offset=offset, insert="0")
        file.write_text(theirs)
        await there.hint("in the same place")
        assert there.shows("conflict")
        await there.press("ctrl+s")
        await until(lambda: isinstance(there.app.screen, ConflictModal), "the conflicts")
        await there.sees("conflict 1 of 2 · line 2")
        assert there.shows("return 10") and there.shows("return 11")
        await there.press("n")
        await there.sees("conflict 2 of 2")
        await there.press("t")
        await there.sees("conflict 1 of 1")
        await there.press("b")
        await there.hint("No conflict is left")
        wanted = ours.replace("    return 20", "    return 21").replace(
            "    return 10\n", "    return 10\n    return 11\n"
        )
        await until(lambda: file.read_text() == wanted, "written")
        file.unlink()
        await there.sees("deleted on disk")
        await there.press("ctrl+s")
        await there.sees("Make it again?")
        await there.press("y")
        await until(file.exists, "made again")
        await until(lambda: not there.shows("deleted on disk"), "as usual")


async def test_long_file_draws_what_is_seen_and_the_sidebar_lists_it(
    project: Path, here: World
) -> None:
    async with opened(here, size=(120, 30)) as there:
        await open_by_name(there, "long:30000", "long.txt", by_palette=True)
        await there.sees("30000  line 29999")
        pictures = there.screen.cells.looks.pictures
        assert pictures.lines_drawn < 5_000
        await there.press("enter", mode=Mode.EDIT)
        await there.type("X")
        await there.sees("30000~ Xline 29999")
        await there.sees("long.txt  ")
        await there.press("escape", mode=Mode.NAVIGATE)
        await there.press("f2", mode=Mode.CONTEXTS)
        await until(lambda: there.screen.contexts.files, "the open files")
        await there.sees("files")


async def test_editor_goes_to_open_files_and_is_told_that_others_are_the_owners(
    project: Path, here: World
) -> None:
    await here.call("file.open", path="src/a.py")
    await here.cell("Look at src/a.py and at long.txt")
    async with opened(here, as_name="vera") as there:
        await there.sees("editor · live")
        await there.press("up", "g", "f")
        await there.sees("def one():")
        await there.live()
        await there.press("f6")
        await there.sees("src/a.py")
        await there.type("long")
        await there.sees("No open file is found: only the owner of the kernel opens others.")
        await there.press("escape", "ctrl+p")
        there.burst(*"#line")
        await there.sees("Only the owner of the kernel searches its files.")
        await there.press("escape", "escape")
        await there.sees("Look at")
        await here.cell("And long.txt:3")
        await there.press("down", "g", "f")
        await there.hint("No open file is named here: only the owner")
        await here.call("file.open", path="long.txt")
        await there.press("g", "f")
        await there.sees("line 2")
