"""One session of a guest, in a process that has just been forked."""

from __future__ import annotations

import fcntl
import os
import sys
import termios
import time
import traceback
from importlib import import_module
from pathlib import Path
from typing import Final

from antiphon.guest.confinement import confine
from antiphon.ssh.guest_processes import GuestRequest

_PRELOADED: Final = (
    "antiphon.app",
    "antiphon.cli.call",
    "antiphon.cli.commands",
    "antiphon.cli.tail",
    "antiphon_kernel.client.transfers",
    "textual.command",
    "textual.drivers.linux_driver",
    "textual.layouts.factory",
    "textual.widgets.input",
    "websockets.asyncio.client",
)

_LOG: Final = 100
"""The file that the fork server's errors go to."""

_MOST_FILES: Final = 65_536


def preload() -> None:
    """Import what sessions need, so that each of them finds it in memory."""
    for name in _PRELOADED:
        import_module(name)


def run_session(request: GuestRequest, files: list[int]) -> int:
    """Become the session; return the exit code."""
    _take_streams(files, request.has_terminal)
    os.environ.clear()
    os.environ.update(request.environment)
    time.tzset()
    folder = Path(request.folder)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.chdir(folder)
    confine(folder, request.address.http)
    from antiphon_kernel.client.standard_streams import run_command

    work = _run_app if request.command is None else _run_command
    try:
        run_command(lambda: work(request))
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except Exception:  # noqa: BLE001  the guest is told that, the owner why
        os.write(_LOG, traceback.format_exc().encode("utf-8", "replace"))
        os.write(2, b"antiphon: the session has failed.\r\n")
        return 1
    finally:
        sys.stderr.flush()
    return 0


def _take_streams(files: list[int], has_terminal: bool) -> None:
    """Make the files the standard streams, of a session of its own, and close all others."""
    os.setsid()
    os.dup2(2, _LOG)
    inputs = files * 3 if has_terminal else files
    for number, file in enumerate(inputs[:3]):
        os.dup2(file, number)
    os.closerange(3, _LOG)
    os.closerange(_LOG + 1, _MOST_FILES)
    if has_terminal:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def _run_app(request: GuestRequest) -> None:
    from antiphon.app import AntiphonApp
    from antiphon.cli.terminal_check import require_terminal
    from antiphon.options import AppOptions

    require_terminal()
    options = AppOptions(
        data=Path(request.folder),
        address=request.address,
        project=Path(request.folder) / "files",
        is_guest=True,
    )
    app = AntiphonApp(options, place=request.project)
    app.run()
    sys.exit(app.return_code or 0)


def _run_command(request: GuestRequest) -> None:
    from antiphon.cli.commands import antiphon
    from antiphon.cli.kernel_option import KernelTarget

    assert request.command is not None
    target = KernelTarget(lambda: lambda: request.address)
    antiphon(list(request.command), prog_name="antiphon", obj=target)
