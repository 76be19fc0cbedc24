"""The command that plays a run again in the app."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from pathlib import Path

import click

from antiphon.cli.errors import CommandError, call_error
from antiphon.cli.kernel_option import KernelTarget, kernel_options
from antiphon_kernel.types.constants import ExitCode


@click.command()
@click.argument("target", metavar="CONTEXT|FILE")
@click.option(
    "--max-pause",
    type=click.FloatRange(0.1),
    default=2.0,
    show_default=True,
    help="Seconds to which longer pauses are shortened.",
)
@click.option(
    "--speed",
    type=click.FloatRange(0.25, 100),
    default=1.0,
    show_default=True,
    help="How many times as fast as it was.",
)
@kernel_options
def replay(target: str, max_pause: float, speed: float, kernel: KernelTarget) -> None:
    """Open the app on a run as it was, edit by edit: of CONTEXT (id or label), or of a FILE.

    A FILE is what `antiphon export --format replay` has written. Nothing can be written in a
    replay; Enter leaves one of a CONTEXT, and forks the context as it was at that moment.

    Exit codes: 0 well ended, 1 the replay cannot be read, 2 wrong arguments or an unfit terminal,
    3 no kernel could be reached or started.
    """
    from antiphon.cli.commands import open_app_with, require_terminal
    from antiphon.options import AppOptions
    from antiphon.replay.replay import Replay
    from antiphon_kernel.client.transfers import export_context
    from antiphon_kernel.types.errors import AntiphonError

    require_terminal()
    file = Path(target)
    try:
        if file.is_file():
            with file.open("rb") as lines:
                read = Replay.read(lines, max_pause=max_pause)
            options = AppOptions(data=file.absolute(), replay=read, speed=speed)
        else:
            locate = kernel.find()
            pieces = export_context(locate(), {"context": target, "format": "replay"})
            read = Replay.read(_lines(pieces), max_pause=max_pause)
            options = AppOptions(...)
    except AntiphonError as error:
        raise call_error(error) from error
    open_app_with(options)
