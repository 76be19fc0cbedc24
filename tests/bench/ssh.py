"""Guests over SSH: first frame, keystrokes at several delays, and what a session costs.

    antiphon bench ssh [--json] [--sessions 20] [--keys 15] [--delays 0 50 200]

A delay is that of the way there and back, by a relay on the loopback interface. Each keystroke is
timed on the screen of whoever types it and on that of somebody else, who has the app on the
kernel's machine. `ssh` is the app over SSH, `join` one's own app on the kernel over there.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final

import asyncssh

from tests.bench.figures import arguments, figure, print_figures
from tests.bench.pty_process import PtyProcess
from tests.e2e.machine import ANTIPHON
from tests.e2e.sharing import RelayThread, SharedProject, message
from tests.e2e.sshd import SSHD, Sshd
from tests.processes import cpu_seconds, grandchildren_of

FIRST_MARK: Final = 0x4E00
"""Keys are distinct CJK characters from here on: each is found in the output by itself."""

WAIT_SECONDS: Final = 60.0
IDLE_SECONDS: Final = 10.0
GUEST: Final = "bo"

OFFERS: Final = 10
"""Keys that a connection offers before it is dropped."""

SHOWN: Final = "It stays as it is."
"""A message that is on the screen from the first frame on."""


class _OfferingClient(asyncssh.SSHClient):
    """A client that offers keys, one after the other, and takes the time of each refusal."""

    def __init__(self, keys: Sequence[Path]) -> None:
        self._keys = iter(keys)
        self._asked: float | None = None
        self.took: list[float] = []
        """Milliseconds from each request to its refusal."""

    def public_key_auth_requested(self) -> str | None:
        now = time.perf_counter()
        if self._asked is not None:
            self.took.append((now - self._asked) * 1_000)
        key = next(self._keys, None)
        self._asked = time.perf_counter()
        return None if key is None else str(key)


class SshBench:
    """A shared project with a guest, and a plain sshd beside it where there is one."""

    def __init__(self, folder: Path) -> None:
        self.project = SharedProject(folder / "there")
        self.project.let_in(GUEST)
        for words in (SHOWN, "Here is the cell in which they type."):
            self.project.tool("block.create", **message(words))
        self.sshd: Sshd | None = None
        if SSHD is not None:
            path = f"{Path(ANTIPHON).parent}:{self.project.env['PATH']}"
            self.sshd = Sshd(folder / "sshd", self.project.env | {"PATH": path})
        self._next = FIRST_MARK

    def close(self) -> None:
        if self.sshd is not None:
            self.sshd.cut()
        self.project.close()

    def start(self, argv: Sequence[str], path: str | None = None) -> PtyProcess:
        env = self.project.env | ({"PATH": path} if path is not None else {})
        return PtyProcess(argv, env=env, cwd=self.project.project)

    def command(self, way: str, delay: float) -> tuple[list[str], str | None]:
        """Return how somebody comes in over a line with this delay, and their PATH."""
        if way == "ssh":
            relay = RelayThread(self.project.port, delay / 2)
            return self.project.ssh(GUEST, port=relay.port), None
        assert self.sshd is not None
        relay = RelayThread(self.sshd.port, delay / 2)
        url = f"ssh://localhost:{relay.port}{self.project.project}"
        return [ANTIPHON, "join", url, "--as", GUEST], f"{self.sshd.bin}:{os.environ['PATH']}"

    def mark(self) -> str:
        self._next += 1
        return chr(self._next)


def first_frames(bench: SshBench, argv: Sequence[str], path: str | None, runs: int) -> list[float]:
    """Milliseconds from the command to the document on the screen."""
    took = []
    for _ in range(runs):
        with bench.start(argv, path) as process:
            shown = process.wait_for(SHOWN, WAIT_SECONDS)
            took.append((shown - process.started) * 1_000)
    return took


def keystrokes(
    bench: SshBench, argv: Sequence[str], path: str | None, keys: int
) -> tuple[list[float], list[float]]:
    """Milliseconds from a key to the screen of whoever types, and to somebody else's."""
    own, others = [], []
    with (
        bench.start([ANTIPHON]) as other,
        bench.start(argv, path) as typing,
        ThreadPoolExecutor(2) as pool,
    ):
        other.wait_for(SHOWN, WAIT_SECONDS)
        typing.wait_for("live", WAIT_SECONDS)
        typing.send("\x1b[A")
        typing.wait_for("NAVIGATE", WAIT_SECONDS)
        typing.send("\r")
        typing.wait_for("EDIT", WAIT_SECONDS)
        for _ in range(keys):
            mark = bench.mark()
            seen = [
                pool.submit(one.wait_for, mark, WAIT_SECONDS, len(one.written))
                for one in (typing, other)
            ]
            pressed = time.perf_counter()
            typing.send(mark)
            own.append((seen[0].result() - pressed) * 1_000)
            others.append((seen[1].result() - pressed) * 1_000)
        typing.send("\x1b")
        typing.wait_for("NAVIGATE", WAIT_SECONDS)
    return own, others


def refusals(bench: SshBench, rounds: int) -> dict[str, list[float]]:
    """Milliseconds from request to refusal: revoked and unknown keys, known and unknown names.

    Each connection offers the two keys in turns, and the names take turns as well.
    """
    project = bench.project
    revoked, unknown = project.key("gone"), project.key("stranger")
    project.let_in("gone")
    project.tool("key.revoke", principal="gone")
    took: dict[str, list[float]] = {"revoked": [], "unknown": [], GUEST: [], "nobody-here": []}

    async def offer(name: str, keys: Sequence[Path]) -> list[float]:
        clients: list[_OfferingClient] = []

        def client() -> _OfferingClient:
            clients.append(_OfferingClient(keys))
            return clients[-1]

        with suppress(asyncssh.PermissionDenied):
            await asyncssh.connect(
                "localhost",
                project.port,
                client_factory=client,
                username=name,
                known_hosts=None,
                agent_path=None,
                config=None,
            )
        return clients[0].took

    for number in range(rounds * 2):
        name = (GUEST, "nobody-here")[number % 2]
        pair = (revoked, unknown) if number % 4 < 2 else (unknown, revoked)
        keys = pair * (OFFERS // 2)
        for key, milliseconds in zip(keys, asyncio.run(offer(name, keys)), strict=True):
            took["revoked" if key is revoked else "unknown"].append(milliseconds)
            took[name].append(milliseconds)
    return took


def private_bytes(pid: int) -> int:
    """Memory that is given back when the process ends."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return 1_024 * sum(int(line.split()[1]) for line in lines if line.startswith("Private_"))


@contextmanager
def sessions(bench: SshBench, count: int) -> Iterator[tuple[list[PtyProcess], list[float]]]:
    """Open so many sessions at once; with milliseconds until each has its first frame."""
    argv = bench.project.ssh(GUEST)
    with ExitStack() as stack, ThreadPoolExecutor(count) as pool:
        opened = [stack.enter_context(bench.start(argv)) for _ in range(count)]
        shown = [pool.submit(one.wait_for, SHOWN, WAIT_SECONDS) for one in opened]
        yield (
            opened,
            [
                (seen.result() - one.started) * 1_000
                for one, seen in zip(opened, shown, strict=True)
            ],
        )


def main() -> None:
    parser = arguments(__doc__)
    for name, usual in (("sessions", 20), ("keys", 15), ("runs", 5), ("rounds", 30)):
        parser.add_argument(f"--{name}", type=int, default=usual)
    parser.add_argument("--delays", type=int, nargs="*", default=[0, 50, 200])
    options = parser.parse_args()

    def say(name: str, unit: str, samples: Sequence[float]) -> None:
        print_figures([figure(name, unit, samples)], as_json=options.json)

    with tempfile.TemporaryDirectory(prefix="bench-ssh-") as folder:
        bench = SshBench(Path(folder))
        try:
            local = first_frames(bench, [ANTIPHON], None, options.runs)
            say("first frame, app on the kernel's machine", "ms", local)
            for way in ("ssh", "join") if bench.sshd is not None else ("ssh",):
                for delay in options.delays:
                    argv, path = bench.command(way, delay / 1_000)
                    frames = first_frames(bench, argv, path, options.runs)
                    say(f"{way}, {delay} ms: connection to first frame", "ms", frames)
                    own, others = keystrokes(bench, argv, path, options.keys)
                    say(f"{way}, {delay} ms: key to one's own screen", "ms", own)
                    say(f"{way}, {delay} ms: key to somebody else's screen", "ms", others)
            took = refusals(bench, options.rounds)
            for one, other in (("revoked", "unknown"), (GUEST, "nobody-here")):
                say(f"refusal, {one}", "ms", took[one])
                say(f"refusal, {other}", "ms", took[other])
                ratio = statistics.median(took[one]) / statistics.median(took[other])
                say(f"refusal, {one} to {other}", "ratio", [ratio])
            many(bench, options.sessions, say)
        finally:
            bench.close()


def many(bench: SshBench, count: int, say: object) -> None:
    """Measure sessions that are open at the same time."""
    assert callable(say)
    with bench.start([ANTIPHON]) as fresh:
        fresh.wait_for(SHOWN, WAIT_SECONDS)
        fresh.drain(1)
        say("a fresh process: processor time to first frame", "s", [cpu_seconds(fresh.pid)])
        say("a fresh process: memory of its own", "MB", [private_bytes(fresh.pid) / 1e6])
    host = bench.project.host_pid
    host_before = cpu_seconds(host)
    with sessions(bench, count) as (opened, frames):
        say(f"{count} sessions at once: connection to first frame", "ms", frames)
        pids = grandchildren_of(host)
        assert len(pids) == count
        say("a session: processor time to first frame", "s", [cpu_seconds(pid) for pid in pids])
        took = (cpu_seconds(host) - host_before) / count
        say("a session: processor time of the host to first frame", "s", [took])
        for one in opened:
            one.drain(0.05)
        say("a session: memory of its own", "MB", [private_bytes(pid) / 1e6 for pid in pids])
        say("the host: memory of its own", "MB", [private_bytes(host) / 1e6])
        before = [cpu_seconds(pid) for pid in pids]
        time.sleep(IDLE_SECONDS)
        after = [cpu_seconds(pid) for pid in pids]
        idle = [(b - a) / IDLE_SECONDS * 100 for a, b in zip(before, after, strict=True)]
        say("a session: idle", "%", idle)


if __name__ == "__main__":
    main()
