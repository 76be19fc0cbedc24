"""A demo in a headless terminal, with the keys of a person whom its recording has."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from textual.pilot import Pilot

from antiphon.app import AntiphonApp
from antiphon.export.frames import FRAME_MS, Frame, shown_rows
from antiphon.export.recording import LETTER_MS
from antiphon.options import AppOptions
from antiphon.textual_patches.driver import PasteSafeParser
from antiphon_kernel.types.enums import ANSWERING_KINDS
from antiphon_kernel.types.errors import invalid_params
from antiphon_kernel.types.quoting import quote

LONGEST_PAUSE_SECONDS: Final = 3.0
"""How long the same frame stays, also at the end; models begin by themselves sooner."""

PATIENCE_SECONDS: Final = 120.0
"""How long a person waits for a text; a model on this machine may have to be read first."""


async def play_demo(
    options: AppOptions, recordings: Iterable[Path], *, size: tuple[int, int], speed: float = 1.0
) -> list[Frame]:
    """Return what the app showed until the person had done everything and nobody wrote any more.

    A person who leaves the app ends it sooner.

    Raises:
        AntiphonError: no_kernel, if the kernel does not come up; invalid_params, if the person
            waits in vain for a text.
    """
    app = AntiphonApp(options)
    frames: list[Frame] = []
    async with app.run_test(size=size) as pilot:
        while not app.session.is_live:
            if app.session.start_failure is not None:
                raise app.session.start_failure
            await asyncio.sleep(FRAME_MS / 1000)
        began = changed = busy = time.monotonic()
        events = [one for path in recordings for one in person_events(path.read_text("utf-8"))]
        person = asyncio.create_task(_act(pilot, events, frames, speed), name="person")
        while app.is_running and (now := time.monotonic()) < busy + LONGEST_PAUSE_SECONDS:
            rows = shown_rows(app)
            if not frames or frames[-1].rows != rows:
                began += max(0.0, now - changed - LONGEST_PAUSE_SECONDS)
                frames.append(Frame(round((now - began) * 1000 / FRAME_MS) * FRAME_MS, rows))
                changed = busy = now  # programs that run turn a wheel
            here = app.session.presence().values()
            if not person.done() or any(one.kind in ANSWERING_KINDS for one in here):
                busy = now
            await asyncio.sleep(FRAME_MS / 1000)
        if app.is_running:
            await person
            await app.action_quit()
        person.cancel()
    return frames


def person_events(text: str) -> Iterator[dict[str, Any]]:
    """Yield what the person of a recording does, all of which the kernel has checked."""
    is_persons = False
    for line in filter(str.strip, text.split("\n")):
        event = json.loads(line)
        if "type" in event:
            yield from [event] * is_persons
        else:
            is_persons = event.get("person", False)


async def _act(
    pilot: Pilot[None], events: Iterable[dict[str, Any]], frames: Sequence[Frame], speed: float
) -> None:
    for event in events:
        await asyncio.sleep(event["at_ms"] / 1000 / speed)
        deadline = time.monotonic() + PATIENCE_SECONDS
        wanted = event["text"] if event["type"] == "see" else ""
        while not any(wanted in "".join(text for text, _ in row) for row in frames[-1].rows):
            if time.monotonic() > deadline:
                what = f"the person waited {PATIENCE_SECONDS:.0f} s for {quote(wanted)}"
                raise invalid_params(f"{what}, which was not shown")
            await asyncio.sleep(FRAME_MS / 1000)
        for key in event["text"] if event["type"] == "type" else event.get("keys", ()):
            if len(key) > 1:
                await pilot.press(key)
            else:  # the pilot does not know all letters
                for message in PasteSafeParser().feed(key):
                    pilot.app.post_message(message)
            await asyncio.sleep(LETTER_MS / 1000 / speed)
