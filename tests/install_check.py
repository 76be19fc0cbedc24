"""`make install-check`: the built wheel, installed and removed as by somebody who has only that.

Each installer gets an empty home. What is left there at the end is compared with what the docs say.

python -m tests.install_check
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

from antiphon_kernel.client.address import stated_address
from tests.e2e.terminal import Terminal
from tests.processes import has_ended
from tests.waiting import wait_until

ROOT = Path(__file__).parents[1]
EXTRAS = "agents,models,ssh,web"
INSTALLERS = {
    "pipx": (["pipx", "install"], ["pipx", "uninstall", "antiphon"]),
    "uv": (["uv", "tool", "install"], ["uv", "tool", "uninstall", "antiphon"]),
}
"""By installer, how it installs a wheel, and how it removes antiphon."""

MANUAL = "share/man/man1/antiphon.1"
"""Below the folder of local files or, as uv has it, that of the tool."""

STAYS = {
    ".cache": "caches of the installers",
    ".local/bin": "an empty folder of programs",
    ".local/share/man": "an empty folder of manual pages",
    ".local/share/pipx": "pipx's own",
    ".local/share/uv": "uv's own",
    ".local/state/antiphon": "positions, choices and the register of kernels",
    ".local/state/pipx": "pipx's own",
    "project/.antiphon": "the documents",
    "tmp": "the demo's folder",
}
"""What may be left in a home; docs/installing.md says so."""


NOT_PASSED = ("ANTIPHON_", "PIPX_", "PYTHON", "TMUX", "UV_TOOL", "VIRTUAL_ENV", "XDG_")
"""Beginnings of variables that say something of the person who runs this."""


@contextmanager
def step(name: str) -> Iterator[None]:
    begun = time.monotonic()
    yield
    sys.stdout.write(f"  {name:<26} {time.monotonic() - begun:6.2f} s\n")


def check(installer: str, wheel: Path, home: Path) -> None:
    """Install, use and remove antiphon in an empty home."""
    install, remove = INSTALLERS[installer]
    tools, programs = Path(sys.executable).parent, home / ".local" / "bin"
    env = {name: value for name, value in os.environ.items() if not name.startswith(NOT_PASSED)}
    env |= {"HOME": str(home), "LC_ALL": "C.UTF-8", "MANWIDTH": "80", "TMPDIR": str(home / "tmp")}
    env |= {"PATH": f"{programs}:/usr/local/bin:/usr/bin:/bin", "SHELL": "/bin/sh"}
    project = home / "project"
    for folder in (project, home / "tmp"):
        folder.mkdir()

    def run(*command: str, tools_too: bool = False) -> str:
        where = env | {"PATH": f"{env['PATH']}:{tools}"} if tools_too else env
        done = subprocess.run(
            command, env=where, cwd=project, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}{done.stderr}"
        return done.stdout

    with step("install"):
        python = ["--python", sys.executable]
        run(*install, *python, f"{wheel}[{EXTRAS}]", tools_too=True)
    with step("antiphon --version"):
        assert wheel.name.split("-")[1] in run("antiphon", "--version")
    with step("antiphon doctor --env"):
        said = run("antiphon", "doctor", "--env")
        assert all(
            f"antiphon[{one}]: no\n" not in said for one in ("agents", "openai", "ssh", "web")
        )
    with step("completion in bash"):
        script = 'eval "$(antiphon completion bash)"; COMP_WORDS=(antiphon doc); COMP_CWORD=1'
        typed = run("bash", "-c", f'{script}; _antiphon_completion antiphon; echo "$COMPREPLY"')
        assert typed == "doctor\n", typed
    if shutil.which("man") is not None:
        with step("man antiphon"):
            page = next((home / ".local").rglob(MANUAL))
            assert "antiphon demo" in run("man", "--warnings", "-l", str(page))
            assert installer == "uv" or run("man", "-w", "antiphon").strip()
    with step("antiphon call"):
        assert '"username"' in run("antiphon", "call", "session.whoami")
        pid = stated_address(project / ".antiphon").pid
        os.kill(pid, signal.SIGTERM)
        wait_until(lambda: has_ended(pid), "the end of the kernel")
    with step("antiphon demo"):
        demo(env, project)
    with step("uninstall"):
        run(*remove, tools_too=True)
    assert not (programs / "antiphon").exists()
    show_leftovers(home)


def demo(env: Mapping[str, str], project: Path) -> None:
    with Terminal(["antiphon", "demo", "--speed", "20"], env=env, cwd=project) as terminal:
        terminal.wait_for("WRITE")
        terminal.type("hello\r")
        terminal.wait_for("That is where we are")
        terminal.press("ctrl+q")
        terminal.wait_for_end()
        assert b"This opens it again" in terminal.output


def show_leftovers(home: Path) -> None:
    """Print what is left; fail if the docs do not say so."""
    left = dict.fromkeys(STAYS, 0)
    for path in home.rglob("*"):
        if path.is_file() or path.is_symlink():
            name = path.relative_to(home).as_posix()
            place = next((one for one in STAYS if name.startswith(f"{one}/")), None)
            assert place is not None, f"{name} is left, and the docs do not say so"
            left[place] += 1
    for place, count in left.items():
        if count:
            sys.stdout.write(f"  left: {place}, {count} files: {STAYS[place]}\n")


def main() -> None:
    told = (ROOT / "docs" / "installing.md").read_text("utf-8")
    assert all(f"`{place}`" in told for place in STAYS), "docs/installing.md does not name a place"
    with tempfile.TemporaryDirectory(prefix="antiphon-install-") as folder:
        built = Path(folder) / "dist"
        command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(built)]
        with step("build"):
            subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
        (wheel,) = built.iterdir()
        for installer in INSTALLERS:
            home = Path(folder) / installer
            home.mkdir()
            sys.stdout.write(f"{installer}\n")
            check(installer, wheel, home)


if __name__ == "__main__":
    main()
