"""Names for those who join a demo."""

from __future__ import annotations

import fcntl
import os
from itertools import count
from pathlib import Path


def pick_guest_name(data: Path) -> str:
    """The first free one of guest, guest2, guest3, ...; free again when this process ends."""
    for number in count(1):
        name = "guest" if number == 1 else f"guest{number}"
        # Stays open on purpose: the lock is the name, and the operating system gives it back.
        lock = os.open(data / f"{name}.lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
        else:
            return name
    raise AssertionError("there is always a next number")
