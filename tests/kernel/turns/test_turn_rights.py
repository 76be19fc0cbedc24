"""Turns and commands have the rights of whoever asked, and end when these do."""

from __future__ import annotations

import asyncio
import gc
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
from pycrdt import Map, Text

from antiphon_kernel.providers.events import TextDelta, ToolCallEvent
from antiphon_kernel.types.enums import BlockKind, PrincipalKind, Status
from antiphon_kernel.types.ids import DRAFT_SEQ_MIN, BlockId
from antiphon_kernel.types.presence import PresenceState
from antiphon_kernel.types.records import Actor, BlockHeader
from antiphon_kernel.types.roles import AccessRole
from tests.kernel.turns.stage import Gate, OpenStage, Stage, recording, scripted, write_raw
from tests.processes import has_ended
from tests.waiting import PATIENCE, until

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
    draft = str(BlockId(stage.context.id, actor.principal.id, DRAFT_SEQ_MIN))
    fields = {"kind": "text", "role": "user", "status": "pending", "content": Text("Run it.")}

    def make(blocks: Any) -> None:
        blocks[draft] = Map(fields)
        blocks[draft]["status"] = "done"

    await write_raw(stage.context, actor, make)


async def start(stage: Stage, actor: Actor) -> None:
    """A message of the owner's that somebody else has answered."""
    said = [{"role": "user", "content": "Run it."}]
    path = (await stage.call("message.path"))["messages"]
    where = {"parent": path[-1]["message_id"]} if path else {}
    placed = await stage.call("message.append", messages=said, **where)
    await stage.kernel.call(actor, "turn.start", {"message": placed["message_id"]})


def has_texts(stage: Stage, count: int) -> bool:
    return len(stage.of_kind(BlockKind.TEXT)) == count


def has_run(stage: Stage) -> bool:
    return (stage.kernel.project / "ran").exists()


@pytest.mark.parametrize("message", [create, submit, submit_raw, start])
async def test_turn_runs_commands_for_the_message_of_an_owner_only(
    open_stage: OpenStage, message: Any
) -> None:
    stage = await open_stage(scripted(Gate(), TURN))
    for role in (AccessRole.EDITOR, AccessRole.AGENT, AccessRole.OWNER):
        texts = len(stage.of_kind(BlockKind.TEXT)) + 2
        await message(stage, await somebody(stage, role))
        await until(partial(has_texts, stage, texts))
        await stage.runner.wait_idle()
        assert has_run(stage) is (role is AccessRole.OWNER), role
        assert stage.shown()[-1] == ("text", "done", "Done.")


async def test_turn_that_begins_by_itself_runs_commands(open_stage: OpenStage) -> None:
    models = scripted(Gate(), TURN)
    models.autostart = True
    stage = await open_stage(models, sleep=Gate())
    stage.context.presence.put(1, PresenceState("p", "amy", PrincipalKind.HUMAN, 0, "s"))
    await until(lambda: has_run(stage), "the command has run")
    await stage.runner.wait_idle()


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
    before = len(stage.headers())
    await submit(stage, stage.owner)
    await until(lambda: len(stage.headers()) == before + 2)
    await stage.interrupt()
    assert not stage.unfinished()

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


MINUTE = 60_000
COMMAND = "echo $$ >> pids; while :; do date +%N | tee tick; sleep 0.005; done"
COMMAND_TURN = recording(
    "aria", [ToolCallEvent("c1", "shell", {"command": COMMAND})], [TextDelta("So.")]
)


@dataclass
class World:
    """A kernel, and an owner who came by an invitation and has left again."""

    stage: Stage
    co: Actor
    now: list[int]
    """The kernel's clock."""

    async def dismiss(self, verb: str) -> None:
        tool, params, _ = VERBS[verb]
        if tool:
            await self.stage.call(tool, principal="co", **params)
        else:
            self.now[0] += MINUTE
            self.stage.kernel.access.end_expired()

    @property
    def ticks(self) -> Path:
        return self.stage.kernel.project / "tick"

    async def runs(self) -> None:
        """Wait until the command writes."""
        self.ticks.unlink(missing_ok=True)
        await until(self.ticks.exists, "the command runs")

    def has_ended(self) -> bool:
        """Whether no command is alive any more."""
        pids = (self.stage.kernel.project / "pids").read_text().split()
        return all(has_ended(int(pid)) for pid in pids)

    def results(self) -> list[BlockHeader]:
        return self.stage.of_kind(BlockKind.TOOL_RESULT)


VERBS: dict[str, tuple[str, dict[str, Any], str]] = {
    "demote": ("kernel.role", {"role": "viewer"}, "co, a viewer"),
    "kick": ("kernel.kick", {}, "co, who has been kicked"),
    "kick for no minute": ("kernel.kick", {"minutes": 0}, "co, who has been kicked"),
    "revoke": ("kernel.revoke", {}, "co, whose invitation has been revoked"),
    "expire": ("", {}, "co, whose invitation has expired"),
}
"""Each way to have to go, and what is said of whoever did."""


async def world(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> World:
    kernel, now = stage.kernel, [stage.kernel.clock.now_ms()]
    monkeypatch.setattr(kernel.clock, "now_ms", lambda: now[0])
    issued = await kernel.invitations.invite(
        AccessRole.EDITOR, name="co", expires=now[0] + MINUTE, uses=None
    )
    await kernel.members.give_role(issued.principal, AccessRole.OWNER)
    number = issued.credential.number
    return World(stage, kernel.open_session(issued.principal, "test", credential=number), now)


@pytest.fixture
async def here(open_stage: OpenStage, monkeypatch: pytest.MonkeyPatch) -> World:
    return await world(await open_stage(scripted(Gate(), COMMAND_TURN)), monkeypatch)


async def end_of_command(here: World, verb: str) -> str:
    """Dismiss the person whose command runs; return the last line of its result."""
    stage = here.stage
    await stage.kernel.close_session(here.co)
    await here.runs()
    await here.dismiss(verb)
    await asyncio.wait_for(stage.runner.wait_idle(), PATIENCE)
    assert here.has_ended()
    (result,) = here.results()
    assert (result.status, result.stop_reason) == (Status.ERROR, "interrupted")
    assert not stage.unfinished()
    return stage.text(result).splitlines()[-1]


@pytest.mark.parametrize("verb", VERBS)
async def test_dismissal_while_a_command_of_a_person_runs_ends_it(
    here: World, caplog: pytest.LogCaptureFixture, verb: str
) -> None:
    gc.collect()
    caplog.clear()  # of what other tests have left behind
    await here.stage.kernel.call(here.co, "shell.run", {"command": COMMAND})
    reason = await end_of_command(here, verb)
    assert reason.startswith(f"Ended: this is a command of {VERBS[verb][2]}, and only")
    gc.collect()
    assert not [one for one in caplog.records if one.levelname == "ERROR"]


@pytest.mark.parametrize("verb", VERBS)
async def test_dismissal_while_a_command_of_a_turn_runs_ends_it_and_the_model_reads_why(
    here: World, verb: str
) -> None:
    await here.stage.submit("Run it.", here.co)
    reason = await end_of_command(here, verb)
    assert reason.startswith(f"Ended: this turn answers a message of {VERBS[verb][2]},")
    assert here.stage.shown()[-1] == ("text", "done", "So.")


@pytest.mark.parametrize("verb", ["demote", "kick", "expire"])
async def test_dismissal_while_a_turn_waits_or_begins_bars_it_and_says_why(
    open_stage: OpenStage, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    gate = Gate(0)
    stage = await open_stage(scripted(gate, TURN))
    here = await world(stage, monkeypatch)
    await stage.submit("One.", here.co)
    await gate.shut()
    barred = await stage.submit("Two.", here.co)
    last = await stage.submit("Three.")
    await stage.kernel.close_session(here.co)
    await here.dismiss(verb)
    await until(lambda: len(stage.headers()) == 4, "it says why at once")
    await gate.open()
    await stage.runner.wait_idle()
    said = f"Not answered: this is a message of {VERBS[verb][2]}."
    answers = [(one.parent, stage.text(one)) for one in stage.headers() if one.parent == barred]
    assert answers == [(barred, said)]
    assert [one.parent for one in stage.headers() if stage.text(one) == "Done."][-1] == last
    first, own = stage.results()
    assert first.startswith(f"Not run: this turn answers a message of {VERBS[verb][2]},")
    assert own == "" and not stage.unfinished()


@pytest.mark.parametrize("verb", ["demote", "revoke"])
async def test_dismissal_while_a_submission_is_written_bars_its_turn(
    here: World, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    stage = here.stage
    notify, held = stage.kernel.submissions.notify, asyncio.Event()

    def later(*submission: object) -> None:
        asyncio.get_running_loop().create_task(told(*submission))

    async def told(*submission: object) -> None:
        await held.wait()
        notify(*submission)  # type: ignore[arg-type]

    monkeypatch.setattr(stage.kernel.submissions, "notify", later)
    await submit_raw(stage, here.co)
    await here.dismiss(verb)
    await stage.kernel.close_session(here.co)
    held.set()
    await until(lambda: len(stage.headers()) == 2 and not stage.runner.busy, "it says why")
    assert stage.shown()[-1][2] == f"Not answered: this is a message of {VERBS[verb][2]}."
    assert not here.ticks.exists()


async def test_demotion_to_editor_ends_a_command_of_a_turn_and_bars_no_turn(here: World) -> None:
    stage = here.stage
    await stage.submit("Run it.", here.co)
    await stage.submit("And again.", here.co)
    await here.runs()
    await stage.call("kernel.role", principal="co", role="editor")
    await asyncio.wait_for(stage.runner.wait_idle(), PATIENCE)
    first, second = (stage.text(one).splitlines()[-1] for one in here.results())
    assert first.startswith("Ended: this turn answers a message of co, an editor,")
    assert second.startswith("Not run: this turn answers a message of co, an editor,")


async def test_dismissal_of_somebody_else_ends_nothing(here: World) -> None:
    stage = here.stage
    await stage.submit("Run it.")
    await here.runs()
    for verb in VERBS:
        await here.dismiss(verb)
    await here.runs()
    assert await stage.interrupt() == ["aria"]


async def test_asker_whose_turns_are_over_has_no_session(open_stage: OpenStage) -> None:
    stage = await open_stage(scripted(Gate(), recording("aria", [TextDelta("So.")])))
    before = stage.kernel.sessions.of(stage.kernel.owner.id)
    await stage.submit("One.")
    await stage.call("shell.run", command="true", wait=True)
    await stage.submit("Two.")
    await stage.interrupt()
    await stage.runner.wait_idle()
    assert stage.kernel.sessions.of(stage.kernel.owner.id) == before
