"""Somebody who was offline for long comes back with very much; nobody else has to wait.

Set ANTIPHON_LONG for as many items as one update may have.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import pycrdt

from antiphon_kernel.client.replica import Replica
from antiphon_kernel.limits import DEFAULT_LIMITS
from antiphon_kernel.yjs.frames import Ack, SyncUpdate
from tests.kernel.served import served_kernel
from tests.processes import watched
from tests.waiting import until

ITEMS = DEFAULT_LIMITS.update_structs - 1_000 if os.environ.get("ANTIPHON_LONG") else 40_000
STALL_SHARE = 0.34
"""How much of the work for the update the event loop may do at a stretch."""


def has_arrived(replica: Replica, block: str, text: str) -> bool:
    return replica.document.text(block) == text


async def test_keystrokes_stay_fast_while_large_update_is_applied(tmp_path: Path) -> None:
    async with served_kernel(tmp_path) as served:
        far, near = await served.block("x"), await served.block()
        ann, ben = await served.replica("ann"), await served.replica("ben")
        returner = await served.raw(query="ack=1&as=cyd")
        doc: pycrdt.Doc[Any] = pycrdt.Doc(client_id=77)
        doc.apply_update((await returner.join()).update)
        before = doc.get_state()
        content = doc.get("blocks", type=pycrdt.Map)[far]["content"]
        for _ in range(ITEMS // 100):
            with doc.transaction():
                for _ in range(100):
                    content.insert(0, "ab")
        update = doc.get_update(before)
        await returner.send(SyncUpdate(update))
        keys = ""
        taken = asyncio.create_task(returner.next(Ack))
        began, work_began = time.perf_counter(), time.process_time()
        async with watched() as stall:  # kernel and replicas are this process
            while not taken.done():
                ann.document.append(near, "k")
                keys += "k"
                await until(partial(has_arrived, ben, near, keys))
                await asyncio.sleep(0.005)
        seconds, work = time.perf_counter() - began, time.process_time() - work_began
        sys.stdout.write(
            f"\n{ITEMS} items, {len(update)} bytes, taken in after {seconds:.1f} s;"
            f" {len(keys)} keystrokes; at most {stall.seconds * 1e3:.0f} ms at a stretch\n"
        )
        document = (await served.context()).document
        await until(lambda: document.length(far) == 2 * (ITEMS // 100 * 100) + 1)
        assert len(keys) > 10
        assert stall.seconds < STALL_SHARE * work
