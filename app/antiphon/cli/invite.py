"""`antiphon invite`: one line that joins."""

from __future__ import annotations

import json
import re
import shlex
import sys
from pathlib import Path
from typing import Any, Final

import click

from antiphon.cli.kernel_option import DATA, call_kernel, own_kernel, print_result
from antiphon.time_format import to_the_minute

_MINUTES: Final = {"m": 1, "h": 60, "d": 24 * 60, "w": 7 * 24 * 60}
_DURATION: Final = re.compile(r"([1-9][0-9]{0,5})([mhdw])")


class Duration(click.ParamType[int]):
    """`30m`, `12h`, `7d`, `2w` or `never`, as minutes; never is 0."""

    name = "duration"

    def convert(
        self, value: Any, param: click.Parameter | None, context: click.Context | None
    ) -> int:
        if isinstance(value, int):
            return value
        if value == "never":
            return 0
        found = _DURATION.fullmatch(str(value))
        if found is None:
            self.fail(f"{value!r} is no time: expected 30m, 12h, 7d, 2w or never", param, context)
        return int(found[1]) * _MINUTES[found[2]]


@click.command()
@click.option(
    "--role",
    type=click.Choice(["editor", "viewer", "agent", "source"]),
    required=True,
    help="What they may do: write, or only read; an agent is a model, a source a program.",
)
@click.option(
    "--name",
    metavar="NAME",
    help="Their username.  [default: guest, guest2, ..., another one for each]",
)
@click.option(
    "--expires",
    "minutes",
    type=Duration(),
    default="1d",
    show_default=True,
    help="When it stops to let anybody in: 30m, 12h, 7d, 2w or never.",
)
@click.option(
    "--uses",
    type=click.IntRange(1, 1_000),
    help="How many clients may join with it.  [default: any number]",
)
@click.option("--json", "as_json", is_flag=True, help="Print everything about it as one line.")
@DATA
def invite(
    role: str, name: str | None, minutes: int, uses: int | None, as_json: bool, data: Path | None
) -> None:
    """Print one line that joins this kernel: antiphon join ws://...

    Whoever has the line can come in until it expires, is used up or is taken back (antiphon call
    kernel.revoke): hand it on as you would a password. The kernel keeps only a hash of it. It
    listens on this machine; from another one, forward the port (ssh -L).

    Exit codes: 0 printed, 1 the kernel refused, 2 wrong arguments, 3 no kernel could be reached or
    started.
    """
    params: dict[str, Any] = {"role": role, "minutes": minutes}
    params |= {"name": name} if name is not None else {}
    params |= {"uses": uses} if uses is not None else {}
    made = call_kernel(own_kernel(data), "kernel.invite", params, as_json=as_json)
    if as_json:
        print_result(made, as_json)
        return
    line = str(made["join"])
    if sys.stdout.isatty():
        # For a person, who copies it into any shell, the address is quoted: zsh expands a `?`.
        *command, url = line.split()
        line = " ".join([*command, shlex.quote(url)])
    click.echo(line)
    until = f"until {to_the_minute(made['expires'])}" if "expires" in made else "for ever"
    article = "an" if role in ("editor", "agent") else "a"
    take_back = shlex.quote(json.dumps({"invitation": made["invitation"]}))
    click.echo(
        f"antiphon: lets in {made['username']}, {article} {role}, {until};"
        f" antiphon call kernel.revoke {take_back} takes it back.",
        err=True,
    )
