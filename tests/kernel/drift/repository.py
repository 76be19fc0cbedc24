"""A repository of git with one commit."""

from __future__ import annotations

import subprocess
from pathlib import Path

LIST = "milk\nbread\nsoap\n"


class Repository:
    """The project's repository: `list.txt` and `other.txt` are committed."""

    def __init__(self, project: Path) -> None:
        self.project = project
        self.git("init", "-q", "-b", "main")
        for name, value in {"name": "Amy", "email": "amy@example.org"}.items():
            self.git("config", f"user.{name}", value)
        (project / ".gitignore").write_text(".antiphon/\n*.log\n")
        for name in ("list.txt", "other.txt"):
            (project / name).write_text(LIST)
        self.git("add", ".")
        self.git("commit", "-qm", "first")

    def git(self, *arguments: str) -> str:
        done = subprocess.run(
            ["git", *arguments], cwd=self.project, check=True, capture_output=True, text=True
        )
        return done.stdout

    def commits(self) -> int:
        return int(self.git("rev-list", "--count", "HEAD"))

    def status(self) -> list[str]:
        return self.git("status", "--short").splitlines()

    def hook(self, name: str, script: str) -> None:
        place = self.project / ".git" / "hooks" / name
        place.parent.mkdir(exist_ok=True)
        place.write_text(f"#!/bin/sh\n{script}\n")
        place.chmod(0o755)
