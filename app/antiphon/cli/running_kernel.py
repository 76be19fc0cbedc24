"""A kernel that runs, started if need be."""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path

import click

from antiphon.locations import data_folder, project_root


def program() -> str:
    """Return the name that a shell in this folder calls this program by, as it was called now."""
    called = Path(sys.argv[0]).absolute()
    found = shutil.which("antiphon")
    if called.name != "antiphon" or found == str(called):
        return "antiphon"
    if called.is_relative_to(Path.cwd()):
        near = str(called.relative_to(Path.cwd()))
        return shlex.quote(near if "/" in near else f"./{near}")
    return shlex.quote(str(called))


def chosen_data(data: Path | None, project: Path) -> Path:
    """Return the absolute data folder of a command; say on stderr if it is above this folder.

    Args:
        data: the folder that the command line names, None for the project's.
    """
    if data is not None:
        return data.absolute()
    folder = data_folder(project)
    if project != Path.cwd().resolve():
        click.echo(f"antiphon: using {folder}", err=True)
    return folder


def ensure_kernel(data: Path | None) -> Path:
    """The data folder of a kernel that runs, started now if need be, which is said on stderr.

    Raises:
        AntiphonError: no_kernel, untrusted_folder.
    """
    from antiphon.cli.launcher import KernelLauncher

    project = project_root(Path.cwd())
    starter = KernelLauncher(chosen_data(data, project), project)
    if starter.start():
        starter.wait()
        click.echo(f"antiphon: started a kernel for {project}", err=True)
    return starter.data
