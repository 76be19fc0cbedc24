from __future__ import annotations

from collections.abc import Callable

from antiphon.widgets.block_list.frame_scheduler import FrameScheduler


class Loop:
    """Time that passes when the test says so, what is to be called in it, and frames drawn."""

    def __init__(self) -> None:
        self.now = 100.0
        self.timers: list[tuple[float, Callable[[], None]]] = []
        self.timed = 0
        """Timers that were ever set."""
        self.drawn: list[float] = []
        self.clock = FrameScheduler(self.draw, self.next_thing, self.later, lambda: self.now)

    def draw(self) -> None:
        self.clock.drawn()
        self.drawn.append(round(self.now - 100, 3))

    def later(self, delay: float, callback: Callable[[], None]) -> None:
        self.timed += 1
        self.timers.append((self.now + delay, callback))

    def next_thing(self, callback: Callable[[], None]) -> None:
        self.timers.append((self.now, callback))

    def run(self, seconds: float) -> None:
        end = self.now + seconds
        while due := sorted((one for one in self.timers if one[0] <= end), key=lambda one: one[0]):
            self.timers.remove(due[0])
            self.now = max(self.now, due[0][0])
            due[0][1]()
        self.now = end


def test_timer_that_was_overtaken_brings_no_frame_before_its_time() -> None:
    loop = Loop()
    loop.clock.request(0.05)
    loop.clock.request()
    loop.run(0.04)
    loop.clock.request_throttled(0.1)
    loop.run(0.5)
    assert loop.drawn == [0, 0.1]
    assert not loop.timers


def test_frame_that_is_due_in_a_moment_needs_no_timer() -> None:
    loop = Loop()
    loop.clock.request(1e-9)
    loop.run(0.1)
    assert (len(loop.drawn), loop.timed) == (1, 0)
