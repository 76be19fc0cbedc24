"""`antiphon bench`: runs the benchmarks of a source checkout."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from antiphon.cli.errors import CommandError
from antiphon_kernel.types.constants import ExitCode

PLACES = ("document", "kernel", "models", "app", "soak", "ssh")
"""The things that can be measured: tests/bench/*.py."""


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("place", type=click.Choice(PLACES))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a figure.")
@click.argument("options", nargs=-1, type=click.UNPROCESSED)
def bench(place: str, as_json: bool, options: tuple[str, ...]) -> None:
    """Measure document, kernel, models, app, soak or ssh, each figure beside its budget.

    Benchmarks are part of the source checkout, not of an installed antiphon. Further OPTIONS go to
    the benchmark: antiphon bench app -- --help lists them.

    Exit codes: 0 measured, 1 it could not be, 2 wrong arguments, or no source checkout.
    """
    checkout = source_root(place)
    command = [sys.executable, "-m", f"tests.bench.{place}", *options]
    command += ["--json"] if as_json else []
    sys.stdout.flush()
    os.chdir(checkout)
    os.execv(sys.executable, command)


def source_root(place: str) -> Path:
    """The source checkout that this antiphon runs from, or that is the current folder.

    Raises:
        CommandError: if there is none that can measure `place`.
    """
    script = Path("tests", "bench", f"{place}.py")
    for folder in (Path(__file__).parents[3], Path.cwd()):
        if (folder / script).is_file():
            return folder
    raise CommandError(
        f"there is no {script}: benchmarks run from a source checkout of antiphon; change to one"
        " and say it again.",
        ExitCode.USAGE,
    )
