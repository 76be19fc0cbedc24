"""Turns of models of every kind, over real HTTP in the provider's own format."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from typing import Any

import pytest

from antiphon_kernel.providers import ModelKind
from antiphon_kernel.providers.opening import open_provider
from antiphon_kernel.types.block_metadata import USAGE
from tests.kernel.turns.stage import OpenStage, Stage, remote
from tests.waiting import until
from tests.wire.answering import Called, Counted, Said, Thought, answer
from tests.wire.asking import config_at
from tests.wire.prompt_cache import PromptCache
from tests.wire.server import FORMATS, JSON, WireAnswer, WireRequest, WireServer

ANTHROPIC, CHAT = ModelKind.ANTHROPIC, ModelKind.OPENAI_CHAT
SIGNATURE = base64.b64encode(b"signed by the provider").decode()

every_kind = pytest.mark.parametrize("kind", FORMATS)
with_and_without_tools = pytest.mark.parametrize("tools", [None, ()], ids=["tools", "plain"])


@pytest.fixture
async def wire() -> AsyncIterator[WireServer]:
    async with WireServer() as one:
        yield one


async def opened(
    open_stage: OpenStage, wire: WireServer, kind: ModelKind, tools: tuple[str, ...] | None = None
) -> Stage:
    return await open_stage(remote(open_provider(config_at(wire, kind)), tools=tools))


@every_kind
async def test_turn_with_thoughts_text_and_calls_becomes_blocks(
    open_stage: OpenStage, wire: WireServer, kind: ModelKind
) -> None:
    wire.answers += [
        answer(
            kind,
            Thought("Let me look."),
            Said("Looking."),
            Called("c1", "block_list", '{"limit": 2}'),
            Called("c2", "context_list"),
        ),
        answer(kind, Said("All is well."), counted=Counted(input=500, output=9)),
    ]
    stage = await opened(open_stage, wire, kind)
    prompt = await stage.play("Is all well?")
    kinds = [(one[0], one[1]) for one in stage.shown()]
    shown = [("text", "done"), ("thinking", "done"), ("text", "done")]
    calls = [("tool_call", "done"), ("tool_result", "done")] * 2
    thought = shown if ("thinking", "done") in kinds else [shown[0], shown[2]]
    assert kinds == [*thought, *calls, ("text", "done")]
    assert stage.shown()[-1][2] == "All is well."
    assert stage.headers()[-1].metadata[USAGE]["input_tokens"] == 500
    first, second = wire.requests
    assert "block_read" in first.text.decode()
    header, message, announced = spoken(kind, first.body)[0][1].split("\n\n")
    assert header.startswith("[TURN ")
    assert message == f"[USER MESSAGE]\n[path: {await stage.path(prompt)}]\nIs all well?"
    assert announced.startswith("[ANNOUNCE]\n")
    assert stage.results()[0][:30].splitlines()[0] in second.text.decode()
    assert not stage.unfinished()


async def test_interrupt_closes_the_connection(open_stage: OpenStage, wire: WireServer) -> None:
    whole = answer(CHAT, Said("A long answer that does not come to its end, for a while at least."))
    wire.answers.append(whole.silent(len(whole.body) // 2))
    stage = await opened(open_stage, wire, CHAT)
    await stage.submit("Hello?")
    request = await wire.asked()
    await stage.interrupt()
    await until(request.gone.is_set)
    assert not stage.unfinished()


def reasoning_sent_back(kind: ModelKind, body: Any) -> Any:
    """Return what the provider has signed, as far as it is in a request."""
    match kind:
        case ModelKind.ANTHROPIC:
            blocks = [block for message in body["messages"] for block in message["content"]]
            return [block["signature"] for block in blocks if block["type"] == "thinking"]
        case ModelKind.OPENAI:
            items = [item for item in body["input"] if item.get("type") == "reasoning"]
            return [item["encrypted_content"] for item in items]
        case _:
            parts = [part for content in body["contents"] for part in content["parts"]]
            return [part["thoughtSignature"] for part in parts if "functionCall" in part]


@pytest.mark.parametrize("kind", [one for one in FORMATS if one is not CHAT])
async def test_signed_reasoning_without_text_goes_back_with_the_results_of_its_calls(
    open_stage: OpenStage, wire: WireServer, kind: ModelKind
) -> None:
    stage = await opened(open_stage, wire, kind)
    call = Called("c1", "context_list")
    wire.answers += [answer(kind, Thought("", SIGNATURE), call), answer(kind, Said("Done."))]
    await stage.play("Which contexts are there?")
    assert stage.shown()[-1] == ("text", "done", "Done.")
    assert reasoning_sent_back(kind, wire.requests[1].body) == [SIGNATURE]


async def test_cache_of_anthropic_is_hit_in_every_round_until_a_person_edits_history(
    open_stage: OpenStage, wire: WireServer
) -> None:
    stage = await opened(open_stage, wire, ANTHROPIC)
    wire.answers.append(answer(ANTHROPIC, Said("An older answer.")))
    note = await stage.play("An older message.")
    rounds = [answer(ANTHROPIC, Called(f"c{number}", "context_list")) for number in range(24)]
    wire.answers += [*rounds, answer(ANTHROPIC, Said("Done."))]
    await stage.play("Go.")
    cache = PromptCache()
    readings = [cache.read(request.body) for request in wire.requests]
    ends = [one.cached for one in readings[1:]]
    assert ends == sorted(ends)
    # Of each request all is there but the last round and what is announced.
    assert all(one.blocks - one.cached <= 4 for one in readings[2:])
    await stage.call("block.splice", block_id=note, offset=0, insert="Edited. ")
    calls = answer(ANTHROPIC, Called("c", "context_list"))
    wire.answers += [calls, answer(ANTHROPIC, Said("Done."))]
    await stage.play("Again.")
    edited, after = (cache.read(request.body) for request in wire.requests[-2:])
    assert edited.cached < 40
    assert edited.cached < ends[-1]
    assert after.blocks - after.cached <= 4


@with_and_without_tools
async def test_growing_message_of_a_person_is_read_from_the_cache(
    open_stage: OpenStage, wire: WireServer, tools: tuple[str, ...] | None
) -> None:
    stage = await opened(open_stage, wire, ANTHROPIC, tools)
    wire.reply = lambda request: answer(ANTHROPIC, Said("Done."))
    cache, before = PromptCache(), 0
    for number in range(6):
        await stage.play(f"Message {number}")
        await stage.call("block.exclude", block_id=stage.headers()[-1].id, excluded=True)
        body = wire.requests[-1].body
        assert len(body["messages"]) == 1
        reading = cache.read(body)
        assert reading.cached >= before
        before = reading.blocks - (tools is None)


def spoken(kind: ModelKind, body: Any) -> list[tuple[str, str]]:
    """Return the role and the text of each message of a request without calls."""
    key = "content" if kind is not ModelKind.GOOGLE else "parts"
    messages = next(body[name] for name in ("messages", "input", "contents") if name in body)
    return [
        (
            {"model": "assistant"}.get(one["role"], one["role"]),
            one[key] if isinstance(one[key], str) else "".join(part["text"] for part in one[key]),
        )
        for one in messages
        if one["role"] != "system"
    ]


@every_kind
async def test_texts_in_a_row_are_sent_with_one_join_and_named_ones_as_paragraphs(
    open_stage: OpenStage, wire: WireServer, kind: ModelKind
) -> None:
    stage = await opened(open_stage, wire, kind, ())
    wire.reply = lambda request: answer(kind, Said("xCDEF"[len(wire.requests) - 1]))
    await stage.play("A")
    await stage.call("block.exclude", block_id=stage.headers()[-1].id, excluded=True)
    await stage.play("B")
    between = await stage.play("y")
    await stage.call("block.exclude", block_id=between, excluded=True)
    await stage.play("Go.")
    said = [("user", "A B"), ("assistant", "C D"), ("user", "Go.")]
    assert spoken(kind, wire.requests[-1].body) == said
    await stage.call("block.exclude", block_id=stage.headers()[-1].id, excluded=True)
    await stage.play("And I?", await stage.actor("ben"))
    assert spoken(kind, wire.requests[-1].body)[-1] == ("user", "amy: Go.\n\nben: And I?")


@with_and_without_tools
async def test_server_that_takes_only_strings_answers_two_people(
    open_stage: OpenStage, wire: WireServer, tools: tuple[str, ...] | None
) -> None:
    def reply(request: WireRequest) -> WireAnswer:
        if all(isinstance(one["content"], str) for one in request.body["messages"]):
            return answer(CHAT, Said("Done."))
        return WireAnswer(b'{"error": {"message": "content: expected a string"}}', 400, JSON)

    wire.reply = reply
    stage = await opened(open_stage, wire, CHAT, tools)
    await stage.play("Hello?")
    await stage.call("block.exclude", block_id=stage.headers()[-1].id, excluded=True)
    await stage.play("And now?", await stage.actor("ben"))
    assert stage.shown()[-1] == ("text", "done", "Done.")
