"""The real app on a real kernel in this process, at a terminal of a given size."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from textual import events
from textual.keys import REPLACED_KEYS, _character_to_key, key_to_character
from textual.pilot import Pilot
from textual.strip import Strip

from antiphon.actions import Mode
from antiphon.app import AntiphonApp
from antiphon.options import AppOptions
from antiphon.screens.conversation_screen import ConversationScreen
from antiphon.textual_patches.messages import is_waiting
from antiphon.textual_patches.screens import terminal_rows
from antiphon_kernel.client.address import ADDRESS_FILE
from antiphon_kernel.config import AgentConfig, KernelConfig
from antiphon_kernel.contexts import Context
from antiphon_kernel.daemon.data_folder import hold_folder
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.messages import TextBlock
from antiphon_kernel.providers import ModelConfig, ModelKind, Provider
from antiphon_kernel.providers.events import (
    End,
    ProviderError,
    TextDelta,
    ToolCallEvent,
    TurnEvent,
)
from antiphon_kernel.providers.provider import RoundRequest
from antiphon_kernel.registry import Registry
from antiphon_kernel.server import Server
from antiphon_kernel.tools.all_tools import KERNEL_TOOLS
from antiphon_kernel.turns import TURN_TOOLS, TurnRunner
from antiphon_kernel.turns.models import Models
from antiphon_kernel.types.clock import Clock
from antiphon_kernel.types.enums import PrincipalKind
from antiphon_kernel.types.records import Actor
from tests.addresses import address_of
from tests.kernel.served import CuttableProxy
from tests.waiting import fail_with, screen_updated, until


class Writer:
    """A model that writes what the test gives it, when the test gives it."""

    def __init__(self) -> None:
        self._events: asyncio.Queue[TurnEvent] = asyncio.Queue()
        self.prompts: list[str] = []
        """The newest message in the document when each round began."""
        self.rounds = 0
        """Rounds of turns that are being written now."""

    def write(self, text: str) -> None:
        self._events.put_nowait(TextDelta(text))

    def run(self, command: str) -> None:
        """Call the shell, which ends the round."""
        self._events.put_nowait(ToolCallEvent("call-1", "shell", {"command": command}))
        self._events.put_nowait(End("tool_use"))

    def end(self) -> None:
        self._events.put_nowait(End("end_turn"))

    def say(self, event: TurnEvent) -> None:
        self._events.put_nowait(event)

    async def stream(self, request: RoundRequest) -> Any:
        blocks = [one for each in request.prompt.conversation.messages for one in each.content]
        texts = [one.text for one in blocks if isinstance(one, TextBlock)]
        sent = [text for text in texts if text.startswith("[USER MESSAGE]")]
        self.prompts.append(sent[-1].split("\n", 2)[2] if sent else "")
        self.rounds += 1
        try:
            while True:
                event = await self._events.get()
                yield event
                if isinstance(event, End | ProviderError):
                    return
        finally:
            self.rounds -= 1


@dataclass(slots=True)
class World:
    """A kernel, and whoever is in it."""

    folder: Path
    kernel: Kernel
    turns: TurnRunner
    aria: Writer
    me: Actor
    doors: Server | None = None
    _bela: Actor | None = None
    """Writes the cells."""

    @property
    def data(self) -> Path:
        return self.folder / "data"

    async def open_doors(self) -> None:
        socket = self.folder / "kernel.sock"
        doors = self.doors = await Server(self.kernel).start(port=0, socket=socket)
        address = address_of(self.kernel, doors)
        (self.data / ADDRESS_FILE).write_text(address.model_dump_json())

    async def close_doors(self) -> None:
        """As if the kernel were gone: nobody answers any more."""
        doors, self.doors = self.doors, None
        if doors is not None:
            (self.data / ADDRESS_FILE).unlink()
            await doors.close()

    async def call(self, tool: str, **params: Any) -> dict[str, Any]:
        return await self.kernel.call(self.me, tool, params)

    async def context(self) -> Context:
        return await self.kernel.context("default")

    async def cell(self, content: str, kind: str = "text", status: str = "done") -> str:
        """A finished block of a model of no account."""
        if self._bela is None:
            principal = await self.kernel.principal("bela", PrincipalKind.SHELL)
            self._bela = self.kernel.open_session(principal, "test")
            (await self.context()).ensure_member(self._bela)
        done = {"status": "done"} if status == "done" else {}
        params = {"kind": kind, "content": content, **done}
        block = str((await self.kernel.call(self._bela, "block.create", params))["block_id"])
        if not done:
            params = {"block_id": block, "status": status}
            await self.kernel.call(self._bela, "block.status", params)
        return block

    async def texts(self, **filters: Any) -> list[str]:
        """Contents of the kernel's blocks, in order."""
        document = (await self.context()).document
        listed = await self.call("block.list", **filters)
        return [document.text(one["block_id"]) for one in listed["blocks"]]


class Opened:
    """The app at a terminal."""

    def __init__(self, app: AntiphonApp, pilot: Pilot[None], here: World | None = None) -> None:
        self.app = app
        self.pilot = pilot
        self._here = here

    @property
    def screen(self) -> ConversationScreen:
        return self.app.document_screen

    @property
    def message(self) -> str:
        return self.screen.composer.draft.text

    @property
    def rows(self) -> list[Strip]:
        return terminal_rows(self.app)

    @property
    def lines(self) -> list[str]:
        return [row.text.rstrip() for row in self.rows]

    def shows(self, text: str) -> bool:
        return any(text in line for line in self.lines)

    async def live(self) -> None:
        def is_live() -> bool:
            session = self.app.session  # another one meanwhile, if another context is opened
            return session.is_live and session.me is not None

        await until(is_live, lambda: f"live: {self.app.session.status}")
        await until(lambda: self.screen.source.me is not None, "known")

    async def edit(self) -> None:
        """Begin to edit the last cell."""
        await self.press("up", "enter")
        await self.mode(Mode.EDIT)

    async def press(self, *keys: str, mode: Mode | None = None) -> None:
        """Press keys, one after the other, that lead to a mode, if one is given."""
        for key in keys:
            self.burst(key)
            for _ in range(2):  # what the key does, and what that brings: a page that closes
                await screen_updated()
        shown = self.app.screen_stack[-1:]  # none, if the app has ended
        nodes = [node for one in shown for node in one.walk_children(with_self=True)]
        if not all(map(is_waiting, [self.app, *nodes])):
            await self.pilot._wait_for_screen()  # noqa: SLF001
        if mode is not None:
            await self.mode(mode)

    async def press_until(self, key: str, condition: Callable[[], object]) -> None:
        """Press a key until a condition holds, which it does after a few times."""
        for _ in range(50):
            if condition():
                return
            await self.press(key)
        raise AssertionError(f"{key} was pressed in vain in\n" + "\n".join(self.lines))

    def burst(self, *keys: str) -> None:
        """All keys at once, as a slow line delivers them."""
        for key in keys:
            name = _character_to_key(key) if len(key) == 1 and not key.isalnum() else key
            self.app.post_message(events.Key(name, key_to_character(REPLACED_KEYS.get(name, name))))

    async def type(self, text: str) -> None:
        """Type a text, all of it before the screen is drawn."""
        names = {" ": "space", "\n": "ctrl+j"}
        self.burst(*(names.get(key, key) for key in text))
        await self.pilot.pause()

    async def send(self, text: str) -> None:
        """Write a message, or a command, and send it."""
        await self.type(text)
        await self.press("enter")

    async def palette(self, title: str) -> None:
        """Do an action, or take another entry, by its name in the palette."""
        await self.press("ctrl+p")
        # Typed, it would be searched for after each sign.
        self.app.post_message(events.Paste(title.lower()))
        await self.sees(title)
        await self.press("enter")

    async def cell(self, content: str, sees: str = "", **params: str) -> str:
        """A finished block of `World.cell`, which is on the screen."""
        assert self._here is not None
        block = await self._here.cell(content, **params)
        await self.sees(sees or content)
        return block

    async def hint(self, words: str) -> None:
        """Wait for a hint with these words."""
        await until(
            lambda: words in (self.screen.frame.notice.hint or ""),
            lambda: f"{words!r} in {self.screen.frame.notice.hint!r}",
        )

    async def mode(self, mode: Mode) -> None:
        await until(lambda: self.screen.mode is mode, f"mode {mode}")

    async def sees(self, text: str) -> None:
        await until(lambda: self.shows(text), lambda: f"{text!r} in\n" + "\n".join(self.lines))


@contextlib.asynccontextmanager
async def world(
    folder: Path,
    *,
    owner: str = "amy",
    models: bool = True,
    asks: bool = False,
    others: Mapping[str, Provider] | None = None,
    configs: Mapping[str, ModelConfig] | None = None,
    agents: Sequence[AgentConfig] = (),
) -> AsyncIterator[World]:
    """A kernel with its doors open and, if there are `models`, aria and others.

    Args:
        asks: whether people are asked about aria's calls.
        configs: of models, where they have one.
        agents: take part over ACP.
    """
    held = contextlib.ExitStack()
    held.enter_context(hold_folder(folder / "data"))
    kernel = await Kernel.open(
        folder / "data", folder, registry=Registry((*KERNEL_TOOLS, *TURN_TOOLS)), owner=owner
    )
    aria = Writer()
    asking = ModelConfig("aria", ModelKind.OPENAI_CHAT, "aria-1")
    known = {**({"aria": asking} if asks else {}), **(configs or {})}
    playing = {"aria": aria, **(others or {})} if models else {}
    named = tuple(one for name, one in known.items() if name in playing)
    config = KernelConfig(models=named, agents=tuple(agents))
    turns = TurnRunner(kernel, Models(playing, config=config))
    me = kernel.open_session(kernel.owner, "test")
    here = World(folder, kernel, turns, aria, me)
    await here.open_doors()
    try:
        yield here
    finally:
        await here.close_doors()
        await turns.close()
        await kernel.close()
        held.close()


@contextlib.asynccontextmanager
async def through_proxy(here: World) -> AsyncIterator[CuttableProxy]:
    """Let the app reach the kernel only through a proxy."""
    assert here.doors is not None
    proxy = CuttableProxy(here.doors.port)
    await proxy.start()
    through = {"socket": None, "http": f"http://127.0.0.1:{proxy.port}"}
    address = address_of(here.kernel, here.doors).model_copy(update=through)
    (here.data / ADDRESS_FILE).write_text(address.model_dump_json())
    try:
        yield proxy
    finally:
        await proxy.close()


@contextlib.asynccontextmanager
async def opened(
    here: World,
    *,
    size: tuple[int, int] = (80, 24),
    as_name: str | None = None,
    demo: bool = False,
    context: str | None = None,
    restart: Callable[[], None] | None = None,
    has_kernel: Callable[[], bool] | None = None,
    live: bool = True,
    clock: Clock | None = None,
) -> AsyncIterator[Opened]:
    """The app, from when it is `live` (if that is awaited); it leaves at the end."""
    options = AppOptions(
        data=here.data,
        context=context,
        as_name=as_name,
        project=here.folder,
        demo=demo,
        restart=restart,
        has_kernel=has_kernel,
    )
    app = AntiphonApp(options, clock=clock)
    async with fail_with(lambda: app._exception), app.run_test(size=size) as pilot:  # noqa: SLF001
        there = Opened(app, pilot, here)
        try:
            if live:
                await there.live()
            yield there
        finally:
            await app.session.close()
            app.exit(return_code=app.return_code or 0)
