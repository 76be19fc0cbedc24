"""Opening of the app on this terminal, also on a run as it was."""

from __future__ import annotations

import gc
import locale
import os
import sys
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from antiphon.cli.errors import CommandError
from antiphon.cli.kernel_option import KernelTarget, kernel_options
from antiphon.cli.signals import default_sigint
from antiphon_kernel.types.constants import ExitCode

if TYPE_CHECKING:
    from antiphon.options import AppOptions


def require_terminal() -> None:
    """Raise CommandError where the app would be a mess instead of a screen."""
    term, encoding = os.environ.get("TERM", ""), locale.getpreferredencoding(False)
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        why = (
            "the app needs a terminal for its input and output; without one use `antiphon --linear`"
            " or `antiphon call`."
        )
    elif term in ("", "dumb", "unknown"):
        why = (
            f"TERM is {term!r}: the app needs a terminal that can move its cursor; set TERM"
            " (for example xterm-256color), or use `antiphon --linear`."
        )
    elif encoding.lower().replace("-", "") != "utf8":
        why = (
            f"this terminal's encoding is {encoding}: the app needs UTF-8; set it"
            " (for example LC_ALL=C.UTF-8)."
        )
    else:
        return
    raise CommandError(why, ExitCode.USAGE)


def open_on_terminal(options: AppOptions) -> None:
    """Run the app until the person leaves it."""
    # Nothing that is imported is garbage: the app collects from its first frame on.
    gc.disable()
    from antiphon.app import open_app

    open_app(options)


SPEED: Final = click.option(
    "--speed",
    type=click.FloatRange(0.25, 100),
    default=1.0,
    show_default=True,
    help="How many times as fast as it was.",
)
MAX_PAUSE: Final = click.option(
    "--max-pause",
    type=click.FloatRange(0.1),
    default=2.0,
    show_default=True,
    help="Seconds to which longer pauses are shortened.",
)


@click.command()
@click.argument("target", metavar="CONTEXT|FILE")
@SPEED
@MAX_PAUSE
@kernel_options
def replay(target: str, speed: float, max_pause: float, kernel: KernelTarget) -> None:
    """Open the app on a run as it was, edit by edit: of CONTEXT (id or label), or of a FILE.

    A FILE is what `antiphon export --format replay` has written. Nothing can be written in a
    replay; Enter leaves one of a CONTEXT, and forks the context as it was at that moment.

    Exit codes: 0 ended as asked, 1 the replay cannot be read, 2 wrong arguments or an unfit
    terminal, 3 no kernel could be reached or started.
    """
    with default_sigint():
        from antiphon.locations import state_folder
        from antiphon.options import AppOptions
        from antiphon.replay.replay import Replay
        from antiphon_kernel.client.transfers import export_context

    path, address = Path(target), None
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
    require_terminal()
    options = AppOptions(data=data, address=address, context=context, replay=read, speed=speed)
    open_on_terminal(options)
