"""The project of a demo: a few small files in its data folder, in a repository of their own."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

from antiphon_kernel.providers import recording
from antiphon_kernel.types.constants import DEMO_PROJECT

_SUFFIX: Final = ".txt"
"""Ends the names that the files have in this package, of which they are no code."""

_GIT: Final = (
    ("init", "--quiet", "--template=", "--initial-branch=main"),
    ("add", "."),
    ("commit", "--quiet", "--message=Let choirs sing in turn"),
)
_AUTHOR: Final = ("-c", "user.name=aria", "-c", "user.email=aria@antiphon.invalid")


def make_demo_project(data: Path) -> Path:
    """Return the demo's project in a data folder, made if it is not there."""
    project, git = data / DEMO_PROJECT, shutil.which("git")
    if project.is_dir():
        return project
    project.mkdir()
    for file in Path(recording.__file__).with_name("recordings").joinpath("demo").iterdir():
        (project / file.name.removesuffix(_SUFFIX)).write_bytes(file.read_bytes())
    # Nothing that a person has configured counts: no hooks, no signature.
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    env |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    for words in _GIT if git is not None else ():
        command = [str(git), *_AUTHOR, *words]
        subprocess.run(command, cwd=project, env=env, capture_output=True, check=False)
    return project
