"""`turn.wait`, the limit of rounds that a message asks for, and stopping its turns alone."""

from __future__ import annotations

import asyncio

from antiphon_kernel.providers import End, TextDelta, ToolCallEvent
from antiphon_kernel.types.block_metadata import MAX_ROUNDS
from tests.kernel.turns.stage import Gate, OpenStage, recording, scripted

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
    waiting = asyncio.ensure_future(stage.call("turn.wait", message=message))
    await gate.shut()
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
