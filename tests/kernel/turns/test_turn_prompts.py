"""Prompt of each round: instructions, tools, announcement, files, limits, cache marks."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from antiphon_kernel.layout import BlockPosition
from antiphon_kernel.messages import ImageBlock, ModelWindow, TextBlock, dump_message
from antiphon_kernel.providers import End, ModelPrompt, TextDelta, ToolCallEvent
from antiphon_kernel.turns.brief import BRIEF
from antiphon_kernel.turns.turn import TurnSettings
from antiphon_kernel.turns.turn_limits import TurnLimits
from tests.kernel.turns.stage import OpenStage, Replying, remote

DONE = (TextDelta("Done."), End("end_turn"))

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def call(tool: str, call_id: str = "c1", /, **arguments: Any) -> ToolCallEvent:
    return ToolCallEvent(call_id, tool, arguments)


def announcement(prompt: ModelPrompt) -> str:
    last = prompt.conversation.messages[-1].content[-1]
    assert isinstance(last, TextBlock)
    assert last.text.startswith("[ANNOUNCE]")
    return last.text


def prefix(prompt: ModelPrompt, mark: BlockPosition) -> list[Any]:
    """Return the messages up to a cache mark, as plain values."""
    messages = [dump_message(one) for one in prompt.conversation.messages[: mark.message + 1]]
    messages[-1]["content"] = messages[-1]["content"][: mark.block + 1]
    return messages


def hits(before: ModelPrompt, now: ModelPrompt) -> bool:
    """Whether something that was marked last time is sent unchanged now."""
    sent = [dump_message(one) for one in now.conversation.messages]
    return any(_begins(sent, prefix(before, mark)) for mark in before.conversation.marks[-1:])


def _begins(sent: Sequence[Any], start: Sequence[Any]) -> bool:
    last = len(start) - 1
    if len(sent) <= last or sent[:last] != start[:last]:
        return False
    content = start[last]["content"]
    return {**sent[last], "content": sent[last]["content"][: len(content)]} == start[last]


async def test_prompt_has_instructions_tools_and_the_conversation(open_stage: OpenStage) -> None:
    provider = Replying(DONE)
    settings = TurnSettings(instructions=lambda: "Use tabs.\n")
    stage = await open_stage(
        remote(provider, system="Be kind.", tools=("block_read",)), settings=settings
    )
    await stage.play("Hello?")
    (prompt,) = provider.prompts
    assert prompt.system == f"{BRIEF}\n\nUse tabs.\n\nBe kind."
    assert [one.name for one in prompt.tools] == ["block_read"]
    first = prompt.conversation.messages[0].content
    assert any(isinstance(one, TextBlock) and "Hello?" in one.text for one in first)


async def test_announcement_says_round_budget_and_who_is_here(open_stage: OpenStage) -> None:
    provider = Replying([call("context_list")], DONE)
    limits = TurnLimits(max_rounds=7, tokens=5_000)
    stage = await open_stage(remote(provider), settings=TurnSettings(limits=limits))
    await stage.play("Hello?")
    first, second = map(announcement, provider.prompts)
    assert "round: 1 of 7\nbudget: 0 of 5,000 tokens" in first
    assert "round: 2 of 7" in second
    assert "here: nobody else" in first


async def test_announcement_says_what_people_changed_since_the_model_looked(
    open_stage: OpenStage,
) -> None:
    provider = Replying(DONE)
    stage = await open_stage(remote(provider))
    note = await stage.play("one\ntwo\n")

    async def edit() -> None:
        await stage.call("block.splice", block_id=note, offset=4, insert="and ")

    provider.then([call("context_list", "a"), edit], [call("context_list", "b")], DONE)
    await stage.play("Go.")
    texts = [announcement(one) for one in provider.prompts[1:]]
    path = await stage.path(note)
    assert ["changed by others" in text for text in texts] == [False, True, False]
    assert f"- {path} by amy: line 1" in texts[1]


async def test_attached_image_is_given_with_its_bytes(open_stage: OpenStage) -> None:
    provider = Replying(DONE)
    stage = await open_stage(remote(provider))
    block = await stage.draft("Look.")
    file = {"name": "dot.png", "data": base64.b64encode(PIXEL).decode()}
    await stage.call("block.attach", block_id=block, files=[file])
    await stage.call("block.status", block_id=block, status="done")
    await stage.runner.wait_idle()
    (prompt,) = provider.prompts
    blocks = [one for message in prompt.conversation.messages for one in message.content]
    (image,) = [one for one in blocks if isinstance(one, ImageBlock)]
    assert prompt.files[image.hash].data == PIXEL
    assert prompt.files[image.hash].media_type == "image/png"


async def test_answer_gets_what_the_window_leaves(open_stage: OpenStage) -> None:
    provider = Replying([call("context_list")], DONE)
    window = ModelWindow(input=30_000, output=29_000)
    stage = await open_stage(remote(provider, window=window, max_tokens=28_000))
    await stage.play("Hello? " * 200)
    first, second = (one.max_tokens for one in provider.prompts)
    assert 1 <= second < first < 28_000


async def test_cache_marks_of_thirty_rounds_hit_until_a_person_edits_history(
    open_stage: OpenStage,
) -> None:
    provider = Replying(DONE)
    stage = await open_stage(remote(provider))
    note = await stage.play("An older message.\n")

    async def edit() -> None:
        await stage.call("block.splice", block_id=note, offset=0, insert="Edited. ")

    rounds: list[Any] = [[call("context_list", f"c{number}")] for number in range(30)]
    rounds[14] = [*rounds[14], edit]
    provider.then(*rounds, DONE)
    await stage.play("Go.")
    prompts = provider.prompts[1:]
    assert len(prompts) == 31
    found = [hits(before, now) for before, now in pairwise(prompts)]
    assert found == [number != 14 for number in range(30)]
    assert all(one.system == prompts[0].system and one.tools == prompts[0].tools for one in prompts)
