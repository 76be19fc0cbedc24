"""Pauses between batches are made where they collect something."""

from __future__ import annotations

import pytest

from antiphon_kernel.server.sync.pacing import BatchPause

LENGTH = 0.005


class Writer:
    """Sends one thing after the other to somebody who takes them in batches and pauses."""

    def __init__(self) -> None:
        self.now = 100.0
        self.pause = BatchPause(LENGTH, 16, lambda: self.now)

    def steady(self, interval: float, things: int) -> list[int]:
        """Sizes of the batches when a thing comes every so often, whatever has become of others."""
        sizes: list[int] = []
        come = self.now
        while sum(sizes) < things:
            come = max(come, self.now)
            first, size = come, 1
            free = first + self.pause.after(sizes[-1] if sizes else 1)
            while come + interval <= free:
                come += interval
                size += 1
            come += interval
            self.now = free
            sizes.append(size)
        return sizes

    def waiting(self, interval: float, things: int) -> list[float]:
        """The pauses when each thing comes so long after the one before was read."""
        pauses: list[float] = []
        for _ in range(things):
            self.now += interval
            pauses.append(self.pause.after(1))
            self.now += pauses[-1]
        return pauses


@pytest.fixture
def writer() -> Writer:
    return Writer()


def test_steady_fast_writer_is_read_in_batches(writer: Writer) -> None:
    sizes = writer.steady(0.001, 1_000)
    assert len(sizes) < 250


def test_person_who_types_is_never_made_to_wait(writer: Writer) -> None:
    assert not any(writer.waiting(0.02, 1_000))


def test_writer_who_waits_for_each_answer_is_seldom_made_to_wait(writer: Writer) -> None:
    pauses = writer.waiting(0.0005, 5_000)
    assert 1 <= sum(map(bool, pauses)) <= 12


def test_batch_that_is_large_enough_is_followed_by_no_pause() -> None:
    pause = BatchPause(LENGTH, 16, lambda: 100.0)
    assert [pause.after(size) for size in (15, 16, 100)] == [LENGTH, 0.0, 0.0]


def test_writer_of_large_bursts_is_kept_waiting_shorter_and_shorter() -> None:
    pause = BatchPause(LENGTH, 16, lambda: 100.0)
    pauses = [pause.after(size) for size in (8, 80, 8, 80, 8)]
    assert pauses == pytest.approx([LENGTH, 0.0, LENGTH / 5, 0.0, LENGTH / 25])


def test_writer_who_slows_down_is_waited_for_as_long_as_before(writer: Writer) -> None:
    for size in (8, 800, 8, 800):
        writer.pause.after(size)
    sizes = writer.steady(0.001, 1_000)
    assert len(sizes) < 250
