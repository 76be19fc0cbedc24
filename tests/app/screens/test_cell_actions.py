from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from antiphon import session
from antiphon.actions import Mode
from antiphon_kernel.providers import TextDelta
from antiphon_kernel.types.enums import Status
from tests.app.opened import Opened, World, opened
from tests.waiting import until


def focused(there: Opened) -> str | None:
    return there.screen.cells.focused_cell


def shown_cells(there: Opened) -> list[str]:
    source = there.screen.source
    return [source.text(one) for one in source.ids() if not source.is_hidden(one)]


async def cells_become(there: Opened, *texts: str) -> None:
    await until(lambda: shown_cells(there) == list(texts), lambda: str(shown_cells(there)))


async def first_cells_become(there: Opened, *texts: str) -> None:
    await until(
        lambda: shown_cells(there)[: len(texts)] == list(texts), lambda: str(shown_cells(there))
    )


async def splice_as_guest(here: World, block: str, offset: int, text: str) -> None:
    guest = here.kernel.open_session(await here.kernel.principal("guest"), "test")
    (await here.context()).ensure_member(guest)
    params = {"block_id": block, "offset": offset, "insert": text}
    await here.kernel.call(guest, "block.splice", params)


@pytest.fixture
async def three(here: World, there: Opened) -> tuple[str, str, str]:
    """Three cells, the middle one focused."""
    blocks = (await here.cell("one"), await here.cell("two"), await here.cell("three"))
    await there.sees("three")
    await there.press("up", "k", mode=Mode.NAVIGATE)
    assert focused(there) == blocks[1]
    return blocks


async def test_cell_that_is_cut_out_or_excluded_is_not_read_and_told_of_to_who_edits_it(
    here: World, there: Opened, three: tuple[str, str, str]
) -> None:
    await there.press("x")
    await cells_become(there, "one", "three")
    await there.hint("Cut out ¶2")
    assert focused(there) == three[2]
    header = (await here.context()).document.header(three[1])
    assert header.excluded
    await there.press("u")
    await cells_become(there, "one", "two", "three")
    await until(lambda: focused(there) == three[1])
    assert not (await here.context()).document.header(three[1]).excluded
    there.screen.hint("-")
    there.burst("x", "u")  # before the kernel has answered
    await there.hint("Brought back ¶2")
    await cells_become(there, "one", "two", "three")
    assert focused(there) == three[1]
    await there.press("ctrl+y")
    await cells_become(there, "one", "three")
    await there.palette("Bring back a cell")
    await there.sees("two")
    await there.press("enter")
    await cells_become(there, "one", "two", "three")
    await until(lambda: focused(there) == three[1])
    await there.press("e")
    await there.sees("models do not read this")
    assert (await here.context()).document.header(three[1]).excluded
    await there.press("e")
    await until(lambda: not there.shows("models do not read this"))
    await there.press("u")
    await there.sees("models do not read this")

    await there.press("enter", mode=Mode.EDIT)
    await there.type("mine ")
    await here.call("block.exclude", block_id=three[1], cut_out=True)
    await there.mode(Mode.NAVIGATE)
    await there.hint("Somebody has cut out this cell")
    await here.call("block.exclude", block_id=three[1], excluded=False)
    await cells_become(there, "one", "mine two", "three")


async def test_moved_cell_stands_where_it_was_put_until_undone_unless_it_is_cut_out_meanwhile(
    here: World, there: Opened, three: tuple[str, str, str]
) -> None:
    for keys, texts in (
        (("k", "enter"), ["two", "one", "three"]),
        (("j", "enter"), ["one", "three", "two"]),
        (("j", "escape"), ["one", "two", "three"]),
        (("enter",), ["one", "two", "three"]),
    ):
        there.screen.hint("-")
        await there.press("m")
        await there.hint("Move ¶2")
        await there.press(*keys)
        assert focused(there) == three[1]
        assert there.screen.mode is Mode.NAVIGATE
        await cells_become(there, *texts)
        if texts != ["one", "two", "three"]:
            await there.hint("Moved ¶2")
            await there.press("u")
            await cells_become(there, "one", "two", "three")
            await there.hint("¶2 is back")

    # The text that was undone last comes back before the moved cell.
    await there.press("enter", mode=Mode.EDIT)
    await there.type("mine ")
    await there.press("escape", "m", "k", "enter")
    await cells_become(there, "mine two", "one", "three")
    for key, text in (("u", "mine two"), ("u", "two"), ("ctrl+y", "mine two")):
        await there.press(key)
        await cells_become(there, "one", text, "three")
    assert focused(there) == three[1]

    await there.press("m", "g")
    await here.call("block.exclude", block_id=three[1], cut_out=True)
    await cells_become(there, "one", "three")
    await there.press("enter")
    await there.hint("It has been cut out meanwhile")
    assert there.screen.source.ids() == list(three)


async def test_call_takes_its_output_along_which_is_folded_with_it_and_stays_as_it_is(
    here: World, there: Opened
) -> None:
    for text in ("first", "last"):
        await here.cell(text)
    await there.send("!seq 40")
    await there.sees("36 more lines")
    source = there.screen.source
    await until(lambda: all(source.header(one).status is Status.DONE for one in source.ids()[-2:]))
    await there.press("up", "G", "k")
    await there.sees("Space fold")
    await there.press("space")
    await until(lambda: not there.shows("more lines"), "all of the output")
    await there.press("space")
    await there.sees("36 more lines")
    await there.press("G", "enter")
    await there.hint("it stays as it is")
    assert there.screen.mode is Mode.NAVIGATE
    command, output = shown_cells(there)[2:]
    await there.press("G", "k", "m", "down", "enter")
    await there.hint("It stays where it is.")
    await there.press("G", "k", "m", "k", "k", "enter")
    await cells_become(there, command, output, "first", "last")
    await there.press("m", "j", "j", "enter")
    await cells_become(there, "first", command, output, "last")
    await there.press("u")
    await cells_become(there, command, output, "first", "last")
    result = there.screen.source.ids()[1]
    await here.call("block.splice", block_id=result, offset=0, insert="forged ")
    await there.sees("edited after the tool had ended")
    await there.press("g", "x")
    await cells_become(there, "first", "last")


async def test_output_out_of_sight_is_shown_when_it_is_folded_or_opened(
    here: World, there: Opened
) -> None:
    await here.cell("line\n\n" * 20)
    await there.send("!seq 40")
    await there.sees("36 more lines")
    call, output = there.screen.source.ids()[-2:]
    cells = there.screen.cells
    await there.press("up", "G", "k")
    while cells.viewport.seen_rows(output):
        await there.press("K")
    assert focused(there) == call
    await there.press("space")
    assert cells.viewport.seen_rows(output)


@pytest.fixture
async def halves(here: World, there: Opened) -> tuple[str, str]:
    """Cells that one has just been split into, the second focused."""
    await there.send("one\ntwo\nthree")
    await until(lambda: "one\ntwo\nthree" in shown_cells(there))
    here.aria.end()
    await there.press("up", "g", "enter", mode=Mode.EDIT)
    await there.press("ctrl+home", "down", "right")
    await there.palette("Split the cell at the cursor's line")
    await until(lambda: shown_cells(there)[:2] == ["one\n", "two\nthree"])
    await there.hint("Split in two")
    first, second = there.screen.source.ids()[:2]
    return first, second


async def test_cells_stay_when_a_split_leaves_one_blank_or_is_not_given_back_or_a_model_writes(
    here: World, there: Opened, halves: tuple[str, str]
) -> None:
    there.screen.cells.focus_cell(halves[0])
    await there.press("enter", mode=Mode.EDIT)
    for cursor, words in (("ctrl+home", "above this line"), ("ctrl+end", "from this line on")):
        await there.press(cursor)
        there.screen.call_action("split")
        await there.hint(words)
    await there.press("escape", mode=Mode.NAVIGATE)
    assert shown_cells(there)[:2] == ["one\n", "two\nthree"]

    made = (await here.call("block.history", block_id=halves[1]))["versions"][0]
    await here.call("block.undo", block_id=halves[0], edit=made["context_version"])
    await here.call("block.splice", block_id=halves[0], offset=4, delete_count=9)
    await first_cells_become(there, "one\n", "two\nthree")
    there.screen.cells.focus_cell(halves[1])
    await there.press("u")
    await there.hint("Not taken back")
    assert shown_cells(there)[:2] == ["one\n", "two\nthree"]
    there.screen.frame.notice.clear_hint()
    await there.press("g", "t")
    await there.hint("¶1 · you began it at")
    await there.press("i")
    await there.send("more")
    here.aria.say(TextDelta("it was "))
    await there.sees("it was")
    await there.press("up", "G", "x")
    await there.hint("aria is not done with this cell: stop it with Ctrl+C, then cut it.")
    here.aria.end()


async def test_split_is_undone_and_made_again_until_others_wrote_in_its_second_cell(
    here: World, there: Opened, halves: tuple[str, str]
) -> None:
    await there.press("m", "k", "enter")
    await first_cells_become(there, "two\nthree", "one\n")
    await there.press("u")
    await first_cells_become(there, "one\n", "two\nthree")
    await there.press("u")
    await first_cells_become(there, "one\ntwo\nthree")
    await there.hint("is one cell again")
    assert "two\nthree" not in shown_cells(there)
    await there.press("ctrl+y")
    await first_cells_become(there, "one\n", "two\nthree")
    assert there.screen.source.ids()[:2] == list(halves)
    there.screen.cells.focus_cell(halves[1])
    await there.press("ctrl+y")
    await first_cells_become(there, "two\nthree", "one\n")
    await there.press("u")
    await first_cells_become(there, "one\n", "two\nthree")

    # What was written meanwhile in the first cell is kept.
    await splice_as_guest(here, halves[0], 0, "zero\n")
    await first_cells_become(there, "zero\none\n", "two\nthree")
    await there.press("u")
    await first_cells_become(there, "zero\none\ntwo\nthree")
    await there.press("ctrl+y")
    await first_cells_become(there, "zero\none\n", "two\nthree")
    await here.call("block.splice", block_id=halves[0], offset=0, insert="mine\n")
    await first_cells_become(there, "mine\nzero\none\n", "two\nthree")
    there.screen.cells.focus_cell(halves[1])
    await there.press("u")
    await first_cells_become(there, "mine\nzero\none\ntwo\nthree")

    await there.press("ctrl+y")
    await first_cells_become(there, "mine\nzero\none\n", "two\nthree")
    await splice_as_guest(here, halves[1], 9, " four")
    await first_cells_become(there, "mine\nzero\none\n", "two\nthree four")
    await there.press("u")
    await there.hint("it stays one of its own")
    assert shown_cells(there)[:2] == ["mine\nzero\none\n", "two\nthree four"]


async def test_focused_cell_is_copied_dated_and_forked_from(
    there: Opened, three: tuple[str, str, str]
) -> None:
    await there.palette("Copy the cell as Markdown")
    await until(lambda: there.app.clipboard == "**bela**\n\ntwo\n", lambda: there.app.clipboard)
    there.screen.call_action("copy_json")
    await until(lambda: '"content": "two"' in there.app.clipboard, lambda: there.app.clipboard)
    assert json.loads(there.app.clipboard)["username"] == "bela"
    await there.press("enter", mode=Mode.EDIT)
    await there.type("twice ")
    await there.press("escape", "t")
    await there.hint("¶2 · bela began it at")
    assert "version 2 by you" in (there.screen.frame.notice.hint or "")
    there.screen.frame.notice.clear_hint()
    before = there.screen
    await there.palette("Fork from this cell")
    await until(lambda: there.screen is not before, "another screen")
    await cells_become(there, "one", "twice two")


# $EDITOR


def editor(folder: Path, script: str) -> str:
    file = folder / "editor"
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    return str(file)


async def test_editor_result_is_merged_or_kept_in_a_file_and_an_editor_that_fails_changes_nothing(
    here: World, there: Opened, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    block = await there.cell("one\ntwo\nthree\n", "three")
    await there.press("up")

    async def edit(change: str, theirs: dict[str, Any]) -> None:
        """Let the editor change the cell while others do."""
        runs, gate = tmp_path / "runs", tmp_path / "gate"
        runs.unlink(missing_ok=True)
        gate.unlink(missing_ok=True)
        wait = f"while [ ! -e {gate} ]; do sleep 0.02; done"
        script = f'sed -i {change} "$1"; touch {runs}; {wait}'
        monkeypatch.setenv("VISUAL", editor(tmp_path, script))
        await there.press("E")
        await until(runs.exists, "the editor runs")
        await here.call("block.splice", block_id=block, **theirs)
        gate.touch()

    await edit("s/two/2/", {"offset": 0, "insert": "zero\n"})
    await cells_become(there, "zero\none\n2\nthree\n")
    await there.hint("Merged 1 change from editor")
    await there.press("u")
    await cells_become(there, "zero\none\ntwo\nthree\n")

    await edit("-e s/two/2/ -e s/one/1/", {"offset": 9, "delete_count": 3, "insert": "zwei"})
    await there.hint("others changed")
    (kept,) = (tmp_path / "state").rglob("cell-*.md")
    assert kept.read_text() == "zero\n1\n2\nthree\n"
    assert "zwei" in shown_cells(there)[0]
    before = shown_cells(there)
    monkeypatch.setenv("VISUAL", editor(tmp_path, 'echo more >> "$1"; exit 3'))
    there.screen.frame.notice.clear_hint()  # a weighty one
    await there.press("E")
    await there.hint("Nothing changed: the editor ended with 3")
    assert shown_cells(there) == before
    found = [one.read_text() for one in (tmp_path / "state").rglob("cell-*.md") if one != kept]
    assert found == [before[0] + "more\n"]
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.delenv("EDITOR", raising=False)
    there.screen.frame.notice.clear_hint()
    await there.press("E")
    await there.hint("No editor is set")
    monkeypatch.setenv("EDITOR", "/nowhere/vi")
    await there.press("E")
    await there.hint("cannot be run")


# Search in all contexts


async def search(there: Opened, query: str, block: str) -> None:
    """Search in all contexts, and go to the hit, which is the only one."""
    await there.palette("Search in all contexts")
    await there.type(query)
    await there.sees(" · text")
    await there.press("enter")
    await until(lambda: focused(there) == block, "the hit")
    await there.sees("1 of 1")


async def test_search_goes_to_a_hit_inside_a_long_cell_not_here_yet_and_in_another_context(
    here: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "RECENT_BLOCKS", 5)
    long = await here.cell("\n\n".join(f"line {number}" for number in range(90)))
    await here.call("context.create", label="notes")
    new = {"context": "notes", "kind": "text", "content": "a Needle", "status": "done"}
    other = (await here.call("block.create", **new))["block_id"]
    for number in range(20):
        await here.cell(f"hay {number}")
    async with opened(here) as there:
        await there.sees("hay 19")
        assert long not in there.screen.source.ids()
        await search(there, "line 77", long)
        assert there.shows("line 77") and not there.shows("line 1 ")
        assert there.screen.mode is Mode.NAVIGATE
        await search(there, "needle", other)
        await there.sees("a Needle")
