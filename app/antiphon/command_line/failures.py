"""How a command ends: exit codes, and errors as one sentence on stderr."""

from __future__ import annotations

from enum import IntEnum
from typing import IO, Any

import click


class ExitCode(IntEnum):
    """The exit codes of every command; documented in docs/command-line.md."""

    OK = 0
    FAILED = 1
    """The call was made and failed: what it asked for cannot be done."""
    USAGE = 2
    """Wrong arguments, or a terminal that cannot show the app."""
    NO_KERNEL = 3
    """No kernel could be found, reached or started."""


class Failure(click.ClickException):
    """Ends the command with a sentence that says what to do."""

    def __init__(self, message: str, code: ExitCode = ExitCode.FAILED) -> None:
        super().__init__(message)
        self.exit_code = code  # type: ignore[misc]  # click's own way of setting it

    def show(self, file: IO[Any] | None = None) -> None:
        """The sentence may quote what a kernel said: nothing in it may drive the terminal."""
        from antiphon_kernel.text.neutral import neutralise

        click.echo(f"antiphon: {neutralise(self.format_message())}", file=file, err=file is None)
