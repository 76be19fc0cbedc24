"""Work as a number that no other process on the machine changes."""

from __future__ import annotations

import sys
from collections.abc import Awaitable
from types import FrameType
from typing import Any


async def calls_of(doing: Awaitable[Any]) -> int:
    """How many Python functions are called on the event loop until it is done."""
    count = 0

    def note(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event == "call"

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        await doing
    finally:
        sys.setprofile(before)
    return count
