"""`context.compact` and `context.expand`: what models read before and after."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest

from antiphon_kernel.kernel import Kernel
from antiphon_kernel.types.enums import PrincipalKind
from antiphon_kernel.types.errors import ErrorCode
from antiphon_kernel.types.records import Actor
from tests.kernel.kernel.calls import Caller


class LongConversation:
    """Turns of a person and a model in the default context, each with a call and long texts."""

    def __init__(self, call: Caller, aria: Actor) -> None:
        self.call = call
        self.aria = Caller(call.kernel, aria)
        self.prompts: list[str] = []

    async def create(self, caller: Caller, role: str, kind: str, content: str, **more: Any) -> str:
        said = {"role": role, "kind": kind, "content": content, "status": "done", **more}
        return str((await caller("block.create", **said))["block_id"])

    async def turn(self, text: str = "") -> str:
        """Add a turn; return the block of its result."""
        number = len(self.prompts)
        said = f"Question {number} {text}".strip()
        prompt = await self.create(self.call, "user", "text", said)
        self.prompts.append(prompt)
        metadata = {"tool_name": "shell", "input": {"command": f"cat {number}.md"}}
        asked = await self.create(
            self.aria, "model", "tool_call", "cat", parent_id=prompt, metadata=metadata
        )
        output = f"line of file {number}\n" * 40
        result = await self.create(self.aria, "tool", "tool_result", output, parent_id=asked)
        answer = f"Answer {number}. " + "It goes on. " * 60
        await self.create(self.aria, "model", "text", answer, parent_id=prompt)
        return result

    async def turns(self, count: int) -> None:
        for _ in range(count):
            await self.turn()

    async def read(self, context: str = "default") -> list[str]:
        """Return the texts that models read."""
        found = await self.call("context.layout", context=context)
        return [str(item["text"]) for item in found["items"]]


@pytest.fixture
async def talk(kernel: Kernel, call: Caller) -> LongConversation:
    aria = await kernel.principal("aria", PrincipalKind.MODEL)
    return LongConversation(call, kernel.open_session(aria, "test"))


async def test_context_compact_writes_a_block_that_models_read_from(
    talk: LongConversation, kernel: Kernel, amy: Actor
) -> None:
    await talk.turns(8)
    before = await talk.read()
    done = await talk.call("context.compact")
    after = await talk.read()
    assert after[0].startswith(f"[CONVERSATION SUMMARY]\n[path: {done['path']}]\n")
    assert after[1:] == before[-len(after) + 1 :]
    assert [text for text in after if text.startswith("[TURN")] == [
        text for text in before if text.startswith("[TURN")
    ][2:]
    assert done["hidden"] == 8 and done["tokens"] < done["tokens_before"]
    header = (await kernel.context()).document.header(done["block_id"])
    assert (header.role, header.kind, header.author) == ("system", "text", amy.principal.id)
    assert header.metadata["commands"] == ["cat 0.md", "cat 1.md"]
    assert len(header.metadata["turns"]) == 2


async def test_context_compact_leaves_every_block_readable_and_found(
    talk: LongConversation,
) -> None:
    result = await talk.turn()
    await talk.turns(8)
    path = (await talk.call("context.layout"))["items"][3]["path"]
    done = await talk.call("context.compact")
    assert path in (await talk.read())[0]
    assert (await talk.call("block.read", block_id=path))["block_id"] == result
    shown = await talk.call("block.read", block_id=done["path"])
    assert shown["block_id"] == done["block_id"]
    found = await talk.call("kernel.search", query="line of file 0", kinds=["tool_result"])
    assert result in [one["block_id"] for one in found["results"]]


async def test_context_compact_with_a_budget_ends_within_it_or_says_what_is_too_large(
    talk: LongConversation,
) -> None:
    await talk.turns(8)
    total = (await talk.call("context.usage"))["estimated_tokens"]
    assert "block_id" not in await talk.call("context.compact", budget=2 * total)
    done = await talk.call("context.compact", budget=1_000)
    assert done["tokens"] <= 1_000
    assert (await talk.call("context.usage"))["estimated_tokens"] <= 1_000
    assert "block_id" not in await talk.call("context.compact", budget=1_000)
    error = await talk.call.refused("context.compact", budget=100)
    assert error.code is ErrorCode.CONTEXT_TOO_LONG
    assert error.details["limit"] == 100 and "Nothing was changed" in error.message


async def test_undo_of_a_summary_lets_models_read_everything_again(
    talk: LongConversation,
) -> None:
    await talk.turns(8)
    before = await talk.read()
    block = (await talk.call("context.compact"))["block_id"]
    hidden = await talk.read()
    await talk.call("block.undo", block_id=block)
    assert await talk.read() == before
    await talk.call("block.redo", block_id=block)
    assert await talk.read() == hidden


async def test_context_expand_goes_back_one_summary_at_a_time(talk: LongConversation) -> None:
    await talk.turns(8)
    first = await talk.call("context.compact")
    once = await talk.read()
    await talk.turns(4)
    second = await talk.call("context.compact")
    assert "Question 0" in (await talk.read())[0]
    expanded = await talk.call("context.expand")
    assert expanded["block_id"] == second["block_id"]
    assert expanded["reads_from"] == first["path"]
    assert (await talk.read())[: len(once)] == once
    last = await talk.call("context.expand", summary=first["path"])
    assert "reads_from" not in last
    assert (await talk.read())[0].startswith("[TURN")
    error = await talk.call.refused("context.expand")
    assert error.code is ErrorCode.INVALID_PARAMS


# Copies


def named_paths(text: str) -> list[str]:
    return [one.rstrip(".:") for one in re.findall(r"(?:ar|fi|tc|su):turn_[^\s;,)]+", text)]


async def check_named_paths(kernel: Kernel, caller: Caller, label: str) -> int:
    """Check that each path in the summaries of a context is of a block of it; count them."""
    context, count = await kernel.context(label), 0
    for block in context.document.block_ids():
        header = context.document.header(block)
        if header.metadata.get("type") != "conv.range.summary":
            continue
        assert not header.edited_after_done
        for path in named_paths(context.document.text(block)):
            count += 1
            found = await caller("block.read", block_id=f"{label}/{path}")
            assert found["block_id"].startswith(context.id), path
    return count


async def test_summary_in_a_fork_names_the_blocks_of_the_fork(
    talk: LongConversation, kernel: Kernel, amy: Actor
) -> None:
    await talk.turns(8)
    await talk.call("context.compact")
    await talk.turns(2)
    await talk.call("context.compact")
    before = await check_named_paths(kernel, talk.call, "default")
    assert before >= 4
    await talk.call("context.fork", context="default", label="copy")
    await talk.call("context.fork", context="copy", label="second")
    exported = await talk.call("context.export", context="second")
    await talk.call("context.import", text=exported["text"], label="imported")
    last = (await talk.call("message.path"))["messages"][-2]["message_id"]
    said = [{"role": "user", "content": "another"}]
    branch = await talk.call("message.append", parent=last, messages=said)
    assert branch["forked"]
    for label in ("copy", "second", "imported", branch["label"]):
        assert await check_named_paths(kernel, talk.call, label) == before
        texts = [one.partition("]\n[")[2] for one in (await talk.read(label))[:1]]
        assert len(texts[0]) == len((await talk.read())[0].partition("]\n[")[2])


async def test_block_create_of_a_summary_is_refused(talk: LongConversation) -> None:
    error = await talk.call.refused(
        "block.create", kind="text", content="So far", metadata={"type": "conv.range.summary"}
    )
    assert error.code is ErrorCode.INVALID_PARAMS
    assert error.details["field"] == "metadata.type" and "context.compact" in error.message


async def test_context_compact_while_others_write_is_of_the_context_as_it_is(
    talk: LongConversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    await talk.turns(8)
    plans: list[object] = []
    in_thread = asyncio.to_thread

    async def slowly(plan: Any) -> Any:
        done = await in_thread(plan)
        await talk.turn()
        plans.append(done)
        return done

    monkeypatch.setattr("antiphon_kernel.tools.compaction.asyncio.to_thread", slowly)
    await talk.call("context.compact")
    monkeypatch.undo()
    assert len(plans) == 2
    turns = [text for text in await talk.read() if text.startswith("[TURN")]
    assert len(turns) == 6


async def test_context_compact_by_two_at_once_writes_one_summary(
    talk: LongConversation, kernel: Kernel
) -> None:
    await talk.turns(9)
    done = await asyncio.gather(*(talk.call("context.compact") for _ in range(3)))
    assert sorted(one["hidden"] > 0 for one in done) == [False, False, True]
    read = await talk.read()
    assert sum(one.startswith("[CONVERSATION SUMMARY]") for one in read) == 1
