"""Roles as people see them: their own, a changed one, a kick, a refusal, and who joins or waits."""

from __future__ import annotations

import asyncio
import re
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

from textual.events import Paste

from antiphon.actions import Mode
from antiphon.app import AntiphonApp
from antiphon.locations import state_folder
from antiphon.options import AppOptions
from antiphon.screens.modals import KeyModal
from antiphon_kernel.client.address import KernelAddress
from antiphon_kernel.config import ConfigProblem
from antiphon_kernel.turns.runner import runner_of
from tests.app.opened import Opened, World, opened
from tests.kernel.access.test_ssh_keys import fingerprint, key_of
from tests.waiting import until


def as_vera(here: World, **options: Any) -> AbstractAsyncContextManager[Opened]:
    return opened(here, as_name="vera", **options)


async def a_viewer(here: World, name: str = "vera") -> None:
    await here.kernel.principal(name)
    await here.call("kernel.role", principal=name, role="viewer")


def hint(there: Opened) -> str:
    return there.screen.frame.notice.hint or ""


async def test_viewer_comes_to_read_and_every_other_key_says_why_nothing_happens(
    here: World,
) -> None:
    block = await here.cell("some text")
    await a_viewer(here)
    async with as_vera(here, size=(120, 24)) as there:
        await there.sees("viewer · live")
        await there.sees("some text")
        await there.mode(Mode.NAVIGATE)
        await there.sees("You read along as a viewer")
        assert not there.shows("Message, or !command")
        footer = there.lines[-1]
        for offered in ("cell", "PgUp", "blame", "copy", "help"):
            assert offered in footer
        for refused in ("edit", "undo", "write", "shell", "address"):
            assert refused not in footer
        for key in ("x", "exclamation_mark", "enter", "e", "u", "U", "i", "tab", "escape"):
            there.screen.hint("-")
            await there.press(key)
            await until(lambda: "You are a viewer" in hint(there), f"told after {key}")
            assert there.screen.mode is Mode.NAVIGATE
        there.screen.hint("-")
        there.app.post_message(Paste("a whole page"))
        await until(lambda: "You are a viewer" in hint(there), "told after a paste")
        await there.press("ctrl+p")
        await there.type("message")
        await there.pilot.pause()
        assert not there.shows("Write a message")
        await there.press("escape")
        document = (await here.context()).document
        assert document.text(block) == "some text"
        assert list(document.block_ids()) == [block]
        # A model is not theirs to stop, either.
        await here.call("block.create", role="user", kind="text", content="Go", status="done")
        here.aria.write("Going on")
        await there.sees("Going on")
        assert not there.shows("stop aria")
        there.screen.hint("-")
        await there.press("ctrl+c")
        await until(lambda: "You are a viewer" in hint(there), "told")
        here.aria.write(" and on")
        await there.sees("Going on and on")
        here.aria.end()


async def test_editor_runs_no_command_and_a_demotion_keeps_a_message_and_stops_typing(
    here: World,
) -> None:
    document = (await here.context()).document

    async def become(role: str) -> None:
        await here.call("kernel.role", principal="vera", role=role)
        await there.sees(f"{role} · live")

    async with as_vera(here) as there:
        await there.sees("editor · live")
        await there.sees("Message · Esc to the cells")
        assert not there.shows("! shell") and not there.shows("!command")
        block = await here.cell("text")
        await there.cell("touch ran", kind="tool_call")
        await there.press("up", "enter")
        await there.sees("Only an owner runs commands here: y copies this one.")
        assert there.message == ""
        await there.press("i", mode=Mode.WRITE)
        await there.type("half a thought")
        await become("viewer")
        await until(lambda: there.lines[-1].strip().startswith("READ"), "no mode to write in")
        await there.type("!")
        await there.press("enter", "ctrl+z", "ctrl+u")
        await until(lambda: "You are a viewer" in hint(there), "told")
        assert there.message == "half a thought"
        await there.press("escape", mode=Mode.NAVIGATE)
        await there.press("i", mode=Mode.WRITE)
        await become("editor")
        await there.sees("half a thought")
        await there.send(" more")
        await until(lambda: there.message == "", "it is sent")
        await there.press("up", "g", "enter", mode=Mode.EDIT)
        await there.press("ctrl+home")
        await there.type("my ")
        await until(lambda: document.text(block) == "my text", "it arrives")
        await become("viewer")
        await there.type("x")
        assert document.text(block) == "my text"
        assert there.app.session.document.text(block) == "my text"
        await become("editor")
        await until(lambda: "you can write" in hint(there), "told")
        await there.type("own ")
        await until(lambda: document.text(block) == "my own text", "it arrives again")


async def test_cursor_after_refused_edits_is_where_it_was_in_the_text_that_stays(
    here: World,
) -> None:
    block = await here.cell("hello world")
    async with as_vera(here) as there:
        await there.sees("hello world")
        await there.edit()
        await there.press("right", "right", "right")
        await until(lambda: not there.app.session.status.unsaved)
        await here.close_doors()
        await there.type("refused")
        await here.call("kernel.role", principal="vera", role="viewer")
        await here.call("block.splice", block_id=block, offset=0, insert="Oh, ")
        await here.open_doors()
        await there.sees("viewer · live")
        await until(lambda: there.app.session.document.text(block) == "Oh, hello world")
        await there.mode(Mode.EDIT)
        editor = there.screen.area.editor
        assert editor is not None and editor.text[: editor.cursor_offset] == "Oh, hel"


async def test_keys_of_somebody_demoted_in_mid_word_are_text_that_is_refused_and_no_commands(
    here: World,
) -> None:
    block = await here.cell("one\n\ntwo")
    kernels = (await here.context()).document
    async with as_vera(here) as there:
        await there.sees("two")
        await there.edit()
        typing = "u b k e  y g z " * 2
        for letter in typing[:10]:
            there.burst(letter)
            await there.pilot.pause(0.005)
        # What comes now meets the demotion on its way: it is refused.
        demotion = asyncio.create_task(here.call("kernel.role", principal="vera", role="viewer"))
        for letter in typing[10:]:
            there.burst(letter)
            await there.pilot.pause(0.02)
        await demotion
        await there.sees("viewer · live")
        await there.mode(Mode.EDIT)
        assert there.lines[-1].strip().startswith("READ")
        assert not there.screen.source.is_folded(block)
        assert there.message == ""
        arrived = kernels.text(block).removesuffix("one\n\ntwo")
        assert typing.startswith(arrived)
        assert there.app.session.document.text(block) == kernels.text(block)
        reports = [one.read_text() for one in sorted((state_folder() / "refused").glob("*.md"))]
        kept = [
            line.removeprefix("    ")
            for report in reports
            for line in report.split("\n")
            if line.startswith("    ")
        ]
        assert typing.startswith(arrived + "".join(kept))
        # It is not refused again and again.
        assert sum(one.count("# What the kernel has not confirmed") for one in reports) <= 3


async def test_composer_text_typed_before_viewer_role_is_known_stays_local(here: World) -> None:
    await a_viewer(here)
    await here.close_doors()
    async with as_vera(here, live=False) as there:
        await there.type("hello")
        await here.open_doors()
        await there.sees("viewer · live")
        assert there.message == "hello"
        assert there.app.session.status.unsaved == 0
        await there.live()
        document = (await here.context()).document
        assert not [one for one in document.block_ids() if document.text(one) == "hello"]


async def test_kicked_user_reads_writes_nothing_and_joins_again(here: World) -> None:
    block = await here.cell("some text")
    kernels = (await here.context()).document
    async with as_vera(here, size=(120, 24)) as there:
        await there.sees("some text")
        await there.edit()
        await there.type("my ")
        await until(lambda: kernels.text(block) == "my some text", "it arrives")
        await here.call("kernel.kick", principal="vera", reason="lunch", minutes=5)
        await there.sees("kicked: amy kicked vera: lunch")
        await until(lambda: "lunch" in hint(there), "told why")
        await until(lambda: there.lines[-1].strip().startswith("READ"), "no mode to write in")
        await there.type("own ")
        assert there.app.session.document.text(block) == "my some text"
        await there.press("escape", mode=Mode.NAVIGATE)
        await there.sees("Sent away")
        await there.palette("Join again")
        await until(lambda: "may come back at" in hint(there), "not yet")
        assert not re.search(r"T\d\d:", hint(there))
        assert there.shows("my some text")
        await here.call("kernel.kick", principal="vera", minutes=0)
        there.screen.call_action("join_again")
        await there.sees("editor · live")
        await there.sees("my some text")
        await there.type("hello")
        assert there.message == "hello"


def invited(address: KernelAddress, token: str, folder: Path) -> AntiphonApp:
    """The app of somebody who has only a token."""
    theirs = address.model_copy(update={"socket": None, "token": token, "client": "c" * 32})
    return AntiphonApp(AppOptions(data=folder, address=theirs))


def address_of(here: World) -> KernelAddress:
    assert here.doors is not None
    return KernelAddress(pid=1, kernel="", sync=here.doors.sync, http=here.doors.http)


async def test_owner_is_told_who_joins_and_a_revoked_guest_why_it_is_over(
    tmp_path: Path,
    here: World,
) -> None:
    problem = ConfigProblem("/home/amy/config.toml", "[models.x] does not know modle.", 3)
    models = runner_of(here.kernel).models
    models.config = replace(models.config, problems=(problem,))
    async with opened(here) as owners:
        said = "/home/amy/config.toml:3: [models.x] does not know modle."
        await until(lambda: said in hint(owners), "what is wrong in configuration files")
        made = await here.call("kernel.invite", role="viewer", name="vera")
        await here.call("kernel.label", label="chorus")
        guests = invited(address_of(here), made["token"], tmp_path)
        async with guests.run_test(size=(120, 40)) as pilot:
            there = Opened(guests, pilot)
            await there.sees("viewer · live")
            await there.sees("chorus · default")
            await until(lambda: "vera has joined as a viewer" in hint(owners), "the owner is told")
            await here.call("kernel.revoke", invitation=made["invitation"])
            await there.sees("refused: amy revoked the invitation")
            await guests.session.close()
            guests.exit()


async def test_owner_decides_about_a_key_when_they_like(here: World) -> None:
    async with opened(here, size=(100, 30)) as there:
        await there.sees("live")
        assert there.shows("! shell") and not there.shows("owner"), "nothing is said of the usual"
        for name, key, role, words in (
            ("cy", "n", None, "Turned away"),
            ("bo", "e", "editor", "bo may come in as editor"),
        ):
            asked = asyncio.create_task(here.call("key.ask", key=key_of(name), name=name))
            await there.sees(f"{fingerprint(name)} wants to join as {name}")
            await there.type("even while I write")
            assert not isinstance(there.app.screen, KeyModal)
            await there.palette("Let somebody in who waits")
            await until(lambda: isinstance(there.app.screen, KeyModal), "the question")
            await there.sees("e editor")
            await there.press(key)
            assert (await asked).get("role") == role
            await there.sees(words)
        # A question that is left open can be answered later.
        asked = asyncio.create_task(here.call("key.ask", key=key_of("di"), name="di"))
        await there.sees("wants to join as di")
        there.screen.call_action("decide_key")
        await until(lambda: isinstance(there.app.screen, KeyModal), "the question")
        await there.press("escape")
        assert there.screen.situation.key_waits
        asked.cancel()
        await until(lambda: not here.kernel.key_requests.waiting(), "the guest has gone")
        there.screen.call_action("decide_key")
        await until(lambda: isinstance(there.app.screen, KeyModal), "the question again")
        await there.press("v")
        await there.sees("has been decided, or its sender has gone")
