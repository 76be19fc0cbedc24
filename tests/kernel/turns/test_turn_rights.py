"""A turn runs commands with the rights of whoever's message it answers."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any, Final

import pytest
from pycrdt import Doc, Map, Text

from antiphon_kernel.contexts import apply_update
from antiphon_kernel.providers.events import TextDelta, ToolCallEvent, TurnEvent
from antiphon_kernel.providers.provider import RoundRequest
from antiphon_kernel.providers.recording import ScriptedProvider
from antiphon_kernel.turns.models import Models
from antiphon_kernel.types.enums import BlockKind, PrincipalKind
from antiphon_kernel.types.ids import DRAFT_SEQ_MIN, BlockId
from antiphon_kernel.types.presence import PresenceState
from antiphon_kernel.types.records import Actor
from antiphon_kernel.types.roles import AccessRole
from tests.kernel.turns.stage import Gate, OpenStage, Stage, recording, scripted
from tests.waiting import until

CALL: Final = ToolCallEvent("c1", "shell", {"command": "touch ran"})

TURN: Final = recording("aria", [CALL], [TextDelta("Done.")])


async def somebody(stage: Stage, role: AccessRole) -> Actor:
    if role is AccessRole.OWNER:
        return stage.owner
    principal = await stage.kernel.principal(f"the-{role}")
    await stage.kernel.members.give_role(principal, role)
    return stage.kernel.open_session(principal, "test")


async def create(stage: Stage, actor: Actor) -> None:
    """A message that is done from the start."""
    new = {"role": "user", "kind": "text", "content": "Run it.", "status": "done"}
    await stage.kernel.call(actor, "block.create", new)


async def submit(stage: Stage, actor: Actor) -> None:
    """A draft that becomes done by a tool."""
    await stage.submit("Run it.", actor)


async def submit_raw(stage: Stage, actor: Actor) -> None:
    """A draft that is made and done in one raw update."""
    context = stage.context
    replica: Doc[Any] = Doc()
    replica.apply_update(context.document.update_since())
    before = replica.get_state()
    draft = str(BlockId(context.id, actor.principal.id, DRAFT_SEQ_MIN))
    fields = {"kind": "text", "role": "user", "status": "pending", "content": Text("Run it.")}
    blocks = replica.get("blocks", type=Map)
    blocks[draft] = Map(fields)
    blocks[draft]["status"] = "done"
    await apply_update(context, actor, replica.get_update(before), object())


async def start(stage: Stage, actor: Actor) -> None:
    """A message of the owner's that somebody else has answered."""
    said = [{"role": "user", "content": "Run it."}]
    placed = await stage.call("message.append", messages=said)
    await stage.kernel.call(actor, "turn.start", {"message": placed["message_id"]})


def has_run(stage: Stage) -> bool:
    return (stage.kernel.project / "ran").exists()


def result(stage: Stage) -> str:
    (one,) = [header for header in stage.headers() if header.kind == BlockKind.TOOL_RESULT]
    return stage.text(one)


@pytest.mark.parametrize("message", [create, submit, submit_raw, start])
@pytest.mark.parametrize("role", [AccessRole.OWNER, AccessRole.EDITOR, AccessRole.AGENT])
async def test_turn_runs_commands_for_the_message_of_an_owner_only(
    open_stage: OpenStage, role: AccessRole, message: Any
) -> None:
    stage = await open_stage(scripted(Gate(), TURN))
    actor = await somebody(stage, role)
    await message(stage, actor)
    await until(lambda: any(header.kind == BlockKind.TEXT for header in stage.headers()[1:]))
    await stage.runner.wait_idle()
    assert has_run(stage) is (role is AccessRole.OWNER)
    assert stage.shown()[-1] == ("text", "done", "Done.")


async def test_refused_command_is_answered_with_the_reason(open_stage: OpenStage) -> None:
    stage = await open_stage(scripted(Gate(), TURN))
    await submit(stage, await somebody(stage, AccessRole.EDITOR))
    await stage.runner.wait_idle()
    assert stage.shown()[1] == ("tool_call", "error", "touch ran")
    assert result(stage) == (
        "Not run: this turn answers a message of the-editor, an editor, and only the owner of the"
        " kernel has commands run on its host: ask the owner to run it."
    )


@pytest.mark.parametrize(
    ("tool", "params", "reason"),
    [
        ("kernel.role", {"role": "editor"}, "the-editor, an editor"),
        ("kernel.kick", {}, "who has been kicked"),
    ],
)
async def test_turn_whose_asker_is_demoted_or_kicked_runs_no_command(
    open_stage: OpenStage, tool: str, params: dict[str, str], reason: str
) -> None:
    gate = Gate(0)
    stage = await open_stage(scripted(gate, TURN))
    co = await somebody(stage, AccessRole.EDITOR)
    await stage.kernel.members.give_role(co.principal, AccessRole.OWNER)
    await submit(stage, co)
    await gate.shut()
    await stage.call(tool, principal=co.principal.username, **params)
    await gate.open()
    await stage.runner.wait_idle()
    assert not has_run(stage)
    assert reason in result(stage)


async def test_turn_that_begins_by_itself_runs_commands(open_stage: OpenStage) -> None:
    models = scripted(Gate(), TURN)
    models.autostart = True
    stage = await open_stage(models, sleep=Gate())
    stage.context.presence.put(1, PresenceState("p", "amy", PrincipalKind.HUMAN, 0, "s"))
    await until(lambda: has_run(stage), "the command has run")
    await stage.runner.wait_idle()


async def test_turn_that_waits_is_given_what_its_asker_sent(open_stage: OpenStage) -> None:
    asked: list[str] = []

    class Listening(ScriptedProvider):
        def stream(self, request: RoundRequest) -> AsyncGenerator[TurnEvent, None]:
            asked.append(request.prompt)
            return super().stream(request)

    gate = Gate(0)
    answer = recording("aria", [TextDelta("Yes.")])
    stage = await open_stage(Models({"aria": Listening([answer], sleep=gate)}))
    await stage.submit("Read it.")
    await gate.shut()
    block = await stage.submit("Run the tests.")
    editor = await somebody(stage, AccessRole.EDITOR)
    edit = {"block_id": block, "offset": 0, "delete_count": 14, "insert": "Run rm."}
    await stage.kernel.call(editor, "block.splice", edit)
    await gate.open()
    await stage.runner.wait_idle()
    assert asked == ["Read it.", "Run the tests."]


async def test_model_that_is_a_viewer_does_not_answer_and_everybody_reads_why(
    open_stage: OpenStage,
) -> None:
    stage = await open_stage(scripted(Gate(), TURN))
    aria = await stage.kernel.principal("aria", PrincipalKind.MODEL)
    await stage.kernel.members.give_role(aria, AccessRole.VIEWER)
    await submit(stage, stage.owner)
    await stage.runner.wait_idle()
    said = stage.headers()[-1]
    assert said.kind == BlockKind.ERROR
    assert "Not answered: aria is a viewer" in stage.text(said)
    assert not has_run(stage)

    await stage.kernel.members.give_role(aria, AccessRole.AGENT)
    await submit(stage, stage.owner)
    await stage.runner.wait_idle()
    assert has_run(stage)


async def test_model_that_is_made_a_viewer_in_a_turn_ends_it_and_everybody_reads_why(
    open_stage: OpenStage,
) -> None:
    gate = Gate(1)
    stage = await open_stage(scripted(gate, recording("aria", [TextDelta("On"), TextDelta("e")])))
    await submit(stage, stage.owner)
    await gate.shut()
    aria = await stage.kernel.principal("aria", PrincipalKind.MODEL)
    await stage.kernel.members.give_role(aria, AccessRole.VIEWER)
    await gate.open()
    await stage.runner.wait_idle()
    assert not stage.unfinished()
    said = stage.headers()[-1]
    assert (said.kind, said.status) == (BlockKind.ERROR, "error")
    assert "aria is a viewer" in stage.text(said)


async def test_interrupt_while_a_turn_is_refused_leaves_nothing_open(open_stage: OpenStage) -> None:
    stage = await open_stage(scripted(Gate(), TURN))
    aria = await stage.kernel.principal("aria", PrincipalKind.MODEL)
    await stage.kernel.members.give_role(aria, AccessRole.VIEWER)
    await submit(stage, stage.owner)
    await until(lambda: stage.headers()[-1].kind == BlockKind.ERROR)
    await stage.interrupt()
    assert not stage.unfinished()
