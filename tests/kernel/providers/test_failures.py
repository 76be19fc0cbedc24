"""Failures of providers: their kind, their delay, and never a key."""

from __future__ import annotations

import asyncio
import importlib
import logging
import socket
import sys
from contextlib import aclosing

import pytest

from antiphon_kernel.providers import (
    End,
    ErrorKind,
    ModelKind,
    ProviderError,
    RemoteProvider,
    TextDelta,
)
from antiphon_kernel.types.errors import AntiphonError
from tests.kernel.providers.conftest import ModelServer
from tests.waiting import PATIENCE, until
from tests.wire.asking import KEY, ask, asking, joined, prompt_of
from tests.wire.server import FORMATS, JSON, STREAMED, WireAnswer, recorded

ANTHROPIC, OPENAI, CHAT, GOOGLE = FORMATS

KINDS = {
    "overflow": ErrorKind.CONTEXT_TOO_LONG,
    "rate-limited": ErrorKind.RATE_LIMITED,
    "rate-limited-bare": ErrorKind.RATE_LIMITED,
    "quota": ErrorKind.QUOTA,
    "error-500": ErrorKind.OVERLOADED,
    "overloaded": ErrorKind.OVERLOADED,
    "unauthorised": ErrorKind.UNAUTHORISED,
    "output-limit": ErrorKind.INVALID_REQUEST,
}
DELAYS = {ANTHROPIC: 6.0, OPENAI: 5.5, CHAT: 5.5, GOOGLE: 37.0}


async def failure(provider: RemoteProvider) -> ProviderError:
    """Return the only event of a round that fails at once."""
    events = await ask(provider)
    assert len(events) == 1
    assert isinstance(events[0], ProviderError)
    return events[0]


@pytest.mark.parametrize("kind", FORMATS)
async def test_recorded_failure_has_its_kind_and_delay_and_is_asked_once(
    wire: ModelServer, kind: ModelKind
) -> None:
    provider = wire.model(kind)
    names = [name for name in KINDS if (kind, name) != (GOOGLE, "quota")]
    for number, name in enumerate(names, 1):
        wire.answers[:] = [recorded(kind, name), recorded(kind, "text")]
        found = await failure(provider)
        assert found.kind is KINDS[name], found
        assert found.retry_after == (DELAYS[kind] if name == "rate-limited" else None), found
        assert len(wire.requests) == number, name
        assert KEY not in repr(found)


@pytest.mark.parametrize("kind", FORMATS)
async def test_answer_that_fails_without_an_end_is_read_in_its_beginning(
    wire: ModelServer, kind: ModelKind
) -> None:
    from antiphon_kernel.providers.library_model import ERROR_BYTES

    body = b"no " * ERROR_BYTES
    wire.answers.append(WireAnswer(body, 400, JSON).silent())
    found = await asyncio.wait_for(failure(wire.model(kind, silence=3_600.0)), PATIENCE)
    assert found.kind is ErrorKind.INVALID_REQUEST
    assert "no no no" in found.message


async def test_long_error_is_known_by_its_beginning(wire: ModelServer) -> None:
    said = b"input token count " * 1_000 + b"exceeds the maximum"
    wire.answers.append(WireAnswer(b'{"error": {"message": "' + said + b'"}}', 400, JSON))
    assert (await failure(wire.model(CHAT))).kind is ErrorKind.INVALID_REQUEST


@pytest.mark.parametrize("kind", FORMATS)
async def test_answer_with_an_endless_line_is_cut(
    wire: ModelServer, kind: ModelKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("antiphon_kernel.providers.library_model.LINE_BYTES", 5_000)
    body = b"data: " + b"x" * 10_000
    wire.answers.append(WireAnswer(body).split(*range(1_000, len(body), 1_000)).silent())
    found = await asyncio.wait_for(failure(wire.model(kind, silence=3_600.0)), PATIENCE)
    assert found.kind is ErrorKind.UNREACHABLE


async def test_context_too_long_may_be_said_within_the_answer(wire: ModelServer) -> None:
    wire.answers.append(recorded(OPENAI, "overflow-after-200"))
    assert (await failure(wire.model(OPENAI))).kind is ErrorKind.CONTEXT_TOO_LONG


SAID_OF_A_CONTEXT_TOO_LONG = (
    "prompt is too long: 203444 tokens > 200000 maximum",
    "request_too_large: Request exceeds the maximum size",
    "Input is too long for requested model.",
    "Your input exceeds the context window of this model.",
    "The input token count (1203444) exceeds the maximum number of tokens allowed (1048576).",
    "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
    "Please reduce the length of the messages or completion.",
    "This endpoint's maximum context length is 131072 tokens.",
    "prompt token count of 13000 exceeds the limit of 12288",
    "the request exceeds the available context size. try increasing the context size",
    "the number of tokens to keep from the initial prompt is greater than the context length",
    "invalid params, context window exceeds limit",
    "Your request exceeded model token limit: 262144",
    "context_length_exceeded",
    "model_context_window_exceeded",
)
SAID_OF_OTHER_LIMITS = (
    "Rate limit reached: maximum context length is 9 tokens per minute",
    "Too many requests: exceeds the limit of 10",
    "max_tokens exceeds the limit of 4096 output tokens",
    "You exceeded your current quota",
)


def test_words_of_other_servers_for_a_context_too_long_are_known() -> None:
    from antiphon_kernel.providers.library_events import LIMITED, TOO_LONG

    for text in SAID_OF_A_CONTEXT_TOO_LONG:
        assert TOO_LONG.search(text) and not LIMITED.search(text), text
    for text in SAID_OF_OTHER_LIMITS:
        assert not TOO_LONG.search(text) or LIMITED.search(text), text


@pytest.mark.parametrize("kind", FORMATS)
async def test_server_that_does_not_listen_is_unreachable(
    kind: ModelKind, wire: ModelServer
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{taken.getsockname()[1]}"
        found = await failure(wire.model(kind, base_url=address))
    assert found.kind is ErrorKind.UNREACHABLE


@pytest.mark.parametrize("kind", FORMATS)
async def test_silence_is_unreachable_before_anything_came_and_truncates_after(
    wire: ModelServer, kind: ModelKind
) -> None:
    provider = wire.model(kind, silence=0.05)
    wire.answers.append(WireAnswer(b"").silent())
    assert (await failure(provider)).kind is ErrorKind.UNREACHABLE
    body = recorded(kind, "empty-delta").body
    wire.answers.append(WireAnswer(body).silent(body.index(b"friend")))
    assert joined(await ask(provider)) == [TextDelta("Hello there,"), End("truncated")]


@pytest.mark.parametrize("kind", FORMATS)
async def test_closing_the_stream_and_cancelling_the_round_end_the_request_at_once(
    wire: ModelServer, kind: ModelKind
) -> None:
    body = recorded(kind, "text").body
    wire.answers.append(WireAnswer(body).silent(len(body) // 2 + 60))
    async with aclosing(wire.model(kind).stream(asking(prompt_of()))) as events:
        assert isinstance(await anext(events), TextDelta)
        request = wire.requests[0]
        assert not request.gone.is_set()
    await asyncio.wait_for(request.gone.wait(), 60)
    wire.answers.append(WireAnswer(b"").silent())
    task = asyncio.create_task(ask(wire.model(kind)))
    await until(lambda: len(wire.requests) == 2, "the second request")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.wait_for(wire.requests[1].gone.wait(), 60)


@pytest.mark.parametrize("kind", FORMATS)
async def test_answer_that_is_no_json_or_nothing_is_an_error(
    wire: ModelServer, kind: ModelKind
) -> None:
    wire.answers.append(WireAnswer(b'data: {"type": oh}\n\n', 200, STREAMED))
    assert isinstance((await ask(wire.model(kind)))[-1], ProviderError)
    wire.answers.append(WireAnswer(b"<html>Bad Gateway</html>", 502, {"content-type": "text/html"}))
    assert (await failure(wire.model(kind))).kind is ErrorKind.OVERLOADED
    wire.answers.append(WireAnswer(b""))
    assert (await failure(wire.model(kind))).kind is ErrorKind.UNREACHABLE


async def test_messages_without_their_last_event_are_truncated(wire: ModelServer) -> None:
    whole = recorded(ANTHROPIC, "text")
    wire.answers.append(whole.cut(whole.body.index(b"event: message_stop"), closes=True))
    assert (await ask(wire.model(ANTHROPIC)))[-1] == End("truncated")


async def test_chat_without_finish_reason_is_truncated(wire: ModelServer) -> None:
    events = recorded(CHAT, "text").body.split(b"\n\n")
    kept = [event for event in events if b'"finish_reason": "stop"' not in event]
    wire.answers.append(WireAnswer(b"\n\n".join(kept)))
    assert (await ask(wire.model(CHAT)))[-1] == End("truncated")


@pytest.mark.parametrize("kind", FORMATS)
async def test_key_is_in_no_log_and_no_representation(
    wire: ModelServer,
    kind: ModelKind,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    caplog.set_level(logging.DEBUG)
    provider = wire.model(kind)
    wire.answers += [recorded(kind, "text"), recorded(kind, "unauthorised")]
    await ask(provider)
    found = await failure(provider)
    assert KEY in "".join(wire.requests[0].headers.values())
    assert KEY not in f"{found}{provider!r}{vars(provider)!r}{caplog.text}{capfd.readouterr()}"
    assert KEY not in str(await provider.payload(prompt_of()))


async def test_model_of_a_service_without_key_says_which_variable_to_set(wire: ModelServer) -> None:
    for kind in FORMATS:
        found = await failure(wire.model(kind, key=None, base_url=None))
        assert found.kind is ErrorKind.UNAUTHORISED
        assert "_API_KEY" in found.message


@pytest.mark.parametrize(
    ("kind", "library", "extra"),
    [
        (ANTHROPIC, "anthropic", "anthropic"),
        (OPENAI, "openai", "openai"),
        (CHAT, "openai", "openai"),
        (GOOGLE, "google.genai", "google"),
    ],
)
async def test_missing_library_says_what_to_run(
    wire: ModelServer,
    kind: ModelKind,
    library: str,
    extra: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ours = "antiphon_kernel.providers."
    for name in [f"{ours}{one}" for one in ("anthropic", "openai", "openai_chat", "google")]:
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, library, None)
    importlib.invalidate_caches()
    found = await failure(wire.model(kind))
    assert found.kind is ErrorKind.NOT_INSTALLED
    assert f"pip install 'antiphon[{extra}]'" in found.message
    with pytest.raises(AntiphonError, match="pip install"):
        await wire.model(kind).payload(prompt_of())
