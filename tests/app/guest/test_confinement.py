"""Limits of the process of a guest's session."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from antiphon.guest.confinement import has_socket_filter, landlock_version

_CONFINED = """
import ctypes, errno, json, os, sys, socket, subprocess
from pathlib import Path
import antiphon.app
from antiphon.guest.confinement import confine
own = Path(sys.argv[1])
above = os.open("..", os.O_RDONLY)
libc = ctypes.CDLL(None, use_errno=True)
def machine_code(name, *arguments):
    if (number := getattr(libc, name)(*arguments)) < 0:
        raise OSError(ctypes.get_errno(), "by machine code")
    return number
unix = (1).to_bytes(2, "little") + sys.argv[3].encode() + bytes(1)
confine(own, "http://127.0.0.1:4711")
for code in json.loads(sys.argv[2]):
    try:
        exec(code)
    except MemoryError:
        print("refused")
    except OSError as error:
        refused = error.errno in (None, errno.EACCES, errno.EPERM, errno.EFBIG, errno.EMFILE,
                                        errno.EISCONN)
        print("refused" if refused else f"{code}: {error}".replace(" ", "_"))
    else:
        print("done")
"""

_INSIDE = "os.makedirs('a/b', exist_ok=True); os.chdir('a/b'); at = os.open(own, os.O_RDONLY); "
"""Goes to where `..` is still in the folder, while `at` is the folder itself."""

_FORK = (
    "import _posixsubprocess\n"
    "pid = _posixsubprocess.fork_exec([b'/bin/true'], [b'/bin/true'], True, (), None, None, -1, -1,"
    " -1, -1, -1, -1, *os.pipe(), True, False, 0, None, None, None, -1, None, False)\n"
    "if os.waitpid(pid, 0)[1]: raise PermissionError"
)

CASES = (
    ("subprocess.run(['true'])", True),
    ("os.system('true')", True),
    ("import asyncio; asyncio.run(asyncio.create_subprocess_exec('true'))", True),
    ("os.posix_spawn('/bin/true', ['true'], {})", True),
    ("import pty; pty.fork()", True),
    ("os.execv('/bin/true', ['true'])", True),
    ("os.fork()", True),
    ("open('/etc/passwd').read()", True),
    ("os.listdir('/etc')", True),
    ("os.open('/etc/passwd', os.O_RDONLY)", True),
    ("open(own / '..' / 'other').read()", True),
    ("os.symlink('/etc/passwd', own / 'link')\nopen(own / 'link').read()", True),
    ("(own / '..' / 'new').write_text('x')", True),
    ("os.rename(own / 'file', own / '..' / 'moved')", True),
    ("os.remove(own / '..' / 'other')", True),
    ("socket.create_connection(('127.0.0.1', 22))", True),
    ("socket.socket(socket.AF_UNIX).connect('/run/kernel.sock')", True),
    ("os.kill(1, 0)", True),
    ("os.killpg(os.getpgid(1), 0)", True),
    ("os.chdir('/etc')", True),
    ("os.fchdir(above)\nopen('other').read()", True),
    ("os.chdir(own)", False),
    (_INSIDE + "os.open('../other', os.O_RDONLY, dir_fd=at)", True),
    (_INSIDE + "os.open('../made', os.O_WRONLY | os.O_CREAT, dir_fd=at)", True),
    (_INSIDE + "os.mkdir('../made', dir_fd=at)", True),
    (_INSIDE + "os.remove('../other', dir_fd=at)", True),
    (_INSIDE + "os.rename('../other', 'mine', src_dir_fd=at, dst_dir_fd=at)", True),
    (_INSIDE + "os.symlink('../other', '../../link', dir_fd=at)", True),
    ("os.chdir(own)", False),
    ("os.open(sys.prefix, os.O_RDONLY)", True),
    ("os.link(own / '..' / 'other', own / 'link')", True),
    ("open(f'/proc/self/fd/{above}/other').read()", True),
    ("open('/proc/self/cwd/../other').read()", True),
    ("open('/proc/self/root/etc/passwd').read()", True),
    ("open('/proc/self/environ').read()", True),
    ("os.listdir('/proc/self/fd')", True),
    ("os.truncate(own / '..' / 'other', 0)", True),
    ("os.setxattr(own / '..' / 'other', 'user.x', b'x')", True),
    ("import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (9, 9))", True),
    ("(own / 'long').write_bytes(bytes(60_000_000))", True),
    ("[open(own / 'file') for _ in range(300)]", True),
    ("bytearray(2_000_000_000)", True),
    ("import ctypes; ctypes.CDLL(None)", True),
    ("(own / 'file').write_text('x')\nassert (own / 'file').read_text() == 'x'", False),
    ("import antiphon.screens.modals, zoneinfo", False),
    ("os.kill(os.getpid(), 0)", False),
    ("socket.socketpair()", False),
)

OF_THE_SYSTEM = (
    ("os.open('other', os.O_RDONLY, dir_fd=above)", True),
    ("os.open('made', os.O_WRONLY | os.O_CREAT, dir_fd=above)", True),
    ("os.listdir(above)", False),  # a session has no such folder open
    ("os.mkfifo(own / '..' / 'made')", True),
    ("os.mkfifo(own / 'made')", True),
    ("os.mknod(own / '..' / 'made')", True),
    ("import ssl; ssl.create_default_context().load_cert_chain(own / '..' / 'other')", True),
    ("import signal; signal.pidfd_send_signal(os.pidfd_open(os.getppid()), 0)", True),
    (_FORK, True),
    ("import sqlite3", False),
    ("(own / 'file').write_text('x'); os.replace(own / 'file', own / 'moved')", False),
    ("open('/dev/null', 'w').write('x')", False),
)
"""Python has no audit event for it, or not all that is to be known is in it."""


OF_MACHINE_CODE = (
    ("machine_code('connect', machine_code('socket', 1, 1, 0), unix, len(unix))", True),
    ("one, _ = socket.socketpair(); machine_code('connect', one.fileno(), unix, len(unix))", True),
    *((f"machine_code('socket', 1, {kind}, 0)", True) for kind in (1, 2, 5, 1 | 0o2004000)),
    *((f"machine_code('socketpair', 1, {kind}, 0, bytes(8))", True) for kind in (2, 5)),
    *((f"machine_code('socket', {family}, 1, 0)", True) for family in (16, 17, 38, 40)),
    *((f"machine_code('socket', 2, {kind}, 0)", True) for kind in (2, 3)),
    ("machine_code('socket', 2, 1, 262)", True),
    ("machine_code('syscall', 425, 1, bytes(120))", True),
    ("machine_code('syscall', 0x40000000 + 41, 1, 1, 0)", True),
    *((f"machine_code('socket', {family}, 1 | 0o2004000, 6)", False) for family in (2, 10)),
    ("import asyncio; asyncio.run(asyncio.sleep(0))", False),
)
"""Sockets, opened by functions that are loaded already and that Python does not see."""


@pytest.fixture
def listening(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    path = tmp_path_factory.mktemp("host") / "socket"
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(path))
        one.listen()
        yield path


def test_confined_process_has_its_own_folder_and_its_kernel_only(
    tmp_path: Path, listening: Path
) -> None:
    """A system without Landlock (Linux 5.13) or the filter of sockets is tested without them."""
    cases = [*CASES]
    cases += OF_THE_SYSTEM if landlock_version() else ()
    cases += OF_MACHINE_CODE if has_socket_filter() else ()
    own = tmp_path / "own"
    own.mkdir()
    (own / "file").write_text("mine")
    (tmp_path / "other").write_text("theirs")
    codes = json.dumps([code for code, _ in cases])
    done = subprocess.run(
        [sys.executable, "-P", "-c", _CONFINED, str(own), codes, str(listening)],
        capture_output=True,
        text=True,
        cwd=own,
        check=False,
    )
    answers = done.stdout.split()
    assert len(answers) == len(cases), done.stderr
    wrong = [
        code
        for (code, is_refused), answer in zip(cases, answers, strict=True)
        if answer != ("refused" if is_refused else "done")
    ]
    assert wrong == [], answers
    assert {one.name for one in tmp_path.iterdir()} == {"own", "other"}
    assert (tmp_path / "other").read_text() == "theirs"
