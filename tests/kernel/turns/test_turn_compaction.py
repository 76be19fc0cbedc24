"""Prompts of turns: instructions, announcement, files, limits, and what is too long for them."""

from __future__ import annotations

from typing import Any

import pytest

from antiphon_kernel.config import ContextTable
from antiphon_kernel.messages import (
    ImageBlock,
    ModelWindow,
    TextBlock,
    estimate_message,
    estimate_text,
    open_tool_uses,
)
from antiphon_kernel.providers import (
    End,
    ErrorKind,
    ModelPrompt,
    ProviderError,
    TextDelta,
    TokenUsage,
)
from antiphon_kernel.providers.events import ToolCallEvent
from antiphon_kernel.turns.models import BRIEF
from antiphon_kernel.turns.turn import TurnSettings
from antiphon_kernel.types.block_metadata import ERROR_KIND
from antiphon_kernel.types.enums import BlockKind, Role
from tests.kernel.tools.files import PNG, sent
from tests.kernel.turns.stage import DONE, OpenStage, Replying, Stage, call, remote, replying

TOO_LONG = ProviderError("prompt is too long: 9 > 8", ErrorKind.CONTEXT_TOO_LONG)


def summaries(stage: Stage) -> list[str]:
    return [one.id for one in stage.headers() if one.role == Role.SYSTEM]


def size(prompt: ModelPrompt) -> int:
    return estimate_text(prompt.system) + sum(map(estimate_message, prompt.conversation.messages))


def content_blocks(prompt: ModelPrompt) -> int:
    return sum(len(message.content) for message in prompt.conversation.messages)


async def talked(stage: Stage, provider: Replying, words: int = 400) -> None:
    """Eight older turns."""
    provider.then((TextDelta("word " * words), End("end_turn")))
    for number in range(8):
        await stage.play(f"Question {number}")


async def test_request_that_is_larger_than_the_window_is_compacted_first(
    open_stage: OpenStage,
) -> None:
    window = ModelWindow(input=5_500, output=500)
    stage, provider = await replying(open_stage, DONE, window=window)
    await talked(stage, provider, words=700)
    assert summaries(stage)
    for prompt in provider.prompts:
        assert not open_tool_uses(prompt.conversation.messages)
        assert size(prompt) <= 5_500
    assert not stage.of_kind(BlockKind.ERROR)


async def test_budget_of_the_owner_counts_as_a_smaller_window(open_stage: OpenStage) -> None:
    settings = TurnSettings(limits=ContextTable(budget=6_200))
    stage, provider = await replying(open_stage, DONE, settings=settings)
    await talked(stage, provider, words=700)
    assert summaries(stage)


async def test_refused_request_is_sent_again_smaller(open_stage: OpenStage) -> None:
    stage, provider = await replying(open_stage, DONE)
    await talked(stage, provider)
    provider.then([TOO_LONG], DONE)
    await stage.play("And now?")
    refused, sent = provider.prompts[-2:]
    assert size(sent) < size(refused)
    assert content_blocks(sent) < content_blocks(refused)
    assert len(summaries(stage)) == 1
    assert "And now?" in str(sent.conversation.messages)
    assert stage.shown()[-1] == ("text", "done", "Done.")


async def test_third_refusal_or_one_of_what_cannot_be_shortened_ends_the_turn(
    open_stage: OpenStage,
) -> None:
    stage, provider = await replying(open_stage, [TOO_LONG])
    await stage.play("Hello?")
    assert len(provider.prompts) == 1
    assert "and the model takes fewer." in stage.text(stage.headers()[-1])
    await talked(stage, provider)
    before = len(provider.prompts)
    provider.then([TOO_LONG])
    await stage.play("And now?")
    prompts = provider.prompts[before:]
    assert 2 <= len(prompts) <= 3
    sizes = [size(one) for one in prompts]
    assert sizes == sorted(sizes, reverse=True)
    last = stage.headers()[-1]
    assert (last.kind, last.metadata[ERROR_KIND]) == (BlockKind.ERROR, "context_too_long")
    assert not stage.unfinished()


@pytest.mark.parametrize(
    ("window", "budget", "sent"),
    [
        (ModelWindow(input=10_000, output=500), None, "9,500"),
        (ModelWindow(input=10_000, output=500), 9_000, "9,000"),
        (ModelWindow(input=10_000, output=500, separate=True), None, "10,000"),
        (None, 9_000, "9,000"),
    ],
)
async def test_prompt_that_alone_is_too_long_ends_the_turn_unsent(
    open_stage: OpenStage, window: ModelWindow | None, budget: int | None, sent: str
) -> None:
    settings = TurnSettings(limits=ContextTable(budget=budget))
    stage, provider = await replying(open_stage, DONE, window=window, settings=settings)
    await stage.play("word " * 20_000)
    assert provider.prompts == []
    last = stage.headers()[-1]
    assert (last.kind, last.metadata[ERROR_KIND]) == (BlockKind.ERROR, "context_too_long")
    assert f"at most {sent} are sent" in stage.text(last)


async def test_huge_results_of_the_live_turn_are_hidden_and_the_prompt_stays(
    open_stage: OpenStage,
) -> None:
    call = ToolCallEvent("c1", "shell", {"command": "seq 1 9000"})
    window = ModelWindow(input=30_000, output=500)
    stage, provider = await replying(open_stage, *[[call]] * 5, DONE, window=window)
    await stage.play("Count.")
    assert stage.shown()[-1] == ("text", "done", "Done.")
    assert summaries(stage)
    for prompt in provider.prompts:
        assert not open_tool_uses(prompt.conversation.messages)
        assert "Count." in str(prompt.conversation.messages)


async def test_usage_beyond_the_window_compacts_before_the_next_round(
    open_stage: OpenStage,
) -> None:
    window = ModelWindow(input=50_000, output=500)
    stage, provider = await replying(open_stage, DONE, window=window)
    await talked(stage, provider)
    call = ToolCallEvent("c1", "context_list", {})
    provider.then([call, TokenUsage(input_tokens=60_000, output_tokens=10)], DONE)
    await stage.play("Go.")
    assert len(summaries(stage)) == 1


@pytest.mark.parametrize("reported", [0.5, 2.0])
async def test_estimate_is_corrected_by_what_the_provider_reports(
    open_stage: OpenStage, reported: float
) -> None:
    stage, provider = await replying(open_stage, DONE)
    events: list[Any] = [TextDelta("Done.")]
    await stage.play("Hello?")
    model = await stage.runner.models.open("aria")
    estimates = []
    for _ in range(10):
        answered = await stage.call("context.request", model="aria")
        estimates.append(answered["estimated_tokens"])
        raw = round(answered["estimated_tokens"] / model.calibration.factor)
        provider.then([*events, TokenUsage(input_tokens=round(raw * reported), output_tokens=10)])
        await stage.play("Hello?")
    assert model.calibration.factor == pytest.approx(reported, rel=0.15)


def announcement(prompt: ModelPrompt) -> str:
    last = prompt.conversation.messages[-1].content[-1]
    assert isinstance(last, TextBlock)
    assert last.text.startswith("[ANNOUNCE]")
    return last.text


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
    settings = TurnSettings(max_rounds=7, limits=ContextTable(max_turn_tokens=5_000))
    stage, provider = await replying(open_stage, [call("context_list")], DONE, settings=settings)
    await stage.play("Hello?")
    first, second = map(announcement, provider.prompts)
    assert "round: 1 of 7\nbudget: 0 of 5,000 tokens" in first
    assert "round: 2 of 7" in second
    assert "here: nobody else" in first


async def test_announcement_says_what_people_changed_since_the_model_looked(
    open_stage: OpenStage,
) -> None:
    stage, provider = await replying(open_stage, DONE)
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
    stage, provider = await replying(open_stage, DONE)
    block = await stage.draft("Look.")
    await stage.call("block.attach", block_id=block, files=[sent("dot.png", PNG)])
    await stage.call("block.status", block_id=block, status="done")
    await stage.runner.wait_idle()
    (prompt,) = provider.prompts
    blocks = [one for message in prompt.conversation.messages for one in message.content]
    (image,) = [one for one in blocks if isinstance(one, ImageBlock)]
    assert prompt.files == {image.hash: PNG}


async def test_answer_gets_what_the_window_leaves(open_stage: OpenStage) -> None:
    provider = Replying([call("context_list")], DONE)
    window = ModelWindow(input=30_000, output=29_000)
    stage = await open_stage(remote(provider, window=window, max_tokens=28_000))
    await stage.play("Hello? " * 200)
    first, second = (one.max_tokens for one in provider.prompts)
    assert 1 <= second < first < 28_000
