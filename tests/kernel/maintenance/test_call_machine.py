"""Random calls, results, moves, forks and imports: the doctor finds nothing after any of them."""

from __future__ import annotations

import os
from pathlib import Path
from random import Random
from typing import Any

import pytest

from antiphon_kernel.kernel import Kernel
from antiphon_kernel.maintenance.run_checks import run_checks
from antiphon_kernel.tools import block as block_tools
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.records import Actor

pytestmark = pytest.mark.sqlite

SEEDS = int(os.environ.get("ANTIPHON_CASES", "150")) // 75
STEPS = 20


class Machine:
    """One owner at several contexts."""

    def __init__(self, kernel: Kernel, seed: int) -> None:
        self.kernel = kernel
        self.amy: Actor = kernel.open_session(kernel.owner, "test")
        self.rng = Random(seed)
        self.contexts = ["default"]

    async def call(self, tool: str, **params: Any) -> dict[str, Any]:
        try:
            return await self.kernel.call(self.amy, tool, params)
        except AntiphonError as error:
            if error.code is not ErrorCode.INVALID_PARAMS:
                raise
            return {}

    async def blocks(self, kind: str | None = None) -> tuple[str, list[str]]:
        context = self.rng.choice(self.contexts)
        document = (await self.kernel.context(context)).document
        ids = [one for one in document.block_ids() if kind in (None, document.header(one).kind)]
        return context, ids

    async def step(self) -> None:
        await self.rng.choice(
            (
                self.prompt,
                self.begin,
                self.answer,
                self.answer,
                self.move,
                self.move,
                self.move,
                self.fork,
                self.copy,
            )
        )()

    async def prompt(self) -> None:
        context, _ = await self.blocks()
        fields = {"role": "user", "kind": "text", "content": "?", "status": "done"}
        await self.call("block.create", context=context, **fields)

    async def begin(self) -> None:
        context, ids = await self.blocks()
        place = {"after": self.rng.choice(ids)} if ids and self.rng.random() < 0.5 else {}
        fields = {"role": "user", "kind": "tool_call", "content": "ls", "status": "done"}
        await self.call("block.create", context=context, **fields, **place)

    async def answer(self) -> None:
        _, calls = await self.blocks("tool_call")
        if not calls:
            return
        call = self.rng.choice(calls)
        document = (await self.kernel.find_block(call))[0].document
        place = {"after": self.rng.choice(document.block_ids())} if self.rng.random() < 0.6 else {}
        fields = {"role": "tool", "kind": "tool_result", "content": "a", "status": "done"}
        more = {"more": True} if self.rng.random() < 0.4 else {}
        await self.call("block.create", parent_id=call, metadata=more, **fields, **place)

    async def move(self) -> None:
        _, ids = await self.blocks()
        if len(ids) > 1:
            block, beside = self.rng.sample(ids, 2)
            await self.call(
                "block.move", block_id=block, **{self.rng.choice(("after", "before")): beside}
            )

    async def fork(self) -> None:
        label = f"fork{len(self.contexts)}"
        if await self.call("context.fork", context=self.rng.choice(self.contexts), label=label):
            self.contexts.append(label)

    async def copy(self) -> None:
        text = (await self.call("context.export", context=self.rng.choice(self.contexts)))["text"]
        label = f"copy{len(self.contexts)}"
        if await self.call("context.import", text=text, label=label):
            self.contexts.append(label)


async def play(kernel: Kernel, data: Path, seed: int) -> None:
    machine = Machine(kernel, seed)
    await machine.prompt()
    for number in range(STEPS):
        await machine.step()
        if number % 5 < 4:
            continue
        assert [str(one) for one in (await run_checks(data)).all()] == []


@pytest.mark.parametrize("seed", range(SEEDS))
async def test_doctor_after_random_calls_moves_forks_and_imports_finds_nothing(
    kernel: Kernel, data: Path, seed: int
) -> None:
    await play(kernel, data, seed)


async def test_doctor_after_moves_that_are_not_checked_finds_results_before_their_calls(
    kernel: Kernel, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(block_tools, "_reject_result_before_call", lambda *_, **__: None)

    async def play_in_turn() -> None:
        for seed in range(1, 20):  # the first shows it
            await play(kernel, data, seed)

    with pytest.raises(AssertionError):
        await play_in_turn()
