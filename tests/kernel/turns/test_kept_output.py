from __future__ import annotations

import random
import tracemalloc
from collections.abc import Iterable
from pathlib import Path

import pytest

from antiphon_kernel.turns.kept_output import OUTPUT_LIMIT, KeptOutput
from antiphon_kernel.turns.shell import run_shell

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


def test_beginning_and_end_are_kept_with_the_exact_count_of_what_is_left_out() -> None:
    text, kept = kept_of(["x" * 1_234_567], 20)
    assert text == f"{'x' * 10}\n[1,234,547 characters left out]\n{'x' * 10}"
    assert kept.left_out == 1_234_547


def test_line_that_says_what_is_left_out_stands_alone_behind_a_whole_line() -> None:
    text, _ = kept_of(["123456789\n", "x" * 30], 20)
    assert text == f"123456789\n[20 characters left out]\n{'x' * 10}"


def test_end_begins_with_a_whole_line_unless_it_is_long() -> None:
    lines = [f"line {number:03}\n" for number in range(1_000)]
    text, _ = kept_of(["".join(lines)], 2_000)
    end = "".join(lines[-(1_000 // 9) :])
    assert text.endswith(f"\n[{9_000 - 1_000 - len(end):,} characters left out]\n{end}")
    one_line, _ = kept_of(["a" * 5_000 + "\n" + "b" * 500 + "\n"], 2_000)
    assert one_line.endswith("left out]\n" + "a" * 498 + "\n" + "b" * 500 + "\n")


@pytest.mark.parametrize("seed", range(20))
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


async def test_fifty_megabytes_of_a_command_leave_beginning_count_and_real_end(
    tmp_path: Path,
) -> None:
    kept, head = KeptOutput(), []

    async def keep(text: str) -> None:
        head.append(kept.add(text))

    command = "yes 0123456 | head -c 50000000; printf 'the real end €'; exit 3"
    assert await run_shell(command, tmp_path, keep) == 3
    first, last = "0123456\n" * (HALF // 8), "the real end €"
    rest = kept.take_rest()
    said, _, tail = rest.partition("\n")
    assert "".join(head) == first
    assert tail.endswith("0123456\n" * 100 + last)
    assert HALF - 8 < len(tail) <= HALF
    assert said == f"[{50_000_000 + len(last) - HALF - len(tail):,} characters left out]"
