"""Guests over SSH who try everything that the app offers."""

from __future__ import annotations

import contextlib
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import pytest
from textual.binding import Binding
from textual.events import Paste

from antiphon.actions import ACTIONS, Mode, Owner
from antiphon.app import AntiphonApp
from antiphon.options import AppOptions
from antiphon.screens.history import HistoryModal
from antiphon.screens.panels import ContextsPanel, Panel, PeoplePanel
from tests.addresses import address_of
from tests.app.opened import Opened, World, world
from tests.kernel.access.test_ssh_keys import fingerprint, key_of
from tests.waiting import until

TOLD = "You are a viewer"
LEAVE = {"quit"}
LOCAL = {"up,k", "down,j", "g,home", "G,end", "escape,q,ctrl+c", "enter", "f,enter", "z"}
"""Keys of panels that look at something."""


@contextlib.asynccontextmanager
async def guest(here: World, role: str, folder: Path) -> AsyncIterator[Opened]:
    """The app of somebody who has come over SSH."""
    await here.call("key.add", key=key_of("bo"), name="bo", role=role)
    asked = {"host": here.me.session, "fingerprint": fingerprint("bo")}
    opened = await here.call("ssh.open", **asked)
    assert here.doors is not None
    address = address_of(here.kernel, here.doors)
    theirs = address.model_copy(update={"socket": None, "token": opened["token"]})
    options = AppOptions(folder, address=theirs, project=folder / "files", is_guest=True)
    app = AntiphonApp(options)
    async with app.run_test(size=(80, 24)) as pilot:
        there = Opened(app, pilot)
        await there.live()
        await until(lambda: there.screen.user.role == role, "the role is known")
        yield there
        await app.session.close()
        app.exit()


async def everything(here: World) -> tuple[Any, ...]:
    """All that somebody could change in a kernel."""
    members = (await here.call("kernel.members"))["members"]
    contexts = (await here.call("context.list", archived=True))["contexts"]
    return (
        [(one["context_id"], one["label"], one["context_version"]) for one in contexts],
        [one["label"] for one in contexts if "archived" in one],
        [(one["username"], one["role"], one.get("barred_until")) for one in members],
        await here.call("kernel.invites"),
        await here.call("key.list"),
        await here.texts(),
    )


async def alone(there: Opened) -> None:
    """Go back to the document, whatever an action has opened."""
    await there.pilot.pause()
    while len(there.app.screen_stack) > 1:
        await there.app.pop_screen()
    there.screen.area.leave()
    there.screen.cells.focus()
    there.screen.hint("-")


def hint(there: Opened) -> str:
    return there.screen.frame.notice.hint or ""


def shows_history(there: Opened) -> bool:
    screen = there.app.screen
    return isinstance(screen, HistoryModal) and screen.step is not None


async def test_viewer_changes_nothing_by_any_action_or_command(here: World, tmp_path: Path) -> None:
    async with guest(here, "viewer", tmp_path / "guest") as there:
        await there.sees("Nothing has been written here yet.")
        assert there.shows("everything, by name")
        assert not there.shows("sends what you write")
        assert not there.shows("lists commands")
        await here.cell("first\n\nsecond")
        await here.cell("and another")
        await there.sees("and another")
        before = await everything(here)
        silent: list[str] = []
        for action in ACTIONS:
            if action.typed or action.name in LEAVE or action.owner is Owner.REPLAY:
                continue
            await alone(there)
            there.screen.call_action(action.name)
            if action.mutates and TOLD not in hint(there):
                silent.append(action.name)
        assert silent == []
        await alone(there)
        for command in there.screen.controllers.commands.available().values():
            if command.argument and command.name not in ("theme", "context"):
                there.screen.hint("-")
                calling = command.run("x")
                assert calling is not None
                assert not await calling
                assert "Not " in hint(there)
        for wish in "rF":
            await alone(there)
            there.screen.call_action("history")
            await until(lambda: shows_history(there), "the history")
            await there.press(wish)
            await until(lambda: TOLD in hint(there), "told after a wish in the history")
        for key in ("exclamation_mark", "at", "i", "x", "E", "u", "enter", "ctrl+z"):
            await there.press(key)
        there.screen.hint("-")
        there.app.post_message(Paste("a page"))
        await until(lambda: TOLD in hint(there), "told after a paste")
        assert there.message == ""
        assert await everything(here) == before


def panel_of(there: Opened) -> Panel:
    screen = there.app.screen
    assert isinstance(screen, Panel)
    return screen


def keys_of(panel: type[Panel]) -> list[str]:
    """The keys of a panel that do something to what is chosen."""
    bindings = [one for one in panel.BINDINGS if isinstance(one, Binding)]
    return [one.key for one in bindings if one.key not in LOCAL]


PANELS: Final = (
    ("viewer", "f4", ContextsPanel),
    ("viewer", "f5", PeoplePanel),
    ("editor", "f5", PeoplePanel),
)


async def test_guest_is_told_why_a_key_of_a_panel_changes_nothing(
    here: World, tmp_path: Path
) -> None:
    cleo = await here.kernel.principal("cleo")
    here.kernel.open_session(here.kernel.owner, "test")  # not the one of the SSH host
    async with guest(here, "viewer", tmp_path / "guest") as there:
        for role, key, panel in PANELS:
            await here.call("kernel.role", principal="bo", role=role)
            await until(lambda: there.screen.user.role == role, "the role is known")  # noqa: B023
            before = await everything(here)
            await there.press(key)
            shown = panel_of(there)
            assert isinstance(shown, panel)
            await until(lambda: shown.ids, "its entries")  # noqa: B023
            for one in keys_of(panel):
                if key == "f5":
                    shown.choose_id(cleo.id if one == "o" else here.kernel.owner.id)
                await press_key_of(there, shown, one)
            await there.press("escape")
            await until(lambda: there.app.screen is there.screen, "the document")
            assert await everything(here) == before, role


async def press_key_of(there: Opened, shown: Panel, key: str) -> None:
    """Press a key of a panel, agree to what it asks, and wait for the refusal."""
    shown.notify_person("")
    await until(lambda: not there.shows("Not "), "the answer before is gone")
    await there.press(key)
    await until(lambda: there.shows("Not ") or there.app.screen is not shown, "an answer")
    if there.app.screen is not shown:
        await there.press(*(["y"] if key in "ox" else ["y", "enter"]))
    await there.sees("Not ")
    if there.app.screen is not shown:  # it asks until it is answered
        await there.press("escape")
        await until(lambda: there.app.screen is shown, "the panel")


async def test_editor_attaches_no_file_of_the_machine_and_runs_no_program(
    here: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = tmp_path / "made"
    for name in ("EDITOR", "VISUAL"):
        monkeypatch.setitem(os.environ, name, f"touch {made}")
    await here.cell("some text")
    async with guest(here, "editor", tmp_path / "guest") as there:
        for path in ("../../etc/passwd", "ssh.key"):
            await there.type(f"see @{path}")
            await there.press("escape", "i", "enter")
            await until(lambda: "no file can be attached" in hint(there), "told")
            assert there.message == f"see @{path}"
            assert not [one for one in await here.texts(status="done") if path in one]
            there.screen.hint("-")
            await there.press("ctrl+u")
        await there.send(f"!touch {made}")
        await until(lambda: "Not run" in hint(there), "told")
        await there.press("escape", mode=Mode.NAVIGATE)
        await there.press("k", "E")
        await until(lambda: "no editor can be started" in hint(there), "told")
    assert not made.exists()


async def test_guest_without_a_model_is_told_who_sets_one_up(tmp_path: Path) -> None:
    async with (
        world(tmp_path / "world", models=False) as here,
        guest(here, "editor", tmp_path / "bo") as there,
    ):
        await there.sees("whoever shares this")
        assert not any("ANTHROPIC_API_KEY" in line for line in there.lines)
