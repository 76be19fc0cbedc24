"""Answers in any pieces, and cut after any byte.

`ANTIPHON_CASES` says at how many offsets: one for each fifty, all of them with enough.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterable

import pytest

from antiphon_kernel.providers import (
    End,
    ErrorKind,
    ModelKind,
    ProviderError,
    RemoteProvider,
    StopReason,
    ToolCallDelta,
    ToolCallEvent,
    TurnEvent,
)
from tests.wire.asking import ask, joined
from tests.wire.server import FORMATS, WireServer, recorded

Open = Callable[..., RemoteProvider]

OFFSETS = max(1, int(os.environ.get("ANTIPHON_CASES", "100")) // 50)

NAMES = ("text", "thinking", "parallel-calls", "split-json", "empty-delta", "refusal", "full")


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
    wire: WireServer, model: Open, kind: ModelKind, name: str
) -> None:
    provider = model(kind)
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
    wire: WireServer, model: Open, kind: ModelKind, name: str, closes: bool
) -> None:
    provider = model(kind)
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
    wire: WireServer, model: Open, kind: ModelKind
) -> None:
    provider = model(kind)
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
