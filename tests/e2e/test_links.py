"""Links of the terminal, as a real one is told them."""

from __future__ import annotations

import re

import pytest

from tests.e2e.machine import Machine

TEXT = "[docs](https://a.b/c), https://d.e and [no](javascript:alert)"


@pytest.mark.parametrize(
    ("term", "addresses"), [("xterm-256color", {"https://a.b/c", "https://d.e"}), ("linux", set())]
)
def test_terminal_that_knows_links_gets_those_that_are_harmless(
    machine: Machine, term: str, addresses: set[str]
) -> None:
    block = {"role": "user", "kind": "text", "content": TEXT, "status": "done"}
    machine.call(machine.data, "block.create", **block)
    terminal = machine.terminal("join", env={"TERM": term})
    terminal.wait_for("docs (https://a.b/c)")
    terminal.wait_for("live")
    terminal.press("ctrl+q")
    assert terminal.wait_for_end() == 0
    found = re.findall(rb"\x1b\]8;id=[0-9-]+;([^\x1b\x07]+)\x1b\\", terminal.output)
    assert {one.decode() for one in found} == addresses
