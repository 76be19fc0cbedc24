"""Command failures: one sentence on stderr and an exit code."""

from __future__ import annotations

import re
from typing import IO, TYPE_CHECKING, Any

import click

from antiphon.time_format import format_relative
from antiphon_kernel.types.constants import ExitCode

if TYPE_CHECKING:
    from antiphon_kernel.types.errors import AntiphonError


class CommandError(click.ClickException):
    """Ends the command with a sentence that says what to do."""

    def __init__(self, message: str, code: ExitCode = ExitCode.FAILED) -> None:
        # An address with a token may have been given where something else was expected.
        super().__init__(re.sub(r"(?<=token=)[^&#'\"\s]+", "...", message))
        self.exit_code = code  # type: ignore[misc]  # click's own way of setting it

    def show(self, file: IO[Any] | None = None) -> None:
        """The sentence may quote what a kernel said: nothing in it may drive the terminal."""
        from antiphon_kernel.text.sanitize import sanitize

        message = sanitize(format_relative(self.format_message()))
        click.echo(f"antiphon: {message}", file=file, err=file is None)


def call_error(error: AntiphonError, *, as_json: bool = False) -> CommandError:
    """Return the error that ends a command after a failed call; if asked, print it as JSON too."""
    from antiphon_kernel.client.usage import exit_code

    if as_json:
        from antiphon.cli.call import dump_json_line

        click.echo(dump_json_line({"error": error.as_json()}))
    return CommandError(error.message, exit_code(error))
