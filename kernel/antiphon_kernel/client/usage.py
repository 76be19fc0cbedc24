"""Usage errors of both command lines: one line that says where to look."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Final
from urllib.parse import urlsplit

import click
from click.core import ParameterSource

from antiphon_kernel.text.sanitize import sanitize
from antiphon_kernel.types.constants import STORE_VARIABLE, ExitCode
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.json_validation import has_whole_characters

_PLAINER = (
    ("is not a valid integer range", "is not a whole number"),
    ("is not a valid float range", "is not a number"),
)


class _FolderPath(click.Path):
    """A folder that need not exist. Its name is not empty, as that of an unset variable is."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        if not os.fspath(value):
            self.fail("it is empty: name a folder, or leave the option out", param, ctx)
        return Path(os.fsdecode(super().convert(value, param, ctx)))


def data_option(
    *, default: str | None = None, envvar: str | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return the option --data of a command, which names the data folder.

    Args:
        default: the folder where nobody says which project it is.
        envvar: the variable that stands for it; empty, it is as unset.
    """
    return click.option(
        "--data",
        type=_FolderPath(file_okay=False, path_type=Path),
        default=default,
        envvar=envvar,
        help="Where the kernel keeps its files.  [default: .antiphon in the project]",
    )


def refuse_password(_: click.Context, option: click.Parameter, url: str | None) -> str | None:
    """Return a URL as an option has it, unless there is a password on the command line."""
    if url is not None and urlsplit(url).password and is_typed(option.name or ""):
        raise click.UsageError(
            f"{option.opts[0]} has a password, which everybody on this machine could read: put it"
            f" into PGPASSWORD or ~/.pgpass, or the URL of --store into {STORE_VARIABLE}"
        )
    return url


store_option: Final = click.option(
    "--store",
    metavar="URL",
    envvar=STORE_VARIABLE,
    callback=refuse_password,
    help="A Postgres database, postgresql://..., that kernels share. A password is for"
    f" {STORE_VARIABLE}: a command line is shown to everybody on the machine.",
)


def is_typed(option: str) -> bool:
    """Return whether an option of the command is on the command line, and not in a variable."""
    source = click.get_current_context().get_parameter_source(option)
    return source is ParameterSource.COMMANDLINE


def exit_code(error: AntiphonError) -> ExitCode:
    """Return how a command ends that has failed with `error`."""
    if error.code is ErrorCode.UNTRUSTED_FOLDER:
        return ExitCode.UNTRUSTED_FOLDER
    return ExitCode.NO_KERNEL if error.code is ErrorCode.NO_KERNEL else ExitCode.FAILED


class UsageMessage(click.ClickException):
    """Ends the command with one line and exit code 2."""

    exit_code = ExitCode.USAGE

    def show(self, file: IO[Any] | None = None) -> None:
        click.echo(f"antiphon: {sanitize(self.message)}", file=file, err=file is None)


class CommandGroup(click.Group):
    """A group of commands whose wrong uses are told in one line."""

    def make_context(
        self, info_name: str | None, args: list[str], *more: Any, **extra: Any
    ) -> click.Context:
        with _in_one_line():
            for argument in args:
                if not has_whole_characters(argument):  # no database and no JSON can hold it
                    raise click.UsageError(
                        f"{argument!r} is not UTF-8: give a name or text that is"
                    )
            return super().make_context(info_name, args, *more, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        with _in_one_line():
            return super().invoke(ctx)


@contextmanager
def _in_one_line() -> Iterator[None]:
    try:
        yield
    except click.exceptions.NoArgsIsHelpError:
        raise
    except click.UsageError as error:
        said = " ".join(error.format_message().split())
        for clumsy, plain in _PLAINER:
            said = said.replace(clumsy, plain)
        begins = said[:1].lower() + said[1:]
        if not begins.endswith((".", "?")):
            begins += "."
        command = error.ctx.command_path if error.ctx is not None else "antiphon"
        raise UsageMessage(f"{begins} `{command} --help` says more.") from error
