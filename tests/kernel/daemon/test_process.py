"""The process of a kernel: its log, and its end if nobody needs it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from antiphon_kernel.daemon.idle_shutdown import IdlePolicy, IdleShutdown
from tests.clocks import ManualClock


def test_warning_is_logged_once_where_stderr_ends_in_the_log(tmp_path: Path) -> None:
    path = tmp_path / "kernel.log"
    script = (
        "import logging, pathlib, sys; from antiphon_kernel.daemon.log import log_to;"
        " log_to(pathlib.Path(sys.argv[1])); logging.warning('only once')"
    )
    with path.open("ab") as stderr:
        subprocess.run([sys.executable, "-c", script, str(path)], stderr=stderr, check=True)
    assert path.read_text().count("only once") == 1


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.mark.parametrize(
    ("policy", "looks"),
    [
        ((60, 10), [(59_000, 0, False, False), (1_000, 0, False, True)]),
        (
            (60, 10),
            [
                (0, 1, False, False),
                (9_000, 0, False, False),
                (0, 2, False, False),
                (9_900, 0, False, False),
                (100, 0, False, True),
            ],
        ),
        ((10, 10), [(100_000, 0, True, False), (9_000, 0, False, False), (1_000, 0, False, True)]),
        ((None, None), [(10**12, 0, False, False)]),
    ],
    ids=["nobody came", "the last client left", "a turn is played", "no limit"],
)
def test_kernel_ends_once_nobody_has_needed_it_for_so_long(
    clock: ManualClock,
    policy: tuple[float | None, float | None],
    looks: list[tuple[int, int, bool, bool]],
) -> None:
    """A look: milliseconds after the last one, connections, whether it is busy, whether it ends."""
    idleness = IdleShutdown(IdlePolicy(*policy), clock)
    for milliseconds, connections, busy, ends in looks:
        clock.ms += milliseconds
        assert idleness.observe(connections, busy=busy) is ends


def test_idleness_counts_clients_that_have_come_and_gone_between_two_looks() -> None:
    clock = ManualClock()
    idleness = IdleShutdown(IdlePolicy(before_first_client=60, after_last_client=10), clock)
    for visits in range(20):
        clock.ms += 9_000
        assert not idleness.observe(0, visits=visits + 1)
    clock.ms += 10_000
    assert idleness.observe(0, visits=20)
