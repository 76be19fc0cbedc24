"""`make install-check`: the built wheel, installed and removed as by somebody who has only that.

Each installer gets an empty home. What is left there at the end is compared with what the docs say.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from antiphon_kernel.client.address import stated_address
from tests.e2e.terminal import Terminal
from tests.processes import has_ended
from tests.waiting import wait_until

ROOT: Final = Path(__file__).parents[1]
EXTRAS: Final = ("agents", "models", "ssh", "web")
INSTALLERS: Final = {"pipx": ("pipx",), "uv tool": ("uv", "tool")}

STAYS: Final = (
    ".cache",
    ".local/bin",
    ".local/share/man",
    ".local/share/pipx",
    ".local/share/uv",
    ".local/state/antiphon",
    ".local/state/pipx",
    "project/.antiphon",
    "tmp",
)
"""What may be left in a home; docs/installing.md says so."""

NOT_PASSED: Final = ("ANTIPHON_", "PIPX_", "PYTHON", "TMUX", "UV_TOOL", "VIRTUAL_ENV", "XDG_")
"""Beginnings of variables that say something of the person who runs this."""


@contextmanager
def step(name: str) -> Iterator[None]:
    begun = time.monotonic()
    yield
    sys.stdout.write(f"  {name:<26} {time.monotonic() - begun:6.2f} s\n")


def check(installer: tuple[str, ...], wheel: Path, home: Path) -> None:
    """Install, use and remove antiphon in an empty home."""
    project = home / "project"
    for folder in (project, home / "tmp"):
        folder.mkdir(parents=True)
    env = {name: value for name, value in os.environ.items() if not name.startswith(NOT_PASSED)}
    env |= {"HOME": str(home), "LC_ALL": "C.UTF-8", "TMPDIR": str(home / "tmp")}
    env |= {"PATH": f"{home}/.local/bin:/usr/local/bin:/usr/bin:/bin", "SHELL": "/bin/sh"}
    tools = {"PATH": f"{env['PATH']}:{Path(sys.executable).parent}"}

    def run(*command: str, more: Mapping[str, str] = env) -> str:
        done = subprocess.run(
            command, env={**env, **more}, cwd=project, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}{done.stderr}"
        return done.stdout

    with step("install"):
        named = f"{wheel}[{','.join(EXTRAS)}]"
        run(*installer, "install", "--python", sys.executable, named, more=tools)
    with step("antiphon --version"):
        assert wheel.name.split("-")[1] in run("antiphon", "--version")
    with step("antiphon doctor --env"):
        said = run("antiphon", "doctor", "--env")
        assert not [one for one in ("agents", "openai", "web") if f"antiphon[{one}]: no" in said]
    with step("completion in bash"):
        script = 'eval "$(antiphon completion bash)"; COMP_WORDS=(antiphon doc); COMP_CWORD=1'
        typed = run("bash", "-c", f'{script}; _antiphon_completion antiphon; echo "$COMPREPLY"')
        assert typed == "doctor\n", typed
    if shutil.which("man") is not None:
        with step("man antiphon"):
            page = next((home / ".local").rglob("share/man/man1/antiphon.1"))
            assert "antiphon demo" in run("man", "--warnings", "-l", str(page))
            assert installer != ("pipx",) or run("man", "-w", "antiphon")
    with step("antiphon call"):
        assert '"username"' in run("antiphon", "call", "session.whoami")
        pid = stated_address(project / ".antiphon").pid
        os.kill(pid, signal.SIGTERM)
        wait_until(lambda: has_ended(pid), "the end of the kernel")
    with step("antiphon demo"), Terminal(["antiphon", "demo"], env=env, cwd=project) as terminal:
        terminal.wait_for("WRITE")
        terminal.type("hello\r")
        terminal.wait_for("That is where we are")
        terminal.press("ctrl+q")
        terminal.wait_for_end()
        assert b"This opens it again" in terminal.output
    with step("uninstall"):
        run(*installer, "uninstall", "antiphon", more=tools)
    left = [one.relative_to(home).as_posix() for one in home.rglob("*") if not one.is_dir()]
    places = {one: next((at for at in STAYS if one.startswith(f"{at}/")), None) for one in left}
    unknown = [one for one, place in places.items() if place is None or one.endswith("/antiphon")]
    assert unknown == [], "left, and the docs do not say so"
    sys.stdout.write(f"  left: {', '.join(sorted({str(one) for one in places.values()}))}\n")


def main() -> None:
    told = (ROOT / "docs" / "installing.md").read_text("utf-8")
    assert [one for one in STAYS if f"`{one}`" not in told] == []
    with tempfile.TemporaryDirectory(prefix="antiphon-install-") as folder:
        built = Path(folder) / "dist"
        command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(built)]
        with step("build"):
            subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
        for name, installer in INSTALLERS.items():
            sys.stdout.write(f"{name}\n")
            check(installer, next(built.iterdir()), Path(folder) / name)


if __name__ == "__main__":
    main()
