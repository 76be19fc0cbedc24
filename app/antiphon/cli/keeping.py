"""Commands about what is kept: contexts from text, and a data folder as a whole.

The kernel's own program carries out those about a data folder.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Final, NoReturn

import click

from antiphon.cli.errors import CommandError, KernelCommand
from antiphon.cli.kernel_option import (
    AS_JSON,
    DATA,
    KernelTarget,
    call_kernel,
    kernel_options,
    print_result,
)
from antiphon.locations import chosen_data, data_folder, project_root
from antiphon_kernel.types.constants import DATA_FOLDER, MCP_FILE
from antiphon_kernel.types.quoting import count_of

_PIECE: Final = 65_536


@click.command("import", cls=KernelCommand)
@click.argument("file", type=click.Path(exists=True, allow_dash=True, path_type=Path))
@click.option("--label", metavar="LABEL", help="The new context's.  [default: as it was exported]")
@click.option(
    "--format",
    "format_",
    type=click.Choice(["jsonl", "messages"]),
    default="jsonl",
    show_default=True,
    help="An export of antiphon, or conversations of another tool.",
)
@kernel_options
@AS_JSON
def import_(
    file: Path, label: str | None, format_: str, kernel: KernelTarget, as_json: bool
) -> None:
    """Make a new context of FILE, which `antiphon export` wrote as jsonl (- is standard input).

    The new context is there whole or not at all; nothing that was there is changed.

    With --format messages, FILE has conversations of OpenAI's or Anthropic's shape, as JSON or one
    a line, or is a folder of loom's; each conversation becomes a context, its branches forks.
    """
    if format_ == "messages":
        params = _read_conversations(file)
        if label is not None:
            params["label"] = label
        made = call_kernel(kernel, "message.import", params)
        lines = []
        for one in made["conversations"]:
            forks = f" in {one['branches']} branches" if one["branches"] > 1 else ""
            said = f"{count_of(one['messages'], 'message')}{forks}"
            lines.append(f"{one['label']}: {said}, context {one['context_id']}.")
        print_result(made, as_json, lines)
        return
    from antiphon_kernel.client.transfers import import_context

    params = {"label": label} if label is not None else {}
    with click.open_file(str(file), "rb") as source:
        made = import_context(kernel.find()(), iter(lambda: source.read(_PIECE), b""), params)
    blocks = count_of(made["blocks"], "block")
    print_result(made, as_json, [f"{made['label']}: {blocks}, context {made['context_id']}."])


def _read_conversations(file: Path) -> dict[str, Any]:
    try:
        if file.is_dir():
            paths = sorted(path for path in file.rglob("*.json") if path.is_file())
            files = {path.relative_to(file).as_posix(): path.read_text("utf-8") for path in paths}
            return {"format": "loom", "text": json.dumps(files)}
        with click.open_file(str(file), "rb") as source:
            return {"format": "messages", "text": source.read().decode("utf-8")}
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"{file} cannot be read: {error}.") from error


_PASSED_ON: Final = {"ignore_unknown_options": True, "allow_extra_args": True}
"""Settings of a command whose arguments the kernel's program reads, which has more to say of it."""

_arguments = click.argument("arguments", nargs=-1, type=click.UNPROCESSED)


def _of_kernel(name: str, help_: str) -> click.Command:
    """Return a command that the kernel's program carries out."""

    @click.command(name, help=help_, add_help_option=False, context_settings=_PASSED_ON)
    @DATA
    @_arguments
    def command(data: Path | None, arguments: tuple[str, ...]) -> None:
        run_kernel(name, data, arguments)

    return command


@click.command(add_help_option=False, context_settings=_PASSED_ON)
@click.option(
    "--env", "of_machine", is_flag=True, help="Say what of this machine antiphon uses instead."
)
@DATA
@_arguments
def doctor(of_machine: bool, data: Path | None, arguments: tuple[str, ...]) -> None:
    """Check everything that must hold for what is stored; or, with --env, this machine.

    With --env: print what of terminal, programs, libraries, keys of models and agents is here, and
    what each changes.
    """
    if not of_machine:
        run_kernel("doctor", data, arguments)
    from antiphon.cli.environment import environment

    found = list(environment())
    fields = [{"name": name, "found": here, "for": effect} for name, here, effect in found]
    rows = ((f"{name}: {here or 'no'}", f"    for {effect}") for name, here, effect in found)
    print_result({"environment": fields}, "--json" in arguments, chain.from_iterable(rows))


OF_KERNEL: Final = (
    _of_kernel("backup", "Write everything that is stored now to a file, while kernels may run."),
    _of_kernel("restore", "Bring a backup back, under a new epoch."),
    _of_kernel("move", "Copy everything from a data folder into a database of Postgres, or back."),
    doctor,
    _of_kernel("log", "Print who joined, wrote and ran what, oldest first."),
)


@click.command()
@click.argument("folder", metavar="[DIR]", type=click.Path(path_type=Path), required=False)
@click.option("--yes", is_flag=True, help="Do not ask.")
def trust(folder: Path | None, yes: bool) -> None:
    """Say what a data folder holds that somebody else has made, and open it from now on.

    A folder that came with a clone or an archive, was shared or moved, may name people and tokens
    that you do not know; what a project's config.toml and .mcp.json name is run and called.
    DIR is a project or a data folder.  [default: this project's]

    Exit codes: 0 it is trusted, 1 it is not, 2 nobody can be asked, 5 others may write in it.
    """
    if folder is not None and any((folder / one).exists() for one in (DATA_FOLDER, MCP_FILE)):
        folder = data_folder(folder)
    run_kernel("trust", folder, ["--yes"] if yes else [])


def run_kernel(command: str, data: Path | None, arguments: Sequence[str]) -> NoReturn:
    """Become the kernel's program."""
    folder = chosen_data(data, project_root(Path.cwd()))
    line = [sys.executable, "-P", "-m", "antiphon_kernel", command]
    line += ["--data", str(folder), *arguments]
    sys.stdout.flush()
    os.execv(sys.executable, line)
