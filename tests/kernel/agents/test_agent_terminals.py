"""Commands of agents: shell cells that they read, wait for and end."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator

import pytest
from acp.schema import EnvVariable

from antiphon_kernel.turns.agents.terminals import AgentTerminals
from antiphon_kernel.turns.turn import TurnSettings
from antiphon_kernel.types.errors import AntiphonError
from tests.kernel.agents.conftest import DirectTurn, OpenTurn
from tests.policies import policy_of
from tests.waiting import until


def told(terminals: AgentTerminals, terminal: str) -> tuple[str, bool, int | str | None]:
    """Return the output, whether it is cut, and how the command has ended."""
    said = terminals.output(terminal)
    status = said.exit_status
    assert status is not None
    return said.output, said.truncated, status.exit_code if status.signal is None else status.signal


FREE = policy_of({"shell": "allow"})


@pytest.fixture
async def free(open_turn: OpenTurn) -> AsyncIterator[tuple[DirectTurn, AgentTerminals]]:
    turn = await open_turn(FREE, TurnSettings(shell_seconds=30))
    terminals = AgentTerminals(turn.turn)
    yield turn, terminals
    await terminals.close()


async def test_runs_a_command_as_a_cell_with_its_output_and_exit_code(
    free: tuple[DirectTurn, AgentTerminals],
) -> None:
    played, terminals = free
    terminal = await terminals.create("printf", ["%s, %s\n", "it's", "done"])
    await terminals.wait(terminal)
    assert told(terminals, terminal) == ("it's, done\n", False, 0)
    call = played.header(terminal)
    assert (call.status, call.tool_name, call.exit_code) == ("done", "shell", 0)
    assert played.stage.text(call) == "printf '%s, %s\n' 'it'\"'\"'s' done"
    assert played.stage.results() == ["it's, done\n"]
    failing = await terminals.create("echo no; exit 3")
    await terminals.wait(failing)
    assert told(terminals, failing) == ("no\n", False, 3)


async def test_variables_and_folder_stand_in_the_line(
    free: tuple[DirectTurn, AgentTerminals],
) -> None:
    played, terminals = free
    folder = played.project / "sub folder"
    folder.mkdir()
    terminal = await terminals.create(
        "pwd; echo $A", env=[EnvVariable(name="A", value="x y")], cwd=str(folder)
    )
    await terminals.wait(terminal)
    assert terminals.output(terminal).output == f"{folder}\nx y\n"
    shown = f"export 'A=x y'; cd '{folder}' && pwd; echo $A"
    assert played.stage.text(terminal) == shown
    at_root = await terminals.create("pwd", cwd=str(played.project))
    await terminals.wait(at_root)
    assert played.stage.text(at_root) == "pwd"


async def test_keeps_the_end_of_a_long_output_in_whole_characters(
    free: tuple[DirectTurn, AgentTerminals],
) -> None:
    _, terminals = free
    terminal = await terminals.create("printf 'abcäöü'", output_byte_limit=5)
    await terminals.wait(terminal)
    assert told(terminals, terminal) == ("öü", True, 0)


async def test_kill_ends_the_processes_and_keeps_the_output_until_release(
    free: tuple[DirectTurn, AgentTerminals],
) -> None:
    played, terminals = free
    terminal = await terminals.create("echo $$; sleep 600")
    await until(lambda: "\n" in terminals.output(terminal).output)
    process = int(terminals.output(terminal).output)
    waiting = asyncio.create_task(terminals.wait(terminal))
    await terminals.kill(terminal)
    assert (await waiting).signal == "SIGTERM"
    shown = f"{process}\nEnded by bot."
    assert told(terminals, terminal) == (shown, False, "SIGTERM")
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)
    call = played.header(terminal)
    assert (call.status, call.stop_reason) == ("error", "interrupted")
    assert played.stage.results() == [f"{process}\nEnded by bot."]
    await terminals.kill(terminal)
    await terminals.release(terminal)
    with pytest.raises(AntiphonError, match="was released"):
        terminals.output(terminal)


async def test_closing_ends_what_runs_and_what_has_hardly_begun(
    free: tuple[DirectTurn, AgentTerminals],
) -> None:
    played, terminals = free
    await terminals.create("sleep 600")
    await terminals.close()
    assert played.stage.results() == ["Ended with the turn."]
    assert [one.id for one in played.stage.unfinished()] == [played.turn.prompt]


async def test_asks_for_a_command_that_nobody_has_allowed(open_turn: OpenTurn) -> None:
    asking = await open_turn()
    terminals = AgentTerminals(asking.turn)
    task, block = await asking.asked(terminals.create("touch", ["ran"]))
    assert asking.stage.text(block) == "touch ran"
    await asking.decide(block, "no")
    with pytest.raises(AntiphonError, match="amy said no"):
        await task
    assert asking.header(block.id).status == "error"
    assert not (asking.project / "ran").exists()
    asking.turn.permitted.add(("shell", "touch ran"))
    await terminals.wait(await terminals.create("touch", ["ran"], cwd=str(asking.project)))
    assert (asking.project / "ran").exists()
    # Allowed as it was, and not with other variables.
    path = [EnvVariable(name="PATH", value="/tmp")]
    task, block = await asking.asked(terminals.create("touch ran", env=path))
    await asking.decide(block, "no")
    with pytest.raises(AntiphonError):
        await task
    await terminals.close()


async def test_ends_a_command_that_takes_too_long(open_turn: OpenTurn) -> None:
    turn = await open_turn(FREE, TurnSettings(shell_seconds=0.2))
    terminals = AgentTerminals(turn.turn)
    terminal = await terminals.create("sleep 600")
    assert (await terminals.wait(terminal)).signal == "SIGTERM"
    assert turn.header(terminal).stop_reason == "time_limit"
    await terminals.close()


async def test_commands_are_ended_together(free: tuple[DirectTurn, AgentTerminals]) -> None:
    played, terminals = free
    waits = "touch {0}; until [ -e {1} ]; do sleep 0.05; done; touch {0}-met; exit"
    made: list[str] = []
    for names in (("a", "b"), ("b", "a")):
        trap = waits.format(*names)
        command = f"trap '{trap}' TERM; echo on; while :; do sleep 0.05; done"
        made.append(await terminals.create(command))
    await until(lambda: all(terminals.output(one).output for one in made))
    await terminals.close()
    assert {one.name for one in played.project.glob("*-met")} == {"a-met", "b-met"}
