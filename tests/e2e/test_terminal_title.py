"""The window's title, as a real terminal is told it."""

from __future__ import annotations

import re

import pytest

from tests.e2e.machine import Machine
from tests.waiting import wait_until

KEPT, RESTORED = b"\x1b[22;0t", b"\x1b[23;0t"


def titles(output: bytes) -> list[str]:
    return [one.decode() for one in re.findall(rb"\x1b\]2;([^\x1b\x07]*)\x1b\\", output)]


def output_of_a_visit(machine: Machine, *, title: str | None = None, **env: str) -> bytes:
    """Return what the app writes until the title, if one is expected, and at its end."""
    terminal = machine.terminal("join", env=env)
    terminal.wait_for("live")
    wait_until(lambda: title is None or title in titles(bytes(terminal.output)), "the title")
    terminal.press("ctrl+q")
    assert terminal.wait_for_end() == 0
    return bytes(terminal.output)


@pytest.fixture
def visited(machine: Machine) -> Machine:
    machine.call(machine.data, "block.create", kind="text", content="some text")
    return machine


def test_title_is_the_context_and_the_one_before_comes_back(visited: Machine) -> None:
    output = output_of_a_visit(visited, title="antiphon: default")
    assert output.count(KEPT) == output.count(RESTORED) == 1
    assert output.index(KEPT) < output.index(b"\x1b]2;")
    assert output.rindex(b"\x1b]2;") < output.index(RESTORED)


def test_title_is_left_alone_where_it_is_not_wanted_or_not_known(visited: Machine) -> None:
    console = output_of_a_visit(visited, TERM="linux")
    settings = visited.home / ".config" / "antiphon" / "settings.toml"
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text("title = false\n")
    unwanted = output_of_a_visit(visited, XDG_CONFIG_HOME=str(visited.home / ".config"))
    for output in (console, unwanted):
        assert not titles(output)
        assert KEPT not in output and RESTORED not in output
