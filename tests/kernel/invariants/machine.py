"""A random machine over a `World`: one seed, one case."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from antiphon_kernel.text.lines import line_count, split_lines
from antiphon_kernel.types.enums import Role, Status
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.ids import DRAFT_SEQ_MIN
from tests.kernel.invariants.carrying import Carrying, Stale
from tests.kernel.invariants.oracle import Violation
from tests.kernel.invariants.world import MODEL, NAMES, PEOPLE, SCRIPT, World

CLIENTS = ("amy", "bo", "amy.second")

_WEIGHTS: dict[str, int] = {
    "create": 2,
    "draft": 1,
    "splice": 4,
    "edit": 4,
    "edit_earlier": 4,
    "splice_earlier": 3,
    "race": 2,
    "look_back": 1,
    "restore": 1,
    "append": 3,
    "stream": 6,
    "type": 10,
    "listen": 4,
    "send": 5,
    "go_offline": 1,
    "come_back": 2,
    "undo": 5,
    "redo": 3,
    "finish": 1,
    "fail": 2,
    "pause": 2,
    "end_session": 1,
    "blame": 1,
    "restart": 1,
    "crash": 1,
}


class Machine:
    """Random steps; every one is checked by the world it happens in."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.world = World(folder, seed)
        self.rng = self.world.rng
        self.done: list[str] = []
        """What has happened, for whoever reads a failure."""

    async def run(self, steps: int) -> None:
        await self.begin()
        names, weights = list(_WEIGHTS), list(_WEIGHTS.values())
        for _ in range(steps):
            name = self.rng.choices(names, weights)[0]
            await self.step(name)
        await self.end()

    async def begin(self) -> None:
        world = self.world
        await world.open()
        for name in CLIENTS:
            await world.add_client(name, keeps_deleted=self.rng.random() < 0.5)
        await self.create()

    async def step(self, name: str) -> None:
        step: Callable[[], Awaitable[None]] = getattr(self, name)
        self.done.append(name)
        await step()
        await self.world.settle()

    # Choosing

    def block(self) -> str:
        return self.rng.choice(self.world.context.document.block_ids())

    def text(self, block: str) -> str:
        return self.world.context.document.text(block)

    def word(self, name: str) -> str:
        return self.world.alphabets[name].word(self.rng)

    async def tried(
        self, codes: tuple[ErrorCode, ...], name: str, tool: str, **params: Any
    ) -> dict[str, Any] | None:
        """A call that may fail with these codes, and with no others."""
        self.done[-1] += f" {name} {tool} {params}"
        try:
            return await self.world.call(name, tool, **params)
        except AntiphonError as error:
            if error.code not in codes:
                raise Violation(f"{tool} {params} failed: {error.code} {error}") from error
            return None

    # Steps through tools

    async def create(self) -> None:
        name = self.rng.choice(NAMES)
        role = {MODEL: "model", SCRIPT: "tool"}.get(name, "user")
        content = self.word(name)
        params: dict[str, Any] = {"role": role, "kind": "text", "content": content}
        if self.rng.random() < 0.3:
            params["status"] = "done"
        if self.rng.random() < 0.3 and len(self.world.context.document):
            params["after"] = self.block()
        self.done.append("create")
        await self.tried((), name, "block.create", **params)

    async def splice(self) -> None:
        name, block = self.rng.choice(NAMES), self.block()
        length = len(self.text(block))
        offset = self.rng.randint(0, length)
        count = self.rng.randint(0, min(4, length - offset))
        before = self.text(block)
        inserted = self.word(name)
        if self.world.buffered():
            return
        await self.tried(
            (),
            name,
            "block.splice",
            block_id=block,
            offset=offset,
            delete_count=count,
            insert=inserted,
        )
        self.world.compare(before[:offset] + inserted + before[offset + count :], block, "a splice")

    async def edit(self) -> None:
        name, block = self.rng.choice(NAMES), self.block()
        if self.world.buffered():
            return
        operations = self.operations(name, line_count(self.text(block)))
        await self.tried((), name, "block.edit", block_id=block, operations=operations)

    def operations(self, name: str, lines: int) -> list[dict[str, Any]]:
        """A batch for a text of so many lines."""
        operations: list[dict[str, Any]] = []
        at = 0
        for _ in range(self.rng.randint(1, 3)):
            start = self.rng.randint(at, lines)
            end = self.rng.randint(start, min(start + 2, lines))
            content = self.world.alphabets[name].lines(self.rng)
            match self.rng.randrange(3):
                case 0:
                    operations.append({"op": "insert", "line": start, "content": content})
                    at = start
                case 1 if end > start:
                    operations.append({"op": "delete", "start_line": start, "end_line": end})
                    at = end
                case _:
                    replaced = {"op": "replace", "start_line": start, "end_line": end}
                    operations.append({**replaced, "content": content})
                    at = end
        return operations

    def version(self, block: str) -> int:
        """One of the versions that a block has had."""
        now = self.world.context.version(block)
        return self.rng.choice((max(now - 1, 1), self.rng.randint(1, now)))

    def carrying(self, block: str, version: int) -> Carrying:
        oracle = self.world.oracle
        return Carrying(oracle.versions[block][version], oracle.visible(block))

    async def edit_earlier(self) -> None:
        """An edit of an earlier version hits the right lines, or says that they have changed."""
        if self.world.buffered():
            await self.flush()
        name, block = self.rng.choice(NAMES), self.block()
        version = self.version(block)
        carrying = self.carrying(block, version)
        operations = self.operations(name, carrying.line_count)
        params = {"block_id": block, "operations": operations, "base_version": version}
        with contextlib.suppress(Stale):
            due = carrying.edited(operations)
            await self.tried((), name, "block.edit", **params)
            self.world.compare(due, block, "an edit of an earlier version should be what")
            return
        await self.stale(name, "block.edit", params)

    async def splice_earlier(self) -> None:
        if self.world.buffered():
            await self.flush()
        name, block = self.rng.choice(NAMES), self.block()
        version = self.version(block)
        carrying = self.carrying(block, version)
        length = len(carrying.base)
        offset = self.rng.randint(0, length)
        count = self.rng.choice((0, 0, self.rng.randint(0, min(4, length - offset))))
        inserted = self.word(name)
        params = {
            "block_id": block,
            "offset": offset,
            "delete_count": count,
            "insert": inserted,
            "base_version": version,
        }
        with contextlib.suppress(Stale):
            due = carrying.spliced(offset, count, inserted)
            await self.tried((), name, "block.splice", **params)
            self.world.compare(due, block, "a splice of an earlier version should be what")
            return
        await self.stale(name, "block.splice", params)

    async def stale(self, name: str, tool: str, params: dict[str, Any]) -> None:
        """The call must fail, and say what is there now."""
        self.done[-1] += f" {name} {tool} {params}"
        try:
            await self.world.call(name, tool, **params)
        except AntiphonError as error:
            if error.code is not ErrorCode.STALE_VERSION:
                raise Violation(f"{tool} {params} failed: {error.code} {error}") from error
            block = params["block_id"]
            told = error.details
            lines = split_lines(self.text(block))[told["start_line"] : told["end_line"]]
            if told["lines"] != lines or told["version"] != self.world.context.version(block):
                raise Violation(f"{told} is not what {block} is now: {lines}") from error
            return
        raise Violation(f"{tool} {params} has changed text that is not what it meant")

    async def race(self) -> None:
        """Several calls at once, and clients in between: all of them are in the journal whole."""
        world = self.world
        block = self.block()
        before = len(self.text(block))
        calls: list[Awaitable[object]] = []
        for name in NAMES:
            insert = {"block_id": block, "insert": self.word(name)}
            calls.append(
                world.kernel.call(
                    world.actors[name],
                    "block.splice",
                    {**insert, "offset": self.rng.randint(0, before)},
                )
            )
        if world.buffered():
            await self.flush()
        for name in CLIENTS:
            if world.clients[name].online:
                calls.append(world.clients[name].send(world.context, self.rng))
        for outcome in await asyncio.gather(*calls, return_exceptions=True):
            if isinstance(outcome, BaseException) and not (
                isinstance(outcome, AntiphonError) and outcome.code is ErrorCode.INVALID_PARAMS
            ):
                raise outcome

    async def look_back(self) -> None:
        """Every version of a block is what it was."""
        block = self.block()
        if self.world.buffered():
            await self.flush()
        oracle, version = self.world.oracle, self.version(block)
        read = await self.tried((), "bo", "block.read", block_id=block, version=version)
        due = "".join(char.value for char in oracle.versions[block][version])
        if read is not None and read["content"] != due:
            raise Violation(f"version {version} was {due!r} and is {read['content']!r}")
        told = await self.tried((), "bo", "block.history", block_id=block)
        found = [(one["version"], one["operation"]) for one in (told or {})["versions"]]
        if found != [(op.versions[block], op.operation) for op in oracle.changes[block]]:
            raise Violation(f"the history of {block} is {found}")

    async def restore(self) -> None:
        block = self.block()
        if self.world.buffered():
            await self.flush()
        version = self.version(block)
        name = self.rng.choice(NAMES)
        due = "".join(char.value for char in self.world.oracle.versions[block][version])
        await self.tried((), name, "block.restore", block_id=block, version=version)
        self.world.compare(due, block, f"version {version} restored should be what")

    async def append(self) -> None:
        await self._append(stream=False)

    async def stream(self) -> None:
        await self._append(stream=True)

    async def _append(self, *, stream: bool) -> None:
        name = self.rng.choice((MODEL, MODEL, SCRIPT, "bo"))
        document = self.world.context.document
        open_ones = [
            block
            for block in document.block_ids()
            if document.header(block).status in (Status.PENDING, Status.RUNNING)
        ]
        if not open_ones:
            return
        block, text = self.rng.choice(open_ones), self.word(name)
        self.world.streamed.setdefault((name, block), [])
        await self.tried((), name, "block.append", block_id=block, text=text, stream=stream)
        self.world.streamed[name, block].append(text)

    async def undo(self) -> None:
        await self._turn("undo")

    async def redo(self) -> None:
        await self._turn("redo")

    async def _turn(self, stack: str) -> None:
        world = self.world
        name = self.rng.choice(NAMES)
        params: dict[str, Any] = {}
        if self.rng.random() < 0.5:
            params["block_id"] = self.block()
        if self.rng.random() < 0.2:
            whose = self.rng.choice(NAMES)
            name, params["principal"] = "amy", whose
        if world.buffered():
            await self.flush()
        whose = world.actors[params.get("principal", name)].principal.id
        possible = world.oracle.can_turn(whose, stack, params.get("block_id"))
        code = ErrorCode.NOTHING_TO_UNDO if stack == "undo" else ErrorCode.NOTHING_TO_REDO
        answer = await self.tried((code,), name, f"block.{stack}", **params)
        if possible != (answer is not None):
            raise Violation(
                f"{stack} says {answer}, where there is {'some' if possible else 'no'}thing to turn"
            )

    async def flush(self) -> None:
        """A list flushes every buffered append."""
        await self.world.call("bo", "block.list")

    async def finish(self) -> None:
        document, block = self.world.context.document, self.block()
        header = document.header(block)
        if header.status in (Status.DONE, Status.ERROR):
            return
        await self.tried(
            (ErrorCode.INVALID_TRANSITION,) if header.role == Role.USER else (),
            "amy",
            "block.status",
            block_id=block,
            status="done",
        )

    async def fail(self) -> None:
        """A call that cannot succeed."""
        if self.world.buffered():
            await self.flush()
        name, block = self.rng.choice(NAMES), self.block()
        text = self.text(block)
        bad = {"op": "delete", "start_line": line_count(text), "end_line": line_count(text) + 1}
        good = {"op": "insert", "line": 0, "content": self.word(name)}
        calls: list[tuple[str, dict[str, Any]]] = [
            ("block.splice", {"block_id": block, "offset": len(text), "delete_count": 1}),
            ("block.edit", {"block_id": block, "operations": [good, bad]}),
            ("block.edit", {"block_id": block, "operations": [bad, good]}),
            ("block.create", {"role": "user", "kind": "text", "after": f"{block}9999"}),
            ("block.status", {"block_id": block, "status": "frozen"}),
        ]
        tool, params = self.rng.choice(calls)
        self.done[-1] += f" {name} {tool} {params}"
        try:
            await self.world.call(name, tool, **params)
        except AntiphonError:
            return
        raise Violation(f"{tool} {params} did not fail")

    async def pause(self) -> None:
        self.world.clock.ms += self.rng.choice((10, 400, 1_500, 100_000))

    async def end_session(self) -> None:
        """The model's or the script's session ends: what it left running is interrupted."""
        world, name = self.world, self.rng.choice((MODEL, SCRIPT))
        await world.kernel.close_session(world.actors[name])
        world.actors[name] = world.kernel.open_session(world.actors[name].principal, "test")
        await world.settle()
        world.check_owners()

    async def blame(self) -> None:
        if self.world.buffered():
            await self.flush()
        await self.world.check_blame(self.block())

    # Steps of clients

    def client(self) -> str:
        return self.rng.choice(CLIENTS)

    async def type(self) -> None:
        name = self.client()
        client = self.world.clients[name]
        alphabet = self.world.alphabets[name.split(".")[0]]
        for _ in range(self.rng.randint(1, 3)):
            texts = client.texts()
            if not texts:
                return
            block = self.rng.choice(texts)
            length = len(client.text(block))
            offset = self.rng.randint(0, length)
            count = self.rng.choice((0, 0, 1, 3))
            count = min(count, length - offset)
            inserted = alphabet.some(self.rng, 3) if self.rng.random() < 0.8 else ""
            self.done[-1] += f" {name} {block[-20:]} {offset} -{count} +{inserted!r}"
            client.splice(block, offset, count, inserted)
        if client.online and self.rng.random() < 0.6:
            await client.send(self.world.context, self.rng)

    async def draft(self) -> None:
        name = self.rng.choice(PEOPLE)
        client, context = self.world.clients[name], self.world.context
        principal = self.world.actors[name].principal.id
        block = f"{context.id}.{principal}.{DRAFT_SEQ_MIN + self.rng.randrange(2**40)}"
        fields = {
            "kind": "text",
            "role": "user",
            "status": "pending",
            "order": "a5",
            "created": "2026-01-01T00:00:00.000Z",
            "author": principal,
        }
        client.draft(block, fields, self.word(name))

    async def listen(self) -> None:
        name = self.client()
        self.done[-1] += f" {name}"
        self.world.clients[name].listen(self.rng, everything=False)

    async def send(self) -> None:
        name = self.client()
        client = self.world.clients[name]
        self.done[-1] += f" {name}"
        if client.online:
            await client.send(self.world.context, self.rng)

    async def go_offline(self) -> None:
        self.world.clients[self.client()].disconnect()

    async def come_back(self) -> None:
        for name, client in self.world.clients.items():
            if not client.online:
                self.done[-1] += f" {name}"
                await client.connect(self.world.context)
                return

    # Lives of the kernel

    async def restart(self) -> None:
        await self.world.restart()

    async def crash(self) -> None:
        await self.world.crash()

    # The end

    async def end(self) -> None:
        """Everybody comes back, somebody undoes everything and does it again."""
        world = self.world
        await self.flush()
        await self.meet()
        world.check_streams()
        for block in world.oracle.blocks():
            await world.check_blame(block)
        await self.undo_everything()
        await self.meet()

    async def meet(self) -> None:
        """All clients come online, send and hear everything."""
        world = self.world
        for client in world.clients.values():
            if client.online:
                await client.send(world.context, self.rng)
            else:
                await client.connect(world.context)
        await world.settle()
        for client in world.clients.values():
            client.listen(self.rng, everything=True)
        await world.check_equal()

    async def undo_everything(self) -> None:
        """Undo all of one principal, restart, redo all: the same again, and nothing of others."""
        world, rng = self.world, self.rng
        name = rng.choice(NAMES)
        whose = world.actors[name].principal.id
        self.done.append(f"{name} undoes everything")
        while world.oracle.can_turn(whose, "redo", None):
            await world.call(name, "block.redo")
        before = {block: world.oracle.text(block) for block in world.oracle.blocks()}
        others = _by_others(world, whose)
        count = 0
        while world.oracle.can_turn(whose, "undo", None):
            await world.call(name, "block.undo")
            count += 1
            if rng.random() < 0.05:
                await world.restart()
        left = _by_others(world, whose)
        for block, chars in others.items():
            if not chars <= left[block]:
                raise Violation(f"{name} has undone everything, and others have lost text")
        for block in world.oracle.blocks():
            await world.check_blame(block)
        for _ in range(count):
            await world.call(name, "block.redo")
        for block, text in before.items():
            world.compare(text, block, f"before {name} undid and redid everything")


def _by_others(world: World, principal: str) -> dict[str, set[int]]:
    """The visible characters of everybody else, by block."""
    return {
        block: {id(char) for char in world.oracle.visible(block) if char.principal != principal}
        for block in world.oracle.blocks()
    }


def describe(machine: Machine) -> str:
    return "\n".join(machine.done)
