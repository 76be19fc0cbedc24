"""Every tool that changes blocks, on parts of drifts: it is refused, or leaves a sound context.

`ANTIPHON_CASES` says how many seeds are played.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from pathlib import Path
from typing import Any, Final

import pytest

from antiphon_kernel.kernel import Kernel
from antiphon_kernel.maintenance.run_checks import run_checks
from antiphon_kernel.types.errors import AntiphonError
from antiphon_kernel.types.records import Actor
from tests.kernel.drift.staging import content
from tests.kernel.kernel.calls import Caller, Make, OpenKernel, check_error
from tests.kernel.tools.files import PNG, sent

SEEDS: Final = range(int(os.environ.get("ANTIPHON_CASES", "2")))
STEPS: Final = 40
MOST_CONTEXTS: Final = 4


Asked = tuple[str, dict[str, Any]]
"""A tool, and the parameters of a call."""


class Steps:
    """Random calls about the blocks of two contexts that drift to each other."""

    def __init__(self, call: Caller, others: list[Caller], rng: random.Random) -> None:
        self.call, self.others, self.rng = call, others, rng
        self.done = Counter[str]()
        self.labels = ["default", "notes"]

    async def play(self) -> None:
        for _ in range(STEPS):
            kind = self.rng.choice([self.of_block, self.of_message, self.of_drift])
            tool, params = await kind()
            caller = self.rng.choice([self.call, self.call, *self.others])
            try:
                await caller(tool, **params)
                self.done[tool] += 1
            except AntiphonError as error:
                check_error(caller.kernel, tool, error)

    async def block(self, label: str | None = None) -> str:
        context = await self.call.context(label or self.rng.choice(self.labels))
        return self.rng.choice(list(context.document.block_ids()))

    async def of_block(self) -> Asked:
        rng, block, other = self.rng, await self.block(), await self.block()
        every: list[Asked] = [
            ("block.splice", {"block_id": block, "offset": 0, "insert": "new "}),
            ("block.splice", {"block_id": block, "offset": 0, "delete_count": 2}),
            ("block.append", {"block_id": block, "text": " more"}),
            ("block.move", {"block_id": block, rng.choice(["after", "before"]): other}),
            ("block.exclude", {"block_id": block, "excluded": rng.random() < 0.6}),
            ("block.exclude", {"block_id": block, "cut_out": True}),
            ("block.status", {"block_id": block, "status": rng.choice(["done", "error"])}),
            ("block.attach", {"block_id": block, "files": [sent("c.png", PNG)]}),
            ("block.restore", {"block_id": block, "version": 1}),
            ("block.create", {"kind": "tool_result", "parent_id": block, "content": "r"}),
            (
                "block.create",
                {"kind": "text", "parent_id": block, "content": "?", "status": "done"},
            ),
            ("block.create", {"kind": "text", "after": block, "content": "draft"}),
        ]
        return self.rng.choice(every)

    async def of_message(self) -> Asked:
        rng, block = self.rng, await self.block()
        label = rng.choice(self.labels)
        every: list[Asked] = [
            ("message.edit", {"message": block, "content": "said anew", "in_place": True}),
            ("message.edit", {"message": block, "content": "said anew"}),
            ("message.split", {"message": block, "at": 1}),
            (
                "message.delete",
                {"messages": [block], "descendants": rng.choice(["cascade", "reparent"])},
            ),
            (
                "message.append",
                {"parent": block, "messages": [{"role": "user", "content": "on"}]},
            ),
            ("context.compact", {"context": label}),
            ("message.path", {"context": label}),
            ("message.children", {"message": block}),
            ("context.layout", {"context": label}),
            ("block.undo", {"context": label}),
            ("block.redo", {"context": label}),
        ]
        return self.rng.choice(every)

    async def of_drift(self) -> Asked:
        source, target = self.rng.sample(self.labels, 2)
        if len(self.labels) < MOST_CONTEXTS and self.rng.random() < 0.1:
            fork = f"fork-{len(self.labels)}"
            await self.call("context.fork", context=source, label=fork)
            self.labels.append(fork)
        blocks = [await self.block(source) for _ in range(self.rng.randint(1, 3))]
        every: list[Asked] = [
            ("drift.push", {"to": target, "blocks": blocks}),
            ("drift.pull", {"source": source, "context": target, "blocks": blocks}),
            ("drift.push", {"to": target, "context": source}),
            ("drift.merge", {"source": self.labels[-1], "prefer": "both"}),
            ("drift.merge", {"source": self.labels[-1], "prefer": "theirs"}),
            ("block.undo", {"context": target}),
        ]
        return self.rng.choice(every)


@pytest.mark.sqlite
@pytest.mark.parametrize("seed", SEEDS)
async def test_tools_leave_contexts_sound_into_which_something_has_drifted(
    kernel: Kernel,
    call: Caller,
    make: Make,
    bo: Actor,
    aria: Actor,
    open_kernel: OpenKernel,
    data: Path,
    seed: int,
) -> None:
    for label in ("default", "notes"):
        if label != "default":
            await call("context.create", label=label)
        prompt = await make(f"ask {label}", role="user", status="done", context=label)
        await call("block.attach", block_id=prompt, files=[sent("a.png", PNG)])
        told = {"tool_kind": "shell", "tool_call_id": label}
        asked = {"kind": "tool_call", "parent_id": prompt, "content": "ls", "status": "done"}
        made = await kernel.call(aria, "block.create", asked | {"metadata": told})
        result = {"kind": "tool_result", "parent_id": made["block_id"], "content": "x"}
        await kernel.call(aria, "block.create", result | {"status": "done"})
        await make(f"answer {label}", role="model", parent_id=prompt, status="done")
    steps = Steps(call, [Caller(kernel, bo), Caller(kernel, aria)], random.Random(seed))
    await steps.play()
    assert len(steps.done) > 4 and steps.done.total() > STEPS / 4
    shown = {}
    for label in steps.labels:
        shown[label] = content(await call.context(label))
        layout = await call("context.layout", context=label)
        exported = (await call("context.export", context=label))["text"]
        await call("context.import", text=exported, label=f"{label}-again")
        again = await call("context.layout", context=f"{label}-again")
        assert [one["type"] for one in again["items"]] == [one["type"] for one in layout["items"]]
    await kernel.close()
    assert [str(one) for one in (await run_checks(data)).all()] == []
    kernel = await open_kernel()
    for label, texts in shown.items():
        assert content(await kernel.context(label)) == texts
