"""A kernel with its doors open and one block per run, which it says; ends with its input.

python -m tests.bench.fanout.antiphon_server FOLDER BLOCKS
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
from pathlib import Path

import uvloop

from antiphon_kernel.kernel import Kernel
from antiphon_kernel.registry import Registry
from antiphon_kernel.server import Server
from antiphon_kernel.tools.all_tools import KERNEL_TOOLS


async def run(folder: Path, blocks: int) -> None:
    kernel = await Kernel.open(folder / "data", folder, registry=Registry(KERNEL_TOOLS))
    doors = await Server(kernel).start(port=0, socket=folder / "kernel.sock")
    me = kernel.open_session(kernel.owner, "bench")
    rooms = []
    for number in range(blocks):
        label = f"room-{number}"
        await kernel.call(me, "context.create", {"label": label})
        params = {"context": label, "kind": "file"}
        rooms.append([label, (await kernel.call(me, "block.create", params))["block_id"]])
    said = {"port": doors.port, "token": doors.token, "socket": str(doors.socket), "rooms": rooms}
    gc.freeze()  # as the daemon does
    print(json.dumps(said), flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    await doors.close()
    await kernel.close()


if __name__ == "__main__":
    uvloop.run(run(Path(sys.argv[1]), int(sys.argv[2])))
