"""Wrong arguments are refused in one line that says where to look."""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

from antiphon_kernel.client.usage import CommandGroup


@click.group(cls=CommandGroup)
def antiphon() -> None:
    """Group of the commands under test."""


@antiphon.command()
@click.argument("block")
@click.option("--limit", type=click.IntRange(1))
@click.option("--as", "who", type=click.Choice(["ada", "bo"]))
def blame(block: str, limit: int | None, who: str | None) -> None:
    """A command."""
    click.echo(f"{block} {limit} {who}")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "Usage: "),
        (("blame",), "antiphon: missing argument 'BLOCK'. `antiphon blame --help` says more."),
        (("blame", "x", "y"), "antiphon: got unexpected extra argument (y)"),
        (("blame", "x", "--limit", "z"), "'z' is not a whole number."),
        (("blame", "x", "--limit", "0"), "0 is not in the range x>=1."),
        (("blame", "x", "--as", "cy"), "'cy' is not one of 'ada', 'bo'."),
        (("blame", "x", "--as"), "'--as' requires an argument."),
        (("blame", "x", "--limits", "1"), "'--limit'?"),
        (("praise",), "antiphon: no such command 'praise'. `antiphon --help` says more."),
        (("praise\x1b[31m",), "antiphon: no such command"),
    ],
)
def test_wrong_use_is_one_line_on_standard_error(arguments: tuple[str, ...], said: str) -> None:
    done = CliRunner().invoke(antiphon, arguments, prog_name="antiphon")
    assert done.exit_code == 2
    assert done.stdout == ""
    assert said in done.stderr
    if arguments:
        assert done.stderr.count("\n") == 1
        assert done.stderr.endswith(" --help` says more.\n")
        assert "\x1b" not in done.stderr


def test_right_use_is_carried_out() -> None:
    done = CliRunner().invoke(antiphon, ["blame", "x", "--limit", "2"])
    assert (done.exit_code, done.stdout, done.stderr) == (0, "x 2 None\n", "")
