"""When a kernel ends because nobody needs it."""

from __future__ import annotations

import asyncio

import pytest

from antiphon_kernel.daemon.idle_shutdown import IdlePolicy, IdleShutdown
from tests.clocks import ManualClock
from tests.waiting import PATIENCE


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


def test_first_client_is_waited_for(clock: ManualClock) -> None:
    idleness = IdleShutdown(IdlePolicy(before_first_client=60, after_last_client=10), clock)
    clock.ms += 59_000
    assert not idleness.observe(0)
    clock.ms += 1_000
    assert idleness.observe(0)


def test_idle_shutdown_after_last_client_waits_for_reconnect(clock: ManualClock) -> None:
    idleness = IdleShutdown(IdlePolicy(before_first_client=60, after_last_client=10), clock)
    assert not idleness.observe(1)
    clock.ms += 9_000
    assert not idleness.observe(0)
    assert not idleness.observe(2)
    clock.ms += 9_900
    assert not idleness.observe(0)
    clock.ms += 100
    assert idleness.observe(0)


def test_turn_that_is_played_keeps_the_kernel_alive(clock: ManualClock) -> None:
    idleness = IdleShutdown(IdlePolicy(10, 10), clock)
    clock.ms += 100_000
    assert not idleness.observe(0, busy=True)
    clock.ms += 9_000
    assert not idleness.observe(0)
    clock.ms += 1_000
    assert idleness.observe(0)


def test_endless_patience_never_ends(clock: ManualClock) -> None:
    idleness = IdleShutdown(IdlePolicy(None, None), clock)
    clock.ms += 10**12
    assert not idleness.observe(0)


async def test_idle_shutdown_wait_returns_when_due(clock: ManualClock) -> None:
    idleness = IdleShutdown(IdlePolicy(5, 5), clock)
    clock.ms += 5_000
    await asyncio.wait_for(idleness.wait(lambda: 0, lambda: 0, lambda: False), PATIENCE)


def test_idleness_counts_clients_that_have_come_and_gone_between_two_looks() -> None:
    clock = ManualClock()
    idleness = IdleShutdown(IdlePolicy(before_first_client=60, after_last_client=10), clock)
    for visits in range(20):
        clock.ms += 9_000
        assert not idleness.observe(0, visits=visits + 1)
    clock.ms += 10_000
    assert idleness.observe(0, visits=20)
