"""When a kernel ends because nobody needs it."""

from __future__ import annotations

import asyncio

import pytest

from antiphon_kernel.process.idleness import Idleness, Patience


class HandClock:
    """Time moves when the test says so."""

    def __init__(self) -> None:
        self.seconds = 100.0

    def now_ms(self) -> int:
        return int(self.seconds * 1000)

    def monotonic(self) -> float:
        return self.seconds


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


def test_a_first_client_is_waited_for(clock: HandClock) -> None:
    idleness = Idleness(Patience(for_the_first=60, after_the_last=10), clock)
    clock.seconds += 59
    assert not idleness.observe(0)
    clock.seconds += 1
    assert idleness.observe(0)


def test_after_the_last_client_a_reconnect_is_waited_for(clock: HandClock) -> None:
    idleness = Idleness(Patience(for_the_first=60, after_the_last=10), clock)
    assert not idleness.observe(1)
    clock.seconds += 9
    assert not idleness.observe(0)
    assert not idleness.observe(2)
    clock.seconds += 9.9
    assert not idleness.observe(0)
    clock.seconds += 0.1
    assert idleness.observe(0)


def test_a_turn_that_is_played_keeps_the_kernel_alive(clock: HandClock) -> None:
    idleness = Idleness(Patience(10, 10), clock)
    clock.seconds += 100
    assert not idleness.observe(0, busy=True)
    clock.seconds += 9
    assert not idleness.observe(0)
    clock.seconds += 1
    assert idleness.observe(0)


def test_endless_patience_never_ends(clock: HandClock) -> None:
    idleness = Idleness(Patience(None, None), clock)
    clock.seconds += 1e9
    assert not idleness.observe(0)


async def test_waiting_returns_when_it_is_time(clock: HandClock) -> None:
    idleness = Idleness(Patience(5, 5), clock)
    clock.seconds += 5
    await asyncio.wait_for(idleness.wait(lambda: 0, lambda: False), 5)
