from __future__ import annotations

from collections.abc import Callable

from antiphon.widgets.block_list.frame_scheduler import FrameScheduler


class Loop:
    """Time that passes when the test says so, and what is to be called in it."""

    def __init__(self) -> None:
        self.now = 100.0
        self.timers: list[tuple[float, Callable[[], None]]] = []

    def later(self, delay: float, callback: Callable[[], None]) -> None:
        self.timers.append((self.now + delay, callback))

    def next_thing(self, callback: Callable[[], None]) -> None:
        self.later(0, callback)

    def run(self, seconds: float) -> None:
        end = self.now + seconds
        while due := sorted((one for one in self.timers if one[0] <= end), key=lambda one: one[0]):
            self.timers.remove(due[0])
            self.now = max(self.now, due[0][0])
            due[0][1]()
        self.now = end


def test_timer_that_was_overtaken_brings_no_frame_before_its_time() -> None:
    loop, drawn = Loop(), list[float]()

    def draw() -> None:
        clock.drawn()
        drawn.append(round(loop.now - 100, 3))

    clock = FrameScheduler(draw, loop.next_thing, loop.later, lambda: loop.now)
    clock.request(0.05)
    clock.request()
    loop.run(0.04)
    clock.request_throttled(0.1)
    loop.run(0.5)
    assert drawn == [0, 0.1]
    assert not loop.timers


def test_frame_that_is_due_in_a_moment_needs_no_timer() -> None:
    loop, timers, drawn = Loop(), list[float](), list[float]()

    def later(delay: float, callback: Callable[[], None]) -> None:
        timers.append(delay)
        loop.later(delay, callback)

    def draw() -> None:
        clock.drawn()
        drawn.append(loop.now)

    clock = FrameScheduler(draw, loop.next_thing, later, lambda: loop.now)
    clock.request(1e-9)
    loop.run(0.1)
    assert (len(drawn), timers) == (1, [])
