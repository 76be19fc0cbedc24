"""A kernel that runs, started if need be."""

from __future__ import annotations

from pathlib import Path

import click

from antiphon.locations import data_folder, project_root


def running_data(data: Path | None) -> Path:
    """The data folder of a kernel that runs, started now if need be, which is said on stderr.

    Raises:
        AntiphonError: no_kernel.
    """
    from antiphon.command_line.starting import KernelStarter

    project = project_root(Path.cwd())
    starter = KernelStarter((data or data_folder(project)).absolute(), project)
    if starter.begin():
        starter.wait()
        click.echo(f"antiphon: started a kernel for {project}", err=True)
    return starter.data
