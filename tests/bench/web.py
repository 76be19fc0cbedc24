"""Cost of viewers in a browser while a model writes: of the kernel, of the host and of each app.

The viewers are connections without a browser, each of which reads all that its terminal is sent.

    antiphon bench web [--viewers 20] [--seconds 20] [--json]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from websockets.asyncio.client import connect

from antiphon_kernel.client.address import lock_holder
from tests.e2e.sharing import SharedProject
from tests.e2e.terminal import shows_words
from tests.processes import cpu_seconds, grandchildren_of
from tests.recordings import numbered_recording

TOKEN_MS = 33


def megabytes(pid: int) -> float:
    """Return the proportional share of memory of a process."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text("utf-8").splitlines()
    return int(next(line for line in lines if line.startswith("Pss:")).split()[1]) / 1_024


async def view(link: str, number: int, shown: asyncio.Event) -> None:
    """Join and read until cancelled; `shown` is set with the first screen."""
    page, _, token = link.partition("#")
    read = 0
    async with connect(f"{page.replace('http', 'ws')}session", max_size=None) as socket:
        await socket.send(json.dumps(["join", token, f"{number:032d}"]))
        await socket.send(json.dumps(["resize", {"width": 110, "height": 30}]))
        async for data in socket:
            read += len(data)
            if read > 3_000:
                shown.set()


async def shares(pids: Mapping[str, list[int]], seconds: float) -> dict[str, float]:
    """Return how much of a processor each process of a group takes, in per cent."""
    before = {name: sum(map(cpu_seconds, group)) for name, group in pids.items()}
    await asyncio.sleep(seconds)
    return {
        name: 100 * (sum(map(cpu_seconds, group)) - before[name]) / seconds / len(group)
        for name, group in pids.items()
        if group
    }


@contextmanager
def streaming_project(folder: Path) -> Iterator[SharedProject]:
    project = SharedProject(folder)
    path = project.home / "aria.jsonl"
    recorded = numbered_recording(path, model="aria", words=50_000, pause_ms=TOKEN_MS)
    owner = project.terminal("demo", "--play", str(recorded.path), "--data", str(project.data))
    owner.wait_for(shows_words)
    try:
        yield project
    finally:
        project.close()


async def measure(project: SharedProject, viewers: int, seconds: float) -> dict[str, float]:
    link = project.share("--web", "--data", str(project.data))["link"]
    kernel, host = lock_holder(project.data), lock_holder(project.data, "web.lock")
    assert kernel is not None and host is not None
    alone = await shares({"kernel": [kernel]}, seconds)
    shown = [asyncio.Event() for _ in range(viewers)]
    began = time.monotonic()
    tasks = [asyncio.create_task(view(link, *one)) for one in enumerate(shown)]
    await asyncio.gather(*(one.wait() for one in shown))
    found = {"seconds until all see the text": time.monotonic() - began}
    apps = grandchildren_of(host)
    taken = await shares({"kernel": [kernel], "host": [host], "viewer": apps}, seconds)
    found["kernel without viewers, % of a processor"] = alone["kernel"]
    found |= {f"{name}, % of a processor": share for name, share in taken.items()}
    found |= {"kernel, MB": megabytes(kernel), "host, MB": megabytes(host)}
    found["viewer, MB"] = sum(map(megabytes, apps)) / len(apps)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--viewers", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, streaming_project(Path(folder)) as project:
        found = asyncio.run(measure(project, given.viewers, given.seconds))
    for name, value in found.items():
        line = json.dumps({"name": name, "value": value}) if given.json else f"{value:8.1f}  {name}"
        print(line)


if __name__ == "__main__":
    main()
