"""The panels of contexts and people."""

from __future__ import annotations

import asyncio

import pytest

from antiphon.screens.panels import Panel
from tests.app.opened import Opened, World, opened
from tests.kernel.access.test_ssh_keys import fingerprint, key_of
from tests.waiting import screen_updated, until


async def make(here: World, label: str) -> str:
    return str((await here.call("context.create", label=label))["context_id"])


async def labels(here: World) -> list[str]:
    found = await here.call("context.list")
    return [one["label"] for one in found["contexts"]]


async def test_entry_that_is_chosen_while_the_list_is_read_again_stays_chosen_and_answers_are_seen(
    here: World, there: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(20):
        await make(here, f"plan-{number}")
    await there.press("f4")
    await there.sees("plan-3")
    shown = panel(there)
    asked, answered, is_read = asyncio.Event(), asyncio.Event(), asyncio.Event()
    fetch, first = shown.fetch, shown.chosen

    async def fetch_late() -> None:
        asked.set()
        await answered.wait()
        await fetch()
        is_read.set()

    monkeypatch.setattr(shown, "fetch", fetch_late)
    shown.refresh_entries()
    await asked.wait()
    await there.press("down")
    chosen = shown.chosen
    assert chosen != first
    answered.set()
    await is_read.wait()
    await screen_updated()
    assert shown.chosen == chosen
    await there.press("z")
    await there.sees("Archived contexts are shown.")


async def test_context_is_renamed_archived_brought_back_opened_forked_and_made_anew(
    here: World, there: Opened
) -> None:
    await here.cell("Where do **we** begin?\nAnd why?")
    await there.press("f4")
    await there.sees("▸ default")
    await there.sees("Where do we begin?")
    await make(here, "plans")
    await there.sees("plans")
    await there.press("j", "R")
    await there.sees("Enter rename")
    await there.press(*["backspace"] * 5)
    await there.send("ideas")
    await there.sees("ideas")
    await there.press("A")
    await there.sees("ideas is archived")
    assert await labels(here) == ["default"]
    await there.press("z")
    await there.sees("· archived")
    await there.press("j", "A")
    await there.sees("ideas is back")
    assert await labels(here) == ["default", "ideas"]
    await there.press("g")
    row = next(row for row, line in enumerate(there.lines) if "ideas" in line)
    assert row not in panel(there).chosen_rows
    await there.pilot.click("_ChoicePage", offset=(4, row))
    assert row in panel(there).chosen_rows
    await there.pilot.click("_ChoicePage", offset=(4, row), times=2)
    await until(lambda: there.screen.contexts.label == "ideas", "opened")
    await there.live()
    await there.press("f4")
    await there.sees("Where do we begin?")
    await there.press("g", "F")
    await until(lambda: there.screen.contexts.label == "default-fork", "the fork is on screen")
    await there.sees("Where do we begin?")
    await there.live()
    # A label that is taken can be mended.
    await there.press("f4", "n")
    await there.sees("Enter make it")
    await there.send("ideas")
    await there.sees("Not made:")
    await there.send("2")
    await until(lambda: there.screen.contexts.label == "ideas2", "the new context is on screen")
    assert sorted(await labels(here)) == ["default", "default-fork", "ideas", "ideas2"]


async def test_people_are_listed_invited_given_a_role_and_kicked_only_after_a_question(
    here: World, there: Opened
) -> None:
    bo = await here.kernel.principal("bo")
    await here.call("kernel.role", principal="bo", role="viewer")
    await there.press("f5")
    await there.sees("○ bo")
    await there.sees("away")
    await there.press("I")
    await there.sees("For a day this line lets people in as viewers")
    invited = (await here.call("kernel.invites"))["invitations"]
    assert [one["role"] for one in invited] == ["viewer"]
    await there.press_until("j", lambda: panel(there).chosen == bo.id)
    await there.press("e")
    await there.sees("bo is")
    assert here.kernel.members.role_of(bo) == "editor"
    await there.press("x")
    await there.sees("End every connection of bo")
    await there.press("n")
    await there.press("x", "y")
    await there.sees("bo is out")
    members = (await here.call("kernel.members"))["members"]
    assert any("barred_until" in one for one in members if one["username"] == "bo")
    await there.pilot.resize_terminal(40, 20)
    await there.press("g")
    await until(lambda: any(line.rstrip().endswith("owner") for line in there.lines), "the rows")
    row = next(number for number, line in enumerate(there.lines) if "(you)" in line)
    assert there.lines[row + 1].strip().startswith("here since")
    assert "…" not in there.lines[row + 1]


async def test_one_session_over_ssh_is_ended_with_a_reason_and_a_key_revoked_after_a_question(
    here: World, there: Opened
) -> None:
    for name in ("bo", "dan"):
        await here.call("key.add", key=key_of(name), name=name)
    asked = {"host": here.me.session, "fingerprint": fingerprint("bo")}
    sessions = [(await here.call("ssh.open", **asked))["session"] for _ in range(2)]
    await there.press("f5")
    await until(
        lambda: sum("here over SSH since" in line for line in there.lines) == 2, "both sessions"
    )
    await there.press_until("j", lambda: panel(there).chosen == sessions[1])
    await there.press("d")
    await there.sees("Why? bo reads it")
    await there.send("lunch")
    await there.sees("Ended this session of bo")
    ended = (await here.call("ssh.ended"))["ended"]
    assert ended == [{"session": sessions[1], "reason": "amy ended your session: lunch"}]
    members = (await here.call("kernel.members"))["members"]
    (bo,) = [one for one in members if one["username"] == "bo"]
    assert [one["session"] for one in bo["sessions"]] == sessions[:1]
    await there.press("G", "f")
    await there.sees("This is a key")
    assert there.shows("SSH keys") and there.shows(fingerprint("dan"))
    await there.press("x", "y")
    await there.sees("Revoked: the key of dan")
    await until(lambda: not there.shows(fingerprint("dan")), "it is gone")
    states = [one["state"] for one in (await here.call("key.list"))["keys"]]
    assert states == ["good", "revoked"]


async def test_end_of_every_connection_of_somebody_lets_them_come_again(here: World) -> None:
    async with opened(here, as_name="bo") as other, opened(here) as there:
        # An answer that a panel gives again is among its hints.
        await other.press("f5")
        await other.sees("(you)")
        for count in (1, 2):
            await other.press("i")
            await other.sees("Not invited")
            await until(lambda: len(list(panel(other).hints)) == count, "the answer")  # noqa: B023
        await other.press("escape")
        await there.press("f5")
        await there.sees("● bo")
        await there.press_until("j", lambda: panel(there).chosen == other.screen.source.me)
        await there.press("d")
        await there.sees("Why? bo reads it")
        await there.press("escape", "d")
        await there.sees("Why? bo reads it")
        await there.press("enter")
        await there.sees("Ended every connection of bo")
        await other.sees("amy kicked bo")
        await there.sees("○ bo")
        await there.press("d")
        await there.sees("bo is not here")
    assert "barred_until" not in (await here.call("kernel.members"))["members"][-1]


def panel(there: Opened) -> Panel:
    screen = there.app.screen
    assert isinstance(screen, Panel)
    return screen
