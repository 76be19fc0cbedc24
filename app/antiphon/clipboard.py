"""Copying out of the app, and saying which way it went."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Final

from antiphon.locations import state_folder
from antiphon_kernel.text.sanitize import sanitize
from antiphon_kernel.types.quoting import count_of

OSC_52_LIMIT: Final = 74_000
"""Bytes that terminals take in one OSC 52; longer text goes into a file."""


async def copy_text(text: str, osc_52: Callable[[str], None]) -> str:
    """Copy `text`, made harmless for a terminal; returns the sentence that says where it went.

    `osc_52` hands a text to the terminal.
    """
    shown = sanitize(text)
    what = count_of(shown.count("\n") + (not shown.endswith("\n")), "line")
    if "TMUX" in os.environ and await asyncio.to_thread(_to_tmux, shown):
        return f"Copied {what} to the tmux buffer."
    if len(shown.encode()) <= OSC_52_LIMIT:
        osc_52(shown)
        return f"Sent {what} to the terminal's clipboard (OSC 52)."
    return await asyncio.to_thread(_to_file, shown, state_folder(), what)


def _to_tmux(text: str) -> bool:
    """`-w` lets tmux hand it on to the terminal's clipboard where it may."""
    command = ("tmux", "load-buffer", "-w", "-")
    try:
        done = subprocess.run(command, input=text.encode(), capture_output=True, check=False)
    except OSError:
        return False
    return done.returncode == 0


def _to_file(text: str, folder: Path, what: str) -> str:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = folder / "copied.txt"
        path.touch(mode=0o600)
        path.write_text(text, "utf-8")
    except OSError as error:
        return f"Not copied: {what} are too long for the terminal, and {folder}: {error.strerror}."
    return f"Too long for the terminal's clipboard: wrote {what} to {path}."
