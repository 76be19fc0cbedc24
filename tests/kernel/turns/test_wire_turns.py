"""Turns of models that are asked over the wire, in each format."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from typing import Any

import pytest

from antiphon_kernel.providers import ModelKind
from antiphon_kernel.providers.opening import open_provider
from antiphon_kernel.types.enums import BlockKind, Status
from tests.kernel.turns.stage import OpenStage, remote
from tests.wire.answering import Called, Said, Thought, answer
from tests.wire.asking import config_at
from tests.wire.prompt_cache import PromptCache
from tests.wire.server import FORMATS, JSON, WireAnswer, WireRequest, WireServer

SIGNATURE = base64.b64encode(b"signed by the provider").decode()


@pytest.fixture
async def wire() -> AsyncIterator[WireServer]:
    async with WireServer() as server:
        yield server


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


@pytest.mark.parametrize("thought", ["I list what there is.", ""], ids=["text", "no-text"])
@pytest.mark.parametrize("kind", [one for one in FORMATS if one is not ModelKind.OPENAI_CHAT])
async def test_signed_reasoning_goes_back_with_the_results_of_its_calls(
    wire: WireServer, open_stage: OpenStage, kind: ModelKind, thought: str
) -> None:
    provider = open_provider(config_at(wire, kind))
    stage = await open_stage(remote(provider))
    call = Called("c1", "context_list")
    wire.answers += [answer(kind, Thought(thought, SIGNATURE), call), answer(kind, Said("Done."))]
    await stage.play("Which contexts are there?")
    assert stage.headers()[-1].status is Status.DONE
    assert stage.text(stage.headers()[-1]) == "Done."
    assert len(stage.of_kind(BlockKind.TOOL_CALL)) == 1
    assert reasoning_sent_back(kind, wire.requests[1].body) == [SIGNATURE]


async def test_edited_reasoning_is_left_out(wire: WireServer, open_stage: OpenStage) -> None:
    kind = ModelKind.ANTHROPIC
    stage = await open_stage(remote(open_provider(config_at(wire, kind))))
    wire.answers.append(answer(kind, Thought("Hm.", SIGNATURE), Said("Done.")))
    await stage.play("Go.")
    (thinking,) = stage.of_kind(BlockKind.THINKING)
    await stage.call("block.splice", block_id=thinking.id, offset=0, insert="Oh. ")
    wire.answers.append(answer(kind, Said("Again.")))
    await stage.play("Go on.")
    assert reasoning_sent_back(kind, wire.requests[1].body) == []


async def test_rounds_of_a_turn_are_read_from_the_cache(
    wire: WireServer, open_stage: OpenStage
) -> None:
    kind = ModelKind.ANTHROPIC
    stage = await open_stage(remote(open_provider(config_at(wire, kind))))
    calls = [answer(kind, Called(f"c{number}", "context_list")) for number in range(8)]
    wire.answers += [*calls, answer(kind, Said("Done."))]
    await stage.play("Which contexts are there?")
    cache = PromptCache()
    readings = [cache.read(request.body) for request in wire.requests]
    assert len(readings) == 9
    # Of each request all is there but the last round and what is announced.
    assert all(reading.blocks - reading.cached <= 4 for reading in readings[1:]), readings


@pytest.mark.parametrize("tools", [None, ()], ids=["tools", "plain"])
async def test_growing_message_of_a_person_is_read_from_the_cache(
    wire: WireServer, open_stage: OpenStage, tools: tuple[str, ...] | None
) -> None:
    kind = ModelKind.ANTHROPIC
    stage = await open_stage(remote(open_provider(config_at(wire, kind)), tools=tools))
    wire.reply = lambda request: answer(kind, Said("Done."))
    cache = PromptCache()
    before = 0
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


@pytest.mark.parametrize("kind", FORMATS)
async def test_texts_of_one_role_in_a_row_are_sent_with_one_join(
    wire: WireServer, open_stage: OpenStage, kind: ModelKind
) -> None:
    stage = await open_stage(remote(open_provider(config_at(wire, kind)), tools=()))
    wire.reply = lambda request: answer(kind, Said(["x", "C", "D", "E"][len(wire.requests) - 1]))
    await stage.play("A")
    await stage.call("block.exclude", block_id=stage.headers()[-1].id, excluded=True)
    await stage.play("B")
    between = await stage.play("y")
    await stage.call("block.exclude", block_id=between, excluded=True)
    await stage.play("Go.")
    assert spoken(kind, wire.requests[-1].body) == [
        ("user", "A B"),
        ("assistant", "C D"),
        ("user", "Go."),
    ]


@pytest.mark.parametrize("kind", FORMATS)
async def test_named_texts_in_a_row_are_sent_as_paragraphs(
    wire: WireServer, open_stage: OpenStage, kind: ModelKind
) -> None:
    stage = await open_stage(remote(open_provider(config_at(wire, kind)), tools=()))
    wire.reply = lambda request: answer(kind, Said("Done."))
    await stage.play("A")
    await stage.call("block.exclude", block_id=stage.headers()[-1].id, excluded=True)
    await stage.play("B", await stage.actor("ben"))
    assert spoken(kind, wire.requests[-1].body) == [("user", "amy: A\n\nben: B")]


@pytest.mark.parametrize("kind", FORMATS)
async def test_user_message_of_a_model_with_tools_is_a_part_of_the_text_stream(
    wire: WireServer, open_stage: OpenStage, kind: ModelKind
) -> None:
    stage = await open_stage(remote(open_provider(config_at(wire, kind))))
    wire.answers.append(answer(kind, Said("Done.")))
    prompt = await stage.play("Hello?")
    ((_, text),) = spoken(kind, wire.requests[-1].body)
    header, message, announced = text.split("\n\n")
    assert header.startswith("[TURN ")
    assert message == f"[USER MESSAGE]\n[path: {await stage.path(prompt)}]\nHello?"
    assert announced.startswith("[ANNOUNCE]\n")


@pytest.mark.parametrize("tools", [None, ()], ids=["tools", "plain"])
async def test_server_that_takes_only_strings_answers_two_people(
    wire: WireServer, open_stage: OpenStage, tools: tuple[str, ...] | None
) -> None:
    kind = ModelKind.OPENAI_CHAT

    def reply(request: WireRequest) -> WireAnswer:
        if all(isinstance(one["content"], str) for one in request.body["messages"]):
            return answer(kind, Said("Done."))
        return WireAnswer(b'{"error": {"message": "content: expected a string"}}', 400, JSON)

    wire.reply = reply
    stage = await open_stage(remote(open_provider(config_at(wire, kind)), tools=tools))
    await stage.play("Hello?")
    await stage.call("block.exclude", block_id=stage.headers()[-1].id, excluded=True)
    await stage.play("And now?", await stage.actor("ben"))
    assert stage.shown()[-1] == ("text", "done", "Done.")


@pytest.mark.parametrize("kind", FORMATS)
async def test_answer_that_was_cut_ends_the_turn_as_truncated_without_running_its_call(
    wire: WireServer, open_stage: OpenStage, kind: ModelKind
) -> None:
    stage = await open_stage(remote(open_provider(config_at(wire, kind))))
    whole = answer(kind, Said("I look."), Called("c1", "context_list", '{"deep": "a long text"}'))
    cut = whole.body.index(b"context_list") + len(b"context_list")
    wire.answers.append(whole.cut(cut))
    await stage.play("Go.")
    assert len(wire.requests) == 1
    assert stage.text(stage.of_kind(BlockKind.TEXT)[-1]) == "I look."
    assert not stage.unfinished()
