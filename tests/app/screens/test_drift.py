"""Work that goes to other contexts and comes back: pushes, pulls, merges, commits, their cells."""

from __future__ import annotations

from typing import Any

import pytest

from antiphon.actions import Mode
from antiphon_kernel.types.enums import PrincipalKind
from antiphon_kernel.types.records import Actor
from tests.app.opened import Opened, World, opened
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
    await there.press("up", "D", mode=Mode.NAVIGATE)
    await there.sees("Push cells to another context")
    await there.press("enter")
    await there.sees("notes")
    await there.press("enter")
    await there.sees("Enter push to notes: 1 cell")
    await there.press("k", "space", "w", "enter")
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
    await there.sees("Enter pull from notes: 1 cell")
    await there.press("up", "space", "w", "enter")
    await there.hint("In default: 2 cells added")
    await there.press("j", "space")
    await until(lambda: sum("▸ Found" in line for line in there.lines) == 2, "folded")
    await there.press("space")
    await until(lambda: sum("and more" in line for line in there.lines) == 2, "opened")
    await there.press("u")
    await until(lambda: not there.shows("Found"), "taken back")
    await there.hint("Ctrl+Y")
    await there.press("ctrl+y")
    await there.sees("Found 1")


async def test_drift_of_somebody_else_is_told_here_and_elsewhere(here: World) -> None:
    notes = (await here.call("context.create", label="notes"))["context_id"]
    found, ben = await say(here, "Found it", context=notes), await as_other(here, "ben")
    async with opened(here, size=(120, 40)) as there:
        await there.sees("  notes")
        await here.kernel.call(ben, "drift.push", {"to": "default", "blocks": [found]})
        await there.hint("⇢ from notes · push · ben · in ¶1")
        copy = there.screen.source.ids()[-1]
        await here.kernel.call(ben, "drift.push", {"to": notes, "blocks": [copy]})
        await there.hint("⇢ notes: push from default by ben")
        await until(lambda: any("notes" in row and "●" in row for row in there.lines), "unread")
