"""Opening of the app on this terminal."""

from __future__ import annotations

import gc
import locale
import os
import sys
from typing import TYPE_CHECKING

from antiphon.cli.errors import CommandError
from antiphon_kernel.types.constants import ExitCode

if TYPE_CHECKING:
    from antiphon.options import AppOptions


def require_terminal() -> None:
    """Raise CommandError where the app would be a mess instead of a screen."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise CommandError(
            "the app needs a terminal for its input and output; without one use `antiphon --linear`"
            " or `antiphon call`.",
            ExitCode.USAGE,
        )
    term = os.environ.get("TERM", "")
    if term in ("", "dumb", "unknown"):
        raise CommandError(
            f"TERM is {term!r}: the app needs a terminal that can move its cursor; set TERM"
            " (for example xterm-256color), or use `antiphon --linear`.",
            ExitCode.USAGE,
        )
    encoding = locale.getpreferredencoding(False)
    if encoding.lower().replace("-", "") != "utf8":
        raise CommandError(
            f"this terminal's encoding is {encoding}: the app needs UTF-8; set it"
            " (for example LC_ALL=C.UTF-8).",
            ExitCode.USAGE,
        )


def open_on_terminal(options: AppOptions) -> None:
    """Run the app until the person leaves it."""
    # Nothing that is imported is garbage: the app collects from its first frame on.
    gc.disable()
    from antiphon.app import open_app

    open_app(options)
