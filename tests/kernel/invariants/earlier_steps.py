"""Steps that go back to an earlier version of a block."""

from __future__ import annotations

import contextlib
from typing import Any

from antiphon_kernel.text.lines import split_lines
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from tests.kernel.invariants.carrying import Carrying, Stale
from tests.kernel.invariants.oracle import Violation
from tests.kernel.invariants.tool_steps import ToolSteps
from tests.kernel.invariants.world import NAMES


class EarlierSteps(ToolSteps):
    """Edits that mean an earlier version, and looks at one."""

    def version(self, block: str) -> int:
        now = self.world.context.blocks.version(block)
        return self.rng.choice((max(now - 1, 1), self.rng.randint(1, now)))

    def carrying(self, block: str, version: int) -> Carrying:
        oracle = self.world.oracle
        return Carrying(oracle.versions[block][version], oracle.visible(block))

    async def edit_earlier(self) -> None:
        """An edit of an earlier version hits the right lines, or says that they have changed."""
        if self.world.buffered():
            await self.flush()
        name = self.rng.choice(NAMES)
        block = self.block(name)
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
        name = self.rng.choice(NAMES)
        block = self.block(name)
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
            if told["lines"] != lines or told["version"] != self.world.context.blocks.version(
                block
            ):
                raise Violation(f"{told} is not what {block} is now: {lines}") from error
            return
        raise Violation(f"{tool} {params} has changed text that is not what it meant")

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
        line = await self.tried((), "bo", "block.timeline", block_id=block)
        shown = "".join(
            one["text"]
            for one in (line or {})["texts"]
            if one["since"] <= version < one.get("until", version + 1)
        )
        if shown != due:
            raise Violation(f"the timeline shows {shown!r} as version {version}: {due!r}")

    async def restore(self) -> None:
        name = self.rng.choice(NAMES)
        block = self.block(name)
        if self.world.buffered():
            await self.flush()
        version = self.version(block)
        due = "".join(char.value for char in self.world.oracle.versions[block][version])
        await self.tried((), name, "block.restore", block_id=block, version=version)
        self.world.compare(due, block, f"version {version} restored should be what")
