"""Frames of the app while four models stream: drawn in this process, without a kernel."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Sequence
from typing import Final

from textual.app import ComposeResult

from antiphon.screens.live_writers import LiveWriters
from antiphon.widgets.status import HintBar, LiveStrip
from antiphon_kernel.types.enums import PrincipalKind, Status
from antiphon_kernel.types.presence import PresenceState
from tests.app.widgets.block_list.sample import ARIA, Sample, SampleApp
from tests.bench.figures import Figure, figure

MODELS: Final = 4
TOKENS: Final = 3
"""Of each model between two frames: 90 a second at 30 frames."""

WORDS: Final = ("The ", "two ", "of ", "them ", "write ", "in ", "**turn**, ", "one ", "text.\n\n")
WARM_UP: Final = 60


class FramesApp(SampleApp):
    """A document with the strip of those who write out of sight."""

    def __init__(self, sample: Sample) -> None:
        super().__init__(sample)
        self.strip, self.notice = LiveStrip(), HintBar()
        self.live = LiveWriters(self.source, self.cells, self.strip, self.notice)

    def compose(self) -> ComposeResult:
        yield self.area
        yield self.strip

    def on_mount(self) -> None:
        self.live.start()


async def frame_times(frames: int, size: tuple[int, int], *, has_ink: bool) -> Sequence[float]:
    """Milliseconds of processor time for each frame, until it is on the terminal."""
    sample = Sample()
    sample.add_turns(30)
    blocks = [sample.add("", status=Status.RUNNING) for _ in range(MODELS)]
    app = FramesApp(sample)
    samples = []
    async with app.run_test(size=size) as pilot:
        app.source.ink.is_shown = has_ink
        gc.collect()
        for number in range(frames + WARM_UP):
            began = time.process_time()
            for model, block in enumerate(blocks):
                for token in range(TOKENS):
                    sample.peer.append(block, WORDS[(number + model + token) % len(WORDS)])
                app.present[model] = PresenceState(
                    ARIA,
                    f"aria{model}",
                    PrincipalKind.MODEL,
                    model,
                    "s",
                    block,
                    sample.peer.length(block),
                    None,
                    "streaming",
                )
            typed = time.process_time()
            app.source.presence_changed()
            app.cells.draw()
            shown = asyncio.Event()
            app.screen.call_after_refresh(shown.set)
            await shown.wait()
            if number >= WARM_UP:
                samples.append((time.process_time() - typed) * 1000)
            # The rest of a 30th of a second.
            await asyncio.sleep(max(0.0, 1 / 30 - (time.process_time() - began)))
        await pilot.pause()
    return samples


def measure_frames(cols: int, rows: int, frames: int) -> Figure:
    """Return the time of frames with new text, map and strip, beside the same without new text."""
    size = (cols, rows)
    bare = asyncio.run(frame_times(frames, size, has_ink=False))
    mine = asyncio.run(frame_times(frames, size, has_ink=True))
    return figure(
        "frame while four models stream, with ink, map and strip",
        "ms",
        list(mine),
        baseline=list(bare),
        against="the same without ink",
        budget=25,
    )
