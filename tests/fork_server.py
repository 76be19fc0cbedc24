"""Processes of the program that do not import it again: a small server forks them.

Most of what a command takes on a processor are its imports, half a second of them, and the same for
a kernel that it starts. Here a process has imported the whole program; it forks itself for each
process that a test starts, which becomes what `exec` would have made of it: own arguments,
environment, folder, streams, session, terminal, exit code. It is a child of the test, not of the
server, so that all is as with any other process, except for what /proc tells as its command line.
Programs that it starts or becomes itself are treated alike. All others are executed, and all are
where this is not possible.
"""

from __future__ import annotations

import asyncio
import atexit
import contextvars
import ctypes
import fcntl
import gc
import importlib
import json
import multiprocessing.util
import os
import pkgutil
import platform
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
import termios
import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

SCRIPT: Final = str(Path(sys.executable).with_name("antiphon"))
MODULES: Final = ("antiphon", "antiphon_kernel", "antiphon.hosts", "antiphon.guest")
"""Modules that `python -m` runs."""

_CLONE: Final = {"x86_64": 56, "aarch64": 220}
"""Numbers of the system call; others are made by `os.fork`, whose child is the server's."""
_CLONE_PARENT: Final = 0x8000
_LEFT_OUT: Final = ("acp", "pydantic_ai", "anthropic", "google", "openai")
"""Libraries that take seconds to import and are rarely needed; modules with them are left out."""

_FIRST_FILE: Final = 3
_ALL_FILES: Final = 1 << 16

_PARAMETERS: Final = (
    *("args", "executable", "preexec_fn", "close_fds", "pass_fds", "cwd", "env", "startupinfo"),
    *("creationflags", "shell", "p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread"),
    *("errwrite", "restore_signals", "gid", "gids", "uid", "umask", "start_new_session"),
)
"""Parameters of `Popen._execute_child`; there may be more, of which none is used."""


def module_of(argv: Sequence[object]) -> tuple[str, list[str]] | None:
    """Return the module that a command line runs, and its arguments; None if it is no such line."""
    if not all(isinstance(one, str) for one in argv):
        return None
    words = [str(one) for one in argv]
    if words[:1] == [SCRIPT]:
        return "antiphon", words
    rest = words[2:] if words[1:2] == ["-P"] else words[1:]
    if words[:1] != [sys.executable] or rest[:1] != ["-m"] or rest[1] not in MODULES:
        return None
    return rest[1], [f"-m {rest[1]}", *rest[2:]]


def can_fork(argv: Sequence[object], env: Mapping[str, str]) -> bool:
    """Whether a process of the program can be forked in place of being executed."""
    is_known = sys.platform == "linux" and platform.machine() in _CLONE
    return is_known and module_of(argv) is not None and _takes(env)


def _takes(env: Mapping[str, str]) -> bool:
    """Whether an environment differs in nothing that is looked at when the program is imported."""
    read = ("PYTHON", "TEXTUAL_")
    here, there = ({one: of[one] for one in of if one.startswith(read)} for of in (os.environ, env))
    for one in (here, there):
        one.pop("TEXTUAL_SNAPSHOT_TEMPDIR", None)  # of the plugin of pytest
    return here == there and env.get("LC_ALL") == "C.UTF-8"


class ForkedProcess(subprocess.Popen[Any]):
    """A process that is forked if it can be, and executed otherwise.

    Args:
        fork: makes a process from what is asked for, and returns its number.
        takes_terminal: whether its standard input becomes its terminal.
        before: Python that it executes before it becomes the program.
    """

    def __init__(
        self,
        argv: Sequence[Any],
        *,
        fork: Callable[[dict[str, Any], list[int]], int] | None = None,
        takes_terminal: bool = False,
        before: str = "",
        **options: Any,
    ) -> None:
        self._fork = fork or _fork_here
        self._special = {"terminal": takes_terminal, "before": before}
        super().__init__(argv, **options)

    def _execute_child(self, *given: Any) -> None:
        named = dict(zip(_PARAMETERS, given, strict=False))
        env = dict(os.environ if named["env"] is None else named["env"])
        args = named["args"]
        found = None if isinstance(args, str | bytes | os.PathLike) else module_of(list(args))
        is_plain = named["preexec_fn"] is None and not named["shell"] and named["close_fds"]
        if found is None or not is_plain or not _takes(env):
            super()._execute_child(*given)  # type: ignore[misc]
            return
        cwd = os.fspath(named["cwd"] or Path.cwd())
        if not os.access(cwd, os.X_OK):
            raise FileNotFoundError(2, os.strerror(2), cwd)
        streams = (named["p2cread"], named["c2pwrite"], named["errwrite"])
        request = {
            "module": found[0],
            "argv": found[1],
            "cwd": cwd,
            "env": env,
            "session": bool(named["start_new_session"]),
            "kept": list(named["pass_fds"]),
            **self._special,
        }
        self.pid = self._fork(request, [at if one < 0 else one for at, one in enumerate(streams)])
        self._child_created = True
        self._close_pipe_fds(  # type: ignore[attr-defined]
            *(named[one] for one in _PARAMETERS[10:16])
        )


# In the server and what it forks


def _fork_here(request: dict[str, Any], files: Sequence[int]) -> int:
    """Fork this process, which has imported the program."""
    pid = os.fork()
    if pid == 0:
        _become(request, files)
    return pid


def _fork_passing(path: Any, args: Sequence[Any], files: Sequence[int]) -> int:
    """Fork this process in place of a process of `multiprocessing`, which would import it anew."""
    if args[-2] != "-c" or not args[-1].startswith("from multiprocessing."):
        return _SPAWN(path, args, files)
    now = {"session": False, "terminal": False, "cwd": ".", "before": "", "env": dict(os.environ)}
    request = {"code": args[-1], "argv": ["-c"], "kept": [*map(int, files)], **now}
    return _fork_here(request, [0, 1, 2])


_SPAWN: Final = multiprocessing.util.spawnv_passfds


def _become(request: dict[str, Any], files: Sequence[int] | None = None) -> None:
    """Be what is asked for until the end of the process; `files` are its standard streams."""
    gc.freeze()  # files of these objects are not closed, whose numbers others have
    atexit._clear()  # noqa: SLF001
    asyncio._set_running_loop(None)  # noqa: SLF001
    tempfile.tempdir = None
    code = 1
    try:
        if request["session"]:
            os.setsid()
        if files is not None:
            copies = [fcntl.fcntl(one, fcntl.F_DUPFD_CLOEXEC, 2**10) for one in files]
            for at, copy in enumerate(copies):
                os.dup2(copy, at)
            first = _FIRST_FILE
            for kept in sorted(request["kept"]):
                os.closerange(first, kept)
                first = kept + 1
            os.closerange(first, _ALL_FILES)
        if request["terminal"]:
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        os.chdir(request["cwd"])
        exec(request["before"])
        os.environ.clear()
        os.environ.update(request["env"])
        time.tzset()
        _default_signals()
        _open_streams()
        sys.argv = list(request["argv"])
        try:
            context = contextvars.Context()
            if "code" in request:
                context.run(exec, request["code"], {})
            else:
                context.run(runpy.run_module, request["module"], run_name="__main__")
            code = 0
        except SystemExit as end:
            code = _code_of(end)
        except KeyboardInterrupt:
            traceback.print_exc()
            _flush()
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGINT)
        threading._shutdown()  # type: ignore[attr-defined]  # noqa: SLF001
        atexit._run_exitfuncs()  # noqa: SLF001
    except BaseException:  # noqa: BLE001
        traceback.print_exc()
    finally:
        _flush()
        os._exit(code & 0xFF)


def _code_of(end: SystemExit) -> int:
    if end.code is None or isinstance(end.code, int):
        return end.code or 0
    sys.stderr.write(f"{end.code}\n")
    return 1


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()


def _default_signals() -> None:
    for number in signal.valid_signals():
        if callable(signal.getsignal(number)):
            signal.signal(number, signal.SIG_DFL)
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)


def _open_streams() -> None:
    """Open the standard streams as Python does when it starts."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        stream = None
        with suppress(OSError):
            os.fstat(number)
            stream = open(  # noqa: SIM115
                number,
                "r" if number == 0 else "w",
                buffering=1 if number == 2 or os.isatty(number) else -1,
                encoding="utf-8",
                errors="backslashreplace" if number == 2 else "surrogateescape",
                closefd=False,
            )
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


def _exec(path: str, argv: list[str], env: Mapping[str, str] | None = None) -> None:
    env = dict(os.environ if env is None else env)
    found = module_of(argv)
    if found is None or not _takes(env):
        _EXECVE(path, argv, env)
    assert found is not None
    _flush()
    now = {"session": False, "terminal": False, "cwd": ".", "before": "", "env": env}
    _become({"module": found[0], "argv": found[1], **now})


_EXECVE: Final = os.execve


def _child_of_parent() -> int:
    """Fork; the child has the parent that this process has."""
    python, number = ctypes.pythonapi, _CLONE[platform.machine()]
    system_call = ctypes.PyDLL(None, use_errno=True).syscall
    python.PyOS_BeforeFork()
    pid = int(system_call(number, _CLONE_PARENT | signal.SIGCHLD, 0, 0, 0, 0))
    if pid == 0:
        python.PyOS_AfterFork_Child()
    else:
        python.PyOS_AfterFork_Parent()
    if pid < 0:
        raise OSError(ctypes.get_errno(), "no process")
    return pid


def _import_all() -> None:
    for name in _LEFT_OUT:
        sys.modules[name] = None  # type: ignore[assignment]  # to import it fails
    for name in ("antiphon", "antiphon_kernel"):
        for module in pkgutil.walk_packages(importlib.import_module(name).__path__, f"{name}."):
            if not module.name.endswith("__main__"):
                with suppress(ImportError):
                    importlib.import_module(module.name)
    for name in _LEFT_OUT:
        del sys.modules[name]


def serve(control: socket.socket) -> None:
    """Fork what is asked for until nobody asks any more."""
    gc.disable()
    _import_all()
    subprocess.Popen = ForkedProcess  # type: ignore[misc, assignment]
    os.execve = _exec  # type: ignore[assignment]
    os.execv = _exec  # type: ignore[assignment]
    multiprocessing.util.spawnv_passfds = _fork_passing  # type: ignore[assignment]
    gc.freeze()
    gc.enable()
    while True:
        head, files, _, _ = socket.recv_fds(control, 8, 16)
        if len(head) < 8:
            return
        left = int.from_bytes(head, "big")
        data = b""
        while len(data) < left:
            data += control.recv(left - len(data))
        pid = _child_of_parent()
        if pid == 0:
            _become(json.loads(data), files)
        for one in files:
            os.close(one)
        control.sendall(pid.to_bytes(8, "big"))


# In the tests


class _Server:
    """The server of this process of tests, started with the first process that it is to fork."""

    def __init__(self) -> None:
        self._control: socket.socket | None = None
        self._lock = threading.Lock()

    def fork(self, request: dict[str, Any], files: list[int]) -> int:
        data = json.dumps(request).encode()
        with self._lock:
            if self._control is None:
                self._control = self._start()
            socket.send_fds(self._control, [len(data).to_bytes(8, "big")], files)
            self._control.sendall(data)
            return int.from_bytes(self._control.recv(8, socket.MSG_WAITALL), "big")

    def _start(self) -> socket.socket:
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", __file__, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                cwd="/",
                env={
                    **{name: os.environ[name] for name in os.environ if name.startswith("PYTHON")},
                    "LC_ALL": "C.UTF-8",
                    "PATH": os.defpath,
                    "HOME": "/nowhere",
                },
                start_new_session=True,
            )
        return ours


_SERVER: Final = _Server()


def start_process(
    argv: Sequence[Any], *, forks: bool = True, before: str = "", **options: Any
) -> subprocess.Popen[Any]:
    """Start a process like `subprocess.Popen`, without a terminal.

    Args:
        forks: whether it is forked if it can be: it has another command line then.
        before: Python that it executes before it becomes the program.
    """
    env = options["env"] = {"LC_ALL": "C.UTF-8", **(options.get("env") or os.environ)}
    if forks and can_fork(argv, env):
        return ForkedProcess(argv, fork=_SERVER.fork, before=before, **options)
    prepare = (lambda: exec(before)) if before else None
    return subprocess.Popen(argv, preexec_fn=prepare, **options)  # noqa: PLW1509


def fork_in_terminal(argv: Sequence[str], terminal: int, **options: Any) -> subprocess.Popen[bytes]:
    """Fork a process that `can_fork`, in a session and a terminal of its own."""
    streams = dict.fromkeys(("stdin", "stdout", "stderr"), terminal)
    return ForkedProcess(
        argv,
        **(streams | options),
        fork=_SERVER.fork,
        takes_terminal=True,
        start_new_session=True,
    )


def run_process(
    argv: Sequence[Any], stdin: bytes = b"", *, timeout: float = 60, **options: Any
) -> subprocess.CompletedProcess[Any]:
    """Run a process to its end, like `subprocess.run`."""
    for name in ("stdin", "stdout", "stderr"):
        options.setdefault(name, subprocess.PIPE)
    with start_process(argv, **options) as process:
        try:
            output, errors = process.communicate(stdin, timeout)
        except BaseException:
            process.kill()
            raise
    return subprocess.CompletedProcess(argv, process.returncode, output, errors)


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[1])) as at:
        serve(at)
