"""Starting and ending the SSH host of a data folder."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from antiphon.ssh.files import LOCK_FILE, LOG_FILE, SshAddress, running_host
from antiphon_kernel.client.address import lock_holder
from antiphon_kernel.types.errors import AntiphonError, ErrorCode

START_SECONDS: Final = 20.0
END_SECONDS: Final = 15.0

_POLL_SECONDS: Final = 0.02
_SHOWN_LOG_LINES: Final = 3

_KEPT: Final = ("HOME", "LANG", "LOGNAME", "PATH", "TMPDIR", "TZ", "USER", "VIRTUAL_ENV")
_KEPT_BEGINNINGS: Final = ("LC_", "PYTHON", "XDG_")


def start_host(
    data: Path, *, bind: str, port: int, ask: bool, until: int | None
) -> tuple[SshAddress, bool]:
    """Return the running SSH host of a data folder, and whether it was started now.

    Raises:
        AntiphonError: no_kernel if it does not come up, with the end of its log.
    """
    running = running_host(data)
    if running is not None:
        return running, False
    command = [sys.executable, "-P", "-m", "antiphon.ssh", "--data", str(data)]
    command += ["--bind", bind, "--port", str(port), *(["--ask"] if ask else [])]
    command += ["--until", str(until)] if until is not None else []
    log_file = os.open(data / LOG_FILE, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    with os.fdopen(log_file, "ab") as log:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=log,
            cwd=data,
            env=_environment(os.environ),
            start_new_session=True,
        )
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        running = running_host(data)
        if running is not None:
            return running, running.pid == process.pid
        if process.poll() is not None:
            break
        time.sleep(_POLL_SECONDS)
    log_path = data / LOG_FILE
    with log_path.open(encoding="utf-8", errors="replace") as lines:
        tail = "".join(deque(lines, maxlen=_SHOWN_LOG_LINES)).strip()
    raise AntiphonError(
        ErrorCode.NO_KERNEL, f"The SSH host does not start. The end of {log_path}:\n{tail}"
    )


def stop_host(data: Path) -> bool:
    """End the SSH host of a data folder with all its sessions; whether one ran."""
    pid = lock_holder(data, LOCK_FILE)
    if pid is None:
        return False
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + END_SECONDS
    while lock_holder(data, LOCK_FILE) == pid and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)
    return True


def _environment(variables: Mapping[str, str]) -> dict[str, str]:
    """Leave out what is none of the host's business, keys of models before all."""
    return {
        name: value
        for name, value in variables.items()
        if name in _KEPT or name.startswith(_KEPT_BEGINNINGS)
    }
