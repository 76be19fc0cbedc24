"""Commands of agents: shell cells that they read, wait for and end."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator

import pytest

from antiphon_kernel.providers import PermissionPolicy
from antiphon_kernel.turns.agents.terminals import AgentTerminals, TerminalOutput
from antiphon_kernel.turns.turn import TurnSettings
from antiphon_kernel.types.errors import AntiphonError
from tests.kernel.agents.conftest import DirectTurn, OpenTurn
from tests.waiting import until

FREE = PermissionPolicy.parse({"shell": "allow"})


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
    assert await terminals.wait(terminal) == TerminalOutput("it's, done\n", False, 0)
    call = played.header(terminal)
    assert (call.status, call.tool_name, call.exit_code) == ("done", "shell", 0)
    assert played.stage.text(call) == "printf '%s, %s\n' 'it'\"'\"'s' done"
    assert played.stage.results() == ["it's, done\n"]
    failing = await terminals.create("echo no; exit 3")
    assert await terminals.wait(failing) == TerminalOutput("no\n", False, 3)


async def test_variables_and_folder_stand_in_the_line(
    free: tuple[DirectTurn, AgentTerminals],
) -> None:
    played, terminals = free
    folder = played.project / "sub folder"
    folder.mkdir()
    terminal = await terminals.create("pwd; echo $A", env={"A": "x y"}, cwd=str(folder))
    assert (await terminals.wait(terminal)).output == f"{folder}\nx y\n"
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
    assert await terminals.wait(terminal) == TerminalOutput("öü", True, 0)


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
    assert terminals.output(terminal) == TerminalOutput(
        *(f"{process}\nEnded by bot.", False, None, "SIGTERM")
    )
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
    task, block = await asking.asked(terminals.create("touch ran", env={"PATH": "/tmp"}))
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
