"""Changes go from written over sent to saved, whatever the connection does."""

from __future__ import annotations

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from antiphon_kernel.client.local_replica import Outbox
from tests.waiting import PATIENCE

steps = st.lists(st.sampled_from(["write", "send", "ack", "drop", "connect"]), max_size=60)


@given(steps)
def test_outbox_counts_edit_as_saved_once_its_frame_is_acknowledged(steps: list[str]) -> None:
    outbox = Outbox()
    written = 0
    frames: list[int] = []
    acknowledged = saved = 0
    connected = False
    for step in steps:
        if step == "write":
            outbox.add(b"\x00\x00")
            written += 1
        elif step == "connect" and not connected:
            outbox.start_connection()
            outbox.everything_sent()
            connected, frames, acknowledged = True, [written], 0
        elif step == "drop":
            outbox.start_connection()
            connected, frames = False, []
        elif step == "send" and outbox.take() is not None:
            frames.append(written)
        elif step == "ack" and acknowledged < len(frames):
            acknowledged += 1
            outbox.acknowledged(acknowledged)
            saved = max(saved, frames[acknowledged - 1])
        assert outbox.unsaved == written - saved


async def test_outbox_saved_returns_once_earlier_edits_are_saved() -> None:
    outbox = Outbox()
    outbox.start_connection()
    outbox.everything_sent()
    outbox.add(b"\x00\x00")
    outbox.take()
    waiting = asyncio.create_task(outbox.saved())
    await asyncio.sleep(0)
    outbox.add(b"\x00\x00")
    outbox.take()
    outbox.acknowledged(1)
    await asyncio.sleep(0)
    assert not waiting.done()
    outbox.acknowledged(2)
    await asyncio.wait_for(waiting, PATIENCE)
    assert outbox.unsaved == 1
