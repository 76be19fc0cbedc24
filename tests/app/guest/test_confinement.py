"""Limits of Python code in the process of a guest's session."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

_CONFINED = """
import json, os, sys, socket, subprocess
from pathlib import Path
import antiphon.app
from antiphon.guest.confinement import confine
own = Path(sys.argv[1])
confine(own, "http://127.0.0.1:4711")
for code in json.loads(sys.argv[2]):
    try:
        exec(code)
    except PermissionError:
        print("refused")
    else:
        print("done")
"""

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
    ("import ctypes; ctypes.CDLL(None)", True),
    ("(own / 'file').write_text('x')\nassert (own / 'file').read_text() == 'x'", False),
    ("import antiphon.screens.modals, zoneinfo", False),
    ("os.kill(os.getpid(), 0)", False),
    ("socket.socketpair()", False),
)


def test_confined_process_has_its_own_folder_and_its_kernel_only(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "file").write_text("mine")
    (tmp_path / "other").write_text("theirs")
    codes = json.dumps([code for code, _ in CASES])
    done = subprocess.run(
        [sys.executable, "-P", "-c", _CONFINED, str(own), codes],
        capture_output=True,
        text=True,
        cwd=own,
        check=False,
    )
    answers = done.stdout.split()
    assert len(answers) == len(CASES), done.stderr
    wrong = [
        code
        for (code, is_refused), answer in zip(CASES, answers, strict=True)
        if answer != ("refused" if is_refused else "done")
    ]
    assert wrong == []
    assert (tmp_path / "other").read_text() == "theirs"
