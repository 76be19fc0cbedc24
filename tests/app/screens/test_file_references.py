"""Cells that refer to files of the project."""

from __future__ import annotations

import pytest

from antiphon.actions import Mode
from antiphon.screens import file_references
from antiphon.screens.file_references import place_now
from antiphon_kernel.text.patch import read_patch, unified_diff
from tests.app.opened import World, opened
from tests.waiting import until

LINES = [f"line_{number} = {number}\n" for number in range(1, 31)]


@pytest.fixture(autouse=True)
def frequent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_references, "LOOK_SECONDS", 0.05)


@pytest.mark.parametrize(
    ("after", "places"),
    [
        ("abcd", [0, 1, 2, 3]),
        ("Xabcd", [1, 2, 3, 4]),
        ("abXYcd", [0, 1, 4, 5]),
        ("bcd", [0, 0, 1, 2]),
        ("aBcd", [0, 1, 2, 3]),
        ("aBXcd", [0, 1, 3, 4]),
        ("", [0, 0, 0, 0]),
    ],
)
def test_place_of_a_line_follows_changes(after: str, places: list[int]) -> None:
    before, now = ("".join(f"{one}\n" for one in text) for text in ("abcd", after))
    diff = unified_diff(before, now, "a")
    hunks = read_patch(diff).hunks if diff else ()
    assert [place_now(hunks, line) for line in range(4)] == places


async def test_cell_shows_the_lines_that_it_refers_to_and_how_the_file_stands(here: World) -> None:
    file = here.folder / "a.py"
    file.write_text("".join(LINES))
    path = {"kind": "file", "path": "a.py#L10-L20"}
    await here.call("block.create", **path)
    await here.call("block.create", kind="file", path="a.py")
    async with opened(here, size=(80, 40)) as there:
        await there.sees("▤ a.py:10-20 · python · 30 lines")
        await there.sees("▤ a.py · python · 30 lines")
        assert there.shows("10  line_10 = 10") and there.shows("15  line_15 = 15")
        assert there.shows(" 1  line_1 = 1") and not there.shows("line_16")
        changed = "".join([*LINES[:2], *LINES[4:11], "twelve = 12\n", *LINES[12:]])
        file.write_text(changed)
        await there.sees("▤ a.py:8-18 · python · 28 lines · +1 −3")
        await there.sees(" 8  line_10 = 10")
        assert there.shows("10  twelve = 12")
        here.kernel.files.saves_itself = False
        await here.call("file.rename", path="a.py", to="b.py")
        file.write_text("another = True\n")
        file = here.folder / "b.py"
        await there.sees("▤ b.py:8-18 · python · 28 lines · +1 −3")
        told = await here.call("file.open", path="b.py")
        await here.call("block.splice", block_id=told["block_id"], offset=0, insert="# mine\n")
        await there.sees("▤ b.py:9-19 · python · 29 lines · +2 −3 · ● unsaved")
        file.write_text("# theirs\n" + changed)
        await there.sees("+2 −3 · conflict")
        file.unlink()
        await there.sees("+2 −3 · deleted on disk")
        await there.press("up", "up", "enter")
        await until(lambda: there.screen.source.is_file, "the file")
        await there.sees("· b.py")
        await until(lambda: there.screen.view.is_restored, "its line")
        await there.press("enter", mode=Mode.EDIT)
        editor = there.screen.area.editor
        assert editor is not None and editor.cursor_location == (8, 0)
