"""The kernel's own command line."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

import click

from antiphon_kernel.client.address import KernelAddress
from antiphon_kernel.client.usage import CommandGroup, data_option
from antiphon_kernel.daemon.data_folder import DataFolderInUse
from antiphon_kernel.daemon.idle_shutdown import IDLE_SECONDS, IdlePolicy
from antiphon_kernel.daemon.maintenance_commands import (
    backup_command,
    doctor_command,
    log_command,
    restore_command,
    trust_command,
)
from antiphon_kernel.daemon.run import DaemonSettings, run_kernel
from antiphon_kernel.text.sanitize import sanitize
from antiphon_kernel.types.constants import DATA_FOLDER, DEFAULT_CONTEXT, ExitCode
from antiphon_kernel.types.errors import AntiphonError, ErrorCode


@click.group(cls=CommandGroup)
def main() -> None:
    """The antiphon kernel, without the app."""


def _pipe_of_starter() -> int | None:
    """Return the descriptor of standard input if it is a pipe."""
    try:
        return 0 if stat.S_ISFIFO(os.fstat(0).st_mode) else None
    except OSError:
        return None


for _command in (backup_command, restore_command, doctor_command, log_command, trust_command):
    main.add_command(_command)


@main.command("serve")
@data_option()
@click.option(
    "--project",
    type=click.Path(file_okay=False, exists=True, path_type=Path),
    default=".",
    help="Folder in which tools work.  [default: the current one]",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    show_default=True,
    help="TCP port on the loopback interface; 0 takes the last one again, or any free one.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the address as one line of JSON.")
@click.option(
    "--play",
    "recordings",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    multiple=True,
    help="A recording that a scripted model plays; several make several models.",
)
@click.option("--demo", is_flag=True, help="Play the demo's recordings unless --play names others.")
@click.option("--local", is_flag=True, help="Let the small local model write instead.")
@click.option(
    "--speed",
    type=click.FloatRange(0.1, 1000),
    default=1.0,
    show_default=True,
    help="How much faster than recorded.",
)
@click.option(
    "--idle",
    type=click.FloatRange(0),
    default=IDLE_SECONDS,
    show_default=True,
    help="End after so many seconds without a client; 0: never.",
)
@click.option(
    "--exit-with-last-client",
    "with_last_client",
    is_flag=True,
    help="End shortly after the last client has left; at once when standard input is a pipe that"
    " whoever started the kernel has closed.",
)
def serve(
    data: Path | None,
    project: Path,
    port: int,
    as_json: bool,
    recordings: tuple[Path, ...],
    demo: bool,
    local: bool,
    speed: float,
    idle: float,
    with_last_client: bool,
) -> None:
    """Serve a project's documents until SIGTERM, Ctrl+C or long idleness.

    Exit codes: 0 ended as asked, 1 failed, 2 wrong arguments, 4 another kernel has the folder, 5
    the folder is not trusted.
    """
    alone = idle or None
    settings = DaemonSettings(
        data=(data or project / DATA_FOLDER).absolute(),
        project=project.resolve(),
        port=port,
        recordings=recordings,
        demo=demo,
        local=local,
        speed=speed,
        idle_policy=IdlePolicy.with_last_client() if with_last_client else IdlePolicy(alone, alone),
        starter=_pipe_of_starter() if with_last_client else None,
    )

    def ready(address: KernelAddress) -> None:
        if as_json:
            click.echo(address.model_dump_json())
        else:
            click.echo(f"antiphon kernel {address.pid} serves {settings.project}")
            click.echo(f"  files   {settings.data}")
            click.echo(f"  sync    {address.sync}/{DEFAULT_CONTEXT}")
            click.echo(f"  socket  {address.socket}")
            click.echo("Ctrl+C ends it.")

    try:
        run_kernel(settings, ready, echo=True)
    except DataFolderInUse as error:
        click.echo(f"antiphon: {error} Use that one, or another --data.", err=True)
        sys.exit(ExitCode.FOLDER_IN_USE)
    except AntiphonError as error:
        click.echo(f"antiphon: {sanitize(error.message)}", err=True)
        untrusted = error.code is ErrorCode.UNTRUSTED_FOLDER
        sys.exit(ExitCode.UNTRUSTED_FOLDER if untrusted else ExitCode.FAILED)
    except OSError as error:
        click.echo(f"antiphon: the kernel cannot serve {settings.data}: {error}", err=True)
        sys.exit(ExitCode.FAILED)
