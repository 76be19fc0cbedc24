"""The command that plays a run again in the app."""

from __future__ import annotations

from itertools import chain
from pathlib import Path

import click

from antiphon.cli.errors import call_error
from antiphon.cli.kernel_option import KernelTarget, kernel_options
from antiphon.cli.opening import open_on_terminal, require_terminal
from antiphon.cli.signals import default_sigint


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
    with default_sigint():
        from antiphon.locations import state_folder
        from antiphon.options import AppOptions
        from antiphon.replay.replay import Replay
        from antiphon_kernel.client.transfers import export_context
        from antiphon_kernel.types.errors import AntiphonError

    path, address = Path(target), None
    try:
        if path.is_file():
            with path.open("rb") as lines:
                read, data, context = Replay.read(lines, max_pause=max_pause), path.absolute(), None
        else:
            address = kernel.find()()
            pieces = export_context(address, {"context": target, "format": "replay"})
            lines_of = chain.from_iterable(piece.splitlines(keepends=True) for piece in pieces)
            read = Replay.read(lines_of, max_pause=max_pause)
            context, data = read.header.context_id, Path(address.data or state_folder())
            if address.reachable_socket is not None:
                address = None  # `data` leads to it, also when it is started anew
    except AntiphonError as error:
        raise call_error(error) from error
    require_terminal()
    options = AppOptions(data=data, address=address, context=context, replay=read, speed=speed)
    open_on_terminal(options)
