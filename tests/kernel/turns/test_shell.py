from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from antiphon_kernel.turns.shell import run_shell
from tests.waiting import until


class Screen:
    """Collects the output of a command."""

    def __init__(self) -> None:
        self.pieces: list[str] = []

    async def __call__(self, text: str) -> None:
        self.pieces.append(text)

    @property
    def text(self) -> str:
        return "".join(self.pieces)


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def working_in(folder: Path) -> list[int]:
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if process.joinpath("cwd").readlink() == folder and alive(int(process.name)):
                found.append(int(process.name))
        except OSError:
            continue
    return found


def open_files() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


@pytest.fixture
def screen() -> Screen:
    return Screen()


async def test_output_and_errors_come_in_order_with_the_exit_code(
    tmp_path: Path, screen: Screen
) -> None:
    command = "echo one; echo two >&2; echo three; exit 3"
    assert await run_shell(command, tmp_path, screen) == 3
    assert screen.text == "one\ntwo\nthree\n"


async def test_command_runs_in_the_folder_without_a_terminal(
    tmp_path: Path, screen: Screen
) -> None:
    exit_code = await run_shell("pwd; cat; test -t 0 || echo no terminal", tmp_path, screen)
    assert exit_code == 0
    assert screen.text == f"{tmp_path.resolve()}\nno terminal\n"


async def test_output_streams_while_the_command_runs(tmp_path: Path, screen: Screen) -> None:
    running = asyncio.create_task(run_shell("echo first; read < fifo; echo last", tmp_path, screen))
    os.mkfifo(tmp_path / "fifo")
    await until(lambda: screen.text == "first\n")
    assert not running.done()
    (tmp_path / "fifo").write_text("\n")
    await running
    assert screen.text == "first\nlast\n"


async def test_characters_cut_by_a_read_stay_whole_and_bad_bytes_are_replaced(
    tmp_path: Path, screen: Screen
) -> None:
    command = r"printf '\xe2\x82'; sleep 0.05; printf '\xac|\xff|\xe2\x82'"
    await run_shell(command, tmp_path, screen)
    assert screen.text == "€|\ufffd|\ufffd"


async def test_flood_of_output_comes_whole_with_the_exit_code(
    tmp_path: Path, screen: Screen
) -> None:
    assert await run_shell("seq 1 40000; exit 7", tmp_path, screen) == 7
    assert screen.text == "".join(f"{number}\n" for number in range(1, 40_001))


async def test_command_ended_by_a_signal_has_the_exit_code_of_a_shell(
    tmp_path: Path, screen: Screen
) -> None:
    assert await run_shell("kill -9 $$", tmp_path, screen) == 137


async def test_cancelling_ends_every_process_of_the_command(tmp_path: Path, screen: Screen) -> None:
    command = "sleep 100 & echo $!; (sleep 100 & echo $!; wait) & echo $$; wait"
    running = asyncio.create_task(run_shell(command, tmp_path, screen))
    await until(lambda: screen.text.count("\n") == 3)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert not [pid for pid in screen.text.split() if alive(int(pid))]


@pytest.mark.parametrize("again", [False, True])
async def test_shell_command_that_ignores_sigterm_is_killed(
    tmp_path: Path, screen: Screen, again: bool
) -> None:
    command = "trap '' TERM; echo $$; while :; do sleep 0.01; done"
    running = asyncio.create_task(run_shell(command, tmp_path, screen, grace=0.1))
    await until(lambda: "\n" in screen.text)
    running.cancel()
    if again:
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await until(lambda: not alive(int(screen.text)))


async def test_cancelling_before_the_shell_is_there_leaves_nothing(
    tmp_path: Path, screen: Screen
) -> None:
    for turns in range(6):
        running = asyncio.create_task(run_shell("touch started; sleep 100", tmp_path, screen))
        for _ in range(turns):
            await asyncio.sleep(0)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
    await until(lambda: not working_in(tmp_path))


async def test_background_process_does_not_outlive_its_command_nor_hold_it_up(
    tmp_path: Path, screen: Screen
) -> None:
    exit_code = await asyncio.wait_for(run_shell("sleep 100 & echo $!", tmp_path, screen), 50)
    assert exit_code == 0
    assert not alive(int(screen.text))


async def test_last_output_of_a_background_process_is_kept(tmp_path: Path, screen: Screen) -> None:
    await run_shell("(sleep 0.05; echo late) & echo now", tmp_path, screen, linger=60)
    assert screen.text == "now\nlate\n"


async def test_daemon_that_keeps_the_pipe_does_not_hold_the_command_up(
    tmp_path: Path, screen: Screen
) -> None:
    await run_shell("setsid sleep 5 & echo now", tmp_path, screen)
    assert screen.text == "now\n"


async def test_reader_that_fails_ends_the_command_and_its_error_is_raised(tmp_path: Path) -> None:
    async def broken(text: str) -> None:
        raise RuntimeError(text)

    with pytest.raises(RuntimeError, match="go"):
        await run_shell("echo go; sleep 100", tmp_path, broken)


async def test_command_that_cannot_start_is_an_error(tmp_path: Path, screen: Screen) -> None:
    with pytest.raises(ValueError, match="null"):
        await run_shell("echo \0", tmp_path, screen)
    with pytest.raises(FileNotFoundError):
        await run_shell("ls", tmp_path / "missing", screen)


async def test_run_shell_leaves_no_file_descriptor_open(tmp_path: Path, screen: Screen) -> None:
    await run_shell("echo warm", tmp_path, screen)
    before = open_files()
    for _ in range(5):
        await run_shell("echo again", tmp_path, screen)
    assert open_files() <= before
