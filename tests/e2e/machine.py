"""A machine of its own: home, project, terminals, kernels."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any

from antiphon_kernel.client.address import lock_holder, stated_address
from antiphon_kernel.client.discovery import RunningKernel, newest_kernel, running_kernels
from antiphon_kernel.client.tool_client import ToolClient
from tests.e2e.terminal import Terminal
from tests.fork_server import SCRIPT, run_process
from tests.waiting import wait_until

ANTIPHON = SCRIPT
END_SECONDS = 10.0


class Machine:
    """Belongings of one user: a home, a project folder, and whatever runs in it."""

    def __init__(self, home: Path, project: Path) -> None:
        self.home = home
        self.project = project
        self.env = {
            name: os.environ[name]
            for name in os.environ
            if name in ("PATH", "HOME") or name.startswith(("XDG_", "PYTHON"))
        } | {"LC_ALL": "C.UTF-8", "TMPDIR": str(home / "tmp"), "SHELL": "/bin/sh"}
        (home / "tmp").mkdir()
        self.data = project / ".antiphon"
        self.forks = True
        """Whether processes may have other command lines than their own."""
        self._terminals: list[Terminal] = []

    def terminal(
        self,
        *arguments: str,
        cols: int = 80,
        rows: int = 24,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        program: Sequence[str] = (ANTIPHON,),
    ) -> Terminal:
        """Run `antiphon ARGUMENTS`, or another program, in a terminal of its own."""
        terminal = Terminal(
            [*program, *arguments],
            env={**self.env, **(env or {})},
            cols=cols,
            rows=rows,
            cwd=cwd or self.project,
            forks=self.forks,
        )
        self._terminals.append(terminal)
        return terminal

    def run(
        self,
        *arguments: str,
        stdin: str | bytes = b"",
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Run `antiphon ARGUMENTS` to its end, without a terminal."""
        return self.run_program([ANTIPHON, *arguments], stdin, env or {}, cwd)

    def run_program(
        self,
        argv: Sequence[str],
        stdin: str | bytes,
        env: Mapping[str, str] = MappingProxyType({}),
        cwd: Path | None = None,
        timeout: float = 60,
        before: str = "",
    ) -> subprocess.CompletedProcess[str]:
        """Run a program to its end, without a terminal; `before` is Python that it does first."""
        done = run_process(
            argv,
            stdin if isinstance(stdin, bytes) else stdin.encode(),
            env={**self.env, **env},
            cwd=cwd or self.project,
            timeout=timeout,
            forks=self.forks,
            before=before,
        )
        return subprocess.CompletedProcess(
            done.args, done.returncode, done.stdout.decode(), done.stderr.decode()
        )

    def succeed(self, *arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
        """Run `antiphon ARGUMENTS`, which must end well."""
        done = self.run(*arguments, **options)
        assert done.returncode == 0, done.stderr
        return done

    def call(self, data: Path, tool: str, **params: Any) -> dict[str, Any]:
        """Call a tool as the owner; `antiphon call` does it where it has to start the kernel."""
        if lock_holder(data) is not None:
            return asyncio.run(_answer(data, tool, params))
        done = self.succeed("call", tool, json.dumps(params), "--data", str(data), "--json")
        result: dict[str, Any] = json.loads(done.stdout)
        return result

    def content(self, block: str) -> str:
        """Return the text of a block of the project."""
        return str(self.call(self.data, "block.read", block_id=block)["content"])

    def kernel(self) -> RunningKernel:
        found = newest_kernel(self.project)
        assert found is not None, "no kernel runs"
        return found

    def end_kernel(self) -> None:
        """Ask the project's kernel to end, and wait until it has let go of its folder."""
        kernel = self.kernel()
        with suppress(ProcessLookupError):
            os.kill(kernel.pid, signal.SIGTERM)
        wait_until(lambda: lock_holder(kernel.data) != kernel.pid, "the kernel has ended")

    def close(self) -> None:
        """End everything that was started here."""
        for terminal in self._terminals:
            terminal.close()
        kernels = list(running_kernels())
        for kernel in kernels:
            with suppress(ProcessLookupError):
                os.kill(kernel.pid, signal.SIGTERM)
        deadline = time.monotonic() + END_SECONDS
        while kernels and time.monotonic() < deadline:
            time.sleep(0.02)
            kernels = [one for one in kernels if lock_holder(one.data) == one.pid]
        for kernel in (*kernels, *running_kernels()):
            with suppress(ProcessLookupError):
                os.kill(kernel.pid, signal.SIGKILL)


async def _answer(data: Path, tool: str, params: Mapping[str, Any]) -> dict[str, Any]:
    calls = ToolClient(lambda: stated_address(data), once=True)
    try:
        return await calls.call(tool, params)
    finally:
        await calls.close()


class Guest:
    """Another user of the same machine, with an invitation and nothing else."""

    def __init__(self, machine: Machine, role: str, name: str) -> None:
        made = machine.succeed("invite", "--role", role, "--name", name, "--json")
        self.url = json.loads(made.stdout)["join"].split()[-1]
        self.token = self.url.partition("token=")[2]
        self.home = machine.home / name
        self._machine = machine
        self.env = {f"XDG_{kind}_HOME": str(self.home / kind) for kind in ("STATE", "CONFIG")}
        self.env |= {"HOME": str(self.home)}
        self.home.mkdir()

    def run(
        self, *arguments: str, stdin: str = "", env: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run `antiphon ARGUMENTS` in their home."""
        return self._machine.run(
            *arguments, stdin=stdin, env={**self.env, **(env or {})}, cwd=self.home
        )


def shown_by_ps() -> bytes:
    """Return the command lines of all processes whose this user may read."""
    return b"".join(
        path.read_bytes()
        for path in Path("/proc").glob("[0-9]*/cmdline")
        if os.access(path, os.R_OK)
    )
