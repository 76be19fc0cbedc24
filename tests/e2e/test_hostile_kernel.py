"""The app and the command line on a kernel that takes any name: a terminal gets none as it is."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from antiphon.render.display import displayable_in_a_row
from antiphon_kernel.access import members
from antiphon_kernel.contexts.opening import context_registry
from antiphon_kernel.server import authentication
from antiphon_kernel.types.enums import PrincipalKind
from antiphon_kernel.types.roles import AccessRole
from tests.app.opened import World, opened, world
from tests.e2e.machine import ANTIPHON, Machine
from tests.e2e.terminal import Terminal

HOSTILE = "\x1b]\x07\x9b\u202e\U000e0041\u200b"
"""The beginning of every name: short enough to be shown wherever a name is."""

SHOWN = displayable_in_a_row(HOSTILE)
DRIVING = "\x07\x08\x1b\x7f-\x9f\u200b\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f"
FORBIDDEN = re.compile(f"[{DRIVING}]")
OWN_SEQUENCES = re.compile(
    r"\x1b\[[0-9;:?<=>$]*[A-Za-z]|\x1b[=>78]|\x1b[P_][ -~]*\x1b\\|\x1b\]22;[a-z-]*\x07"
    rf"|\x1b\]2;[^{DRIVING}\n]*\x1b\\|\x1b\]11;\?\x1b\\|\x1b\]8;[ -~]*\x1b\\"
)
"""Styles, modes, positions, questions to the terminal, shapes of the pointer, titles, links."""

WITH_NAMES_AS_THEY_ARE = (
    "from antiphon.render import display; display.displayable_in_a_row = str;"
    "from antiphon.__main__ import main; main()"
)


@pytest.fixture
async def hostile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[World]:
    """A kernel whose people, contexts and drafts have hostile names."""
    for module in (authentication, members, context_registry):
        monkeypatch.setattr(module, "is_name", lambda name: True)
    async with AsyncExitStack() as stack:
        here = await stack.enter_async_context(world(tmp_path, models=False))
        kernel = here.kernel
        human, shell = PrincipalKind.HUMAN, PrincipalKind.SHELL
        for status, kind in (("done", human), ("pending", human), ("done", shell)):
            principal = await kernel.principal(f"{HOSTILE}{status}{kind}", kind)
            actor = kernel.open_session(principal, "test")
            (await here.context()).ensure_member(actor)
            new = {"kind": "text", "status": status, "content": f"{HOSTILE} end"}
            await kernel.call(actor, "block.create", new)
        await here.call("context.create", label=f"{HOSTILE}notes")
        guest = await stack.enter_async_context(opened(here, as_name=f"{HOSTILE}guest"))
        await guest.live()
        await guest.edit()
        yield here


def look_around(terminal: Terminal) -> str:
    """Open what shows names; everything that was written to the terminal."""
    with terminal:
        terminal.wait_for("live")
        terminal.wait_for("end")
        terminal.press("f2")
        terminal.wait_for("notes")
        terminal.press("escape", "up")
        terminal.wait_for("NAVIGATE")
        terminal.press("b")
        terminal.press("U")
        terminal.wait_for("Take back")
        terminal.press("n")
        terminal.wait_for(lambda screen: "Take back" not in screen)
        terminal.press("ctrl+p")
        terminal.wait_for("Show or hide")
        terminal.type("Context")
        terminal.wait_for("Context: ")
        terminal.press("escape")
        terminal.wait_for(lambda screen: "Context: " not in screen)
        terminal.press("ctrl+q")
        terminal.wait_for_end()
        return terminal.output.decode()


def written_by(machine: Machine, arguments: Sequence[str]) -> str:
    """Run a command to its end; everything that was written to the terminal."""
    with Terminal([ANTIPHON, *arguments], env=machine.env, cwd=machine.project) as terminal:
        terminal.wait_for_end()
        return terminal.output.decode()


def driving(written: str) -> list[str]:
    """Return what drives a terminal and is no sequence of the app itself.

    A program that still runs may be in the middle of its last sequence.
    """
    whole = re.sub(r"\x1b[\[?=>0-9;]*$", "", written)
    return FORBIDDEN.findall(OWN_SEQUENCES.sub("", whole))


async def test_hostile_names_in_the_app_do_not_reach_the_terminal(
    machine: Machine, hostile: World
) -> None:
    program = [ANTIPHON, "--data", str(hostile.data)]
    terminal = Terminal(program, env=machine.env, cwd=machine.project)
    written = await asyncio.to_thread(look_around, terminal)
    assert SHOWN[:4] in written
    assert driving(written) == []


async def test_hostile_names_that_are_shown_as_they_are_reach_the_terminal(
    machine: Machine, hostile: World
) -> None:
    program = [sys.executable, "-c", WITH_NAMES_AS_THEY_ARE, "--data", str(hostile.data)]
    with Terminal(program, env=machine.env, cwd=machine.project) as terminal:
        await asyncio.to_thread(terminal.wait_for, lambda _: HOSTILE.encode() in terminal.output)
        assert driving(terminal.output.decode(errors="replace"))


async def test_hostile_names_that_only_the_filter_replaces_do_not_reach_the_terminal(
    machine: Machine, hostile: World
) -> None:
    filtered = f"import antiphon.screen_filter; {WITH_NAMES_AS_THEY_ARE}"
    program = [sys.executable, "-c", filtered, "--data", str(hostile.data)]
    with Terminal(program, env=machine.env, cwd=machine.project) as terminal:
        await asyncio.to_thread(terminal.wait_for, f"{SHOWN}guest")
        written = terminal.output.decode(errors="ignore")
    assert driving(written) == []


async def test_hostile_names_in_commands_do_not_reach_the_terminal(
    machine: Machine, hostile: World, tmp_path: Path
) -> None:
    listed = await hostile.call("block.list")
    block = listed["blocks"][0]["block_id"]
    exported = tmp_path / "exported"
    exported.write_text((await hostile.call("context.export"))["text"])
    assert hostile.doors is not None
    url = f"{hostile.doors.sync}?token={hostile.doors.token}"
    data = ["--data", str(hostile.data)]
    commands = (
        ["call", "context.list", *data],
        ["call", "kernel.members", "--json", *data],
        ["call", "context.rename", json.dumps({"label": HOSTILE, "context": HOSTILE}), *data],
        ["export", *data],
        ["export", "--format", "markdown", *data],
        ["blame", block, *data],
        ["history", block, *data],
        ["log", *data],
        ["doctor", *data],
        ["import", str(exported), "--label", f"{HOSTILE}copy", "--url", url],
        ["tail", f"{HOSTILE}missing", "--url", url],
    )
    outputs = await asyncio.gather(
        *(asyncio.to_thread(written_by, machine, arguments) for arguments in commands)
    )
    for arguments, written in zip(commands, outputs, strict=True):
        assert written, arguments
        assert driving(written) == [], arguments
    assert sum(SHOWN in written for written in outputs) >= 4


async def test_hostile_label_of_a_joined_context_does_not_reach_the_terminal(
    machine: Machine, hostile: World
) -> None:
    assert hostile.doors is not None
    url = f"{hostile.doors.sync}?token={hostile.doors.token}"
    program = [ANTIPHON, "join", url, "--context", f"{HOSTILE}notes"]
    with Terminal(program, env=machine.env, cwd=machine.project) as terminal:
        await asyncio.to_thread(terminal.wait_for, "notes")
        written = terminal.output.decode(errors="ignore")
    assert SHOWN[:4] in written
    assert driving(written) == []


async def test_hostile_name_in_a_notice_does_not_reach_the_terminal(
    machine: Machine, hostile: World
) -> None:
    assert hostile.doors is not None
    program = [ANTIPHON, "--data", str(hostile.data)]
    with Terminal(program, env=machine.env, cwd=machine.project) as terminal:
        await asyncio.to_thread(terminal.wait_for, "live")
        made = await hostile.kernel.invitations.invite(
            AccessRole.VIEWER, name=f"{HOSTILE}vera", expires=None, uses=None
        )
        url = f"{hostile.doors.sync}?token={made.token}"
        await asyncio.to_thread(machine.run, "call", "session.whoami", "--url", url)
        await asyncio.to_thread(terminal.wait_for, "vera has joined")
        written = terminal.output.decode(errors="ignore")
    assert driving(written) == []
