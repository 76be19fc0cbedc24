"""A program on a pseudo terminal, timed by what it writes."""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self

from tests.e2e.terminal import start_in_terminal


class PtyProcess:
    """Everything the program has written is kept, so that a mark is found whenever it came."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: Path,
        cols: int = 120,
        rows: int = 40,
    ) -> None:
        self.started = time.perf_counter()
        self._master, self._process = start_in_terminal(
            argv, env=env, cwd=cwd, cols=cols, rows=rows
        )
        self._written = b""

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def written(self) -> bytes:
        return self._written

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def send(self, text: str) -> None:
        os.write(self._master, text.encode())

    def wait_for(self, mark: str, timeout: float, since: int = 0) -> float:
        """The time (perf_counter) at which `mark` had been written, counted from byte `since`.

        Raises:
            TimeoutError: with the end of what was written.
        """
        wanted, deadline = mark.encode(), time.perf_counter() + timeout
        while wanted not in self._written[since:]:
            left = deadline - time.perf_counter()
            if left <= 0 or not self._read(left):
                raise TimeoutError(f"no {mark!r} in {self._written[-2000:]!r}")
        return time.perf_counter()

    def forget(self) -> None:
        """Let go of what has been written so far."""
        self._written = b""

    def drain(self, seconds: float) -> None:
        """Read for so long, whatever comes."""
        deadline = time.perf_counter() + seconds
        while (left := deadline - time.perf_counter()) > 0:
            self._read(left)

    def _read(self, timeout: float) -> bool:
        ready, _, _ = select.select([self._master], [], [], timeout)
        if not ready:
            return True
        try:
            chunk = os.read(self._master, 65_536)
        except OSError:
            return False
        self._written += chunk
        return bool(chunk)

    def close(self) -> None:
        """End the program and whatever it has started in its session."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGTERM)
        deadline = time.perf_counter() + 5
        while self._process.poll() is None and time.perf_counter() < deadline:
            self.drain(0.05)
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        os.close(self._master)
