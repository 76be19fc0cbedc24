"""The document is read as often for a key or a token whatever the number of its blocks."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Final

import pytest

import antiphon_kernel.document
from antiphon.actions import Mode
from tests.app.opened import Opened, World, opened, world
from tests.waiting import screen_updated, until

SIZES: Final = (40, 400)
ROUNDS: Final = 2
FRAMES: Final = 3
"""As many may be drawn for a key in one run as one in another."""

DOCUMENT: Final = str(Path(antiphon_kernel.document.__file__).parent)


@pytest.fixture(autouse=True)
def only_seen_frames() -> None:
    """Draw every frame: what it reads counts, too."""


@contextmanager
def counted(reads: list[int]) -> Iterator[None]:
    """Append how many functions of the document are called meanwhile."""
    calls = 0

    def note(frame: FrameType, event: str, arg: object) -> None:
        nonlocal calls
        if event == "call" and frame.f_code.co_filename.startswith(DOCUMENT):
            calls += 1

    sys.setprofile(note)
    try:
        yield
    finally:
        sys.setprofile(None)
        reads.append(calls)


async def fill(here: World, size: int) -> None:
    """Write a conversation of so many messages."""
    messages = [
        {"role": ("user", "assistant")[number % 2], "content": f"Message {number}\n\nof two."}
        for number in range(size)
    ]
    await here.call("message.append", messages=messages)


async def reads_of(folder: Path, size: int) -> dict[str, int]:
    """Count what a key, a scrolled page and a token read, in an app with all that it can show."""
    found: dict[str, int] = {}

    async def measure(name: str, act: Callable[[], Awaitable[object]]) -> None:
        reads: list[int] = []
        for _ in range(ROUNDS):
            await screen_updated()
            with counted(reads):
                await act()
        found[name] = min(reads)  # others are of timers, too

    async with world(folder) as here:
        await fill(here, size)
        async with opened(here, size=(120, 24)) as there:
            await there.sees(f"Message {size - 1}")
            while there.screen.source.preload():
                await screen_updated()
            await measure("compose", lambda: key(there, "x"))
            await there.press("ctrl+u", "up", mode=Mode.NAVIGATE)
            await measure("navigate", lambda: key(there, "k"))
            await measure("page", lambda: key(there, "pageup"))
            await there.press("G", "enter", mode=Mode.EDIT)
            await measure("edit", lambda: key(there, "x"))
            await there.press("escape", "i", "g", "o", "enter")
            await until(lambda: here.aria.rounds, "the turn")
            here.aria.write("begun ")
            await there.sees("begun")

            words = (f"word{number} " for number in range(ROUNDS))

            async def token() -> None:
                here.aria.write(word := next(words))
                await there.sees(word.strip())

            await measure("token", token)
            here.aria.end()
    return found


async def key(there: Opened, name: str) -> None:
    there.burst(name)
    await screen_updated()


async def test_reads_of_the_document_for_a_key_do_not_grow_with_its_blocks(
    tmp_path: Path, own_home: Path
) -> None:
    few, many = [await reads_of(tmp_path / str(size), size) for size in SIZES]
    assert all(many[name] < FRAMES * few[name] for name in few), (few, many)
