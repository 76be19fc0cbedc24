"""Messages and commands that a person has sent on one kernel, newest first."""

from __future__ import annotations

import json
import os
from hashlib import sha256
from pathlib import Path
from typing import Final

from antiphon_kernel.client.ownership import write_private

FOLDER: Final = "history"

KEPT: Final = 1_000
"""Messages that are offered."""

LARGEST: Final = 2_000_000
"""Bytes of the file from which on only the later half of its lines is kept."""

LONGEST: Final = 20_000
"""Characters of a message that is kept."""


class MessageHistory:
    """A file of the user's for each kernel, one JSON string a line."""

    def __init__(self, folder: Path, place: str) -> None:
        """`place` names the kernel, for which the state `folder` holds a file."""
        name = sha256(place.encode()).hexdigest()[:32]
        self._file = folder / FOLDER / f"{name}.jsonl"

    def add(self, text: str) -> None:
        """Keep a message.

        Raises:
            OSError: if it cannot be written.
        """
        if len(text) > LONGEST or not text.strip():
            return
        self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(self._file, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "a", encoding="utf-8") as file:
            file.write(json.dumps(text) + "\n")
        if self._file.stat().st_size > LARGEST:
            lines = self._lines()
            write_private(self._file, "\n".join(lines[len(lines) // 2 :]) + "\n")

    def messages(self) -> tuple[str, ...]:
        """Return the messages, each once, the latest first; lines that are none are left out.

        Raises:
            OSError: if they cannot be read.
        """
        found: dict[str, None] = {}
        for line in reversed(self._lines()):
            try:
                text = json.loads(line)
            except ValueError:
                continue
            if isinstance(text, str):
                found[text] = None
        return tuple(found)[:KEPT]

    def _lines(self) -> list[str]:
        try:
            return self._file.read_text("utf-8", "replace").splitlines()
        except FileNotFoundError:
            return []
