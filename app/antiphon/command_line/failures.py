"""How a command fails: one sentence on stderr and an exit code."""

from __future__ import annotations

from typing import IO, Any

import click

from antiphon_kernel.types.conventions import ExitCode


class Failure(click.ClickException):
    """Ends the command with a sentence that says what to do."""

    def __init__(self, message: str, code: ExitCode = ExitCode.FAILED) -> None:
        super().__init__(message)
        self.exit_code = code  # type: ignore[misc]  # click's own way of setting it

    def show(self, file: IO[Any] | None = None) -> None:
        """The sentence may quote what a kernel said: nothing in it may drive the terminal."""
        from antiphon_kernel.text.neutral import neutralise

        click.echo(f"antiphon: {neutralise(self.format_message())}", file=file, err=file is None)
