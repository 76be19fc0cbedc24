"""Questions of agents: who answers them, and with which of the agent's options."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from pathlib import Path
from typing import Any, Final

import pytest
from acp.schema import (
    FileEditToolCallContent,
    PermissionOption,
    ToolCallLocation,
    ToolCallUpdate,
)

from antiphon_kernel.turns.agents import questions
from antiphon_kernel.turns.agents.agent_turn import AgentTurn
from antiphon_kernel.turns.agents.files import write_file
from antiphon_kernel.turns.agents.updates import TurnUpdates
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.roles import AccessRole
from tests.kernel.agents.conftest import TEXT, DirectTurn, OpenTurn
from tests.policies import policy_of

OPTIONS: Final = tuple(
    PermissionOption(option_id=f"id-{kind}", name=name, kind=kind)
    for kind, name in (
        ("allow_always", "Yes, and do not ask again"),
        ("allow_once", "Yes"),
        ("reject_always", "Never"),
        ("reject_once", "No, tell it what to do"),
    )
)


def question(kind: str, *paths: str, **fields: Any) -> ToolCallUpdate:
    locations = [ToolCallLocation(path=one) for one in paths]
    return ToolCallUpdate(
        tool_call_id="t1", title=f"To {kind}", kind=kind, locations=locations, **fields
    )


def answer(outcome: Any) -> str:
    return outcome.option_id if outcome.outcome == "selected" else outcome.outcome


async def ask(turn: AgentTurn, call: ToolCallUpdate, options: Sequence[PermissionOption]) -> Any:
    """Let an agent ask about a call, as its connection does."""
    await TurnUpdates(turn).take(call)
    return await questions.ask(turn, call, options)


async def asked(turn: DirectTurn, call: ToolCallUpdate, decision: str) -> str:
    """Return what an agent is answered if a person decides so."""
    task, block = await turn.asked(ask(turn.turn, call, OPTIONS))
    await turn.decide(block, decision)
    return answer(await task)


async def refused(work: Awaitable[object], said: str) -> AntiphonError:
    with pytest.raises(AntiphonError, match=said) as error:
        await work
    return error.value


async def test_a_person_decides_with_the_options_of_the_agent(open_turn: OpenTurn) -> None:
    played = await open_turn()
    task, block = await played.asked(ask(played.turn, question("edit"), OPTIONS))
    assert block.metadata["choices"] == {
        "once": "Yes",
        "always": "Yes, and do not ask again",
        "no": "No, tell it what to do",
        "tool": "file_edit",
    }
    assert block.metadata["agent_call"]["title"] == "To edit"
    assert (block.permission, block.runs_for) == ("asked", "amy")
    stranger = await played.stage.actor("bo")
    await played.stage.kernel.members.give_role(stranger.principal, AccessRole.EDITOR)
    agent = played.turn.writer.actor
    decision = {"block_id": block.id, "decision": "once"}
    for somebody in (stranger, agent):
        decide = played.stage.kernel.call(somebody, "permission.decide", decision)
        await refused(decide, "Only an owner|No model|no model")
    # The agent goes on with its block meanwhile: that is no change of what it asked.
    played.turn.writer.describe(block.id, text="To edit a.txt")
    await played.decide(block, "once")
    assert answer(await task) == "id-allow_once"
    error = await refused(played.decide(block, "no"), "has allowed it once already")
    assert error.code is ErrorCode.INVALID_TRANSITION
    assert played.header(block.id).permission == "once"


async def test_every_decision_is_an_option_and_always_makes_no_rule_here(
    open_turn: OpenTurn,
) -> None:
    played = await open_turn()
    for decision, option in (
        ("always", "id-allow_always"),
        ("no", "id-reject_once"),
        ("once", "id-allow_once"),
    ):
        assert await asked(played, question("execute"), decision) == option
    assert (await played.stage.call("permission.list"))["rules"] == []
    # Of what it does not offer nothing can be chosen.
    only = [one for one in OPTIONS if one.kind in ("allow_once", "reject_always")]
    task, block = await played.asked(ask(played.turn, question("fetch"), only))
    await refused(played.decide(block, "always"), "does not offer always")
    await played.decide(block, "no")
    assert answer(await task) == "id-reject_always"
    task, block = await played.asked(ask(played.turn, question("fetch"), only[:1]))
    await played.decide(block, "no")
    assert answer(await task) == "cancelled"


POLICY: Final = policy_of(
    {"fetch": "allow", "switch_mode": "deny"}, ["git log *"], files_allow=["src/**"]
)

BY_POLICY: Final = (
    (question("fetch"), "id-allow_once"),
    (question("switch_mode"), "id-reject_once"),
    (question("execute", raw_input={"command": "git log -3"}), "id-allow_once"),
    (question("edit", "src/a.py"), "id-allow_once"),
    (question("edit", ".env"), "id-reject_once"),
    (question("edit", "src/a.py", ".env"), "id-reject_once"),
)

ASKED: Final = (
    question("execute", raw_input={"command": "rm -r src"}),
    question("execute"),
    question("edit", "src/a.py", "b.py"),
    question("edit", "src/a.py", "/etc/passwd"),
    question("delete"),
    question("read", "src/a.py"),
)


async def test_the_policy_answers_by_kind_command_and_files(open_turn: OpenTurn) -> None:
    played = await open_turn(POLICY)
    for call, option in BY_POLICY:
        assert answer(await ask(played.turn, call, OPTIONS)) == option
    for call in ASKED:
        assert await asked(played, call, "no") == "id-reject_once"


async def test_what_a_person_has_allowed_is_not_asked_about_again_by_the_write(
    open_turn: OpenTurn,
) -> None:
    played = await open_turn()
    path = played.put("a.txt")
    assert await asked(played, question("edit", path), "once") == "id-allow_once"
    await write_file(played.turn, path, "changed")
    run = question("execute", raw_input={"command": "make test"})
    assert await asked(played, run, "once") == "id-allow_once"
    # What only reads a file allows no write of it.
    look = question("read", played.put("b.txt"), raw_input={"command": "cat b.txt"})
    assert await asked(played, look, "once") == "id-allow_once"
    assert played.turn.permitted == {("file_edit", "a.txt"), ("shell", "make test")}
    refused_one = question("edit", played.put("b.txt"))
    assert await asked(played, refused_one, "no") == "id-reject_once"
    task, _ = await played.asked(write_file(played.turn, str(played.project / "b.txt"), ""))
    task.cancel()


async def test_a_call_that_the_agent_changes_while_it_asks_allows_nothing_more(
    open_turn: OpenTurn,
) -> None:
    played = await open_turn()
    for call in (
        question("execute", raw_input={"command": "rm -r src"}),
        question("edit", played.put("a.txt")),
    ):
        task, block = await played.asked(ask(played.turn, call, OPTIONS))
        played.turn.writer.describe(block.id, text=f"ls {call.kind}")
        await played.decide(block, "once")
        assert (answer(await task), played.turn.permitted) == ("id-allow_once", set())


async def test_a_call_that_somebody_else_changes_is_not_what_was_asked(open_turn: OpenTurn) -> None:
    played = await open_turn()
    task, block = await played.asked(ask(played.turn, question("edit"), OPTIONS))
    await played.stage.call("block.splice", block_id=block.id, offset=0, insert="Harmless: ")
    assert answer(await task) == "id-reject_once"
    await refused(played.decide(block, "once"), "was changed")


async def test_when_the_turn_is_stopped_nobody_can_decide_any_more(open_turn: OpenTurn) -> None:
    played = await open_turn()
    task, block = await played.asked(ask(played.turn, question("edit"), OPTIONS))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert played.header(block.id).permission == "withdrawn"
    await refused(played.decide(block, "once"), "the turn has ended")


@pytest.mark.parametrize(("itself", "was_open"), [(True, True), (True, False), (False, True)])
async def test_change_that_was_shown_keeps_what_people_have_saved_since(
    itself: bool, was_open: bool, open_turn: OpenTurn
) -> None:
    played = await open_turn()
    path = played.put("a.txt")
    files = played.stage.kernel.files
    if was_open:
        await files.open("a.txt")
    new = TEXT.replace("four", "4")
    shown = FileEditToolCallContent(type="diff", path=path, old_text=TEXT, new_text=new)
    call = question("edit", path, content=[shown])
    task, block = await played.asked(ask(played.turn, call, OPTIONS))
    await played.type("a.txt", "two", "zwei")
    file = await files.open("a.txt")
    await file.save()
    await played.decide(block, "once")
    await task
    played.put("a.txt", TEXT.replace("two", "zwei").replace("five", "fünf"))  # another program
    await files.look()
    if itself:
        played.put("a.txt", new)
        await files.look()
    else:
        await write_file(played.turn, path, new)
    await file.save()
    typed = TEXT.replace("two", "zwei").replace("five", "fünf")
    both = typed.replace("four", "4")
    assert (file.now().text, Path(path).read_text()) == (both, both)
    await played.stage.kernel.call(played.turn.writer.actor, "block.undo", {"block_id": file.block})
    assert file.now().text == typed
