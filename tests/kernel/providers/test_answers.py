"""Answers in each wire format give the same events, in any pieces, and cut after any byte.

`ANTIPHON_CASES` says at how many offsets: one for each fifty, all of them with enough.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterable

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
from tests.wire.answering import Called, Counted, Said, Thought, answer
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
        *call("call_a1", "block_read", PATH),
        *call("call_b2", "shell", LIST),
        End("tool_use"),
    ],
    "split-json": [*call("call_a1", "shell", PRINT), End("tool_use")],
    "call-without-arguments": [*call("call_a1", "kernel_usage", "{}"), End("tool_use")],
    "cached": [TextDelta("Known."), End("end_turn")],
    "empty-delta": [TextDelta("Hello there, friend."), End("end_turn")],
    "pings": [TextDelta("Hello there, friend."), End("end_turn")],
}


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


@pytest.mark.parametrize(
    ("kind", "name"),
    [(kind, name) for kind in FORMATS for name in recorded_names(kind) if name in EXPECTED],
)
async def test_recorded_answer_gives_its_events(
    wire: ModelServer, kind: ModelKind, name: str
) -> None:
    wire.answers.append(recorded(kind, name))
    assert plain(await ask(wire.model(kind))) == EXPECTED[name]


@pytest.mark.parametrize("kind", FORMATS)
async def test_deltas_of_arguments_are_the_text_of_the_call(
    wire: ModelServer, kind: ModelKind
) -> None:
    wire.answers.append(recorded(kind, "split-json"))
    events = await ask(wire.model(kind))
    text = "".join(event.text for event in events if isinstance(event, ToolCallDelta))
    assert json.loads(text) == json.loads(PRINT)
    assert kind is GOOGLE or sum(isinstance(event, ToolCallDelta) for event in events) > 3


@pytest.mark.parametrize(
    ("kind", "name", "expected"),
    [
        (
            ANTHROPIC,
            "cached",
            TokenUsage(
                input_tokens=5000, output_tokens=3, cached_tokens=4096, cache_write_tokens=512
            ),
        ),
        *(
            (kind, "cached", TokenUsage(input_tokens=5000, output_tokens=3, cached_tokens=4096))
            for kind in (OPENAI, CHAT, GOOGLE)
        ),
        *(
            (kind, "thinking", TokenUsage(input_tokens=30, output_tokens=25, reasoning_tokens=18))
            for kind in (OPENAI, CHAT, GOOGLE)
        ),
    ],
)
async def test_cached_tokens_are_part_of_the_input_and_reasoning_of_the_output(
    wire: ModelServer, kind: ModelKind, name: str, expected: TokenUsage
) -> None:
    wire.answers.append(recorded(kind, name))
    events = await ask(wire.model(kind))
    assert [event for event in events if isinstance(event, TokenUsage)] == [expected]


async def test_reasoning_in_the_other_field_is_read(wire: ModelServer) -> None:
    wire.answers.append(recorded(CHAT, "reasoning-field"))
    events = plain(await ask(wire.model(CHAT)))
    assert events[0] == ThinkingDelta("Hm, let me think.")


@pytest.mark.parametrize("kind", FORMATS)
async def test_answer_that_reached_its_limit_ends_with_max_tokens_and_without_the_open_call(
    wire: ModelServer, kind: ModelKind
) -> None:
    wire.answers.append(recorded(kind, "full"))
    events = await ask(wire.model(kind))
    assert events[-1] == End("max_tokens")
    assert not any(isinstance(event, ToolCallEvent) for event in events)


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (ANTHROPIC, "I can"),
        (OPENAI, "I cannot help with that."),
        (CHAT, "I cannot help with that."),
        (GOOGLE, None),
    ],
)
async def test_refusal_ends_with_refusal(
    wire: ModelServer, kind: ModelKind, said: str | None
) -> None:
    wire.answers.append(recorded(kind, "refusal"))
    text: list[TurnEvent] = [TextDelta(said)] if said else []
    assert plain(await ask(wire.model(kind))) == [*text, End("refusal")]


@pytest.mark.parametrize("kind", FORMATS)
async def test_error_after_the_beginning_of_an_answer_ends_it(
    wire: ModelServer, kind: ModelKind
) -> None:
    wire.answers.append(recorded(kind, "error-after-200"))
    *begun, last = plain(await ask(wire.model(kind)))
    assert begun == [TextDelta("Hello there,")]
    assert isinstance(last, ProviderError)
    assert last.kind is ErrorKind.OVERLOADED
    assert "verloaded" in last.message


async def test_word_of_the_provider_is_kept_as_stop_reason(wire: ModelServer) -> None:
    wire.answers.append(recorded(GOOGLE, "malformed-call"))
    assert (await ask(wire.model(GOOGLE)))[-1] == End("malformed_function_call")


async def test_call_without_id_gets_one_by_position(wire: ModelServer) -> None:
    given = answer(GOOGLE, Called("c1", "shell"), Called("c2", "shell"))
    body = given.body.replace(b'"id": "c1", ', b"").replace(b'"id": "c2", ', b"")
    wire.answers.append(type(given)(body))
    events = await ask(wire.model(GOOGLE))
    calls = [event.id for event in events if isinstance(event, ToolCallEvent)]
    assert calls == ["call-0", "call-1"]


@pytest.mark.parametrize("kind", [ANTHROPIC, OPENAI, CHAT])
async def test_arguments_that_are_no_object_come_as_text_once_the_answer_is_whole(
    wire: ModelServer, kind: ModelKind
) -> None:
    wire.answers.append(answer(kind, Called("c1", "shell", '{"command": '), Said("Oh.")))
    events = await ask(wire.model(kind))
    assert ToolCallEvent("c1", "shell", '{"command": ') in events
    assert events[-1] == End("tool_use")


@pytest.mark.parametrize("kind", FORMATS)
async def test_several_rounds_share_one_client(wire: ModelServer, kind: ModelKind) -> None:
    provider = wire.model(kind)
    for number in range(3):
        wire.answers.append(answer(kind, Thought("Hm."), Said(f"{number}"), counted=Counted(7, 3)))
        assert plain(await ask(provider))[-2:] == [TextDelta(f"{number}"), End("end_turn")]
    assert [request.kind for request in wire.requests] == [kind] * 3
    assert all(MODELS[kind] in request.path + request.text.decode() for request in wire.requests)


OFFSETS = max(1, int(os.environ.get("ANTIPHON_CASES", "50")) // 50)

NAMES = ("text", "thinking", "parallel-calls", "split-json", "refusal")


def offsets(length: int, seed: str) -> list[int]:
    """Return the offsets that are tried, the same in every run of so many cases."""
    inner = range(1, length)
    return sorted(random.Random(seed).sample(inner, min(OFFSETS, len(inner))))


def texts(events: Iterable[TurnEvent]) -> str:
    """Return everything that was streamed, a character for what is no text."""
    return "".join(getattr(event, "text", "\0") for event in events)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", FORMATS)
async def test_pieces_of_an_answer_say_nothing(
    wire: ModelServer, kind: ModelKind, name: str
) -> None:
    provider = wire.model(kind)
    whole = recorded(kind, name)
    wire.answers.append(whole)
    expected = await ask(provider)
    wire.answers.append(whole.bytewise())
    assert await ask(provider) == expected
    for at in offsets(len(whole.body), f"split {kind} {name}"):
        wire.answers.append(whole.split(at))
        assert await ask(provider) == expected, at
        wire.answers.append(whole.with_crlf().split(at))
        assert await ask(provider) == expected, at


@pytest.mark.parametrize("closes", [True, False], ids=["ended", "broken"])
@pytest.mark.parametrize("name", ["thinking", "parallel-calls", "split-json"])
@pytest.mark.parametrize("kind", FORMATS)
async def test_cut_answer_gives_its_beginning_and_no_open_call(
    wire: ModelServer, kind: ModelKind, name: str, closes: bool
) -> None:
    provider = wire.model(kind)
    whole = recorded(kind, name)
    wire.answers.append(whole)
    expected = joined(await ask(provider))
    calls = [event for event in expected if isinstance(event, ToolCallEvent)]
    for at in offsets(len(whole.body), f"cut {kind} {name} {closes}"):
        wire.answers.append(whole.cut(at, closes=closes))
        *begun, last = joined(await ask(provider))
        if last == expected[-1]:
            # Nothing was missing but what comes behind the reason for the end.
            assert begun == expected[:-1], at
            continue
        if isinstance(last, ProviderError):
            assert (last.kind, begun) == (ErrorKind.UNREACHABLE, []), at
        else:
            assert last == End(StopReason.TRUNCATED), at
        got = [event for event in begun if isinstance(event, ToolCallEvent)]
        assert got == calls[: len(got)], at
        streamed = [event for event in begun if not isinstance(event, ToolCallEvent)]
        complete = [event for event in expected if not isinstance(event, ToolCallEvent)]
        assert texts(complete).startswith(texts(streamed).rstrip("\0")), at


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
