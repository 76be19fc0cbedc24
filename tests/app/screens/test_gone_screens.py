"""Screens that are not shown any more take no memory."""

from __future__ import annotations

import asyncio
import gc
import heapq
import time
import weakref
from collections.abc import AsyncIterator, Callable, Collection
from typing import Any, Final

import pytest
from textual.screen import Screen

from antiphon.actions import Mode
from antiphon_kernel.document.document import Document
from tests.app.opened import Opened, World, opened
from tests.waiting import PATIENCE, screen_updated, until

PAGES: Final = ("f1", "f4", "ctrl+p", "h", "U")


@pytest.fixture
async def there(here: World, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Opened]:
    """The app at a cell of a model; another context is there, too."""
    await here.cell("some text")
    await here.call("context.create", label="other")
    # What is frozen is never freed: all that there is by now, but not the app.
    gc.freeze()
    monkeypatch.setattr("antiphon.app.gc.freeze", list)
    async with opened(here) as one:
        await one.sees("some text")
        await one.press("up")
        yield one
    gc.unfreeze()
    gc.collect()
    gc.freeze()  # as it was: else every collection of all later tests goes through the imports


async def freed(held: Callable[[], Collection[object]], most: int = 0) -> None:
    """Wait until at most so many of these are held."""
    deadline = time.monotonic() + PATIENCE
    while True:
        forget_cancelled_timers()
        gc.collect()
        if len(held()) <= most:
            return
        assert time.monotonic() < deadline, f"held in vain: {held()}"
        await asyncio.sleep(0.2)


def forget_cancelled_timers() -> None:
    """Let go of what cancelled timers hold.

    The event loop keeps each until its time, some 20 s, with the context variables of whoever
    started it: Textual's name the worker and its screen.
    """
    timers: list[asyncio.TimerHandle] = asyncio.get_running_loop()._scheduled  # type: ignore[attr-defined]  # noqa: SLF001
    timers[:] = [one for one in timers if not one.cancelled()]
    heapq.heapify(timers)


async def test_pages_that_were_closed_contexts_that_were_left_and_refused_documents_are_freed(
    there: Opened,
) -> None:
    shown = weakref.WeakSet[Screen[Any]]()
    for key in PAGES:
        there.burst(key)
        await until(lambda: len(there.app.screen_stack) > 1, key)
        await screen_updated()
        shown.add(there.app.screen)
        there.burst("escape")
        await until(lambda: len(there.app.screen_stack) == 1, f"the end of {key}")
    await freed(lambda: list(shown))
    # The first screen is left in a search.
    there.burst("slash", "t")
    await there.mode(Mode.FIND)
    left = weakref.WeakSet[Document]()
    for label in ("other", "default", "other"):
        screen = there.screen
        left.add(there.app.session.document)
        there.app.context.open(label)
        await until(lambda: not screen.is_running, "the end of the screen before")  # noqa: B023
        await there.live()
    assert there.app.session.document not in left
    # Those before this one, known to work that has just been done.
    await freed(lambda: left, most=2)
    replaced = weakref.WeakSet[Document]()
    for _ in range(3):
        replaced.add(there.app.session.document)
        there.app.session.document.set_meta(label="only the kernel writes it")
        await until(lambda: there.app.session.document not in replaced, "another document")
        await there.live()
    # The first, which Textual's run of the app knows, and the last.
    await freed(lambda: replaced, most=2)
