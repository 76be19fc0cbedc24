"""A context in mid-stream: a model writes, a guest has a cursor in its text, you watch."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, Final

from antiphon_kernel.client.address import ADDRESS_FILE
from antiphon_kernel.config import KernelConfig
from antiphon_kernel.contexts import Context
from antiphon_kernel.daemon.data_folder import hold_folder
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.providers import ModelConfig, ModelKind
from antiphon_kernel.providers.events import TextDelta, ThinkingDelta
from antiphon_kernel.providers.recording import load_recordings
from antiphon_kernel.registry import Registry
from antiphon_kernel.server import Server
from antiphon_kernel.tools.all_tools import KERNEL_TOOLS
from antiphon_kernel.turns import TURN_TOOLS, TurnRunner
from antiphon_kernel.turns.models import Models, demo_recordings
from antiphon_kernel.types.enums import Activity, PrincipalKind
from antiphon_kernel.types.ids import IdSource
from antiphon_kernel.types.presence import PresenceState
from antiphon_kernel.types.records import Actor
from tests.addresses import address_of
from tests.app.opened import Writer
from tests.policies import policy_of

NOW_MS: Final = 1_764_000_000_000


class FixedClock:
    """Always the same time of the day; `seconds` have passed since the start."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def now_ms(self) -> int:
        return NOW_MS

    def monotonic(self) -> float:
        return self.seconds


class CountingIds(IdSource):
    """UUIDv7 of the fixed moment, numbered; client ids, numbered."""

    def __init__(self) -> None:
        self._numbers = count(1)

    def uuid7(self) -> str:
        return f"{NOW_MS:012x}70008{next(self._numbers):015x}"

    def client_id(self) -> int:
        return 1_000 + next(self._numbers)


PROMPT: Final = "What is in this project?"

LISTING: Final = "README.md\nchoir.md\nverses/\n"

HISTORY: Final = "5f1c0de The second choir answers\n9a0e4b7 First verse\n"

GUESTS_PLACE: Final = "see what happens"
"""The guest's cursor is in front of these words."""


@dataclass(slots=True)
class Scene:
    """The kernel of the picture and who is in it."""

    kernel: Kernel
    context: Context
    you: Actor
    aria: Actor
    answer: str
    """The block that aria is writing."""
    text: str
    """All that aria is going to write."""
    written: int = 0
    clock: FixedClock = field(default_factory=FixedClock)
    """The app's."""
    models: dict[str, Writer] = field(default_factory=dict)
    """Models that ask for leave before they do anything."""

    async def call(self, actor: Actor, tool: str, **params: Any) -> dict[str, Any]:
        return await self.kernel.call(actor, tool, params)

    async def write_until(self, words: str) -> None:
        """Aria writes on, up to and with these words."""
        end = self.text.index(words, self.written) + len(words)
        await self.call(
            self.aria, "block.append", block_id=self.answer, text=self.text[self.written : end]
        )
        self.written = end

    def show(self, actor: Actor, block: str, cursor: int, activity: Activity) -> None:
        """Somebody's cursor."""
        member = self.context.ensure_member(actor)
        state = PresenceState(
            principal=member.principal,
            username=member.username,
            kind=member.kind,
            colour=member.colour,
            session=actor.session,
            block=block,
            cursor=cursor,
            activity=activity,
        )
        self.context.presence.put(int(actor.session[-8:], 16), state)


@contextlib.asynccontextmanager
async def open_scene(
    folder: Path, clock: FixedClock, models: Sequence[str] = ()
) -> AsyncIterator[Scene]:
    """A served kernel with a conversation that has just begun, and `models` that ask for leave."""
    data, playing = folder / "data", {name: Writer() for name in models}
    with hold_folder(data):
        kernel = await Kernel.open(
            data,
            folder,
            registry=Registry((*KERNEL_TOOLS, *TURN_TOOLS)),
            owner="amy",
            clock=FixedClock(),
            ids=CountingIds(),
        )
        policy = policy_of({"block_edit": "ask", "shell": "ask"})
        asking = [ModelConfig(one, ModelKind.SCRIPTED, "", permissions=policy) for one in playing]
        await kernel.rename("demo")
        turns = TurnRunner(kernel, Models(playing, config=KernelConfig(models=tuple(asking))))
        doors = await Server(kernel).start(port=0, socket=folder / "kernel.sock")
        scene = await _set(kernel, clock, playing)
        (data / ADDRESS_FILE).write_text(address_of(kernel, doors).model_dump_json())
        try:
            yield scene
        finally:
            await doors.close()
            await turns.close()
            await kernel.close()


async def _set(kernel: Kernel, clock: FixedClock, models: dict[str, Writer]) -> Scene:
    """Everything up to the first word of the answer."""
    recording = load_recordings(demo_recordings()[0])[0]
    events = [[step.event for step in steps] for steps in recording.rounds]
    thought = "".join(one.text for one in events[0] if isinstance(one, ThinkingDelta))
    text = "".join(one.text for one in events[-1] if isinstance(one, TextDelta))
    context = await kernel.context("default")
    you = kernel.open_session(kernel.owner, "test")
    aria = kernel.open_session(await kernel.principal("aria", PrincipalKind.MODEL), "test")
    context.ensure_member(you)
    context.ensure_member(aria)
    prompt = await _block(kernel, you, "user", "text", PROMPT)
    await _block(kernel, aria, "model", "thinking", thought, parent_id=prompt)
    for number, (command, output) in enumerate([("ls -1", LISTING), ("git log -3", HISTORY)]):
        fields = {"tool_kind": "shell", "tool_name": "shell", "tool_call_id": f"call-{number}"}
        call = await _block(
            kernel, aria, "model", "tool_call", command, parent_id=prompt, metadata=fields
        )
        await _block(kernel, aria, "tool", "tool_result", output, parent_id=call, metadata=fields)
    answer = await kernel.call(
        aria,
        "block.create",
        {"role": "model", "kind": "text", "content": text[:1], "parent_id": prompt},
    )
    block = str(answer["block_id"])
    return Scene(kernel, context, you, aria, block, text, written=1, clock=clock, models=models)


async def _block(
    kernel: Kernel, actor: Actor, role: str, kind: str, content: str, **params: Any
) -> str:
    created = await kernel.call(
        actor, "block.create", {"role": role, "kind": kind, "content": content, **params}
    )
    block = str(created["block_id"])
    ended: dict[str, Any] = {"block_id": block, "status": "done"}
    if kind in ("tool_call", "tool_result"):
        ended["exit_code"] = 0
    await kernel.call(actor, "block.status", ended)
    return block
