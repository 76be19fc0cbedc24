"""Keys that come faster than they are handled still meet what the key before them has done.

Textual gives each key to whatever has the focus when the key arrives, and every widget handles its
own queue: of a burst, as a slow line delivers it, all keys would go where the first one went.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, Final

from textual import events
from textual.app import App
from textual.dom import DOMNode
from textual.widget import Widget
from textual.widgets import TextArea

from antiphon.textual_patches.messages import is_waiting
from antiphon.widgets.editor import is_text_input

ROUNDS: Final = 2
"""A key is handled in the first; in the second, the message that its handler may have posted."""

PATIENCE: Final = 2.0
"""Seconds after which a widget that does not get to its messages no longer holds keys back."""

HELD_SECONDS: Final = 2.0
"""How long keys wait at most for the context that the person goes to."""

CHECK: Final = 0.02
"""Seconds between looks whether a widget still handles messages at all."""


class InputQueue:
    """Hands on one key at a time: the next when everything that the one before did is done."""

    def __init__(self, app: App[Any], hand_on: Callable[[events.Event], Awaitable[None]]) -> None:
        """`hand_on` gives a key or a paste to what has the focus now."""
        self._app = app
        self._hand_on = hand_on
        self._waiting: deque[events.Event] = deque()
        self._settling: asyncio.Task[None] | None = None
        self._holds = 0

    def pause(self) -> None:
        """From now on keys wait for as many `resume` as there were `pause`."""
        self._holds += 1

    def hold(self) -> Callable[[], None]:
        """Let keys wait, but not for more than HELD_SECONDS; what is returned hands them on."""
        self.pause()
        ends = [self.resume]

        def release() -> None:
            if ends:
                ends.pop()()

        asyncio.get_running_loop().call_later(HELD_SECONDS, release)
        return release

    async def caught_up(self) -> None:
        """Wait until what has the focus has handled the keys that it was given."""
        if self._settling is not None:
            await asyncio.wait({self._settling})  # its key may not have been given to it yet
        await _caught_up(self._target())

    async def handled(self) -> None:
        """Wait until everything that was put here has been handled."""
        while self._waiting or self._settling is not None:  # noqa: ASYNC110  they may be held
            await asyncio.sleep(CHECK)
        await self.caught_up()

    def resume(self) -> None:
        """Keys go to what has the focus now."""
        self._holds -= 1
        if not self._holds and self._waiting and self._settling is None:
            self._start()

    async def put(self, event: events.Key | events.Paste) -> None:
        """A key was pressed, or text pasted."""
        if self._settling is not None or self._holds:
            self._waiting.append(event)
            return
        if _is_text(event, self._target()):
            await self._hand_on(event)
            return
        self._waiting.append(event)
        self._start()

    def _start(self) -> None:
        self._settling = asyncio.create_task(self._drain(), name="keys")
        self._settling.add_done_callback(self._finished)

    def _target(self) -> Widget:
        return self._app.focused or self._app.screen

    async def _drain(self) -> None:
        try:
            while self._waiting and not self._holds:
                event, target = self._waiting.popleft(), self._target()
                if _is_text(event, target):
                    await self._hand_on(event)
                    continue
                # Some keys do not go through the queue of the widget that text went into before.
                await _caught_up(target)
                await self._hand_on(event)
                for _ in range(ROUNDS):
                    for node in target.ancestors_with_self:
                        await _caught_up(node)
        finally:
            # At once: a key that came before the task's callback would wait for another to come.
            self._settling = None

    def _finished(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and task.exception() is not None:
            # The app ends with this failure as with one of its own.
            self._app.call_later(task.result)


def _is_text(event: events.Event, target: Widget) -> bool:
    """Text moves no focus: what follows need not wait."""
    if not isinstance(target, TextArea):
        return False
    return isinstance(event, events.Paste) or (
        isinstance(event, events.Key) and is_text_input(event.character or "")
    )


async def _caught_up(node: DOMNode) -> None:
    """Wait until a node has handled the messages that it has now, or is gone."""
    await asyncio.sleep(0)  # what has just ended may have a message for it
    if is_waiting(node):
        return
    reached = asyncio.Event()
    if not _is_busy(node) or not node.call_later(reached.set):
        return
    loop = asyncio.get_running_loop()
    deadline = loop.time() + PATIENCE
    while _is_busy(node) and loop.time() < deadline:
        try:
            async with asyncio.timeout(CHECK):
                await reached.wait()
        except TimeoutError:
            continue
        return


def _is_busy(node: DOMNode) -> bool:
    return node.is_running and node.is_attached
