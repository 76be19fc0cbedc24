"""A real terminal: a cell edited in another program, found, clicked, resized; title and links."""

from __future__ import annotations

import re
from pathlib import Path

from tests.e2e.machine import Machine
from tests.e2e.sharing import message
from tests.waiting import wait_until

EDITOR = """#!/bin/sh
printf 'the editor has the terminal: '
read answer
sed -i "s/two/$answer/" "$1"
"""


def test_cell_is_edited_in_another_program_found_copied_and_clicked(
    machine: Machine, tmp_path: Path
) -> None:
    made = machine.call(machine.data, "block.create", **message("one\ntwo\nthree\n"))
    block = str(made["block_id"])
    editor = tmp_path / "editor"
    editor.write_text(EDITOR)
    editor.chmod(0o700)
    terminal = machine.terminal("join", env={"VISUAL": str(editor)})
    terminal.wait_for("three")
    terminal.wait_for("live")
    terminal.press("up")
    terminal.wait_for("NAVIGATE")
    terminal.type("E")
    terminal.wait_for("the editor has the terminal:")
    machine.call(machine.data, "block.splice", block_id=block, offset=0, insert="zero\n")
    terminal.type("2\r")
    terminal.wait_for("Merged 1 change")
    assert machine.content(block) == "zero\none\n2\nthree\n"
    terminal.type("u")
    terminal.wait_for("Took back")
    assert machine.content(block) == "zero\none\ntwo\nthree\n"

    terminal.type("\x06")
    terminal.wait_for("FIND")
    terminal.type("three")
    terminal.wait_for("1 of 1")
    terminal.resize(60, 16)
    terminal.wait_for("1 of 1")
    terminal.type("\r")
    terminal.wait_for("NAVIGATE")
    terminal.type("y")
    terminal.wait_for("to the terminal's clipboard")
    assert b"\x1b]52;" in terminal.output
    row = next(at for at, line in enumerate(terminal.screen()) if "two" in line)
    column = terminal.screen()[row].index("two")
    for _ in range(2):
        terminal.type(f"\x1b[<0;{column + 1};{row + 1}M\x1b[<0;{column + 1};{row + 1}m")
    terminal.wait_for("EDIT")
    terminal.type("and ")
    wait_until(lambda: "and two" in machine.content(block), "what was typed has arrived")


TEXT = "[docs](https://a.b/c), https://d.e and [no](javascript:alert)"
KEPT, RESTORED = b"\x1b[22;0t", b"\x1b[23;0t"


def titles(output: bytes) -> list[str]:
    return [one.decode() for one in re.findall(rb"\x1b\]2;([^\x1b\x07]*)\x1b\\", output)]


def links(output: bytes) -> set[bytes]:
    return set(re.findall(rb"\x1b\]8;id=[0-9-]+;([^\x1b\x07]+)\x1b\\", output))


def output_of_a_visit(machine: Machine, *, title: str | None = None, **env: str) -> bytes:
    """Return what the app writes until the title, if one is expected, and at its end."""
    terminal = machine.terminal("join", env=env)
    terminal.wait_for("docs (https://a.b/c)")
    terminal.wait_for("live")
    wait_until(lambda: title is None or title in titles(bytes(terminal.output)), "the title")
    terminal.quit()
    return bytes(terminal.output)


def test_title_and_harmless_links_are_told_where_they_are_known_and_wanted(
    machine: Machine,
) -> None:
    machine.call(machine.data, "block.create", **message(TEXT))
    output = output_of_a_visit(machine, title="antiphon: default")
    assert output.count(KEPT) == output.count(RESTORED) == 1
    assert output.index(KEPT) < output.index(b"\x1b]2;")
    assert output.rindex(b"\x1b]2;") < output.index(RESTORED)
    assert links(output) == {b"https://a.b/c", b"https://d.e"}

    console = output_of_a_visit(machine, TERM="linux")
    assert links(console) == set()
    settings = machine.home / ".config" / "antiphon" / "settings.toml"
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text("title = false\n")
    unwanted = output_of_a_visit(machine, XDG_CONFIG_HOME=str(machine.home / ".config"))
    for output in (console, unwanted):
        assert not titles(output)
        assert KEPT not in output and RESTORED not in output
