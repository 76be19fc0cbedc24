"""Tools about turns: usage, request, queue, retry, wait, stop, and the model of a context."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from antiphon_kernel.config import ContextTable
from antiphon_kernel.messages import ModelWindow
from antiphon_kernel.providers import (
    ApiKey,
    End,
    ErrorKind,
    ModelPrice,
    ModelPrompt,
    ProviderError,
    TextDelta,
    TokenUsage,
)
from antiphon_kernel.providers.events import ToolCallEvent
from antiphon_kernel.turns.models import Models
from antiphon_kernel.turns.turn import TurnSettings
from antiphon_kernel.types.block_metadata import ERROR_KIND, MAX_ROUNDS, USAGE
from antiphon_kernel.types.enums import BlockKind
from antiphon_kernel.types.errors import ErrorCode
from antiphon_kernel.types.frozen_json import JsonObject
from tests.errors import raises
from tests.kernel.turns.stage import (
    DONE,
    Gate,
    OpenStage,
    Replying,
    Stage,
    open_kernel,
    recording,
    remote,
    replying,
    scripted,
)

PRICE = ModelPrice(input=2.0, output=10.0, cached=1.0)
OVERLOADED = ProviderError("Overloaded.", ErrorKind.OVERLOADED)
LIST = ToolCallEvent("c1", "context_list", {})


async def test_usage_is_kept_with_the_round_and_summed(open_stage: OpenStage) -> None:
    provider = Replying(
        [LIST, TokenUsage(input_tokens=1_000, output_tokens=50)],
        [TextDelta("Done."), TokenUsage(input_tokens=1_200, output_tokens=30, cached_tokens=1_000)],
    )
    stage = await open_stage(remote(provider, price=PRICE))
    await stage.play("Go.")
    (call,) = stage.of_kind(BlockKind.TOOL_CALL)
    assert call.metadata[USAGE] == {
        "requests": 1,
        "input_tokens": 1_000,
        "output_tokens": 50,
        "cost": pytest.approx(0.0025),
    }
    assert stage.headers()[-1].metadata[USAGE]["cached_tokens"] == 1_000
    answered = await stage.call("kernel.usage")
    (one,) = answered["sums"]
    assert (one["label"], one["model"], one["username"]) == ("default", "aria", "amy")
    assert one["used"] == answered["total"]
    total = answered["total"]
    assert (total["requests"], total["input_tokens"], total["output_tokens"]) == (2, 2_200, 80)
    assert total["cost"] == pytest.approx(0.0025 + 0.0017)
    assert (await stage.call("context.usage"))["used"] == total


async def test_usage_is_told_by_context_and_by_principal_also_after_a_restart(
    tmp_path: Path, open_stage: OpenStage
) -> None:
    stage, _ = await replying(
        open_stage, [TextDelta("Done."), TokenUsage(input_tokens=100, output_tokens=10)]
    )
    await stage.play("Go.")
    await stage.play("Go.", await stage.actor("bo"))
    total = (await stage.call("kernel.usage"))["total"]
    await stage.runner.close()
    await stage.kernel.close()
    kernel = await open_kernel(tmp_path / "0")
    try:
        amy = kernel.open_session(kernel.owner, "test")
        found = await kernel.call(amy, "kernel.usage")
        assert (found["total"], len(found["sums"])) == (total, 2)
        (one,) = (await kernel.call(amy, "kernel.usage", {"principal": "bo"}))["sums"]
        assert (one["username"], one["used"]["unpriced"]) == ("bo", 1)
        await kernel.call(amy, "context.create", {"label": "other"})
        assert (await kernel.call(amy, "kernel.usage", {"context": "other"}))["sums"] == []
        request = await kernel.call(amy, "context.request", {"context": "default"})
        assert "payload" not in request, "it has no models, as the one before had"
    finally:
        await kernel.close()


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        (ContextTable(max_turn_tokens=1_000), "its budget of 1,000 tokens"),
        (ContextTable(max_turn_dollars=0.002), "its budget of $0.002"),
        (ContextTable.model_construct(max_turn_seconds=0), "its 0 seconds"),
    ],
)
async def test_turn_whose_budget_is_used_up_is_stopped(
    open_stage: OpenStage, limits: ContextTable, said: str
) -> None:
    provider = Replying([LIST, TokenUsage(input_tokens=1_000, output_tokens=50)])
    stage = await open_stage(remote(provider, price=PRICE), settings=TurnSettings(limits=limits))
    await stage.play("Go.")
    assert len(provider.requests) <= 1
    last = stage.headers()[-1]
    assert (last.kind, last.metadata[ERROR_KIND]) == (BlockKind.ERROR, "limit")
    assert said in stage.text(last)
    assert not stage.unfinished()


class Telling(Replying):
    """A provider whose requests name the key, as no provider should."""

    async def payload(self, prompt: ModelPrompt) -> JsonObject:
        return JsonObject(
            {**await super().payload(prompt), "key": 'sk-"1', "max": prompt.max_tokens}
        )


async def test_request_is_shown_as_the_provider_would_send_it_with_keys_masked(
    open_stage: OpenStage,
) -> None:
    provider = Telling(DONE)
    window = ModelWindow(input=40_000, output=3_000)
    models = remote(provider, window=window, key=ApiKey('sk-"1', "$KEY"))
    stage = await open_stage(models)
    before = await stage.call("context.request", model="aria")
    assert (before["model"], len(before["messages"])) == ("aria", 1), "the announce"
    await stage.play("Hello?")
    sent = provider.prompts[0]
    shown = await stage.call("context.request", model="aria")
    assert shown["payload"]["system"] == sent.system
    assert shown["payload"]["messages"] == shown["messages"]
    assert shown["payload"]["key"] == "…"
    assert 'sk-"1' not in json.dumps(shown)
    assert shown["max_tokens"] == shown["payload"]["max"] == 3_000
    assert shown["estimated_tokens"] > 1_000
    assert len(provider.prompts) == 1
    narrow = {"window": {"input": 2_000, "output": 1_500}, "model": "aria"}
    assert (await stage.call("context.request", **narrow))["max_tokens"] < 1_500


async def states(stage: Stage) -> list[tuple[str, str, int | None]]:
    works = (await stage.call("turn.queue"))["works"]
    return [(one["username"], one["state"], one.get("round")) for one in works]


async def test_queue_lists_what_runs_waits_and_retries(open_stage: OpenStage) -> None:
    gate = Gate(0)
    provider = Replying([LIST], [OVERLOADED], DONE)
    stage = await open_stage(remote(provider), settings=TurnSettings(sleep=gate))
    first = await stage.submit("One.")
    await gate.shut()
    second = await stage.submit("Two.")
    assert await states(stage) == [("aria", "retrying", 2), ("aria", "waiting", None)]
    works = (await stage.call("turn.queue"))["works"]
    assert [one["message_id"] for one in works] == [first, second]
    await gate.open()
    await stage.runner.wait_idle()
    assert await states(stage) == []


async def test_turn_that_failed_or_was_interrupted_goes_on_where_it_ended(
    open_stage: OpenStage,
) -> None:
    gate = Gate(0)
    stage, provider = await replying(open_stage, [TextDelta("I have"), OVERLOADED], DONE)
    prompt = await stage.play("Go.")
    answered = await stage.call("turn.retry", message=stage.of_kind(BlockKind.ERROR)[0].id)
    assert (answered["model"], answered["message_id"]) == ("aria", prompt)
    await stage.runner.wait_idle()
    assert "I have" in str(provider.prompts[1].conversation.messages)
    last = stage.headers()[-1]
    assert (last.parent, stage.text(last)) == (prompt, "Done.")
    for message, code in (
        (last.id, ErrorCode.INVALID_TRANSITION),
        (prompt, ErrorCode.INVALID_PARAMS),
    ):
        with raises(code):
            await stage.call("turn.retry", message=message)
    provider.then([TextDelta("I have"), lambda: gate(0)], DONE)
    await stage.submit("Go.")
    await gate.shut()
    await stage.interrupt()
    (text,) = [one for one in stage.headers() if one.stop_reason == "interrupted"]
    await stage.call("turn.retry", message=text.id)
    await stage.runner.wait_idle()
    assert stage.shown()[-1] == ("text", "done", "Done.")


async def test_model_of_a_context_answers_what_names_none(open_stage: OpenStage) -> None:
    models = Models({"aria": Replying(DONE), "bo-1": Replying(DONE)})
    stage = await open_stage(models)
    here = await stage.call("context.model")
    assert here.pop("instruction_tokens") > 0
    assert here == {
        "context_version": stage.context.seq,
        "model": "aria",
        "models": ["aria", "bo-1"],
    }
    chosen = await stage.call("context.model", model="bo-1")
    assert (chosen["model"], stage.context.document.default_model) == ("bo-1", "bo-1")
    await stage.play("Hello?")
    await stage.play("@aria Hello?")
    authors = [one.author for one in stage.headers() if one.role == "model"]
    names = [stage.kernel.members.find(one).username for one in authors]
    assert names == ["bo-1", "aria"]
    with raises(ErrorCode.INVALID_PARAMS):
        await stage.call("context.model", model="nobody")


SPEECH = recording("aria", [TextDelta("Hello."), End("end_turn")])
CALLS = recording(
    "aria",
    [ToolCallEvent("c1", "shell", {"command": "true"})],
    [ToolCallEvent("c2", "shell", {"command": "true"})],
    [TextDelta("Done."), End("end_turn")],
)


async def test_wait_answers_when_the_turn_is_over_and_all_is_on_disk(
    open_stage: OpenStage,
) -> None:
    gate = Gate(0)
    stage = await open_stage(scripted(gate, SPEECH))
    message = await stage.submit("Hi.")
    await gate.shut()
    waiting = asyncio.ensure_future(stage.call("turn.wait", message=message))
    shown = await stage.call("context.request", model="aria")
    assert "payload" not in shown, "a scripted model is sent nothing"
    assert [one["role"] for one in shown["messages"]] == ["user"]
    assert not waiting.done()
    await gate.open()
    assert await waiting == {"models": ["aria"], "interrupted": []}
    assert not stage.unfinished()


async def test_wait_for_a_turn_that_was_stopped_before_says_so(open_stage: OpenStage) -> None:
    gate = Gate(0)
    stage = await open_stage(scripted(gate, SPEECH))
    message = await stage.submit("Hi.")
    assert await stage.interrupt(message=message) == ["aria"]
    await stage.runner.wait_idle()
    ended = {"models": ["aria"], "interrupted": ["aria"]}
    assert await stage.call("turn.wait", message=message) == ended
    await stage.call("turn.start", message=message)
    waiting = asyncio.ensure_future(stage.call("turn.wait", message=message))
    await gate.open()
    assert await waiting == {"models": ["aria"], "interrupted": []}


async def test_turns_of_one_message_are_stopped_and_others_go_on(open_stage: OpenStage) -> None:
    gate = Gate(0)
    stage = await open_stage(scripted(gate, SPEECH))
    first = await stage.submit("Hi.")
    second = await stage.submit("And again.")
    await gate.shut()
    ended = [asyncio.ensure_future(stage.call("turn.wait", message=one)) for one in (first, second)]
    assert await stage.interrupt(message=second) == ["aria"]
    assert await ended[1] == {"models": ["aria"], "interrupted": ["aria"]}
    assert not ended[0].done()
    await gate.open()
    assert (await ended[0])["interrupted"] == []


async def test_message_may_ask_for_fewer_rounds(open_stage: OpenStage) -> None:
    stage = await open_stage(scripted(Gate(), CALLS))
    for rounds, said in ((1, "after 1 "), (2, "after 2 "), (3, None), (0, None), ("1", None)):
        message = {"role": "user", "kind": "text", "status": "done", "content": "Hi."}
        made = await stage.call("block.create", **message, metadata={MAX_ROUNDS: rounds})
        await stage.call("turn.wait", message=made["block_id"])
        last = stage.headers()[-1]
        assert (last.kind == "error") == (said is not None), rounds
        if said is not None:
            assert said in stage.text(last)
