"""Process of a guest's session, from its fork to its end."""

from __future__ import annotations

import fcntl
import os
import sys
import termios
import time
import traceback
from typing import Final

from antiphon.guest.confinement import confine
from antiphon.hosts.guest_processes import GuestRequest

_LOG: Final = 100
"""The file that failures of a session are written to."""

_MOST_FILES: Final = 65_536


def run_process(request: GuestRequest, files: list[int]) -> None:
    """Become the session; ends the process."""
    code = 1
    try:
        code = _run_session(request, files)
    finally:
        os._exit(code)  # nothing of the process that was forked goes on in the session


def _run_session(request: GuestRequest, files: list[int]) -> int:
    _take_streams(files, request.has_terminal)
    os.environ.clear()
    os.environ.update(request.environment)
    time.tzset()
    folder = request.folder
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
    # The fork server has closed its own; Textual reads from the one of the start.
    sys.stdin = sys.__stdin__ = os.fdopen(0, encoding="utf-8")  # type: ignore[misc]
    os.closerange(3, _LOG)
    os.closerange(_LOG + 1, _MOST_FILES)
    if has_terminal:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def _run_app(request: GuestRequest) -> None:
    from antiphon.app import open_app
    from antiphon.cli.opening import require_terminal
    from antiphon.options import AppOptions

    require_terminal()
    options = AppOptions(
        data=request.folder,
        address=request.address,
        project=request.folder / "files",
        is_guest=True,
    )
    open_app(options, request.project)


def _run_command(request: GuestRequest) -> None:
    from antiphon.cli.commands import antiphon
    from antiphon.cli.kernel_option import KernelTarget

    assert request.command is not None
    target = KernelTarget(lambda: lambda: request.address)
    antiphon(list(request.command), prog_name="antiphon", obj=target)
