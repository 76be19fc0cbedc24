"""Context that is too long: compacted before it is sent, or because the provider refuses it."""

from __future__ import annotations

from typing import Any

import pytest

from antiphon_kernel.messages import ModelWindow, check_correlation, estimate_message, estimate_text
from antiphon_kernel.providers import (
    End,
    ErrorKind,
    ModelPrompt,
    ProviderError,
    TextDelta,
    ToolCallEvent,
    Usage,
)
from antiphon_kernel.turns.turn import TurnSettings
from antiphon_kernel.turns.turn_limits import TurnLimits
from antiphon_kernel.types.block_metadata import ERROR_KIND
from antiphon_kernel.types.enums import BlockKind, Role
from tests.kernel.turns.stage import OpenStage, Replying, Stage, remote

DONE = (TextDelta("Done."), End("end_turn"))
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
    provider = Replying(DONE)
    window = ModelWindow(input=5_500, output=500)
    stage = await open_stage(remote(provider, window=window))
    await talked(stage, provider, words=700)
    assert summaries(stage)
    for prompt in provider.prompts:
        check_correlation(prompt.conversation.messages)
        assert size(prompt) <= 5_500
    assert not stage.of_kind(BlockKind.ERROR)


async def test_budget_of_the_owner_counts_as_a_smaller_window(open_stage: OpenStage) -> None:
    provider = Replying(DONE)
    settings = TurnSettings(limits=TurnLimits(request_tokens=6_200))
    stage = await open_stage(remote(provider), settings=settings)
    await talked(stage, provider, words=700)
    assert summaries(stage)


async def test_refused_request_is_sent_again_smaller(open_stage: OpenStage) -> None:
    provider = Replying(DONE)
    stage = await open_stage(remote(provider))
    await talked(stage, provider)
    provider.then([TOO_LONG], DONE)
    await stage.play("And now?")
    refused, sent = provider.prompts[-2:]
    assert size(sent) < size(refused)
    assert content_blocks(sent) < content_blocks(refused)
    assert len(summaries(stage)) == 1
    assert "And now?" in str(sent.conversation.messages)
    assert stage.shown()[-1] == ("text", "done", "Done.")


async def test_third_refusal_ends_the_turn(open_stage: OpenStage) -> None:
    provider = Replying(DONE)
    stage = await open_stage(remote(provider))
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
    ("window", "budget", "said"),
    [
        (ModelWindow(input=10_000, output=500), None, "at most 9,500 are sent"),
        (ModelWindow(input=10_000, output=500), 9_000, "at most 9,000 are sent"),
        (ModelWindow(input=10_000, output=500, separate=True), None, "at most 10,000 are sent"),
        (None, 9_000, "at most 9,000 are sent"),
    ],
)
async def test_prompt_that_alone_is_too_long_ends_the_turn_unsent(
    open_stage: OpenStage, window: ModelWindow | None, budget: int | None, said: str
) -> None:
    provider = Replying(DONE)
    settings = TurnSettings(limits=TurnLimits(request_tokens=budget))
    stage = await open_stage(remote(provider, window=window), settings=settings)
    await stage.play("word " * 20_000)
    assert provider.prompts == []
    last = stage.headers()[-1]
    assert (last.kind, last.metadata[ERROR_KIND]) == (BlockKind.ERROR, "context_too_long")
    assert said in stage.text(last)


async def test_refused_prompt_that_cannot_be_shortened_ends_the_turn_without_a_made_up_limit(
    open_stage: OpenStage,
) -> None:
    provider = Replying([TOO_LONG])
    stage = await open_stage(remote(provider))
    await stage.play("Hello?")
    assert len(provider.prompts) == 1
    assert "and the model takes fewer." in stage.text(stage.headers()[-1])


async def test_huge_results_of_the_live_turn_are_hidden_and_the_prompt_stays(
    open_stage: OpenStage,
) -> None:
    call = ToolCallEvent("c1", "shell", {"command": "seq 1 9000"})
    provider = Replying(*[[call]] * 5, DONE)
    window = ModelWindow(input=30_000, output=500)
    stage = await open_stage(remote(provider, window=window))
    await stage.play("Count.")
    assert stage.shown()[-1] == ("text", "done", "Done.")
    assert summaries(stage)
    for prompt in provider.prompts:
        check_correlation(prompt.conversation.messages)
        assert "Count." in str(prompt.conversation.messages)


async def test_usage_beyond_the_window_compacts_before_the_next_round(
    open_stage: OpenStage,
) -> None:
    provider = Replying(DONE)
    window = ModelWindow(input=50_000, output=500)
    stage = await open_stage(remote(provider, window=window))
    await talked(stage, provider)
    call = ToolCallEvent("c1", "context_list", {})
    provider.then([call, Usage(60_000, 10)], DONE)
    await stage.play("Go.")
    assert len(summaries(stage)) == 1


@pytest.mark.parametrize("reported", [0.5, 2.0])
async def test_estimate_is_corrected_by_what_the_provider_reports(
    open_stage: OpenStage, reported: float
) -> None:
    provider = Replying(DONE)
    stage = await open_stage(remote(provider))
    events: list[Any] = [TextDelta("Done.")]
    await stage.play("Hello?")
    model = await stage.runner.model("aria")
    estimates = []
    for _ in range(10):
        answered = await stage.call("context.request", model="aria")
        estimates.append(answered["estimated_tokens"])
        raw = round(answered["estimated_tokens"] / model.calibration.factor)
        provider.then([*events, Usage(round(raw * reported), 10)])
        await stage.play("Hello?")
    assert model.calibration.factor == pytest.approx(reported, rel=0.15)
