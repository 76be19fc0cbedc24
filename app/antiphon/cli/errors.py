"""Command failures: one sentence on stderr and an exit code."""

from __future__ import annotations

import inspect
import re
from importlib.util import find_spec
from typing import Any, Final

import click

from antiphon.time_format import format_relative
from antiphon_kernel.client.usage import UsageMessage
from antiphon_kernel.types.constants import ExitCode
from antiphon_kernel.types.errors import AntiphonError


class CommandError(UsageMessage):
    """Ends the command with a sentence that says what to do, whatever is wrong."""

    def __init__(self, message: str, code: ExitCode = ExitCode.FAILED) -> None:
        # An address with a token may have been given where something else was expected.
        hidden = re.sub(r"(?<=token=)[^&#'\"\s]+", "...", message)
        super().__init__(format_relative(hidden))
        self.exit_code = code  # type: ignore[misc]  # click's own way of setting it


def require_library(module: str, what: str, extra: str) -> None:
    """Raise CommandError if a library of an extra of this package is not installed."""
    if find_spec(module) is None:
        needed = f"{what} needs a library that is not installed"
        raise CommandError(f"{needed}: pip install 'antiphon[{extra}]'.")


_EXIT_CODES: Final = (
    "Exit codes: 0 done, 1 the kernel refused, 2 wrong arguments, 3 no kernel could be reached or"
    " started."
)


class KernelCommand(click.Command):
    """A command that calls a kernel; what it fails with is also JSON, if it prints that.

    Its help ends with these exit codes, unless it names its own.
    """

    def __init__(self, name: str | None, *, help: str = "", **settings: Any) -> None:
        text = inspect.cleandoc(help)
        ends = "" if "Exit codes:" in text else f"\n\n{_EXIT_CODES}"
        super().__init__(name, help=text + ends, **settings)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except AntiphonError as error:
            if ctx.params.get("as_json") or ctx.params.get("output", "text") != "text":
                from antiphon.cli.call import dump_json_line

                click.echo(dump_json_line({"error": error.as_json()}))
            raise
