"""Commands about what is kept: contexts from text, and a data folder as a whole.

The kernel's own program carries out those about a data folder.
"""

from __future__ import annotations

import json
import os
import sys
from itertools import chain
from pathlib import Path
from typing import Any, Final, NoReturn

import click

from antiphon.cli.errors import call_error
from antiphon.cli.kernel_option import DATA, KernelTarget, call_kernel, kernel_options, print_result
from antiphon.locations import chosen_data, data_folder, project_root
from antiphon_kernel.client.usage import refuse_password, store_option
from antiphon_kernel.types.constants import DATA_FOLDER, MCP_FILE, STORE_VARIABLE
from antiphon_kernel.types.quoting import count_of

_PIECE: Final = 65_536


@click.command("import")
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
@click.option("--json", "as_json", is_flag=True, help="Print the result as one line of JSON.")
def import_(
    file: Path, label: str | None, format_: str, kernel: KernelTarget, as_json: bool
) -> None:
    """Make a new context of FILE, which `antiphon export` wrote as jsonl (- is standard input).

    The new context is there whole or not at all; nothing that was there is changed.

    With --format messages, FILE has conversations of OpenAI's or Anthropic's shape, as JSON or one
    a line, or is a folder of loom's; each conversation becomes a context, its branches forks.

    Exit codes: 0 imported, 1 the call failed, 2 wrong arguments, 3 no kernel could be reached or
    started.
    """
    if format_ == "messages":
        params = _read_conversations(file)
        if label is not None:
            params["label"] = label
        made = call_kernel(kernel, "message.import", params, as_json=as_json)
        lines = []
        for one in made["conversations"]:
            forks = f" in {one['branches']} branches" if one["branches"] > 1 else ""
            said = f"{count_of(one['messages'], 'message')}{forks}"
            lines.append(f"{one['label']}: {said}, context {one['context_id']}.")
        print_result(made, as_json, lines)
        return
    from antiphon_kernel.client.transfers import import_context
    from antiphon_kernel.types.errors import AntiphonError

    params = {"label": label} if label is not None else {}
    try:
        with click.open_file(str(file), "rb") as source:
            made = import_context(kernel.find()(), iter(lambda: source.read(_PIECE), b""), params)
    except AntiphonError as error:
        raise call_error(error, as_json=as_json) from error
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
        raise click.ClickException(f"{file} cannot be read: {error}.") from error


def _hand_on(context: click.Context, option: click.Parameter, url: str | None) -> None:
    """Put the URL where the kernel's program looks for it too."""
    if refuse_password(context, option, url) is not None:
        os.environ[STORE_VARIABLE] = str(url)


_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
_store = store_option(_hand_on, expose_value=False)


@click.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@DATA
@_store
@_json
def backup(file: Path, data: Path | None, as_json: bool) -> None:
    """Write everything that is on the kernel's disk now to FILE, which must not exist.

    The kernel may be running. Who may join is not part of a backup.

    Exit codes: 0 written, 1 it could not be.
    """
    _kernel("backup", [str(file)], data, as_json)


@click.command()
@click.argument("file", type=click.Path(dir_okay=False, exists=True, path_type=Path))
@DATA
@_store
@_json
def restore(file: Path, data: Path | None, as_json: bool) -> None:
    """Bring a backup back: FILE becomes the kernel's journal, under a new epoch.

    No kernel may be running on the folder. The journal that was there is kept beside the new one.
    Replicas of what was there before are refused, not merged.

    Exit codes: 0 restored, 1 it could not be, 4 a kernel is running.
    """
    _kernel("restore", [str(file)], data, as_json)


@click.command()
@click.option("--from", "source", metavar="URL", help="The database that is moved into a folder.")
@click.option(
    "--to", "target", metavar="URL|DIR", required=True, help="An empty database, or a new folder."
)
@DATA
@_json
def move(source: str | None, target: str, data: Path | None, as_json: bool) -> None:
    """Copy everything from a data folder into a database of Postgres, or back.

    With --to URL everything of the folder goes into the database, with --from URL --to DIR
    everything in the database into the data folder DIR. All of it is there at the end, or nothing;
    what was copied from is not changed. No kernel may be running on either. A password is for
    PGPASSWORD or ~/.pgpass.

    Exit codes: 0 moved, 1 it could not be, 2 wrong arguments, 4 a kernel is running on the folder.
    """
    arguments = ["--from", source] if source is not None else []
    _kernel("move", [*arguments, "--to", target], data, as_json)


@click.command()
@click.option(
    "--env", "of_machine", is_flag=True, help="Say what of this machine antiphon uses instead."
)
@DATA
@_store
@_json
def doctor(of_machine: bool, data: Path | None, as_json: bool) -> None:
    """Check everything that must hold for what is stored; nothing is changed.

    The kernel may be running. With --env: print what of terminal, programs, libraries, keys of
    models and agents is here, and what each changes.

    Exit codes: 0 all is well, or printed with --env, 1 something was found, or nothing could be
    read.
    """
    if not of_machine:
        _kernel("doctor", [], data, as_json)
    from antiphon.cli.environment import environment

    found = list(environment())
    fields = [{"name": name, "found": here, "for": effect} for name, here, effect in found]
    rows = ((f"{name}: {here or 'no'}", f"    for {effect}") for name, here, effect in found)
    print_result({"environment": fields}, as_json, chain.from_iterable(rows))


@click.command()
@click.option("--context", metavar="LABEL", help="Only this context, and who joined.")
@click.option("--limit", type=click.IntRange(1), help="Only the last so many events.")
@DATA
@_store
@_json
def log(context: str | None, limit: int | None, data: Path | None, as_json: bool) -> None:
    """Print who joined, wrote and ran what, oldest first.

    Exit codes: 0 printed, 1 nothing could be read.
    """
    arguments = ["--context", context] if context is not None else []
    arguments += ["--limit", str(limit)] if limit is not None else []
    _kernel("log", arguments, data, as_json)


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
    _kernel("trust", ["--yes"] if yes else [], folder, as_json=False)


def _kernel(command: str, arguments: list[str], data: Path | None, as_json: bool) -> NoReturn:
    folder = chosen_data(data, project_root(Path.cwd()))
    line = [sys.executable, "-m", "antiphon_kernel", command, "--data", str(folder)]
    line += ["--json"] if as_json else []
    # What begins with a dash may still be a file.
    line += [*arguments, "--"] if command in ("log", "move", "trust") else ["--", *arguments]
    sys.stdout.flush()
    os.execv(sys.executable, line)
