"""Two people press keys at random while a model streams and the kernel is away now and then.

Nothing raises, nothing typed is lost.

`ANTIPHON_KEYS` says how many keys are pressed, `ANTIPHON_SEED` which ones.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
import stat
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
from textual import events
from textual.document._document import EditResult
from textual.document._edit import Edit
from textual.widgets import Input

from antiphon import session
from antiphon.actions import ACTIONS, Mode
from antiphon.app import AntiphonApp
from antiphon.render.cell_renderer import CellRenderer
from antiphon.screens import cell_list
from antiphon.screens.action_scope import READING
from antiphon.screens.conversation_screen import ConversationScreen
from antiphon.widgets.block_list.cell_presenter import RenderCache
from antiphon.widgets.editor import CellEditor
from antiphon_kernel.client.address import ADDRESS_FILE
from antiphon_kernel.document.changes import DocumentChange
from antiphon_kernel.document.document import Document
from antiphon_kernel.maintenance.run_checks import run_checks
from antiphon_kernel.providers import TextDelta
from antiphon_kernel.types.errors import AntiphonError
from tests.app.opened import Opened, World, opened, through_proxy, world
from tests.app.screens.key_effects import noticed, own_keys
from tests.kernel.served import CuttableProxy
from tests.waiting import PATIENCE, screen_updated, until

KEYS: Final = int(os.environ.get("ANTIPHON_KEYS", "40"))

SEED: Final = int(os.environ.get("ANTIPHON_SEED", "1"))

SILENT_SHARE: Final = 8
"""After so many keys the model pauses, and the next key has to have an effect or a hint."""

SIZES: Final = (
    *((80, 24), (40, 10), (120, 40), (61, 17), (30, 8), (200, 60)),
    *((160, 30), (20, 5), (7, 3), (1, 1)),
)

LONG_PASTE: Final = 3_000
"""Lines between the first and the last one of a long pasted text."""

LEAVING_SHARE: Final = 0.3
"""How often somebody who has pressed the key to leave does leave."""

MOVES: Final = (
    *("left", "right", "home", "end", "down", "ctrl+home", "tab"),
    *("shift+left", "shift+right", "shift+up", "shift+end"),
)

LETTERS: Final = "abcdefghijklmnopqrstuvwxyz"

TOKEN_SECONDS: Final = 0.005

LEAVING: Final = set[AntiphonApp]()
"""The apps in which the key to leave was pressed."""

QUIT: Final = AntiphonApp.action_quit

DELETED: Final = set[str]()
"""Characters that people have deleted themselves, also before the kernel got them."""

EDIT: Final = CellEditor.edit

TOKENS_PER_KEY: Final = 10
"""A key that takes its time on a busy machine is not accompanied by more."""

PATIENCE_TOKENS: Final = 200
"""A turn that has not been written to for so long waits for a person, and is stopped."""


def keys_of(*modes: Mode) -> list[str]:
    """Return the keys that have a meaning in one of these modes."""
    fitting = (one for one in ACTIONS if not one.modes.isdisjoint(modes))
    return sorted({key for one in fitting for key in one.keys})


ACTION_KEYS: Final = keys_of(*Mode)


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
            # Of a text that the kernel has not read it is not said how it has changed.
            new = [one.inserted for one in text.splices] or [document.peek_text(text.block)]
            self.characters.update(*new)


class Line:
    """The connection of all people to the kernel."""

    def __init__(self, here: World, proxy: CuttableProxy) -> None:
        self._proxy = proxy
        self._address = here.data / ADDRESS_FILE
        self._written = self._address.read_text()

    def fail(self, rng: random.Random) -> str:
        """Break off the connections, let the kernel be gone, or let it not answer."""
        kind = rng.choice(("cut", "gone", "silent"))
        if kind == "silent":
            self._proxy.stop()
        else:
            self._proxy.cut()
        if kind == "gone":
            self._address.unlink(missing_ok=True)
        return kind

    def mend(self) -> None:
        self._address.write_text(self._written)
        self._proxy.go_on()


class Player:
    """A person who presses keys without looking; present until `leave`."""

    there: Opened

    def __init__(
        self,
        here: World,
        line: Line,
        name: str | None,
        rng: random.Random,
        unused: Iterator[str],
    ) -> None:
        self._here = here
        self._line = line
        self._name = name
        self._visit = AsyncExitStack()
        self.typed: list[str] = []
        self.shown: set[str] = set()
        """Characters that have stood in a message that nobody else could see."""
        self.pressed: list[str] = []
        self._rng = rng
        self._unused = unused

    async def enter(self, size: tuple[int, int]) -> None:
        coming = opened(self._here, as_name=self._name, size=size)
        self.there = await self._visit.enter_async_context(coming)
        self._draft = self.there.screen.composer.draft

    async def leave(self) -> None:
        await self._visit.aclose()

    async def connected(self) -> None:
        """Let the kernel answer again, and wait until it has said who is here."""
        self._line.mend()
        await self.there.live()
        await until(lambda: not self.there.app.session.status.is_silent, "an answer")

    async def return_if_gone(self) -> None:
        """Open the app again after leaving it; be let in again after having been kicked."""
        app = self.there.app
        if app in LEAVING:
            LEAVING.remove(app)
            if self._rng.random() < LEAVING_SHARE:
                self.pressed.append("leaves")
                await self._quit()
                self._line.mend()
                await self.leave()
                await self.enter(app.size)
        elif app.session.status.is_rejected:
            self.pressed.append("joins again")
            await self._here.call("kernel.kick", principal=self._name, minutes=0)
            app.call_later(self.there.screen.call_action, "join_again")
            await self.connected()

    async def _quit(self) -> None:
        """Leave, also where that has to be said twice since the kernel lacks something."""
        app = self.there.app
        app.call_later(QUIT, app)
        await until(lambda: app.return_code is not None or app.context.is_leaving, "an answer")
        if app.return_code is None:
            app.call_later(QUIT, app)
        await until(lambda: app.return_code is not None, "the end of the app")

    @property
    def is_covered(self) -> bool:
        """Return whether a page or a question stands over the document."""
        return len(self.there.app.screen_stack) > 1

    @property
    def place(self) -> str:
        """The mode, or the name of what stands over the document."""
        if self.is_covered:
            return type(self.there.app.screen).__name__
        return self.there.screen.mode.value

    @property
    def _writes(self) -> bool:
        screen = self.there.screen
        is_text = screen.mode in (Mode.WRITE, Mode.EDIT) and screen.situation.mode_word != READING
        # What is typed while a file is opened is for its page.
        is_leaving = any(one.group == "files" for one in self.there.app.workers)
        return is_text and not self.is_covered and not is_leaving

    async def act(self) -> None:
        await self.return_if_gone()
        there, rng = self.there, self._rng
        kinds = ("type", "paste", "key", "mode key", "move", "mouse", "resize", "line")
        others = ("look", "command", "role", "program")
        kind = rng.choices((*kinds, *others), (36, 2, 20, 25, 8, 5, 2, 2, 1, 2, 1, 3))[0]
        match kind:
            case "look":
                looks = rng.choice((events.AppBlur, events.AppFocus))
                self.pressed.append(looks.__name__)
                there.app.post_message(looks())
                await settled(there)
            case "role":
                await self._give_role()
            case "program":
                await self._run_program()
            case "line":
                self.pressed.append(f"line {self._line.fail(rng)}")
                await settled(there)
            case "mouse":
                await self._mouse()
            case "resize":
                size = rng.choice(SIZES)
                self.pressed.append(f"resize {size}")
                await there.pilot.resize_terminal(*size)
            case _ if self.is_covered:
                await self._press(self._key_of_cover())
            case "type" if self._writes:
                await self._press(self._next_letter())
            case "paste" if self._writes:
                await self._paste()
            case "command" if self._writes:
                names = sorted(there.screen.controllers.commands.available())
                await self._press(*rng.choice(("/", "!", "/theme ")), *rng.choice(names), "enter")
            case "type" if there.screen.mode is Mode.FIND:
                await self._press(rng.choice("word "))
            case "move" if self._writes:
                await self._press(rng.choice(MOVES))
            case "mode key":
                await self._press(self.next_key())
            case _:
                await self._press(rng.choice(ACTION_KEYS))
        self.look()

    def next_key(self) -> str:
        """Return a key that means something in the mode."""
        return self._rng.choice(keys_of(self.there.screen.mode))

    def look(self) -> None:
        """Note a message that is only here: what is in it is not lost.

        Also the last one of a context that was left while they typed.
        """
        before, self._draft = self._draft, self.there.screen.composer.draft
        for draft in (before, self._draft):
            if draft.is_private or draft.unheard:
                self.shown.update(draft.text)

    def _next_letter(self) -> str:
        letter = next(self._unused)
        self.typed.append(letter)
        return letter

    def _key_of_cover(self) -> str:
        """Return a key that means something on the page over the document, or a letter."""
        if self._rng.random() < 0.35:
            return "escape"
        active = self.there.app.screen.active_bindings
        return self._rng.choice([*sorted(active), *self._rng.choices(LETTERS, k=5)])

    def next_key_of_cover(self) -> str | None:
        """Return a key that has to have an effect or a hint on what stands over the document.

        None if that is no page of the app, or a text, or if the person leaves it instead.
        """
        screen = self.there.app.screen
        if isinstance(screen, ConversationScreen):
            return None
        keys = sorted(own_keys(screen) | own_keys(screen.focused))
        if not keys or self._rng.random() < 0.5:
            return None
        is_line = isinstance(screen.focused, Input)
        return self._rng.choice(keys if is_line else [*keys, *self._rng.choices(LETTERS, k=5)])

    async def _press(self, *keys: str) -> None:
        self.pressed.append(f"{self.place}:{' '.join(keys)}")
        self.there.burst(*keys)
        await settled(self.there)

    async def _paste(self) -> None:
        """Paste some lines, now and then as many as are folded to a label or more."""
        letters = [self._next_letter() for _ in range(self._rng.randint(1, 4))]
        self.pressed.append(f"{self.place}:paste {letters}")
        if self._rng.random() < 0.2:
            lines = self._rng.choice((30, LONG_PASTE))
            letters[1:1] = [f"pasted line {number}" for number in range(lines)]  # else none moves
        self.there.app.post_message(events.Paste("\n".join(letters)))
        await settled(self.there)

    async def _give_role(self) -> None:
        """Let the owner change the role of the guest."""
        if self._name is not None:
            role = self._rng.choice(("viewer", "editor", "owner"))
            self.pressed.append(f"role {role}")
            await self._here.call("kernel.role", principal=self._name, role=role)

    async def _run_program(self) -> None:
        """Let a program of the owner's change the context that is shown."""
        context = self.there.app.session.document.context
        if context is None:  # the kernel has not said it yet
            return
        document = (await self._here.kernel.context(context)).document
        blocks, rng = document.block_ids(), self._rng
        if not blocks:
            return
        block, other = rng.choice(blocks), rng.choice(blocks)
        length = len(document.peek_text(block))
        at = rng.randint(0, length)
        gone = rng.randint(0, min(length - at, 9))
        calls: tuple[tuple[str, dict[str, Any]], ...] = (
            ("block.splice", {"offset": at, "insert": rng.choice(("more ", "\n\n"))}),
            ("block.splice", {"offset": at, "delete_count": gone}),
            ("block.exclude", {"cut_out": True}),
            ("block.exclude", {"excluded": False}),
            ("block.move", {"after": other}),
            ("block.restore", {"version": 1}),
            ("block.undo", {}),
            ("block.redo", {}),
        )
        tool, params = rng.choice(calls)
        self.pressed.append(f"program {tool} {params}")
        with suppress(AntiphonError):  # of a draft, or what is being written
            await self._here.call(tool, block_id=block, **params)

    async def _mouse(self) -> None:
        """Scroll, click, click twice, or select by dragging."""
        app, rng = self.there.app, self._rng
        width, height = app.size
        click = (events.MouseDown, events.MouseUp)
        drag = (events.MouseDown, events.MouseMove, events.MouseUp)
        gestures: tuple[tuple[type[events.MouseEvent], ...], ...] = (
            *((events.MouseScrollDown,), (events.MouseScrollUp,)),
            *(click, click + click, drag),
        )
        kinds = rng.choice(gestures)
        x, y = rng.randrange(width), rng.randrange(height)
        self.pressed.append(f"{'+'.join(one.__name__ for one in kinds)} {x},{y}")
        for kind in kinds:
            if kind is events.MouseMove:
                x, y = rng.randrange(width), rng.randrange(height)
            app.post_message(kind(None, x, y, 0, 0, 1, False, False, False, x, y))
        await settled(self.there)


class Stream:
    """A model that writes some words with every key, and is asked for more where a person is."""

    def __init__(self, here: World, rng: random.Random, players: list[Player]) -> None:
        self._here = here
        self._rng = rng
        self._players = players
        self._goes_on = asyncio.Event()
        self._left = 0

    def go_on(self) -> None:
        """Write as much as goes with a key."""
        self._left = TOKENS_PER_KEY
        self._goes_on.set()

    def pause(self) -> None:
        self._goes_on.clear()

    async def run(self) -> None:
        aria, number, waited = self._here.aria, 0, 0
        while True:
            await self._goes_on.wait()
            self._left -= 1
            if not self._left:
                self.pause()
            await asyncio.sleep(TOKEN_SECONDS)
            waited = 0 if aria.rounds else waited + 1
            if waited == 1:
                await self._ask()
            elif waited > PATIENCE_TOKENS:
                await self._stop()
                waited = 0
            if not aria.rounds:
                continue
            number += 1
            chance = self._rng.random()
            if chance < 0.003:
                aria.end()
            elif chance < 0.006:
                aria.run(f"echo {number}")
            else:
                aria.say(TextDelta(f"word{number} " + "\n\n" * (number % 15 == 0)))

    async def _contexts(self) -> AsyncIterator[str]:
        for player in self._players:
            context = player.there.app.session.document.context
            if context is not None and not player.there.screen.source.is_file:
                yield context

    async def _ask(self) -> None:
        async for context in self._contexts():
            asked = {"context": context, "kind": "text", "content": "more", "status": "done"}
            made = await self._here.call("block.create", **asked)
            await self._here.call("turn.start", message=made["block_id"])
            return

    async def _stop(self) -> None:
        async for context in self._contexts():
            await self._here.call("turn.interrupt", context=context)


async def settled(there: Opened) -> None:
    """Let an app do all that its input makes it do, but not what it asks the kernel for."""
    await screen_updated()
    async with asyncio.timeout(PATIENCE):
        await there.app._keys.handled()  # noqa: SLF001


async def effect_or_hint(player: Player) -> None:
    """Press one key while nothing else happens."""
    await player.return_if_gone()
    there = player.there
    await player.connected()
    key = player.next_key_of_cover() if player.is_covered else None
    for _ in range(50):
        if key is not None or not player.is_covered:
            break
        there.burst("escape")
        await settled(there)
    key = key or player.next_key()
    if there.app.size.width < 40 or there.app.size.height < 10:
        return
    player.pressed.append(f"{player.place}:{key} (silence)")
    await settled(there)
    assert await noticed(there, key), "\n".join([str(player.pressed[-12:]), *there.lines])
    await settled(there)
    player.look()
    check_drawing(there)


@pytest.fixture
async def here(tmp_path: Path) -> AsyncIterator[World]:
    """A kernel with a model that asks before it runs a tool, whose folder is sound at the end."""
    async with world(tmp_path, asks=True) as one:
        yield one
    assert [str(one) for one in (await run_checks(tmp_path / "data")).all()] == []


@pytest.fixture
async def proxy(here: World) -> AsyncIterator[CuttableProxy]:
    """The way of all apps to the kernel."""
    async with through_proxy(here) as one:
        yield one


@pytest.fixture(autouse=True)
def only_seen_frames() -> None:
    """Draw every frame: none may fail, whether or not it is looked at."""


@pytest.fixture(autouse=True)
def surroundings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let $EDITOR add a line, and nobody leave before the key is done."""
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\necho "one more line" >> "$1"\n')
    editor.chmod(editor.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("VISUAL", str(editor))

    async def leave(app: AntiphonApp) -> None:
        app.document_screen.hint("Leaving.")
        LEAVING.add(app)

    monkeypatch.setattr(AntiphonApp, "action_quit", leave)

    def edit(self: CellEditor, edit: Edit) -> EditResult:
        result = EDIT(self, edit)
        DELETED.update(result.replaced_text)
        return result

    monkeypatch.setattr(CellEditor, "edit", edit)
    DELETED.clear()

    def failed(self: CellRenderer, error: Exception) -> None:
        raise error

    monkeypatch.setattr(CellRenderer, "failed", failed)
    if SEED % 2:
        monkeypatch.setattr(session, "RECENT_BLOCKS", 3)
        monkeypatch.setattr(cell_list, "CELLS_ABOVE", 1)
    LEAVING.clear()


@pytest.fixture(autouse=True)
def own_record_factory() -> Iterator[None]:
    """Write failures into the log as text: pytest keeps all records, and frames with them."""
    make = logging.getLogRecordFactory()

    def make_as_text(*args: Any, **kwargs: Any) -> logging.LogRecord:
        record = make(*args, **kwargs)
        if record.exc_info:
            record.exc_text = logging.Formatter().formatException(record.exc_info)
            record.exc_info = None
        return record

    logging.setLogRecordFactory(make_as_text)
    yield
    logging.setLogRecordFactory(make)


async def test_random_keys_lose_no_text_and_are_never_without_effect(
    here: World, proxy: CuttableProxy, own_home: Path
) -> None:
    rng, unused, everything = random.Random(SEED), letters(), Everything(here)
    for number in range(5):
        await here.cell(f"# Cell {number}\n\nSome text with a word or two.\n\n- one\n- two\n")
    await here.cell("much\n\nthought", kind="thinking")
    line = Line(here, proxy)
    # Two windows of one person, or somebody else.
    names = (None, rng.choice((None, "guest", "guest")))
    players = [Player(here, line, name, rng, unused) for name in names]
    try:
        await players[0].enter((80, 24))
        await players[1].enter((120, 40))
        await play(here, players, rng, everything)
        for player in players:
            await player.return_if_gone()
            await player.connected()
            await player.there.app.session.replica.saved()
            await everything.watch(player.there)
            kept = everything.characters | player.shown | refused(own_home) | DELETED
            missing = [one for one in player.typed if one not in kept]
            assert missing == [], " ".join(player.pressed)
        await converged(here, players)
        here.aria.end()
    finally:
        line.mend()
        for player in players:
            await player.leave()


async def play(
    here: World, players: list[Player], rng: random.Random, everything: Everything
) -> None:
    """Let people press keys, now one, now another, while a model writes."""
    # Of its own: how many words come does not change which keys do.
    stream = Stream(here, random.Random(SEED), players)
    streaming = asyncio.create_task(stream.run(), name="stream")
    try:
        for number in range(KEYS):
            player = rng.choice(players)
            await everything.watch(player.there)
            try:
                if number % SILENT_SHARE == SILENT_SHARE - 1:
                    stream.pause()
                    await effect_or_hint(player)
                else:
                    stream.go_on()
                    await player.act()
            except Exception as error:
                error.add_note(f"after {player.pressed[-30:]}")
                raise
            check(player)
            here.aria.prompts.clear()
            if streaming.done():
                await streaming
    finally:
        streaming.cancel()
        with suppress(asyncio.CancelledError):
            await streaming


def check(player: Player) -> None:
    """Nothing has raised, neither in the app nor in its background; editors show what there is."""
    app, screen = player.there.app, player.there.screen
    assert app.is_running and app.return_code in (None, 0), player.pressed[-12:]
    said = [hint.text for hint in screen.controllers.hints]
    wrong = [text for text in said if "Something went wrong" in text]
    assert wrong == [], player.pressed[-30:]
    editor = screen.area.editor
    assert screen.composer.editor.text == screen.composer.draft.text, player.pressed[-30:]
    if editor is not None:
        there = screen.source.document.peek_text(editor.block)
        assert editor.text == there, player.pressed[-30:]


def check_drawing(there: Opened) -> None:
    """The cells look as if they were drawn for the first time."""
    cells = there.screen.cells
    cells.draw()
    shown = [cells.render_line(row).text for row in range(cells.size.height)]
    cells.looks.pictures = RenderCache(cells.source)
    cells.looks.set_page(cells.looks.columns.width, cells.cell_theme)
    cells.draw()
    again = [cells.render_line(row).text for row in range(cells.size.height)]
    assert shown == again, "\n".join(["", *shown, "drawn again:", *again])


def refused(home: Path) -> set[str]:
    """Return the characters in the reports on text that the kernel has refused."""
    return set("".join(one.read_text("utf-8") for one in home.rglob("refused-*.md")))


async def converged(here: World, players: list[Player]) -> None:
    """Wait until everybody has the same text as the kernel in the context that they look at."""
    for player in players:
        connected = player.there.app.session.replica
        replica, omitted = connected.document, connected.omitted
        assert replica.context is not None
        there = (await here.kernel.context(replica.context)).document

        def same(
            mine: Document = replica, theirs: Document = there, omitted: int = omitted
        ) -> bool:
            missing = texts(theirs).keys() - texts(mine).keys()
            return texts(mine).items() <= texts(theirs).items() and len(missing) == omitted

        await until(same, "the same text everywhere")


def texts(document: Document) -> dict[str, str]:
    return {block: document.peek_text(block) for block in document.block_ids()}
