"""Answers in each wire format give the same events, in any pieces, and cut after any byte.

`ANTIPHON_CASES` says at how many offsets: one for each fifty, all of them with enough.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterable
from dataclasses import replace

import pytest

from antiphon_kernel.providers import (
    End,
    ErrorKind,
    ModelKind,
    ProviderError,
    TextDelta,
    TokenUsage,
)
from antiphon_kernel.providers.events import (
    StopReason,
    ThinkingDelta,
    ThinkingEnd,
    ToolCallDelta,
    ToolCallEvent,
    ToolCallStart,
    TurnEvent,
)
from tests.kernel.providers.conftest import ModelServer
from tests.wire.answering import Called, Said, answer
from tests.wire.asking import MODELS, ask, joined
from tests.wire.server import FORMATS, recorded, recorded_names

ANTHROPIC, OPENAI, CHAT, GOOGLE = FORMATS

PATH = '{"path": "ar:turn_1.user.prompt"}'
LIST = '{"command": "ls -la", "timeout": 5}'
PRINT = json.dumps({"command": "printf 'é\\n\"ä世界\"'", "deep": {"list": [1, 2.5, None, True]}})


def call(id: str, name: str, arguments: str) -> list[TurnEvent]:
    """Return the events of one call, joined; the text of its arguments is read as JSON."""
    whole = ToolCallEvent(id, name, json.loads(arguments))
    return [ToolCallStart(id, name), whole]


EXPECTED: dict[str, list[TurnEvent]] = {
    "text": [TextDelta("Grüße, 世界! It is 3 °C in Zürich."), End("end_turn")],
    "thinking": [
        ThinkingDelta("The user greets me. I greet back — 你好."),
        ThinkingEnd(),
        TextDelta("Hello!"),
        End("end_turn"),
    ],
    "parallel-calls": [
        TextDelta("I look."),
        *call("call-0", "block_read", PATH),
        *call("call-1", "shell", LIST),
        End("tool_use"),
    ],
    "split-json": [*call("call-0", "shell", PRINT), End("tool_use")],
    "call-without-arguments": [*call("call-0", "kernel_usage", "{}"), End("tool_use")],
    "cached": [TextDelta("Known."), End("end_turn")],
    "empty-delta": [TextDelta("Hello there, friend."), End("end_turn")],
    "pings": [TextDelta("Hello there, friend."), End("end_turn")],
}


OFFSETS = max(1, int(os.environ.get("ANTIPHON_CASES", "50")) // 50)

IN_PIECES = ("text", "thinking", "parallel-calls", "split-json", "refusal")
BYTE_BY_BYTE = ("thinking", "split-json")
"""These have characters of several bytes, escapes, and JSON that comes in parts."""


def offsets(length: int, seed: str) -> list[int]:
    """Return the offsets that are tried, the same in every run of so many cases."""
    inner = range(1, length)
    return sorted(random.Random(seed).sample(inner, min(OFFSETS, len(inner))))


def plain(events: list[TurnEvent]) -> list[TurnEvent]:
    """Return joined events without deltas of arguments and without signatures."""
    unsigned: list[TurnEvent] = []
    for event in joined(events):
        match event:
            case ThinkingEnd():
                unsigned.append(ThinkingEnd())
            case ToolCallEvent(id, name, arguments):
                unsigned.append(ToolCallEvent(id, name, arguments))
            case ToolCallDelta():
                pass
            case _:
                unsigned.append(event)
    return unsigned


@pytest.mark.parametrize("kind", FORMATS)
async def test_recorded_answers_give_their_events_in_any_pieces(
    wire: ModelServer, kind: ModelKind
) -> None:
    provider = wire.model(kind)
    for name in recorded_names(kind):
        whole = recorded(kind, name)
        if name in EXPECTED:
            wire.answers.append(whole)
            assert plain(await ask(provider)) == EXPECTED[name], name
        if name not in IN_PIECES:
            continue
        wire.answers.append(whole)
        expected = await ask(provider)
        splits = [
            one.split(at)
            for at in offsets(len(whole.body), f"split {kind} {name}")
            for one in (whole, whole.with_crlf())
        ]
        bytewise = [whole.bytewise()] if name in BYTE_BY_BYTE else []
        for pieces in (*bytewise, *splits):
            wire.answers.append(pieces)
            assert await ask(provider) == expected, (name, pieces.splits)
    assert all(MODELS[kind] in request.path + request.text.decode() for request in wire.requests)


@pytest.mark.parametrize("kind", FORMATS)
async def test_deltas_of_arguments_are_the_text_of_the_call(
    wire: ModelServer, kind: ModelKind
) -> None:
    wire.answers.append(recorded(kind, "split-json"))
    events = await ask(wire.model(kind))
    text = "".join(event.text for event in events if isinstance(event, ToolCallDelta))
    assert json.loads(text) == json.loads(PRINT)
    assert kind is GOOGLE or sum(isinstance(event, ToolCallDelta) for event in events) > 3


@pytest.mark.parametrize("kind", FORMATS)
async def test_cached_tokens_are_part_of_the_input_and_reasoning_of_the_output(
    wire: ModelServer, kind: ModelKind
) -> None:
    cached = TokenUsage(input_tokens=5000, output_tokens=3, cached_tokens=4096)
    if kind is ANTHROPIC:
        cached = replace(cached, cache_write_tokens=512)
    thinking = TokenUsage(input_tokens=30, output_tokens=25, reasoning_tokens=18)
    expected = {"cached": cached, "thinking": thinking}
    provider = wire.model(kind)
    for name, usage in expected.items():
        if (kind, name) != (ANTHROPIC, "thinking"):
            wire.answers.append(recorded(kind, name))
            events = await ask(provider)
            assert [event for event in events if isinstance(event, TokenUsage)] == [usage]


async def test_reasoning_in_the_other_field_is_read(wire: ModelServer) -> None:
    wire.answers.append(recorded(CHAT, "reasoning-field"))
    events = plain(await ask(wire.model(CHAT)))
    assert events[0] == ThinkingDelta("Hm, let me think.")


REFUSED = {ANTHROPIC: "I can", GOOGLE: None}


@pytest.mark.parametrize("kind", FORMATS)
async def test_answer_that_was_full_refused_or_failed_ends_as_what_it_is(
    wire: ModelServer, kind: ModelKind
) -> None:
    provider = wire.model(kind)
    wire.answers += [recorded(kind, name) for name in ("full", "refusal", "error-after-200")]
    events = await ask(provider)
    assert events[-1] == End("max_tokens")
    assert not any(isinstance(event, ToolCallEvent) for event in events), "it was not whole"
    said = REFUSED.get(kind, "I cannot help with that.")
    text: list[TurnEvent] = [TextDelta(said)] if said else []
    assert plain(await ask(provider)) == [*text, End("refusal")]
    *begun, last = plain(await ask(provider))
    assert begun == [TextDelta("Hello there,")]
    assert isinstance(last, ProviderError)
    assert last.kind is ErrorKind.OVERLOADED
    assert "verloaded" in last.message


async def test_word_of_the_provider_is_kept_as_stop_reason(wire: ModelServer) -> None:
    wire.answers.append(recorded(GOOGLE, "malformed-call"))
    assert (await ask(wire.model(GOOGLE)))[-1] == End("malformed_function_call")


async def test_calls_of_one_id_are_told_apart_by_position(wire: ModelServer) -> None:
    wire.answers.append(answer(GOOGLE, Called("c1", "shell"), Called("c1", "shell")))
    events = await ask(wire.model(GOOGLE))
    calls = [event.id for event in events if isinstance(event, ToolCallEvent)]
    assert calls == ["call-0", "call-1"]


@pytest.mark.parametrize("kind", [ANTHROPIC, OPENAI, CHAT])
async def test_arguments_that_are_no_object_come_as_text_once_the_answer_is_whole(
    wire: ModelServer, kind: ModelKind
) -> None:
    wire.answers.append(answer(kind, Called("c1", "shell", '{"command": '), Said("Oh.")))
    events = await ask(wire.model(kind))
    assert ToolCallEvent("call-0", "shell", '{"command": ') in events
    assert events[-1] == End("tool_use")


def texts(events: Iterable[TurnEvent]) -> str:
    """Return everything that was streamed, a character for what is no text."""
    return "".join(getattr(event, "text", "\0") for event in events)


@pytest.mark.parametrize("kind", FORMATS)
async def test_cut_answer_gives_its_beginning_and_no_open_call(
    wire: ModelServer, kind: ModelKind
) -> None:
    provider = wire.model(kind)
    for name in ("thinking", "parallel-calls", "split-json"):
        whole = recorded(kind, name)
        wire.answers.append(whole)
        expected = joined(await ask(provider))
        for closes in (True, False):
            for at in offsets(len(whole.body), f"cut {kind} {name} {closes}"):
                wire.answers.append(whole.cut(at, closes=closes))
                check_cut(joined(await ask(provider)), expected, f"{name} {closes} {at}")


def check_cut(events: list[TurnEvent], expected: list[TurnEvent], case: str) -> None:
    """Check that events are the beginning of those that were expected, and say so."""
    *begun, last = events
    if last == expected[-1]:
        # Nothing was missing but what comes behind the reason for the end.
        assert begun == expected[:-1], case
        return
    if isinstance(last, ProviderError):
        assert (last.kind, begun) == (ErrorKind.UNREACHABLE, []), case
    else:
        assert last == End(StopReason.TRUNCATED), case
    calls, got = (
        [event for event in some if isinstance(event, ToolCallEvent)] for some in (expected, begun)
    )
    assert got == calls[: len(got)], case
    complete, streamed = (
        texts(event for event in some if not isinstance(event, ToolCallEvent))
        for some in (expected, begun)
    )
    assert complete.startswith(streamed.rstrip("\0")), case


@pytest.mark.parametrize("kind", [one for one in FORMATS if one is not ModelKind.GOOGLE])
async def test_call_cut_before_its_last_brace_is_never_whole(
    wire: ModelServer, kind: ModelKind
) -> None:
    provider = wire.model(kind)
    whole = recorded(kind, "split-json")
    wire.answers.append(whole)
    deltas = [event for event in await ask(provider) if isinstance(event, ToolCallDelta)]
    body = whole.body.decode()
    last = body.index(deltas[-1].text.replace('"', '\\"').rstrip("}"))
    for at in {last, last + 3, len(body[:last].encode()) - 1}:
        for closes in (True, False):
            wire.answers.append(whole.cut(at, closes=closes))
            events = await ask(provider)
            assert not any(isinstance(event, ToolCallEvent) for event in events), at
            assert events[-1] == End(StopReason.TRUNCATED)
