"""Files of the project in the app: opened, edited, saved, decided about, and gone to."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from textual.events import MouseDown, MouseEvent, MouseScrollDown, MouseUp

from antiphon import project_tree
from antiphon.actions import Mode
from antiphon.screens import file_view
from antiphon.screens.conflicts import FileConflictsModal
from antiphon.screens.picker import PickerModal
from antiphon.widgets.editor import CellEditor
from antiphon_kernel.providers.events import End, ToolCallEvent
from tests.app.opened import Opened, World, opened, world
from tests.waiting import until

SCRIPTED = Path(__file__).parents[2] / "kernel" / "files" / "scripted_server.py"

SOURCE = "def one():\n    return 1\n\n\ndef two():\n    return 2\n"


@pytest.fixture(autouse=True)
def frequent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_view, "LOOK_SECONDS", 0.25)
    monkeypatch.setattr(project_tree, "MARKED_SECONDS", 0.25)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository with a few files; the kernel's data is in a folder that it ignores."""
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.py").write_text(SOURCE)
    (tmp_path / "long.txt").write_text("".join(f"line {number}\n" for number in range(9)))
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
        # Others' lines come in while one is in it.
        changed = (project / "src" / "a.py").read_text().replace("return 2", "return 22")
        (project / "src" / "a.py").write_text(changed)
        await there.sees("  7~     return 22")
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
        await until(lambda: isinstance(there.app.screen, FileConflictsModal), "the conflicts")
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


async def test_large_or_binary_file_is_shown_read_only_part_by_part(
    project: Path, here: World
) -> None:
    lines = "".join(f"event {number}\n" for number in range(700_000))
    (project / "big.log").write_text(lines)
    (project / "logo.png").write_bytes(b"\x89PNG\r\n\x1a\n\0rest")
    async with opened(here) as there:
        await there.press("f6")
        await there.type("big")
        await there.sees("big.log")
        await there.press("enter")
        await there.sees("event 3")
        assert there.shows(f"{len(lines):,} bytes · read-only · bytes 0 to 63,99")
        assert there.shows("are allowed")
        await there.press("n")
        await until(lambda: not there.shows("event 3"), "the next part")
        await there.press("p")
        await there.sees("event 3")
        await there.press("p")
        await there.sees("This is the start of the file.")
        await there.press("e", "G")
        await there.sees("event 699999")
        await there.press("n")
        await there.sees("This is the end of the file.")
        await there.press("escape", "f6")
        await there.type("logo")
        await there.sees("logo.png")
        await there.press("enter")
        await there.sees("13 bytes · image/png · read-only")
        await there.sees("Byte 8 is NUL, which is in no text.")
        await there.press("escape")
        await there.type("on")
        assert there.message == "on"


async def test_long_file_draws_what_is_seen_and_the_sidebar_lists_it(
    project: Path, here: World
) -> None:
    (project / "long.txt").write_text("".join(f"line {number}\n" for number in range(12_000)))
    async with opened(here, size=(120, 30)) as there:
        await open_by_name(there, "long:10000", "long.txt", by_palette=True)
        await there.sees("10000  line 9999")
        cells = there.screen.cells
        (block,) = cells.source.ids()
        assert cells.shown.rendering(block).drawn_count < 5_000
        await there.press("enter", mode=Mode.EDIT)
        await there.type("X")
        await there.sees("10000+ Xline 9999")
        await there.sees("long.txt  ")
        await there.press("escape", mode=Mode.NAVIGATE)
        await there.press("f2", mode=Mode.CONTEXTS)
        await until(lambda: there.screen.contexts.files, "the open files")
        await there.sees("files")


async def test_language_server_leads_explains_and_completes(project: Path, here: World) -> None:
    here.kernel.files.servers.commands = {"py": f"{sys.executable} -I {SCRIPTED}"}
    async with opened(here) as there:
        await open_by_name(there, "a.py", "src/a.py")
        # The server finds all of the text, in its first line.
        await there.sees("  1! def one():")
        await there.press("K")
        await there.hint("There is no cursor in a file")
        await there.press("enter", mode=Mode.EDIT)
        await there.press("f12", mode=Mode.NAVIGATE)
        editor = await edited(there)
        assert editor.cursor_location == (4, 0)
        await there.press("end", "enter")
        await there.type("t")
        await there.press("ctrl+@")
        await there.sees("▸ two")
        # Somebody else writes above meanwhile, and one goes on typing.
        block = there.screen.source.ids()[0]
        await here.call("block.splice", block_id=block, offset=0, insert="# theirs\n")
        await there.sees("# theirs")
        await there.type("w")
        assert there.shows("▸ two")
        await there.press("tab")
        assert editor.document.get_line(editor.cursor_location[0]) == "two"
        await until(lambda: not there.shows("▸"), "that it is closed")
        await there.type(" o")
        await there.press("ctrl+@")
        await there.sees("▸ one")
        await there.press("escape")
        await until(lambda: not there.shows("▸"), "that it is closed")
        assert there.screen.mode is Mode.EDIT
        await there.press("ctrl+@")
        await there.sees("▸ one")
        await there.press("left")
        await until(lambda: not there.shows("▸"), "that it is closed")
        await there.press("escape", mode=Mode.NAVIGATE)
        # All of the text is what it says of a place.
        await there.press("K")
        await there.sees("two o")
        await there.press("escape")
        # What it finds makes no versions that one has to go through.
        await there.press("h")
        await there.sees("fork here")
        await until(lambda: there.shows("you "), "the last version")
        assert not there.shows(" check")
        await there.press("escape")
        await there.press("g", "d")
        editor = await edited(there)
        assert editor.cursor_location == (4, 0)


async def edited(there: Opened) -> CellEditor:
    """Begin to write where one is."""
    await there.press("enter", mode=Mode.EDIT)
    assert there.screen.area.editor is not None
    return there.screen.area.editor


async def test_question_about_a_change_shows_it_and_leads_to_the_file(
    project: Path, tmp_path: Path
) -> None:
    async with world(tmp_path, asks=True) as here, opened(here) as there:
        await there.send("Return two.")
        here.aria.say(ToolCallEvent("call-0", "file_read", {"path": "src/a.py"}))
        here.aria.say(End("tool_use"))
        edit = {"path": "src/a.py", "old_text": "return 2", "new_text": "return 22"}
        here.aria.say(ToolCallEvent("call-1", "file_edit", edit))
        here.aria.say(End("tool_use"))
        await there.sees("6 -     return 2")
        await there.sees("6 +     return 22")
        await there.press("escape", mode=Mode.NAVIGATE)
        await until(lambda: there.screen.situation.asks, "the call is chosen")
        await there.sees("Enter open")
        for keys in (("enter",), ("g", "f")):
            await there.press(*keys)
            await until(lambda: there.screen.source.is_file, "the file")
            await there.live()
            await until(lambda: there.screen.view.is_restored, "the line")
            await there.press("enter", mode=Mode.EDIT)
            editor = there.screen.area.editor
            assert editor is not None and editor.cursor_location == (5, 0)
            await there.press("escape", mode=Mode.NAVIGATE)
            await there.press("escape")
            await there.sees("6 +     return 22")
            await there.live()
            await until(lambda: there.screen.situation.asks, "the call is chosen again")
        await there.press("o")
        await until(lambda: len(here.aria.prompts) == 3, "the result")
        # The result says again what the call has shown: it is one line.
        folded = re.compile(r"path: src/a\.py\n │ +▸ ")
        await until(lambda: folded.search("\n".join(there.lines)), "a folded result")
        here.aria.end()
        # In the file, theirs is what the model has done there last.
        await there.press("g", "f")
        await there.sees("return 22")
        await there.live()
        await there.press("U")
        await there.sees("by aria")
        await there.press("y")
        await until(lambda: (project / "src" / "a.py").read_text() == SOURCE, "the text before")


async def test_tree_of_the_project_opens_folders_and_files_by_keys_and_clicks(
    project: Path, here: World
) -> None:
    (project / "src" / "deep").mkdir()
    for number in range(20):
        (project / "src" / "deep" / f"m{number:02}.py").write_text("")
    (project / "src" / "a.py").write_text(SOURCE + "\n")
    async with opened(here) as there:

        def row_of(text: str) -> int:
            return next(y for y, line in enumerate(there.lines) if text in line[:24])

        await there.press("f2", mode=Mode.CONTEXTS)
        await there.sees("project ▸")
        assert not here.kernel.files.opened() and not there.app.context.files.tree.paths
        await there.press("right")
        await there.sees("▸ src")
        await until(lambda: "•" in there.lines[row_of("▸ src")][:24], "a mark of git")
        assert there.shows("  long.txt") and there.shows("people") and there.shows("default")
        await there.press("down", "enter")
        await there.sees("▾ src")
        assert "M" in there.lines[row_of(" a.py")][:24]
        await there.press("down", "right", *["down"] * 20)
        await there.sees("m19.py")
        assert "?" in there.lines[row_of("m19.py")][:24]
        assert there.shows("people") and there.shows("default") and not there.shows("m00.py")
        (project / "src" / "deep" / "m18b.py").write_text("")
        await there.sees("m18b.py")
        # From a file to its folder, which closes, and by clicks.
        await there.press("left", "left", "left")
        await until(lambda: not there.shows("m19.py"), "closed")
        await there.pilot.click("Sidebar", offset=(6, row_of("▸ deep")))
        await there.sees("▾ deep")
        await there.pilot.click("Sidebar", offset=(6, row_of("▾ src")))
        await until(lambda: not there.shows("▾ deep"), "closed by a click")
        await there.press("enter", "down", "left", "down", "enter")
        await until(lambda: there.screen.source.is_file, "the file")
        await there.sees("def one():")


def mouse(kind: type[MouseEvent], x: int, y: int) -> MouseEvent:
    return kind(None, x, y, 0, 0, 1, False, False, False, x, y)


async def front(there: Opened, *, file: bool) -> None:
    await until(lambda: there.screen is there.app.screen, "a page in front")
    await until(lambda: there.screen.source.is_file is file, "the other page")


async def test_file_is_beside_the_conversation_where_there_is_room(
    project: Path, here: World
) -> None:
    (project / "src" / "a.py").write_text(SOURCE + "\n" * 20)
    cell = await here.cell("Look at src/a.py:6")
    async with opened(here, size=(170, 12)) as there:
        await there.sees("Look at")
        await there.press("f7")
        await there.hint("No file is open: F6 finds one.")
        await there.type("half")
        await there.press("escape", "g", "f")
        await there.sees("  6      return 2")
        assert there.shows("Look at") and there.shows("half")
        await there.live()
        conversation = there.app.context.screen
        await there.sees("F7 conversation")
        assert "src/a.py" in there.app.title
        # Both are edited, and what others write comes in on both.
        await there.press("enter", mode=Mode.EDIT)
        await there.type("# x")
        await here.call("block.splice", block_id=cell, offset=0, insert="Please ")
        await there.sees("Please Look at")
        await there.press("f7")
        await front(there, file=False)
        await there.press("i", mode=Mode.WRITE)
        await there.type(" done")
        assert there.message == "half done"
        # The mouse scrolls what it is over, and goes where it is clicked.
        for kind in (MouseScrollDown, MouseDown, MouseUp):
            there.app.post_message(mouse(kind, 130, 3))
            if kind is MouseScrollDown:
                await until(lambda: not there.shows("1  def one()"), "scrolled")
                assert there.screen is conversation
        await front(there, file=True)
        await there.mode(Mode.EDIT)
        there.app.post_message(mouse(MouseDown, 40, 9))
        await front(there, file=False)
        there.app.post_message(mouse(MouseUp, 40, 9))
        await there.press("f7")
        await front(there, file=True)
        # Narrow, one is over the other; what was begun goes on.
        await there.pilot.resize_terminal(90, 12)
        await until(lambda: not there.shows("Please Look at"), "the file alone")
        await there.type("y")
        await there.press("f7")
        await there.sees("half done")
        assert not there.shows("def two()")
        await there.type("!")
        await there.press("f7")
        await there.pilot.resize_terminal(170, 12)
        await there.sees("half done!")
        await there.type("z")
        await there.sees("def two():yz")
        # The sidebar is at the left, and Esc closes the file.
        await there.press("f2")
        await front(there, file=False)
        await there.mode(Mode.CONTEXTS)
        await there.press("escape", "f7", "escape")
        await front(there, file=True)
        await there.press("escape")
        await front(there, file=False)
        await until(lambda: not there.shows("def two()"), "closed")
        assert there.screen is conversation and there.message == "half done!"
        assert not there.shows("F7") and "src/a.py" not in there.app.title
        await until(lambda: "def two():yz" in (project / "src" / "a.py").read_text(), "saved")


async def test_second_file_takes_the_place_of_the_first_and_stays_beside_another_context(
    project: Path, here: World
) -> None:
    (project / "b.txt").write_text("in b\n")
    other = (await here.call("context.create", label="other"))["context_id"]
    async with opened(here, size=(170, 12)) as there:
        await there.type("half")
        await open_by_name(there, "a.py", "src/a.py")
        await there.press("f7")
        await open_by_name(there, "b.txt", "b.txt")
        await there.sees("1  in b")
        assert not there.shows("def two()")
        there.app.context.open(other)
        await until(lambda: there.screen.contexts.label == "other", "the other context")
        await front(there, file=False)
        await there.live()
        assert there.message == "" and there.shows("1  in b")
        await there.press("f7", "escape")
        await there.sees("def two()")
        await there.press("escape")
        await front(there, file=False)
        await there.live()
        await there.type("new")
        assert there.message == "new" and not there.shows("def two()")


async def test_file_goes_on_on_its_page_when_an_edit_of_it_was_refused(
    project: Path, here: World
) -> None:
    async with opened(here, size=(170, 12)) as there:
        await there.type("half")
        await open_by_name(there, "a.py", "src/a.py")
        await there.press("enter", mode=Mode.EDIT)
        conversation, before = there.app.context.screen, there.screen
        before.source.document.set_fields(before.source.ids()[0], status="error")
        there.burst(*"typed")
        await until(lambda: there.screen is not before, "the file anew")
        await there.live()
        await there.mode(Mode.EDIT)
        await there.type(" on")
        await there.sees("typed ondef one():")
        assert there.app.screen_stack == [conversation, there.screen]
        await until(lambda: (project / "src" / "a.py").read_text() == "typed on" + SOURCE, "saved")
        await there.press("escape", "escape")
        await front(there, file=False)
        await there.type("!")
        assert there.message == "half!"


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
