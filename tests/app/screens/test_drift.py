"""Work that goes to other contexts and comes back: pushes, pulls, merges, commits, their cells."""

from __future__ import annotations

from typing import Any

import pytest

from antiphon.actions import Mode
from antiphon.screens.drift_pages import MergeModal
from antiphon_kernel.types.enums import PrincipalKind
from antiphon_kernel.types.records import Actor
from tests.app.opened import Opened, World
from tests.waiting import until

pytestmark = pytest.mark.usefixtures("frequent_looks")


async def as_other(here: World, name: str, kind: PrincipalKind = PrincipalKind.HUMAN) -> Actor:
    return here.kernel.open_session(await here.kernel.principal(name, kind), "test")


async def say(here: World, text: str, actor: Actor | None = None, **more: Any) -> str:
    """A finished block, of the person here if nobody else is named."""
    new = {"kind": "text", "content": text, **more}
    actor = actor or here.me
    block = (await here.kernel.call(actor, "block.create", new))["block_id"]
    await here.kernel.call(actor, "block.status", {"block_id": block, "status": "done"})
    return str(block)


async def test_cells_are_pushed_and_open_their_source_as_it_was(here: World, there: Opened) -> None:
    notes = (await here.call("context.create", label="notes"))["context_id"]
    cleo = await as_other(here, "cleo", PrincipalKind.MODEL)
    asked = await say(here, "What is here?")
    call = await say(here, "ls", cleo, kind="tool_call", parent_id=asked)
    await say(here, "a.md\n", cleo, kind="tool_result", parent_id=call)
    answer = await say(here, "Only a file.", cleo, parent_id=asked)
    await there.sees("Only a file.")
    await there.press("up", mode=Mode.NAVIGATE)
    await there.palette("Push cells to another context")
    await there.sees("notes")
    await there.press("enter")
    await there.sees("Enter push to notes")
    await there.press("up", "space", "end", "space", "enter")
    await there.hint("In notes: 3 cells added")
    blocks = (await here.call("context.page", context=notes))["blocks"]
    assert [one["kind"] for one in blocks] == ["drift", "tool_call", "tool_result", "text"]
    assert blocks[0]["metadata"]["drift"]["wakes"] is False
    await here.call("block.splice", block_id=answer, offset=0, insert="By now: ")
    there.screen.open_context(notes)
    await there.sees("⇢ from default · push · amy")
    await there.live()
    await there.press("escape", "G", mode=Mode.NAVIGATE)
    await there.press("S")
    await there.sees("History of")
    await there.sees("Only a file.")
    assert not there.shows("By now:")
    await there.press("escape")
    await there.sees("By now: Only a file.")


async def test_header_of_a_drift_folds_all_that_came_and_its_undo_hides_it(
    here: World, there: Opened
) -> None:
    made = await here.call("context.create", label="notes")
    cleo = await as_other(here, "cleo", PrincipalKind.MODEL)
    asked = await say(here, "What is there?", context=made["context_id"])
    for number in range(2):
        await say(here, f"Found {number}\n\nand more", cleo, parent_id=asked)
    await say(here, "before")
    await there.sees("before")
    await there.press("up", mode=Mode.NAVIGATE)
    await there.palette("Pull cells from another context")
    await there.sees("notes")
    await there.press("enter")
    await there.sees("Enter pull from notes")
    await there.press("space", "up", "space", "enter")
    await there.hint("In default: 2 cells added")
    await there.press("space")
    await until(lambda: sum("▸ Found" in line for line in there.lines) == 2, "folded")
    await there.press("space")
    await until(lambda: sum("and more" in line for line in there.lines) == 2, "opened")
    await there.press("u")
    await until(lambda: not there.shows("Found"), "taken back")
    await there.hint("Ctrl+Y")
    await there.press("ctrl+y")
    await there.sees("Found 1")

    # Of somebody else, it is asked about first.
    await here.kernel.call(
        await as_other(here, "ben"), "drift.push", {"to": "default", "blocks": [asked]}
    )
    await there.sees("⇢ from notes · push · ben")
    await there.press("G", "k", "U")
    await there.sees("Take back")
    await there.press("y")
    await until(lambda: not there.shows("What is there?"), "taken back")
    await there.press("ctrl+y")
    await there.sees("What is there?")


PLAN = """# Plan

Start with the journal, because everything rests on it.

Go on with the window, which everybody sees.

End with the manual, since all of it has to be there.

1. one
2. two
"""


async def forked(here: World) -> tuple[str, Any]:
    """A text that a fork and its source have both changed, in three places alike."""
    block = await say(here, PLAN)
    fork = (await here.call("context.fork", context="default", label="tidy"))["context_id"]
    (there,) = (await here.call("block.list", context=fork))["blocks"]
    ben, cleo = await as_other(here, "ben"), await as_other(here, "cleo", PrincipalKind.MODEL)
    for actor, one, old, new in (
        *((ben, block, "the " + one, "the storage") for one in ("journal", "window", "manual")),
        *(
            (cleo, there["block_id"], "the " + one, "the codec")
            for one in ("journal", "window", "manual")
        ),
        (cleo, there["block_id"], "2. two", "2. two, and three"),
    ):
        text = (await here.call("block.read", block_id=one))["content"]
        splice = {"offset": text.index(old), "delete_count": len(old), "insert": new}
        await here.kernel.call(actor, "block.splice", {"block_id": one, **splice})
    await say(here, "A finding", cleo, parent_id=there["block_id"])
    await say(here, "A failure", cleo, parent_id=there["block_id"])
    return block, fork


async def test_fork_is_merged_conflict_by_conflict_and_taken_back(
    here: World, there: Opened
) -> None:
    block, fork = await forked(here)
    await there.sees("the storage")
    await there.press("f4")
    await there.sees("└ tidy  ↑3 ↓1")
    await there.sees("    3 conflicts · ")
    await there.press("escape")
    await there.press("up", mode=Mode.NAVIGATE)
    await there.palette("Merge a fork")
    await there.sees("tidy into default")
    await there.press("enter")
    await there.sees("both have changed this")
    await there.press("enter")
    await there.sees("Decide this conflict first.")
    await there.press("t", "n", "b", "n", "e")
    await there.sees("Esc take what stands here")
    await there.press("ctrl+k", *"mine", "escape")
    await there.sees("decided: written anew")
    await there.press("escape")
    await there.sees("What you have written here is lost then")
    await there.sees("✓")
    shown = there.app.screen
    assert isinstance(shown, MergeModal)
    # What the page promises.
    expected = shown._outcome(shown._steps[0][0], shown._decided, shown._page.cell_theme)[0]  # noqa: SLF001
    await there.press("n", "n", "space")
    await there.sees("☐ stays in the fork · new text by cleo")
    assert there.shows("A failure")
    await there.press("c", "enter")
    await there.hint("In default: 1 cell changed, 1 cell added")
    text = (await here.call("block.read", block_id=block))["content"]
    assert text == expected and "2. two, and three" in text
    assert "Start with the codec, because" in text and "End with mine, since" in text
    assert await here.texts() == [text, "1 block changed, 1 block added", "A finding"]
    listed = await here.call("context.list", archived=True)
    assert "archived" in next(one for one in listed["contexts"] if one["context_id"] == fork)
    await there.press("u")
    await until(lambda: not there.shows("A finding"), "taken back")
    await there.sees("the storage")
    await there.press("ctrl+y")
    await there.sees("A finding")
    assert (await here.call("block.read", block_id=block))["content"] == text
    await there.press("f4")
    await there.sees("    ⇢ tidy · ")


async def test_source_of_a_merge_without_cells_is_opened_as_it_was(
    here: World, there: Opened
) -> None:
    await say(here, "Plan")
    fork = (await here.call("context.fork", context="default", label="tidy"))["context_id"]
    (copy,) = (await here.call("block.list", context=fork))["blocks"]
    await here.call("block.splice", block_id=copy["block_id"], offset=0, insert="A ")
    await here.call("drift.merge", source=fork)
    await here.call("block.splice", block_id=copy["block_id"], offset=0, insert="By now: ")
    await there.sees("⇢ from tidy · merge · amy")
    await there.press("up", "G", "S", mode=Mode.NAVIGATE)
    await there.sees("History of the page")
    await there.sees("A Plan")
    assert not there.shows("By now:")


async def test_cells_are_written_into_a_file_after_a_look_at_the_difference(
    here: World, there: Opened
) -> None:
    await say(here, "Begin with the codec.")
    await there.sees("Begin with")
    await there.press("up", mode=Mode.NAVIGATE)
    await there.palette("Commit the cell into files")
    await there.sees("File for a text that is no diff")
    await there.send("plan.md")
    await there.sees("Message of a git commit")
    await there.press("enter")
    await there.sees("Commit into plan.md")
    await there.sees("1 + Begin with the codec.")
    await there.press("enter")
    await there.hint("Done: the last cell says")
    await there.sees("⇢ from default · commit · amy")
    read = await here.call("file.read", path="plan.md")
    assert read["content"] == "Begin with the codec.\n"


async def test_context_is_distilled_into_another_one_or_its_summary_is_stopped(
    here: World, there: Opened
) -> None:
    notes = (await here.call("context.create", label="notes"))["context_id"]
    await say(here, "Begin with the codec.", context=notes)

    async def distill() -> None:
        await there.palette("Distill a context into this one")
        await there.sees("this one")
        await there.type("notes")
        await until(lambda: not there.shows("this one"), "the only choice")
        await there.press("enter")
        await there.sees("no model")

    await distill()
    await there.press("up", "down", "down", "enter")
    await there.sees("⇢ from notes · distill · amy")
    await there.hint("In default: a summary")
    await distill()
    await there.press("enter")
    await there.sees("Ctrl+C stop")
    await there.press("ctrl+c")
    await there.sees("stopped by you")
    await there.hint("topped")  # what the summary and the stop have come to, in any order
