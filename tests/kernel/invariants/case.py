"""One random case: the world it happens in, and how its steps choose."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from tests.kernel.invariants.oracle import Violation
from tests.kernel.invariants.world import World


class Case:
    """State that all steps share."""

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
