"""The window's title and links, as a real terminal is told them."""

from __future__ import annotations

import re

from tests.e2e.machine import Machine
from tests.e2e.sharing import message
from tests.waiting import wait_until

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
    terminal.press("ctrl+q")
    assert terminal.wait_for_end() == 0
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
