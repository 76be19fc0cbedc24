"""A real sshd of this user on the loopback interface."""

from __future__ import annotations

import os
import random
import shutil
import signal
import socket
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

import pytest

from tests.processes import children_of
from tests.waiting import wait_until

SSHD: Final = shutil.which("sshd", path=f"{os.defpath}:/usr/sbin:/usr/local/sbin")

needs_sshd = pytest.mark.skipif(
    SSHD is None or shutil.which("ssh") is None,
    reason="sshd is not installed (apt-get install openssh-server openssh-client)",
)


def free_port() -> int:
    """Return a port that stays free: the system chooses none below 32,768 by itself."""
    while True:
        port = random.SystemRandom().randrange(20_000, 32_768)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


class Sshd:
    """One server, and a client's folder with a configuration that leads to it as `there`."""

    def __init__(self, folder: Path, variables: Mapping[str, str]) -> None:
        """`variables` are what its shells get."""
        folder.mkdir(mode=0o700)
        for name in ("host", "user"):
            command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)]
            subprocess.run(command, check=True)
        self.port = free_port()
        environment = " ".join(f'{name}="{value}"' for name, value in variables.items())
        (folder / "sshd_config").write_text(
            f"ListenAddress 127.0.0.1\nPort {self.port}\nHostKey {folder / 'host'}\n"
            f"PidFile {folder / 'pid'}\nAuthorizedKeysFile {folder / 'user.pub'}\n"
            "StrictModes no\nUsePAM no\nPasswordAuthentication no\nPermitRootLogin yes\n"
            f"SetEnv {environment}\n"
        )
        self.options = (
            *("-F", "none", "-o", f"UserKnownHostsFile={folder / 'known'}"),
            *("-o", "StrictHostKeyChecking=no", "-o", "LogLevel=ERROR"),
            *("-i", str(folder / "user"), "-o", "IdentitiesOnly=yes"),
        )
        self.bin = folder / "bin"
        self.bin.mkdir()
        ssh = self.bin / "ssh"
        ssh.write_text(f'#!/bin/sh\nexec {shutil.which("ssh")} {" ".join(self.options)} "$@"\n')
        ssh.chmod(0o755)
        self._folder = folder
        # sshd wants this folder of its package; it is there wherever that was started once.
        with suppress(OSError):
            Path("/run/sshd").mkdir(exist_ok=True)
        self.start()

    def start(self) -> None:
        """Listen."""
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [SSHD or "", "-D", "-e", "-f", str(self._folder / "sshd_config")],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        wait_until(self._listens, "sshd")

    def _listens(self) -> bool:
        assert self._process.poll() is None, (self._folder / "log").read_text()
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def cut(self) -> None:
        """End the server with every connection."""
        for child in children_of(self._process.pid):
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        self._process.terminate()
        self._process.wait()
