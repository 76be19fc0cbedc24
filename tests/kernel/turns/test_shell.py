"""Shell commands: their output, what is kept of it, and the end of all their processes."""

from __future__ import annotations

import asyncio
import os
import random
import tracemalloc
from collections.abc import Iterable
from pathlib import Path

import pytest

from antiphon_kernel.shell import run_shell
from antiphon_kernel.turns.block_writer import OUTPUT_LIMIT, KeptOutput
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
    command = "pwd; cat; test -t 0 || echo no terminal; kill -9 $$"
    assert await run_shell(command, tmp_path, screen) == 137
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
    tmp_path: Path, screen: Screen, again: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("antiphon_kernel.shell.TERM_GRACE_SECONDS", 0.1)
    command = "trap '' TERM; echo $$; while :; do sleep 0.01; done"
    running = asyncio.create_task(run_shell(command, tmp_path, screen))
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


async def test_last_output_of_a_background_process_is_kept(
    tmp_path: Path, screen: Screen, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("antiphon_kernel.shell.LINGER_SECONDS", 60)
    await run_shell("(sleep 0.05; echo late) & echo now", tmp_path, screen)
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


async def test_run_shell_leaves_no_file_descriptor_open(tmp_path: Path, screen: Screen) -> None:
    await run_shell("echo warm", tmp_path, screen)
    before = open_files()
    for _ in range(5):
        await run_shell("echo again", tmp_path, screen)
    assert open_files() <= before


HALF = OUTPUT_LIMIT // 2


def kept_of(pieces: Iterable[str], limit: int) -> tuple[str, KeptOutput]:
    kept = KeptOutput(limit)
    head = "".join([kept.add(piece) for piece in pieces])
    return head + kept.take_rest(), kept


def cut_up(text: str, rng: random.Random) -> list[str]:
    pieces, at = [], 0
    while at < len(text):
        size = rng.choice((1, 2, 7, 60, 1_000))
        pieces.append(text[at : at + size])
        at += size
    return pieces


@pytest.mark.parametrize("size", [0, 1, 9, 10, 11, 19, 20])
def test_output_within_the_limit_is_kept_whole(size: int) -> None:
    text = "abcdefghij\nlmnopqrst"[:size]
    for pieces in ([text], list(text)):
        kept = KeptOutput(20)
        head = "".join(map(kept.add, pieces))
        assert head == text[:10]
        assert kept.is_holding_back == (size > 10)
        assert (head + kept.take_rest(), kept.left_out) == (text, 0)
        assert not kept.is_holding_back


def test_end_begins_with_a_whole_line_unless_it_is_long() -> None:
    lines = [f"line {number:03}\n" for number in range(1_000)]
    text, _ = kept_of(["".join(lines)], 2_000)
    end = "".join(lines[-(1_000 // 9) :])
    assert text.endswith(f"\n[{9_000 - 1_000 - len(end):,} characters left out]\n{end}")
    one_line, _ = kept_of(["a" * 5_000 + "\n" + "b" * 500 + "\n"], 2_000)
    assert one_line.endswith("left out]\n" + "a" * 498 + "\n" + "b" * 500 + "\n")


@pytest.mark.parametrize("seed", range(8))
def test_any_pieces_give_beginning_count_and_end_of_the_whole(seed: int) -> None:
    rng = random.Random(seed)
    letters = ("abc\n", "é€𝄞\U0001f44d\u200d\n", "\x1b[31m\r\n")[seed % 3]
    text = "".join(rng.choices(letters, k=rng.randrange(100, 6_000)))
    limit = rng.randrange(2, 3_000)
    whole, kept = kept_of(cut_up(text, rng), limit)
    if len(text) <= limit:
        assert whole == text
        return
    head = text[: limit // 2]
    gap = "" if not head or head.endswith("\n") else "\n"
    line = f"{gap}[{kept.left_out:,} characters left out]\n"
    tail = text[limit // 2 + kept.left_out :]
    assert whole == head + line + tail
    most = limit - limit // 2
    assert most - most // 100 <= len(tail) <= most


def test_no_more_is_held_of_one_endless_line_than_its_end() -> None:
    kept = KeptOutput()
    tracemalloc.start()
    try:
        for _ in range(800):
            kept.add("x" * 65_536)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 20 * OUTPUT_LIMIT
    assert kept.take_rest() == (
        f"\n[{800 * 65_536 - OUTPUT_LIMIT:,} characters left out]\n{'x' * HALF}"
    )
