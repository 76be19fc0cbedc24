"""Two people press keys at random while a model streams: nothing raises, nothing typed is lost.

`ANTIPHON_KEYS` says how many keys are pressed, `ANTIPHON_SEED` which ones.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from typing import Final

import pytest
from textual import events

from antiphon.actions import ACTIONS, Mode
from antiphon.screens.base_screen import PRIVATE
from antiphon_kernel.document.changes import DocumentChange
from antiphon_kernel.document.document import Document
from antiphon_kernel.providers import TextDelta
from tests.app.opened import Opened, World, opened
from tests.app.screens.key_effects import noticed
from tests.waiting import until

KEYS: Final = int(os.environ.get("ANTIPHON_KEYS", "120"))

SEED: Final = int(os.environ.get("ANTIPHON_SEED", "1"))

SILENT_SHARE: Final = 8
"""After so many keys the model pauses, and the next key has to have an effect or a hint."""

SIZES: Final = ((80, 24), (40, 10), (120, 40), (61, 17), (30, 8), (200, 60))

LEFT_OUT: Final = {"quit", "shell", "private", "edit_outside"}
"""These end the app, run what was typed, keep text from the kernel, or start a program."""

MOVES: Final = ("left", "right", "home", "end", "shift+right", "tab", "ctrl+home")

ACTION_KEYS: Final = tuple(
    sorted({key for one in ACTIONS for key in one.keys if one.name not in LEFT_OUT} - {"ctrl+q"})
)


def letters() -> Iterator[str]:
    """Yield characters of which each is typed once."""
    return (chr(code) for code in range(0x4E00, 0x9FFF))


class Everything:
    """All text that has ever come into the contexts that people have looked at."""

    def __init__(self, here: World) -> None:
        self.characters: set[str] = set()
        self._here = here
        self._watched: set[str] = set()

    async def watch(self, there: Opened) -> None:
        """Watch the context that is shown, too."""
        context = there.app.session.document.context
        if context is None or context in self._watched:
            return
        self._watched.add(context)
        document = (await self._here.kernel.context(context)).document
        document.watch(partial(self._changed, document))
        for text in texts(document).values():
            self.characters.update(text)

    def _changed(self, document: Document, change: DocumentChange) -> None:
        for block in change.added:
            self.characters.update(document.peek_text(block))
        for text in change.texts:
            for splice in text.splices:
                self.characters.update(splice.inserted)


class Player:
    """A person who presses keys without looking."""

    def __init__(self, there: Opened, rng: random.Random, unused: Iterator[str]) -> None:
        self.there = there
        self.typed: list[str] = []
        self.pressed: list[str] = []
        self._rng = rng
        self._unused = unused

    @property
    def _writes(self) -> bool:
        screen = self.there.screen
        is_text = screen.mode in (Mode.WRITE, Mode.EDIT) and screen.mode_word != PRIVATE
        return is_text and self.there.app.screen is screen

    async def act(self) -> None:
        there, rng = self.there, self._rng
        if len(there.app.screen_stack) > 1 and rng.random() < 0.6:
            await self._press("escape")
            return
        match rng.choices(("type", "key", "move", "mouse", "resize"), (40, 45, 8, 5, 2))[0]:
            case "type" if self._writes:
                letter = next(self._unused)
                self.typed.append(letter)
                await self._press(letter)
            case "move" if self._writes:
                await self._press(rng.choice(MOVES))
            case "mouse":
                await self._mouse()
            case "resize":
                size = rng.choice(SIZES)
                self.pressed.append(f"resize {size}")
                await there.pilot.resize_terminal(*size)
            case _ if there.app.screen is there.screen:
                await self._press(self.next_key())

    def next_key(self) -> str:
        return self._rng.choice(ACTION_KEYS)

    async def _press(self, key: str) -> None:
        self.pressed.append(f"{self.there.screen.mode.value}:{key}")
        await self.there.press(key)

    async def _mouse(self) -> None:
        app, rng = self.there.app, self._rng
        width, height = app.size
        x, y = rng.randrange(width), rng.randrange(height)
        kinds: tuple[type[events.MouseEvent], ...] = rng.choice(
            ((events.MouseScrollDown,), (events.MouseScrollUp,), (events.MouseDown, events.MouseUp))
        )
        self.pressed.append(f"{kinds[0].__name__} {x},{y}")
        for kind in kinds:
            app.post_message(kind(None, x, y, 0, 0, 1, False, False, False, x, y))
        await self.there.pilot.pause()


class Stream:
    """A model that writes whenever it is asked, and pauses when it is told."""

    def __init__(self, here: World, rng: random.Random) -> None:
        self._here = here
        self._rng = rng
        self.goes_on = asyncio.Event()
        self.goes_on.set()

    async def run(self) -> None:
        number = 0
        while True:
            await self.goes_on.wait()
            await asyncio.sleep(0.005)
            number += 1
            if self._rng.random() < 0.02:
                self._here.aria.end()
            else:
                self._here.aria.say(TextDelta(f"word{number} " + "\n\n" * (number % 15 == 0)))


async def effect_or_hint(player: Player) -> None:
    """Press one key while nothing else happens."""
    there = player.there
    while len(there.app.screen_stack) > 1:
        await there.press("escape")
    await there.live()
    modes = {key for one in ACTIONS for key in one.keys if there.screen.mode in one.modes}
    key = player.next_key()
    if key not in modes or there.app.size.width < 40 or there.app.size.height < 10:
        return
    player.pressed.append(f"{there.screen.mode.value}:{key} (silence)")
    await there.pilot.pause()
    assert await noticed(there, key), player.pressed[-12:]


async def test_random_keys_lose_no_text_and_are_never_without_effect(
    here: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("VISUAL", "EDITOR", "TMUX"):
        monkeypatch.delenv(name, raising=False)
    rng, unused, everything = random.Random(SEED), letters(), Everything(here)
    for number in range(5):
        await here.cell(f"# Cell {number}\n\nSome text with a word or two.\n\n- one\n- two\n")
    async with (
        opened(here) as one,
        opened(here, as_name="guest", size=(120, 40)) as other,
    ):
        players = [Player(one, rng, unused), Player(other, rng, unused)]
        stream = Stream(here, rng)
        streaming = asyncio.create_task(stream.run(), name="stream")
        try:
            for number in range(KEYS):
                player = rng.choice(players)
                await everything.watch(player.there)
                try:
                    if number % SILENT_SHARE == SILENT_SHARE - 1:
                        stream.goes_on.clear()
                        await effect_or_hint(player)
                        stream.goes_on.set()
                    else:
                        await player.act()
                except Exception as error:
                    error.add_note(f"after {player.pressed[-30:]}")
                    raise
                check(player)
        finally:
            streaming.cancel()
            with suppress(asyncio.CancelledError):
                await streaming
        for player in players:
            await player.there.live()
            await player.there.app.session.replica.saved()
            await everything.watch(player.there)
            missing = [one for one in player.typed if one not in everything.characters]
            assert missing == [], " ".join(player.pressed)
        await converged(here, players)
        here.aria.end()


def check(player: Player) -> None:
    """Nothing has raised, neither in the app nor in its background."""
    app = player.there.app
    assert app.is_running and app.return_code in (None, 0), player.pressed[-12:]
    said = [hint.text for hint in player.there.screen._hints]  # noqa: SLF001
    wrong = [text for text in said if "Something went wrong" in text]
    assert wrong == [], player.pressed[-30:]


async def converged(here: World, players: list[Player]) -> None:
    """Wait until everybody has the same text as the kernel in the context that they look at."""
    for player in players:
        replica = player.there.app.session.document
        assert replica.context is not None
        there = (await here.kernel.context(replica.context)).document

        def same(mine: Document = replica, theirs: Document = there) -> bool:
            return texts(mine) == texts(theirs)

        await until(same, "the same text everywhere")


def texts(document: Document) -> dict[str, str]:
    return {block: document.peek_text(block) for block in document.block_ids()}
