"""Order of turns, models that answer, and people's own commands."""

from __future__ import annotations

import os
import re
from collections.abc import AsyncGenerator
from dataclasses import replace

from antiphon_kernel.providers.events import End, TextDelta, TurnEvent
from antiphon_kernel.providers.provider import RoundRequest
from antiphon_kernel.turns.block_writer import NO_TERMINAL, OUTPUT_LIMIT
from antiphon_kernel.turns.models import OPENING, Models, load_models
from antiphon_kernel.turns.runner import TurnRunner
from antiphon_kernel.turns.turn import TurnFailed, TurnSettings
from antiphon_kernel.types.enums import Activity, BlockKind, PrincipalKind
from antiphon_kernel.types.errors import ErrorCode
from antiphon_kernel.types.ids import SYSTEM
from antiphon_kernel.types.presence import PresenceState
from tests.errors import raises
from tests.kernel.turns.stage import Gate, OpenStage, Stage, recording, scripted
from tests.waiting import until

ARIA = recording("aria", [TextDelta("I am aria.\n")])
BO = recording("bo", [TextDelta("I am bo.\n")])


async def test_submission_and_start_without_models_start_no_turn(open_stage: OpenStage) -> None:
    stage = await open_stage(Models({}))
    message = await stage.submit("@aria hello")
    started = await stage.call("turn.start", message=message)
    assert (started["models"], started["forked"]) == ([], False)
    assert not stage.runner.busy
    assert (len(stage.headers()), len(stage.kernel.contexts.rows())) == (1, 1)


async def test_models_mentioned_together_answer_at_once_under_own_names(
    open_stage: OpenStage,
) -> None:
    gate = Gate(0)
    stage = await open_stage(scripted(gate, ARIA, BO))
    await stage.submit("@guest @aria @bo who are you?")
    await until(lambda: len(stage.context.presence.states()) == 2)
    await gate.open()
    await stage.runner.wait_idle()
    names = {one.principal: one.username for one in stage.context.document.members()}
    said = {names[header.author]: stage.text(header) for header in stage.headers()[1:]}
    assert said == {"aria": "I am aria.\n", "bo": "I am bo.\n"}


async def test_turns_of_one_model_wait_for_each_other_visibly(open_stage: OpenStage) -> None:
    gate = Gate(0)
    stage = await open_stage(scripted(gate, ARIA, replace(ARIA)))
    first = await stage.submit("One?")
    second = await stage.submit("Two?")
    states = stage.context.presence.states()
    await until(lambda: len(states) == 2)
    waiting = [state for state in states.values() if state.activity == Activity.WAITING]
    assert [(state.username, state.block) for state in waiting] == [("aria", second)]
    await gate.open()
    await stage.runner.wait_idle()
    assert [header.parent for header in stage.headers()] == [None, None, first, second]


async def test_interrupt_stops_the_running_turn_and_the_waiting_one_comes_next(
    open_stage: OpenStage,
) -> None:
    gate = Gate(0)
    stage = await open_stage(scripted(gate, ARIA))
    await stage.submit("One?")
    second = await stage.submit("Two?")
    await gate.shut()
    assert await stage.interrupt() == ["aria"]
    await gate.open()
    await stage.runner.wait_idle()
    assert [header.parent for header in stage.headers()] == [None, None, second]


async def test_interrupt_by_anybody_stops_only_whom_it_names(open_stage: OpenStage) -> None:
    gate = Gate(0)
    stage = await open_stage(scripted(gate, ARIA, BO))
    await stage.submit("@aria @bo who?")
    await until(lambda: gate.held == 2)
    guest = await stage.actor("guest")
    answer = await stage.kernel.call(guest, "turn.interrupt", {"principal": "bo"})
    assert answer == {"stopped": ["bo"]}
    await gate.open()
    await stage.runner.wait_idle()
    assert [stage.text(header) for header in stage.headers()[1:]] == ["I am aria.\n"]


async def test_interrupt_with_nothing_running_stops_nothing(open_stage: OpenStage) -> None:
    stage = await open_stage(scripted(Gate(), ARIA))
    assert await stage.interrupt() == []
    assert await stage.interrupt(principal="aria") == []
    with raises(ErrorCode.INVALID_PARAMS):
        await stage.interrupt(principal="nobody")


async def test_model_never_writes_as_a_person_of_the_same_name(open_stage: OpenStage) -> None:
    stage = await open_stage(scripted(Gate(), recording("amy", [TextDelta("hi\n")])))
    await stage.play("Who?")
    answer = stage.headers()[1]
    assert answer.author != stage.kernel.owner.id
    member = stage.context.document.member(answer.author)
    assert member is not None
    assert (member.username, member.kind) == ("amy-2", PrincipalKind.MODEL)


async def test_models_begin_by_themselves_once_a_person_is_there(open_stage: OpenStage) -> None:
    models = scripted(Gate(), ARIA, BO)
    models.autostart = True
    pause = Gate(0)
    stage = await open_stage(models, pause)
    stage.context.presence.put(1, PresenceState("p", "amy", PrincipalKind.HUMAN, 0, "s"))
    await pause.shut()
    assert not stage.headers()
    await pause.open()
    await until(lambda: len(stage.headers()) == 3 and not stage.runner.busy)
    asked, *answers = stage.headers()
    assert (asked.role, asked.author, asked.status) == ("system", SYSTEM, "done")
    assert stage.text(asked) == OPENING
    assert {stage.text(header) for header in answers} == {"I am aria.\n", "I am bo.\n"}
    assert [header.parent for header in answers] == [asked.id] * 2


async def test_models_that_had_no_time_to_begin_are_not_asked_twice(open_stage: OpenStage) -> None:
    models = scripted(Gate(0), ARIA)
    models.autostart = True
    stage = await open_stage(models, Gate())
    stage.context.presence.put(1, PresenceState("p", "amy", PrincipalKind.HUMAN, 0, "s"))
    await until(lambda: stage.runner.busy)
    await stage.runner.close()
    assert [stage.text(header) for header in stage.headers()] == [OPENING]
    eager = scripted(Gate(), ARIA)
    eager.autostart = True
    again = TurnRunner(stage.kernel, eager, TurnSettings(sleep=Gate()))
    await until(lambda: len(stage.headers()) == 2 and not again.busy)
    assert [stage.text(header) for header in stage.headers()] == [OPENING, "I am aria.\n"]
    await again.close()


async def test_models_that_are_answering_already_do_not_begin_by_themselves(
    open_stage: OpenStage,
) -> None:
    models = scripted(Gate(), ARIA)
    models.autostart = True
    pause = Gate(0)
    stage = await open_stage(models, pause)
    stage.context.presence.put(1, PresenceState("p", "amy", PrincipalKind.HUMAN, 0, "s"))
    await pause.shut()
    await stage.play("Hello?")
    await pause.open()
    await until(lambda: not pause.held)
    assert len(stage.headers()) == 2


def test_demo_has_its_model_and_a_kernel_alone_has_none() -> None:
    assert list(load_models((), demo=True)) == ["aria"]
    assert list(load_models(())) == []


async def test_persons_command_streams_into_call_and_result(open_stage: OpenStage) -> None:
    stage = await open_stage(scripted(Gate(), ARIA))
    answer = await stage.call("shell.run", command="pwd; exit 2", wait=True)
    assert answer["exit_code"] == 2
    call, result = stage.headers()
    assert (answer["block_id"], answer["result_id"]) == (call.id, result.id)
    assert (call.author, result.author) == (stage.kernel.owner.id,) * 2
    assert (call.status, result.parent) == ("error", call.id)
    assert stage.text(result) == f"{stage.kernel.project.resolve()}\n"
    assert not stage.runner.busy


async def test_command_answers_at_once_and_is_stopped_like_a_turn(open_stage: OpenStage) -> None:
    stage = await open_stage(scripted(Gate(), ARIA))
    await stage.call("shell.run", command="echo go; sleep 100")
    await until(lambda: stage.shown()[-1][2] == "go\n")
    assert await stage.interrupt(principal="amy") == ["amy"]
    assert {(one.status, one.stopped_by) for one in stage.headers()} == {("error", "amy")}


LINES = "".join(f"{number}\n" for number in range(1, 100_001))
COUNT = "seq 1 100000"
"""A command that prints LINES."""


def end_in(text: str, whole: str) -> int:
    """Return where an output ends in `whole`, of which its beginning and end are kept."""
    found = re.fullmatch(r"(.*)\n\[([0-9,]+) characters left out\]\n(.*)", text, re.DOTALL)
    assert found is not None
    head, left_out, tail = found.groups()
    start = len(head) + int(left_out.replace(",", ""))
    assert whole.startswith(head) and whole.startswith(tail, start)
    assert OUTPUT_LIMIT - 1_000 < len(head + tail) <= OUTPUT_LIMIT
    return start + len(tail)


async def test_long_output_is_kept_by_its_beginning_and_end(open_stage: OpenStage) -> None:
    stage = await open_stage(Models({}))
    command = f"{COUNT}; touch told; read < fifo; echo last; exit 4"
    os.mkfifo(stage.kernel.project / "fifo")
    await stage.call("shell.run", command=command)
    await until((stage.kernel.project / "told").exists)
    _, result = stage.unfinished()
    assert result.truncated
    assert LINES.startswith(stage.text(result))
    (stage.kernel.project / "fifo").write_text("\n")
    await until(lambda: not stage.runner.busy)
    call, result = stage.headers()
    assert (call.status, result.exit_code, result.truncated) == ("error", 4, True)
    whole = f"{LINES}last\n"
    assert end_in(stage.text(result), whole) == len(whole)


async def test_end_of_long_output_is_there_after_an_interrupt(open_stage: OpenStage) -> None:
    stage = await open_stage(Models({}))
    await stage.call("shell.run", command=f"{COUNT}; touch told; sleep 100")
    await until((stage.kernel.project / "told").exists)
    await stage.interrupt(principal="amy")
    call, result = stage.headers()
    assert {(one.status, one.stopped_by) for one in (call, result)} == {("error", "amy")}
    assert result.truncated
    # What was in the pipe meanwhile is gone.
    assert end_in(stage.text(result), LINES) > OUTPUT_LIMIT


async def test_command_that_cannot_start_says_so_in_its_result(open_stage: OpenStage) -> None:
    stage = await open_stage(Models({}))
    await stage.call("shell.run", command="echo \0", wait=True)
    assert stage.shown()[1][:2] == ("tool_result", "error")
    assert "could not be started" in stage.shown()[1][2]
    assert not stage.unfinished()


async def test_command_that_fails_for_want_of_a_terminal_is_told(open_stage: OpenStage) -> None:
    stage = await open_stage(Models({}))
    for command, output in (
        ("echo 'top: failed tty get'; exit 1", f"top: failed tty get\n{NO_TERMINAL}\n"),
        ("stty size 2>&1 | head -c 5; stty size; printf x; exit 1", None),
        ("printf 'x: not a terminal'; exit 1", f"x: not a terminal\n{NO_TERMINAL}\n"),
        ("echo 'not a terminal'", "not a terminal\n"),
        ("echo bad; exit 1", "bad\n"),
    ):
        await stage.call("shell.run", command=command, wait=True)
        shown = stage.shown()[-1][2]
        assert shown == output if output else shown.endswith(f"x\n{NO_TERMINAL}\n"), command


async def test_started_turn_answers_in_place_if_nothing_follows(open_stage: OpenStage) -> None:
    stage = await open_stage(scripted(Gate(), ARIA, BO))
    placed = await stage.call("message.append", messages=[{"role": "user", "content": "@bo hi"}])
    started = await stage.call("turn.start", message=placed["message_id"])
    assert (started["forked"], started["models"]) == (False, ["bo"])
    assert started["message_id"] == placed["message_id"]
    await stage.runner.wait_idle()
    assert await texts_of(stage, started["context_id"]) == ["@bo hi", "I am bo.\n"]


async def test_started_turn_of_an_answer_asks_its_model_in_a_branch(open_stage: OpenStage) -> None:
    stage = await open_stage(scripted(Gate(), ARIA, BO))
    await stage.submit("@bo @aria hi")
    await stage.runner.wait_idle()
    path = (await stage.call("message.path"))["messages"]
    answer = next(one for one in path if one["message"]["content"][0]["text"] == "I am bo.\n")
    started = await stage.call("turn.start", message=answer["message_id"])
    assert (started["forked"], started["models"]) == (True, ["bo"])
    await stage.runner.wait_idle()
    assert await texts_of(stage, started["context_id"]) == ["@bo @aria hi", "I am bo.\n"]
    assert len((await stage.call("message.path"))["messages"]) == 3


async def test_started_turn_of_a_message_with_a_file_keeps_the_file_in_the_branch(
    open_stage: OpenStage,
) -> None:
    stage = await open_stage(scripted(Gate(), ARIA))
    block = await stage.draft("read this")
    file = {"name": "a.txt", "data": "c2V2ZW4="}
    await stage.call("block.attach", block_id=block, files=[file])
    await stage.call("block.status", block_id=block, status="done")
    await stage.runner.wait_idle()
    started = await stage.call("turn.start", message=block)
    await stage.runner.wait_idle()
    branch = await stage.kernel.context(started["context_id"])
    texts = [branch.document.text(block) for block in branch.document.block_ids()]
    assert texts == ["read this", "seven", "I am aria.\n"]


async def test_started_turn_of_a_failed_answer_is_another_try_in_place(
    open_stage: OpenStage,
) -> None:
    stage = await open_stage(Models({"aria": FailsOnce()}))
    await stage.submit("hi")
    await stage.runner.wait_idle()
    failed = next(one for one in stage.context.document.block_ids() if is_error(stage, one))
    started = await stage.call("turn.start", message=failed)
    await stage.runner.wait_idle()
    assert not started["forked"]
    assert await texts_of(stage, started["context_id"]) == ["hi", "Now."]


async def test_turns_started_at_once_are_answered_in_contexts_of_their_own(
    open_stage: OpenStage,
) -> None:
    stage = await open_stage(scripted(Gate(), ARIA))
    placed = await stage.call("message.append", messages=[{"role": "user", "content": "hi"}])
    places = [await stage.call("turn.start", message=placed["message_id"]) for _ in range(3)]
    assert len({one["context_id"] for one in places}) == 3
    await stage.runner.wait_idle()
    for place in places:
        assert await texts_of(stage, place["context_id"]) == ["hi", "I am aria.\n"]


async def test_start_by_a_model_or_at_what_answers_nobody_is_rejected(
    open_stage: OpenStage,
) -> None:
    stage = await open_stage(scripted(Gate(), ARIA))
    placed = await stage.call("message.append", messages=[{"role": "assistant", "content": "a"}])
    with raises(ErrorCode.INVALID_PARAMS) as rejected:
        await stage.call("turn.start", message=placed["message_id"])
    assert "answers no message of a person" in rejected.value.message
    block = await stage.play("hi")
    aria = stage.kernel.open_session(await stage.kernel.principal("aria"), "test")
    with raises(ErrorCode.INVALID_PARAMS):
        await stage.kernel.call(aria, "turn.start", {"message": block})


class FailsOnce:
    """A provider whose first answer fails."""

    def __init__(self) -> None:
        self.failures = 1

    async def stream(self, request: RoundRequest) -> AsyncGenerator[TurnEvent, None]:
        del request
        if self.failures:
            self.failures -= 1
            raise TurnFailed("The line is down.")
        yield TextDelta("Now.")
        yield End("end_turn")


def is_error(stage: Stage, block: str) -> bool:
    return stage.context.document.header(block).kind == BlockKind.ERROR


async def texts_of(stage: Stage, context: str) -> list[str]:
    found = (await stage.call("message.path", context=context))["messages"]
    return [one["message"]["content"][0]["text"] for one in found]
