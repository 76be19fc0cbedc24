"""Commands about a data folder as a whole; the kernel's own program carries them out."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from antiphon.cli.kernel_option import DATA
from antiphon.cli.launcher import chosen_data
from antiphon.locations import data_folder, project_root
from antiphon_kernel.types.constants import DATA_FOLDER

_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@DATA
@_json
def backup(file: Path, data: Path | None, as_json: bool) -> None:
    """Write everything that is on the kernel's disk now to FILE, which must not exist.

    The kernel may be running. Who may join is not part of a backup.

    Exit codes: 0 written, 1 it could not be.
    """
    _kernel("backup", [str(file)], data, as_json)


@click.command()
@click.argument("file", type=click.Path(dir_okay=False, exists=True, path_type=Path))
@DATA
@_json
def restore(file: Path, data: Path | None, as_json: bool) -> None:
    """Bring a backup back: FILE becomes the kernel's journal, under a new epoch.

    No kernel may be running on the folder. The journal that was there is kept beside the new one.
    Replicas of what was there before are refused, not merged.

    Exit codes: 0 restored, 1 it could not be, 4 a kernel is running.
    """
    _kernel("restore", [str(file)], data, as_json)


@click.command()
@DATA
@_json
def doctor(data: Path | None, as_json: bool) -> None:
    """Check everything that must hold for what is stored; nothing is changed.

    The kernel may be running.

    Exit codes: 0 all is well, 1 something was found, or nothing could be read.
    """
    _kernel("doctor", [], data, as_json)


@click.command()
@click.option("--context", metavar="LABEL", help="Only this context, and who joined.")
@click.option("--limit", type=click.IntRange(1), help="Only the last so many events.")
@DATA
@_json
def log(context: str | None, limit: int | None, data: Path | None, as_json: bool) -> None:
    """Print who joined, wrote and ran what, oldest first.

    Exit codes: 0 printed, 1 nothing could be read.
    """
    arguments = ["--context", context] if context is not None else []
    arguments += ["--limit", str(limit)] if limit is not None else []
    _kernel("log", arguments, data, as_json)


@click.command()
@click.argument("folder", metavar="[DIR]", type=click.Path(path_type=Path), required=False)
@click.option("--yes", is_flag=True, help="Do not ask.")
def trust(folder: Path | None, yes: bool) -> None:
    """Say what a data folder holds that somebody else has made, and open it from now on.

    A folder that came with a clone or an archive, was shared or moved, may name people and tokens
    that you do not know. DIR is a project or a data folder.  [default: this project's]

    Exit codes: 0 it is trusted, 1 it is not, 2 nobody can be asked, 5 others may write in it.
    """
    if folder is not None and (folder / DATA_FOLDER).exists():
        folder = data_folder(folder)
    _kernel("trust", ["--yes"] if yes else [], folder, as_json=False)


def _kernel(command: str, arguments: list[str], data: Path | None, as_json: bool) -> None:
    folder = chosen_data(data, project_root(Path.cwd()))
    line = [sys.executable, "-m", "antiphon_kernel", command, "--data", str(folder)]
    line += ["--json"] if as_json else []
    # What begins with a dash may still be a file.
    line += [*arguments, "--"] if command in ("log", "trust") else ["--", *arguments]
    sys.stdout.flush()
    os.execv(sys.executable, line)
