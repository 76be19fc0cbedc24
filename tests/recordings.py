"""Recordings that tests play: every token can be told from every other."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Recorded:
    """A recording on disk, and the text that its model writes in the end."""

    path: Path
    text: str


def numbered_recording(
    path: Path, *, model: str, words: int, pause_ms: int, command: str = "echo from the shell"
) -> Recorded:
    """A thought, a real command, then `words` numbered words, `pause_ms` apart."""
    tokens = [
        f"word{number:04d}" + ("\n\n" if number % 24 == 23 else " ") for number in range(words)
    ]

    def events() -> Iterator[dict[str, Any]]:
        yield {"model": model, "title": "Counting words"}
        yield {"at_ms": 50, "type": "thinking", "text": "I shall run a command,\n"}
        yield {"at_ms": 50, "type": "thinking", "text": "and then count."}
        yield {"at_ms": 50, "type": "tool_call", "name": "shell", "input": {"command": command}}
        for token in tokens:
            yield {"at_ms": pause_ms, "type": "text", "text": token}
        yield {"at_ms": 10, "type": "end", "stop_reason": "end_turn"}

    path.write_text("".join(json.dumps(event) + "\n" for event in events()), "utf-8")
    return Recorded(path, "".join(tokens))
