"""Turns of models of every kind, over real HTTP in the provider's own format."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from antiphon_kernel.providers import ALLOW_EVERYTHING, ModelKind
from antiphon_kernel.providers.opening import open_provider
from antiphon_kernel.turns.models import Models
from antiphon_kernel.turns.turn import TurnSettings
from antiphon_kernel.turns.turn_limits import TurnLimits
from antiphon_kernel.types.block_metadata import ERROR_KIND, USAGE
from antiphon_kernel.types.enums import BlockKind
from tests.kernel.turns.stage import OpenStage, Stage
from tests.waiting import until
from tests.wire.answering import Called, Counted, Said, Thought, answer
from tests.wire.asking import KEY, config_at
from tests.wire.prompt_cache import PromptCache
from tests.wire.server import FORMATS, WireServer, recorded

every_kind = pytest.mark.parametrize("kind", FORMATS)


class Waits:
    """A sleep that takes no time and remembers for how long it was asked."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)


@pytest.fixture
async def server() -> AsyncIterator[WireServer]:
    async with WireServer() as one:
        yield one


async def opened(
    open_stage: OpenStage,
    server: WireServer,
    kind: ModelKind,
    silence: float = 60.0,
    **config: Any,
) -> tuple[Stage, Waits]:
    waits = Waits()
    configured = config_at(server, kind, **config)
    models = Models(
        {"aria": open_provider(configured, silence=silence)},
        configs={"aria": configured},
        permissions={"aria": ALLOW_EVERYTHING},
    )
    settings = TurnSettings(sleep=waits, limits=TurnLimits(max_rounds=400))
    return await open_stage(models, settings=settings), waits


@every_kind
async def test_turn_with_thoughts_text_and_calls_becomes_blocks(
    open_stage: OpenStage, server: WireServer, kind: ModelKind
) -> None:
    server.answers += [
        answer(
            kind,
            Thought("Let me look."),
            Said("Looking."),
            Called("c1", "block_list", '{"limit": 2}'),
            Called("c2", "context_list"),
        ),
        answer(kind, Said("All is well."), counted=Counted(input=500, output=9)),
    ]
    stage, _ = await opened(open_stage, server, kind)
    await stage.play("Is all well?")
    kinds = [(one[0], one[1]) for one in stage.shown()]
    shown = [("text", "done"), ("thinking", "done"), ("text", "done")]
    calls = [("tool_call", "done"), ("tool_result", "done")] * 2
    thought = shown if ("thinking", "done") in kinds else [shown[0], shown[2]]
    assert kinds == [*thought, *calls, ("text", "done")]
    assert stage.shown()[-1][2] == "All is well."
    assert stage.headers()[-1].metadata[USAGE]["input_tokens"] == 500
    first, second = server.requests
    assert "Is all well?" in first.text.decode()
    assert "block_read" in first.text.decode()
    assert stage.results()[0][:30].splitlines()[0] in second.text.decode()
    assert not stage.unfinished()


@every_kind
async def test_rate_limit_is_waited_for_as_long_as_the_service_says(
    open_stage: OpenStage, server: WireServer, kind: ModelKind
) -> None:
    server.answers += [recorded(kind, "rate-limited"), answer(kind, Said("Now."))]
    stage, waits = await opened(open_stage, server, kind)
    await stage.play("Hello?")
    (seconds,) = waits.seconds
    assert seconds > 0
    assert f"Retrying in {seconds:g} s (1 of 4)" in stage.text(stage.of_kind(BlockKind.ERROR)[0])
    assert stage.shown()[-1] == ("text", "done", "Now.")


@every_kind
@pytest.mark.parametrize("name", ["rate-limited-bare", "error-500", "overloaded"])
async def test_service_that_is_busy_is_asked_again(
    open_stage: OpenStage, server: WireServer, kind: ModelKind, name: str
) -> None:
    server.answers += [recorded(kind, name)] * 2 + [answer(kind, Said("Now."))]
    stage, waits = await opened(open_stage, server, kind)
    await stage.play("Hello?")
    assert waits.seconds == [2, 4]
    assert stage.shown()[-1] == ("text", "done", "Now.")


@every_kind
async def test_wrong_key_ends_the_turn_and_is_not_shown(
    open_stage: OpenStage, server: WireServer, kind: ModelKind
) -> None:
    server.answers.append(recorded(kind, "unauthorised"))
    stage, waits = await opened(open_stage, server, kind)
    await stage.play("Hello?")
    last = stage.headers()[-1]
    assert (last.kind, last.metadata[ERROR_KIND]) == (BlockKind.ERROR, "unauthorised")
    assert KEY not in stage.text(last)
    assert (len(server.requests), waits.seconds) == (1, [])


@every_kind
async def test_context_that_the_service_finds_too_long_is_compacted(
    open_stage: OpenStage, server: WireServer, kind: ModelKind
) -> None:
    stage, _ = await opened(open_stage, server, kind)
    server.answers += [answer(kind, Said("word " * 400))] * 8
    for number in range(8):
        await stage.play(f"Question {number}")
    server.answers += [recorded(kind, "overflow"), answer(kind, Said("Shorter."))]
    await stage.play("And now?")
    refused, sent = server.requests[-2:]
    assert len(sent.text) < len(refused.text)
    assert stage.shown()[-1] == ("text", "done", "Shorter.")


@every_kind
async def test_call_that_is_cut_by_the_answers_limit_is_not_run(
    open_stage: OpenStage, server: WireServer, kind: ModelKind
) -> None:
    whole = answer(kind, Called("c1", "shell", '{"command": "touch ran"}'))
    at = whole.body.find(b"touch")
    if at < 0:
        at = whole.body.find(b"args") + 8
    server.answers += [whole.cut(at), answer(kind, Said("Done."))]
    stage, _ = await opened(open_stage, server, kind)
    await stage.play("Go.")
    assert not stage.unfinished()
    assert not (stage.kernel.project / "ran").exists()
    assert len(stage.of_kind(BlockKind.TOOL_CALL)) == len(stage.of_kind(BlockKind.TOOL_RESULT))
    assert stage.shown()[-1] == ("text", "done", "Done.")


@every_kind
async def test_interrupt_closes_the_connection(
    open_stage: OpenStage, server: WireServer, kind: ModelKind
) -> None:
    whole = answer(kind, Said("A long answer that does not come to its end, for a while at least."))
    server.answers.append(whole.silent(len(whole.body) // 2))
    stage, _ = await opened(open_stage, server, kind)
    await stage.submit("Hello?")
    request = await server.asked()
    await stage.interrupt()
    await until(request.gone.is_set)
    assert not stage.unfinished()


@every_kind
async def test_service_that_falls_silent_is_asked_again(
    open_stage: OpenStage, server: WireServer, kind: ModelKind
) -> None:
    server.answers += [answer(kind, Said("Never.")).silent(0), answer(kind, Said("Now."))]
    stage, waits = await opened(open_stage, server, kind, silence=0.2)
    await stage.play("Hello?")
    assert waits.seconds == [2]
    assert stage.shown()[-1] == ("text", "done", "Now.")


@every_kind
async def test_request_is_shown_as_it_is_sent(
    open_stage: OpenStage, server: WireServer, kind: ModelKind
) -> None:
    stage, _ = await opened(open_stage, server, kind)
    server.answers.append(answer(kind, Said("Yes.")))
    await stage.play("Hello?")
    shown = await stage.call("context.request", model="aria")
    assert set(shown["payload"]) <= set(server.requests[0].body)
    assert KEY not in str(shown)
    assert len(server.requests) == 1


async def test_cache_of_anthropic_is_hit_in_every_round_until_a_person_edits_history(
    open_stage: OpenStage, server: WireServer
) -> None:
    kind = ModelKind.ANTHROPIC
    stage, _ = await opened(open_stage, server, kind)
    server.answers.append(answer(kind, Said("An older answer.")))
    note = await stage.play("An older message.")
    rounds = [answer(kind, Called(f"c{number}", "context_list")) for number in range(30)]
    server.answers += [*rounds, answer(kind, Said("Done."))]
    await stage.play("Go.")
    cache = PromptCache()
    readings = [cache.read(request.body) for request in server.requests]
    ends = [one.cached for one in readings[1:]]
    assert ends == sorted(ends)
    assert all(one.blocks - one.cached <= 4 for one in readings[2:])
    await stage.call("block.splice", block_id=note, offset=0, insert="Edited. ")
    server.answers += [answer(kind, Called("c", "context_list")), answer(kind, Said("Done."))]
    await stage.play("Again.")
    edited, after = (cache.read(request.body) for request in server.requests[-2:])
    assert edited.cached < 40
    assert edited.cached < ends[-1]
    assert after.blocks - after.cached <= 4
