"""A turn becomes blocks, whatever happens on the way."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncGenerator

import pytest

from antiphon_kernel.providers.events import (
    End,
    TextDelta,
    ThinkingDelta,
    ToolCallEvent,
    TurnEvent,
    Usage,
)
from antiphon_kernel.providers.provider import RoundRequest
from antiphon_kernel.turns.models import Models
from antiphon_kernel.types.enums import BlockKind, Role
from antiphon_kernel.types.presence import PresenceState
from tests.kernel.turns.stage import Gate, OpenStage, recording, scripted
from tests.waiting import until


def call(command: str, call_id: str = "c1") -> ToolCallEvent:
    return ToolCallEvent(call_id, "shell", {"command": command})


FULL_TURN = recording(
    "aria",
    [ThinkingDelta("Let me "), ThinkingDelta("look.\n"), call("printf 'a\\nb\\n'")],
    [TextDelta("Two "), TextDelta("lines.\n"), call("exit 3", "c2")],
    [TextDelta("It failed."), Usage(10, 20), End("end_turn")],
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
    assert second_call.tool_call_id == second_result.tool_call_id == "c2"


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

    stage = await open_stage(Models({"aria": Eager()}))
    await stage.play("Go.")
    assert stage.shown()[-1][0] == "error"
    assert "after 100 rounds" in stage.shown()[-1][2]
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
    stage = await open_stage(scripted(Gate(), recording("aria", [TextDelta("a\n")] * 300)))
    shown: list[PresenceState | None] = []
    stage.context.presence.changed.listen(lambda _, state: shown.append(state))
    started = time.monotonic()
    await stage.play("Run.")
    assert len(shown) <= 4 + (time.monotonic() - started) * 10
