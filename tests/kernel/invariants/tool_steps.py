"""Steps of everybody through tools."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from antiphon_kernel.text.lines import line_count
from antiphon_kernel.types.enums import Role, Status
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from tests.kernel.invariants.oracle import Violation
from tests.kernel.invariants.world import CLIENTS, MODEL, NAMES, PEOPLE, SCRIPT, World


class Case:
    """One random case: the world it happens in, and how its steps choose."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.rng = world.rng
        self.longest_deletion = 3
        self.done: list[str] = []
        """Steps so far, for whoever reads a failure."""

    async def step(self, name: str) -> None:
        step: Callable[[], Awaitable[None]] = getattr(self, name)
        self.done.append(name)
        await step()
        await self.world.settle()

    def block(self, writer: str | None = None) -> str:
        """Any block; for a writer, one that is nobody else's draft."""
        blocks = self.world.context.document.block_ids()
        if writer is not None:
            blocks = [block for block in blocks if not self.is_draft_of_another(block, writer)]
        return self.rng.choice(blocks)

    def is_draft_of_another(self, block: str, name: str) -> bool:
        header = self.world.context.document.header(block)
        return header.is_draft and header.author != self.world.actors[name].principal.id

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

    async def flush(self) -> None:
        """A list flushes every buffered append."""
        await self.world.call("bo", "block.list")


class ToolSteps(Case):
    """People, a model and a script call tools."""

    async def create(self) -> None:
        is_first = not len(self.world.context.document)
        name = PEOPLE[0] if is_first else self.rng.choice(NAMES)
        is_shared = is_first or (name not in (MODEL, SCRIPT) and self.rng.random() < 0.75)
        kind = "file" if is_shared else "text"
        params: dict[str, Any] = {"kind": kind, "content": self.word(name)}
        if name == MODEL:
            params["parent_id"] = self.block()
        if self.rng.random() < 0.3:
            params["status"] = "done"
        if self.rng.random() < 0.3 and len(self.world.context.document):
            params["after"] = self.block()
        self.done.append("create")
        await self.tried((), name, "block.create", **params)

    async def splice(self) -> None:
        name = self.rng.choice(NAMES)
        block = self.block(name)
        length = len(self.text(block))
        offset = self.rng.randint(0, length)
        count = self.rng.randint(0, min(self.longest_deletion, length - offset))
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
        name = self.rng.choice(NAMES)
        block = self.block(name)
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
            and not self.is_draft_of_another(block, name)
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
        if self.rng.random() < 0.2:
            whose = self.rng.choice(NAMES)
            name, params["principal"] = "amy", whose
        if self.rng.random() < 0.5:
            params["block_id"] = self.block(name)
        if world.buffered():
            await self.flush()
        whose = world.actors[params.get("principal", name)].principal.id
        possible = world.oracle.can_turn(whose, stack, params.get("block_id"))
        code = ErrorCode.NOTHING_TO_UNDO if stack == "undo" else ErrorCode.NOTHING_TO_REDO
        blocks = world.oracle.turned_blocks(whose, stack, params.get("block_id"))
        if any(self.is_draft_of_another(block, name) for block in blocks):
            await self.tried((ErrorCode.PERMISSION_DENIED,), name, f"block.{stack}", **params)
            return
        answer = await self.tried((code,), name, f"block.{stack}", **params)
        if possible != (answer is not None):
            raise Violation(
                f"{stack} says {answer}, where there is {'some' if possible else 'no'}thing to turn"
            )

    async def race(self) -> None:
        """Several calls at once, and clients in between: all of them are in the journal whole."""
        world = self.world
        block = self.block(SCRIPT)
        if self.is_draft_of_another(block, MODEL):
            return
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

    async def arrange(self) -> None:
        """A block is moved beside another one, folded or left out; nothing else changes."""
        name, beside = self.rng.choice(NAMES), self.block()
        block = self.block(name)
        document = self.world.context.document
        order = list(document.block_ids())
        texts = {one: document.text(one) for one in order}
        if self.world.buffered() or block == beside:
            return
        moved = [one for one in order if one != block]
        at = moved.index(beside)
        header = document.header(block)
        foreign = name != "amy" and header.author != self.world.actors[name].principal.id
        tool, params, due = self.rng.choice(
            (
                ("block.collapse", {}, order),
                ("block.exclude", {}, order),
                ("block.move", {"after": beside}, [*moved[: at + 1], block, *moved[at + 1 :]]),
                ("block.move", {"before": beside}, [*moved[:at], block, *moved[at:]]),
            )
        )
        # A model hides only what it reads, behind the cache point before the tail.
        hides = name == "aria" and tool == "block.exclude"
        codes = (ErrorCode.PERMISSION_DENIED,) if foreign or hides else ()
        answer = await self.tried(codes, name, tool, block_id=block, **params)
        order = due if answer is not None else order
        if list(document.block_ids()) != order:
            raise Violation(f"the blocks should stand as {order}, not {document.block_ids()}")
        for one, text in texts.items():
            self.world.compare(text, one, "before blocks were arranged, the kernel")

    async def finish(self) -> None:
        document, block = self.world.context.document, self.block("amy")
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

    async def trespass(self) -> None:
        """Nobody changes the draft of somebody else, whatever their role."""
        if self.world.buffered():
            await self.flush()
        name = self.rng.choice(NAMES)
        ids = self.world.context.document.block_ids()
        drafts = [block for block in ids if self.is_draft_of_another(block, name)]
        if not drafts:
            return
        block = self.rng.choice(drafts)
        insert = {"op": "insert", "line": 0, "content": self.word(name)}
        calls: list[tuple[str, dict[str, Any]]] = [
            ("block.splice", {"offset": 0, "insert": self.word(name)}),
            ("block.edit", {"operations": [insert]}),
            ("block.append", {"text": self.word(name), "stream": self.rng.random() < 0.5}),
            ("block.restore", {"version": 1}),
            ("block.status", {"status": "done"}),
            ("block.collapse", {"collapsed": not self.world.headers()[block].collapsed}),
        ]
        tool, params = self.rng.choice(calls)
        before = self.text(block)
        codes = (ErrorCode.PERMISSION_DENIED, ErrorCode.INVALID_TRANSITION)
        if await self.tried(codes, name, tool, block_id=block, **params) is not None:
            raise Violation(f"{name} has changed the draft {block} with {tool}")
        self.world.compare(before, block, "after a refusal, the kernel")

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
