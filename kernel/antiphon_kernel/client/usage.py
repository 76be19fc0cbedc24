"""How both command lines refuse wrong arguments: in one line that says where to look."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

import click

from antiphon_kernel.text.neutral import neutralise
from antiphon_kernel.types.conventions import ExitCode

_PLAINER = (
    ("is not a valid integer range", "is not a whole number"),
    ("is not a valid float range", "is not a number"),
)


class WrongUsage(click.ClickException):
    """Ends the command with one line and exit code 2."""

    exit_code = ExitCode.USAGE

    def show(self, file: IO[Any] | None = None) -> None:
        click.echo(f"antiphon: {neutralise(self.message)}", file=file, err=file is None)


class Commands(click.Group):
    """A group of commands whose wrong uses are told in one line."""

    def make_context(
        self, info_name: str | None, args: list[str], *more: Any, **extra: Any
    ) -> click.Context:
        with _in_one_line():
            for argument in args:
                _require_text(argument)
            return super().make_context(info_name, args, *more, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        with _in_one_line():
            return super().invoke(ctx)


def _require_text(argument: str) -> None:
    """Raises UsageError for an argument that was no UTF-8: no database and no JSON can hold it."""
    try:
        argument.encode()
    except UnicodeEncodeError as error:
        raise click.UsageError(f"{argument!r} is not UTF-8: give a name or text that is") from error


@contextmanager
def _in_one_line() -> Iterator[None]:
    try:
        yield
    except click.exceptions.NoArgsIsHelpError:
        raise
    except click.UsageError as error:
        raise WrongUsage(_sentence(error)) from error


def _sentence(error: click.UsageError) -> str:
    said = " ".join(error.format_message().split())
    for clumsy, plain in _PLAINER:
        said = said.replace(clumsy, plain)
    begins = said[:1].lower() + said[1:]
    if not begins.endswith((".", "?")):
        begins += "."
    command = error.ctx.command_path if error.ctx is not None else "antiphon"
    return f"{begins} `{command} --help` says more."
