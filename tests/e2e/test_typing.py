"""What a person types and pastes in a real terminal is what the kernel has."""

from __future__ import annotations

from pathlib import Path

from tests.e2e.machine import Machine
from tests.recordings import numbered_recording
from tests.waiting import wait_until

TYPED = "<a\u00a0b\u3000c\u200cd👩\u200d👩\u200d👧e\ufe0f>"
PASTED = "{four\x1b[31mred\x1b[0m\r\n\ttail\x1b\u3000}"


def test_every_typed_and_pasted_character_reaches_the_kernel(
    machine: Machine, tmp_path: Path
) -> None:
    recorded = numbered_recording(tmp_path / "aria.jsonl", model="aria", words=60, pause_ms=20)
    terminal = machine.terminal("demo", "--play", str(recorded.path))
    terminal.wait_for("word0005")
    terminal.press("up")
    terminal.wait_for("NAVIGATE")
    terminal.press("enter")
    terminal.wait_for("EDIT")
    terminal.type(f"{TYPED}\x1b[200~{PASTED}\x1b[201~!")
    terminal.wait_for("tail␛", what="the escape character, visible")

    expected = TYPED + PASTED.replace("\r\n", "\n") + "!"
    data = machine.kernel().data

    def has_arrived() -> bool:
        (block,) = machine.call(data, "block.list", role="model", kind="text")["blocks"]
        content = machine.call(data, "block.read", block_id=block["block_id"])["content"]
        return expected in content

    wait_until(has_arrived, "the kernel has what was typed and pasted")
