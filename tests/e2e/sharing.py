"""A project that is shared over SSH, and guests who come with the real OpenSSH client."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import shutil
import signal
import subprocess
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pytest

from antiphon_kernel.client.address import lock_holder
from tests.e2e.machine import Machine
from tests.e2e.terminal import Terminal
from tests.kernel.served import CuttableProxy
from tests.waiting import PATIENCE, wait_until

SSH: Final = shutil.which("ssh")
KEYGEN: Final = shutil.which("ssh-keygen")

needs_openssh = pytest.mark.skipif(
    SSH is None or KEYGEN is None,
    reason="the OpenSSH client is not installed (apt-get install openssh-client)",
)

NO_CHECKS: Final = ("-F", "none", "-o", "StrictHostKeyChecking=no", "-o", "LogLevel=ERROR")


class SharedProject(Machine):
    """A machine whose project is shared; several tests may use it one after the other."""

    def __init__(self, folder: Path) -> None:
        home, project = folder / "home", folder / "project"
        (project / ".git").mkdir(parents=True)
        home.mkdir()
        super().__init__(home, project)
        self.env = {name: value for name, value in self.env.items() if "XDG_" not in name} | {
            "HOME": str(home),
            **{
                f"XDG_{name}_HOME": str(home / name.lower())
                for name in ("CONFIG", "STATE", "DATA", "CACHE")
            },
        }
        config = home / "config" / "antiphon" / "config.toml"
        config.parent.mkdir(parents=True)
        config.write_text("[discovery]\nlocal_ports = []\n")
        self.keys = folder / "keys"
        self.keys.mkdir()
        self.port = 0

    def share(self, *options: str) -> dict[str, Any]:
        """Run `antiphon share OPTIONS`, which must end well."""
        told: dict[str, Any] = json.loads(self.succeed("share", "--json", *options).stdout)
        self.port = told.get("port", self.port)
        return told

    def key(self, name: str, *options: str) -> Path:
        """Return the private key of somebody, made at first use; the public one is beside it."""
        path = self.keys / name
        if not path.exists():
            command = [KEYGEN or "", "-q", "-t", "ed25519", "-N", "", "-C", f"{name}@there"]
            subprocess.run([*command, "-f", str(path), *options], check=True)
        return path

    def let_in(self, name: str, role: str = "editor") -> None:
        """Let somebody in by a key of theirs; the first one is let in by the command."""
        public = Path(f"{self.key(name)}.pub")
        if self.port:
            self.tool("key.add", key=public.read_text(), name=name, role=role)
        else:
            self.share("--keys", str(public), "--role", role, "--name", name)

    def ssh(self, name: str, *arguments: str, user: str = "", port: int | None = None) -> list[str]:
        """Return the command line of a guest: `ssh OPTIONS HOST COMMAND`."""
        options = list(itertools.takewhile(lambda one: one.startswith("-"), arguments))
        command = arguments[len(options) :]
        return [
            SSH or "",
            *NO_CHECKS,
            *("-o", f"UserKnownHostsFile={self.keys / 'known_hosts'}"),
            *("-o", "IdentitiesOnly=yes", "-o", "IdentityAgent=none", "-i", str(self.key(name))),
            *("-p", str(port or self.port), *options),
            f"{user}@localhost" if user else "localhost",
            *command,
        ]

    def guest(
        self, name: str, *arguments: str, stdin: bytes = b"", user: str = "", timeout: float = 60
    ) -> subprocess.CompletedProcess[str]:
        """Run a guest's ssh to its end, without a terminal."""
        return self.run_program(self.ssh(name, *arguments, user=user), stdin, timeout=timeout)

    def guest_terminal(
        self, name: str, *arguments: str, cols: int = 80, rows: int = 24, port: int | None = None
    ) -> Terminal:
        """Open the app as a guest; whoever asks for it closes it."""
        return Terminal(self.ssh(name, *arguments, port=port), env=self.env, cols=cols, rows=rows)

    def tool(self, tool: str, **params: Any) -> dict[str, Any]:
        """Call a tool as the owner."""
        return self.call(self.data, tool, **params)

    def sessions(self, username: str, via: str = "ssh") -> list[dict[str, Any]]:
        """Return the sessions at a host that somebody has open."""
        members = {one["username"]: one for one in self.tool("kernel.members")["members"]}
        found = members.get(username, {"sessions": []})["sessions"]
        return [one for one in found if one["via"] == via and "within" not in one]

    @property
    def host_pid(self) -> int:
        """Process id of the SSH host."""
        holder = lock_holder(self.data, "ssh.lock")
        assert holder is not None
        return holder

    def close(self) -> None:
        for terminal in self._terminals:
            terminal.close()
        for lock in ("ssh.lock", "web.lock", "kernel.lock"):
            pid = lock_holder(self.data, lock)
            if pid is not None:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGTERM)
                wait_until(lambda: lock_holder(self.data, lock) is None, f"the end of {lock}")  # noqa: B023


class RelayThread:
    """A relay in front of a port, whose network can be slow and be taken away."""

    def __init__(self, port: int, delay: float = 0) -> None:
        """`delay` is how many seconds everything takes each way."""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._proxy = CuttableProxy(port, delay)
        asyncio.run_coroutine_threadsafe(self._proxy.start(), self._loop).result(PATIENCE)
        self.port = self._proxy.port

    def stop(self) -> None:
        """Relay nothing any more, with every connection open."""
        self._loop.call_soon_threadsafe(self._proxy.stop)

    def go_on(self) -> None:
        """Relay again, what has come meanwhile first."""
        self._loop.call_soon_threadsafe(self._proxy.go_on)

    def close(self) -> None:
        asyncio.run_coroutine_threadsafe(self._proxy.close(), self._loop).result(PATIENCE)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE)


def message(words: str) -> dict[str, Any]:
    """Return the fields of a message."""
    return {"role": "user", "kind": "text", "status": "done", "content": words}
