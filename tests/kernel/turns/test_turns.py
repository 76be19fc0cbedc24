"""A turn becomes blocks, whatever happens on the way: faults of providers and tools included.

The turn ends, and every call has its result.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator, Sequence
from typing import Any

import pytest

from antiphon_kernel.messages import ToolMessage, open_tool_uses
from antiphon_kernel.providers import (
    End,
    ErrorKind,
    ProviderError,
    RoundRequest,
    TextDelta,
    TokenUsage,
)
from antiphon_kernel.providers.events import (
    ThinkingDelta,
    ThinkingEnd,
    ToolCallDelta,
    ToolCallEvent,
    ToolCallStart,
    TurnEvent,
)
from antiphon_kernel.turns.models import Models
from antiphon_kernel.turns.turn import TurnSettings
from antiphon_kernel.types.block_metadata import CAN_RETRY, ERROR_KIND, RETRY
from antiphon_kernel.types.enums import BlockKind, Role
from antiphon_kernel.types.presence import PresenceState
from tests.kernel.turns.stage import (
    DONE,
    Gate,
    OpenStage,
    Replying,
    Stage,
    call,
    recording,
    remote,
    scripted,
)
from tests.waiting import until


def shell_call(command: str, call_id: str = "c1") -> ToolCallEvent:
    return ToolCallEvent(call_id, "shell", {"command": command})


FULL_TURN = recording(
    "aria",
    [ThinkingDelta("Let me "), ThinkingDelta("look.\n"), shell_call("printf 'a\\nb\\n'")],
    [TextDelta("Two "), TextDelta("lines.\n"), shell_call("exit 3", "c2")],
    [TextDelta("It failed."), TokenUsage(input_tokens=10, output_tokens=20), End("end_turn")],
)
EVENTS = sum(len(steps) for steps in FULL_TURN.rounds)


async def test_submission_is_answered_in_blocks_that_hang_on_it(open_stage: OpenStage) -> None:
    stage = await open_stage(scripted(Gate(), FULL_TURN))
    prompt = await stage.play("Hello?")
    assert stage.shown() == [
        ("text", "done", "Hello?"),
        ("thinking", "done", "Let me look.\n"),
        ("tool_call", "done", "printf 'a\\nb\\n'"),
        ("tool_result", "done", "a\nb\n"),
        ("text", "done", "Two lines.\n"),
        ("tool_call", "error", "exit 3"),
        ("tool_result", "done", ""),
        ("text", "done", "It failed."),
    ]
    _, thinking, first_call, first_result, _, second_call, second_result, last = stage.headers()
    aria = (await stage.kernel.principal("aria")).id
    for one in (thinking, first_call, second_call, last):
        assert (one.parent, one.role, one.author) == (prompt, Role.MODEL, aria)
    assert (first_result.parent, first_result.role) == (first_call.id, Role.TOOL)
    assert (first_call.tool_kind, first_call.tool_name) == ("shell", "shell")
    assert json.loads(first_call.input or "") == {"command": "printf 'a\\nb\\n'"}
    assert (first_call.exit_code, first_result.exit_code, first_result.is_error) == (0, 0, False)
    assert (second_call.exit_code, second_result.exit_code, second_result.is_error) == (3, 3, True)
    assert second_call.tool_call_id == second_result.tool_call_id


@pytest.mark.parametrize("index", range(EVENTS))
async def test_interrupt_at_any_event_leaves_nothing_open(
    open_stage: OpenStage, index: int
) -> None:
    gate = Gate(index)
    stage = await open_stage(scripted(gate, FULL_TURN))
    prompt = await stage.submit("Hello?")
    await gate.shut()
    written = stage.shown()
    assert await stage.interrupt() == ["aria"]
    assert not stage.unfinished()
    assert not stage.runner.busy
    assert not stage.context.presence.states()
    for (kind, _, before), (kind_after, _, after) in zip(written, stage.shown(), strict=True):
        assert kind == kind_after
        assert after.startswith(before)
    for header in stage.headers():
        if header.kind == BlockKind.TOOL_RESULT:
            answered = stage.context.document.header(header.parent or "")
            assert (answered.kind, answered.tool_call_id) == ("tool_call", header.tool_call_id)
        if header.status == "error" and header.exit_code is None:
            assert (header.stop_reason, header.stopped_by) == ("interrupted", "amy")
        assert header.id == prompt or header.parent is not None


async def test_exception_in_a_turn_is_shown_and_logged(
    open_stage: OpenStage, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken:
        async def stream(self, request: RoundRequest) -> AsyncGenerator[TurnEvent, None]:
            yield TextDelta("so far")
            raise RuntimeError("the wire is cut")

    stage = await open_stage(Models({"aria": Broken()}))
    await stage.play("Hello?")
    assert stage.shown()[1:] == [
        ("text", "error", "so far"),
        ("error", "error", "The turn failed: the wire is cut"),
    ]
    assert "the wire is cut" in caplog.text


async def test_turn_that_never_stops_calling_is_stopped(open_stage: OpenStage) -> None:
    class Eager:
        async def stream(self, request: RoundRequest) -> AsyncGenerator[TurnEvent, None]:
            yield ToolCallEvent(f"c{request.round}", "nothing", {})

    stage = await open_stage(Models({"aria": Eager()}), settings=TurnSettings(max_rounds=9))
    await stage.play("Go.")
    assert stage.shown()[-1][0] == "error"
    assert "after 9 rounds" in stage.shown()[-1][2]
    assert not stage.unfinished()


async def test_turn_text_of_block_is_one_undo_unit(open_stage: OpenStage) -> None:
    stage = await open_stage(scripted(Gate(), recording("aria", [TextDelta("a\n")] * 5)))
    await stage.play("Tell.")
    await stage.call("block.undo", principal="aria")
    assert stage.shown()[1] == ("text", "done", "")


async def test_models_cursor_is_at_the_end_of_what_it_writes(open_stage: OpenStage) -> None:
    gate = Gate(3)
    stage = await open_stage(
        scripted(gate, recording("aria", [TextDelta("one\n"), TextDelta("two\n")] * 3))
    )
    await stage.submit("Count.")
    await gate.shut()
    block = stage.headers()[1].id
    presence = stage.context.presence.states()

    def cursor() -> int | None:
        (state,) = presence.values()
        assert (state.username, state.kind, state.activity) == ("aria", "model", "streaming")
        assert state.block == block
        return state.cursor

    await until(lambda: cursor() == 12)
    await stage.call("block.splice", block_id=block, offset=0, insert="zero\n")
    await until(lambda: cursor() == 17)
    await gate.open()
    await stage.runner.wait_idle()
    assert not presence


async def test_cursor_is_shown_ten_times_a_second_at_most(open_stage: OpenStage) -> None:
    stage = await open_stage(scripted(Gate(), recording("aria", [TextDelta("a\n")] * 60)))
    shown: list[PresenceState | None] = []
    stage.context.presence.changed.listen(lambda _, state: shown.append(state))
    started = time.monotonic()
    await stage.play("Run.")
    assert len(shown) <= 4 + (time.monotonic() - started) * 10


RATE_LIMITED = ProviderError("Too many requests (429).", ErrorKind.RATE_LIMITED, 8.0)
OVERLOADED = ProviderError("Overloaded (529).", ErrorKind.OVERLOADED)


class Waits:
    """A sleep that takes no time and remembers for how long it was asked."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)


async def opened(open_stage: OpenStage, provider: Replying, **settings: Any) -> tuple[Stage, Waits]:
    waits = Waits()
    stage = await open_stage(remote(provider), settings=TurnSettings(sleep=waits, **settings))
    return stage, waits


async def played(open_stage: OpenStage, provider: Replying, **settings: Any) -> tuple[Stage, Waits]:
    """Play a turn to its end."""
    stage, waits = await opened(open_stage, provider, **settings)
    await stage.play("Go.")
    return stage, waits


def error_of(stage: Stage) -> tuple[str, str]:
    """Text and kind of the error that ended the turn."""
    last = stage.headers()[-1]
    assert (last.kind, last.status, last.is_error) == (BlockKind.ERROR, "error", True)
    return stage.text(last), last.metadata[ERROR_KIND]


def check_answered(stage: Stage, provider: Replying) -> None:
    """Nothing is open, each call has one result, and what was sent was valid."""
    assert not stage.unfinished()
    calls = [one.id for one in stage.of_kind(BlockKind.TOOL_CALL)]
    results = [one.parent for one in stage.of_kind(BlockKind.TOOL_RESULT)]
    assert sorted(calls) == sorted(one or "" for one in results)
    for prompt in provider.prompts:
        assert not open_tool_uses(prompt.conversation.messages)


PASSING = (
    (RATE_LIMITED, 8.0),
    (ProviderError("Too many requests (429).", ErrorKind.RATE_LIMITED), 2.0),
    (OVERLOADED, 2.0),
    (ProviderError("Nothing came for 60 s.", ErrorKind.UNREACHABLE), 2.0),
)


async def test_passing_error_is_retried_where_everybody_sees_it(open_stage: OpenStage) -> None:
    provider = Replying(DONE)
    stage, waits = await opened(open_stage, provider)
    for error, seconds in PASSING:
        provider.then([error], DONE)
        await stage.play("Go.")
        assert waits.seconds.pop() == seconds, error
        notice, answer = stage.headers()[-2:]
        said = f"{error.message} Retrying in {seconds:g} s (1 of 4).\n"
        assert (notice.kind, notice.status, stage.text(notice)) == ("error", "done", said)
        assert notice.excluded
        about = notice.metadata[RETRY]
        assert (about["attempt"], about["attempts"], about["seconds"]) == (1, 4, seconds)
        assert (about["kind"], "until" in about) == (error.kind, True)
        assert (answer.status, stage.text(answer)) == ("done", "Done.")
    assert not waits.seconds


async def test_error_that_does_not_pass_ends_the_turn_after_four_retries(
    open_stage: OpenStage,
) -> None:
    provider = Replying([OVERLOADED])
    stage, waits = await played(open_stage, provider)
    assert waits.seconds == [2, 4, 8, 16]
    assert len(provider.requests) == 5
    retries = " ".join(f"Retrying in {2**one} s ({one} of 4)." for one in range(1, 5))
    assert stage.text(stage.headers()[1]) == f"Overloaded (529). {retries}\n"
    assert error_of(stage) == ("Overloaded (529).", "overloaded")
    assert stage.headers()[-1].metadata[CAN_RETRY] is True
    assert not stage.unfinished()


async def test_retry_that_waits_is_seen_and_ends_with_an_interrupt(open_stage: OpenStage) -> None:
    gate = Gate(0)
    provider = Replying([RATE_LIMITED], DONE)
    stage = await open_stage(remote(provider), settings=TurnSettings(sleep=gate))
    await stage.submit("Hello?")
    await gate.shut()
    (notice,) = stage.of_kind(BlockKind.ERROR)
    assert notice.status in ("pending", "running")
    assert "Retrying in 8 s" in stage.text(notice)
    assert await stage.interrupt() == ["aria"]
    (notice,) = stage.of_kind(BlockKind.ERROR)
    assert (notice.status, notice.stop_reason, notice.stopped_by) == ("error", "interrupted", "amy")
    assert len(provider.requests) == 1
    assert not stage.runner.busy


LASTING: Sequence[Sequence[TurnEvent]] = (
    *([ProviderError("No.", kind)] for kind in (ErrorKind.UNAUTHORISED, ErrorKind.QUOTA)),
    [ProviderError("No.", ErrorKind.INVALID_REQUEST)],
    [ProviderError("Come back tomorrow.", ErrorKind.RATE_LIMITED, 90_000)],
    [TextDelta("I thi"), OVERLOADED],
)


async def test_error_that_asking_again_does_not_help_is_not_retried(open_stage: OpenStage) -> None:
    provider = Replying(DONE)
    stage, waits = await opened(open_stage, provider)
    for number, reply in enumerate(LASTING, 1):
        provider.then(reply)
        await stage.play("Go.")
        assert (waits.seconds, len(provider.requests)) == ([], number), reply
        last = reply[-1]
        assert isinstance(last, ProviderError) and error_of(stage) == (last.message, last.kind)
        assert not stage.unfinished()


async def test_error_after_thoughts_is_retried_and_they_are_not_sent_back(
    open_stage: OpenStage,
) -> None:
    provider = Replying([ThinkingDelta("Hm"), OVERLOADED], DONE)
    stage, _ = await played(open_stage, provider)
    assert [one[0] for one in stage.shown()[1:]] == ["thinking", "error", "text"]
    assert [str(one.role) for one in provider.prompts[1].conversation.messages] == ["user"]


async def test_error_after_a_call_answers_the_call_without_running_it(
    open_stage: OpenStage,
) -> None:
    provider = Replying([call("shell", command="touch ran"), OVERLOADED])
    stage, _ = await played(open_stage, provider)
    check_answered(stage, provider)
    assert "Not run" in stage.results()[0]
    assert not (stage.kernel.project / "ran").exists()


CUT_OFF = End("truncated"), End("max_tokens")


async def test_answer_cut_off_before_it_began_is_retried(open_stage: OpenStage) -> None:
    provider = Replying([CUT_OFF[0]], DONE)
    stage, waits = await played(open_stage, provider)
    assert waits.seconds == [2]
    assert stage.shown()[-1] == ("text", "done", "Done.")


async def test_cut_off_text_says_so(open_stage: OpenStage) -> None:
    provider = Replying(DONE)
    stage, _ = await opened(open_stage, provider)
    for event, kind in ((ThinkingDelta("Hm"), "thinking"), (TextDelta("Wel"), "text")):
        for end in CUT_OFF:
            provider.then([event, end])
            await stage.play("Go.")
            last = stage.headers()[-1]
            assert (last.kind, last.status, last.stop_reason) == (kind, "done", end.stop_reason)


@pytest.mark.parametrize("end", CUT_OFF)
async def test_call_that_was_cut_off_is_answered_and_never_run(
    open_stage: OpenStage, end: End
) -> None:
    begun: list[TurnEvent] = [
        ToolCallStart("c1", "shell"),
        ToolCallDelta("c1", '{"command": "touch ra'),
    ]
    provider = Replying([*begun, end], DONE)
    stage, _ = await played(open_stage, provider)
    check_answered(stage, provider)
    (header,) = stage.of_kind(BlockKind.TOOL_CALL)
    assert (header.status, header.input) == ("error", None)
    assert stage.text(header) == '{"command": "touch ra'
    assert "cut off" in stage.results()[0]
    assert stage.of_kind(BlockKind.TOOL_RESULT)[0].is_error
    assert stage.shown()[-1] == ("text", "done", "Done.")


async def test_arguments_are_seen_while_they_come_and_the_call_is_pending(
    open_stage: OpenStage,
) -> None:
    gate = Gate(0)
    begun: list[TurnEvent] = [ToolCallStart("c1", "block_list"), ToolCallDelta("c1", '{"limit"')]
    rest: list[TurnEvent] = [ToolCallDelta("c1", ": 5}"), call("block_list", "c1", limit=5)]
    provider = Replying([*begun, lambda: gate(0), *rest], DONE)
    stage, _ = await opened(open_stage, provider)
    await stage.submit("Go.")
    await gate.shut()
    await until(lambda: stage.shown()[-1] == ("tool_call", "pending", '{"limit"'))
    await gate.open()
    await stage.runner.wait_idle()
    (header,) = stage.of_kind(BlockKind.TOOL_CALL)
    assert (header.status, header.input) == ("done", '{"limit": 5}')
    begun = [ToolCallStart("c2", "shell"), ToolCallDelta("c2", '{"command":"echo hi"}')]
    provider.then([*begun, call("shell", "c2", command="echo hi")], DONE)
    await stage.play("Go.")
    _, shown, result, _ = stage.shown()[-4:]
    assert (shown, result) == (("tool_call", "done", "echo hi"), ("tool_result", "done", "hi\n"))
    check_answered(stage, provider)


async def test_answer_without_content_says_why(open_stage: OpenStage) -> None:
    provider = Replying(DONE)
    stage, waits = await opened(open_stage, provider)
    for reason, expected in (
        ("max_tokens", "The answer ended before it began: max_tokens."),
        ("end_turn", "The model has answered nothing."),
    ):
        provider.then([End(reason)])
        await stage.play("Go.")
        assert error_of(stage) == (expected, "other")
    assert not waits.seconds
    provider.then([call("context_list")], [End("end_turn")])
    await stage.play("Go.")
    assert stage.shown()[-1][:2] == ("tool_result", "done"), "after a call that is no error"


HALF_CHARACTERS: Sequence[Sequence[TurnEvent]] = (
    [ThinkingDelta("\ud83d"), ThinkingDelta("x"), ThinkingEnd(None), *DONE],
    [TextDelta("\ud83d"), *DONE],
    [TextDelta("x"), End("\ud83d\nx")],
    [ToolCallStart("\ud83d", "a\nb\ud83d"), ToolCallDelta("\ud83d", "\ud83d")],
    [call("shell", "c1", command="\ud83d")],
    [call("block_create", "c2", content="x", metadata={"\ud83d": "\ud83d"})],
    [ToolCallEvent("c3", "context_list", {}, "\ud83d")],
    [ProviderError("Busy \ud83d", ErrorKind.OVERLOADED)],
)


async def test_half_characters_of_a_provider_are_replaced_or_refused_and_the_turn_goes_on(
    open_stage: OpenStage,
) -> None:
    provider = Replying(DONE)
    stage, _ = await opened(open_stage, provider)
    for events in HALF_CHARACTERS:
        provider.then(events, DONE)
        await stage.play("Go.")
        check_answered(stage, provider)
        assert stage.headers()[-1].kind == BlockKind.TEXT, events
        assert await stage.kernel.context() is stage.context, events


@pytest.mark.parametrize("message", ["Busy \ud83d", "x" * 8_000_001], ids=["half", "long"])
async def test_error_that_no_block_could_hold_is_shown_as_far_as_it_can(
    open_stage: OpenStage, message: str
) -> None:
    stage, _ = await played(open_stage, Replying([TextDelta("x"), ProviderError(message)]))
    said, _ = error_of(stage)
    assert said[:4] == message[:4]


WRONG_CALLS = (
    (ToolCallEvent("c1", "block_read", '{"block_id": '), "not a JSON object"),
    (call("browse", url="here"), "There is no tool 'browse'"),
    (call("sh\x1b[31m" + "x" * 500), "There is no tool"),
    (call("block_read"), "block_read needs block_id"),
    (call("block_read", block_id=7), "expected a string"),
    (call("block_read", block_id="ar:turn_1_abcdef.user.prompt"), "block_not_found"),
    (call("block_edit", block_id="x", operations=[{"op": "paint"}]), "insert"),
    (call("shell", cmd="ls"), "takes `command`"),
    (call("block_create", content="x", role="user"), "does not take role"),
)


async def test_wrong_call_is_answered_with_what_is_wrong(open_stage: OpenStage) -> None:
    provider = Replying(DONE)
    stage, _ = await opened(open_stage, provider)
    for event, said in WRONG_CALLS:
        provider.then([event], DONE)
        await stage.play("Go.")
        check_answered(stage, provider)
        assert said in stage.results()[-1]
        messages = provider.prompts[-1].conversation.messages
        answer = [one for one in messages if isinstance(one, ToolMessage)][-1]
        assert answer.is_error, event
        assert stage.shown()[-1] == ("text", "done", "Done.")


async def test_command_that_hangs_is_stopped_at_its_limit(open_stage: OpenStage) -> None:
    provider = Replying([call("shell", command="echo begun; sleep 1000")], DONE)
    stage, _ = await played(open_stage, provider, shell_seconds=0.5)
    check_answered(stage, provider)
    assert "Stopped: it had not ended after 0.5 seconds." in stage.results()[0]
    (result,) = stage.of_kind(BlockKind.TOOL_RESULT)
    assert (result.status, result.stop_reason) == ("error", "time_limit")


async def test_tool_that_hangs_is_stopped_at_its_limit(
    open_stage: OpenStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider = Replying([call("context_list")], DONE)
    stage, _ = await opened(open_stage, provider, tool_seconds=0.05)
    found = stage.kernel.call

    async def hang(actor: Any, tool: str, params: Any = None) -> dict[str, Any]:
        if tool == "context.list":
            await asyncio.Event().wait()
        return await found(actor, tool, params)

    monkeypatch.setattr(stage.kernel, "call", hang)
    await stage.play("Go.")
    check_answered(stage, provider)
    assert "after 0.05 seconds" in stage.results()[0]


async def test_long_result_of_a_tool_is_kept_by_its_beginning_and_end(
    open_stage: OpenStage,
) -> None:
    provider = Replying([call("context_list")], DONE)
    stage, _ = await played(open_stage, provider, output_code_points=40)
    check_answered(stage, provider)
    (result,) = stage.of_kind(BlockKind.TOOL_RESULT)
    assert result.truncated
    head, last = stage.text(result).split(" characters left out]\n")
    first, _, left_out = head.rpartition("\n[")
    assert len(first) in (19, 20) and first.startswith('{\n "contexts"')
    assert int(left_out.replace(",", "")) > 0
    assert len(last) == 20 and last.endswith("\n}")


async def test_huge_output_is_given_by_its_beginning_and_end(open_stage: OpenStage) -> None:
    command = "seq 1 30000"
    provider = Replying([call("shell", command=command)], DONE)
    stage, _ = await played(open_stage, provider)
    check_answered(stage, provider)
    (whole,) = stage.results()
    assert whole.endswith("\n30000\n")
    (answer,) = [
        one for one in provider.prompts[1].conversation.messages if isinstance(one, ToolMessage)
    ]
    given = "".join(getattr(block, "text", "") for block in answer.content)
    assert len(given) < 21_000
    assert given.startswith("1\n2\n")
    assert given.endswith("\n30000\n")
    assert "characters left out" in given
    path = given.partition(" of ")[2].partition("]")[0]
    read = await stage.call("block.read", block_id=path)
    assert read["content"] == whole


async def test_thoughts_go_back_with_their_signature(open_stage: OpenStage) -> None:
    thought: list[TurnEvent] = [ThinkingDelta("Hm, "), ThinkingDelta("yes."), ThinkingEnd("signed")]
    provider = Replying([*thought, call("context_list")], DONE)
    stage, _ = await played(open_stage, provider)
    assistant = provider.prompts[1].conversation.messages[1]
    first = assistant.content[0]
    assert (getattr(first, "text", ""), getattr(first, "signature", "")) == ("Hm, yes.", "signed")
    (block,) = stage.of_kind(BlockKind.THINKING)
    await stage.call("block.splice", block_id=block.id, offset=0, insert="No. ")
    await stage.play("And now?")
    kinds = [type(one).__name__ for one in provider.prompts[2].conversation.messages[1].content]
    assert kinds == ["ToolUse"]
