"""`antiphon export` and `antiphon import`: a context as text, and back."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Final

import click

from antiphon.cli.errors import call_error
from antiphon.cli.kernel_option import KernelTarget, call_kernel, kernel_options, print_result
from antiphon_kernel.types.constants import DEFAULT_CONTEXT
from antiphon_kernel.types.quoting import count_of

_PIECE: Final = 65_536


@click.command("export")
@click.argument("context", default=DEFAULT_CONTEXT)
@click.option(
    "--format",
    "format_",
    type=click.Choice(["jsonl", "markdown", "messages"]),
    default="jsonl",
    show_default=True,
    help="Lines of JSON that can be imported again, Markdown to be read, or the conversation as"
    " JSON for other tools.",
)
@click.option(
    "--shape",
    type=click.Choice(["openai", "anthropic"]),
    help="Whose messages they are, with --format messages.  [default: openai]",
)
@kernel_options
def export(context: str, format_: str, shape: str | None, kernel: KernelTarget) -> None:
    """Print the whole content of CONTEXT (id or label; by default `default`), however large it is.

    Lines of JSON end with one that says how many blocks there are: what has been broken off cannot
    be imported.

    With --format messages, the messages that models read are printed as one JSON object, images and
    documents in them as data; `antiphon import --format messages` takes it.

    Exit codes: 0 printed, 1 the call failed, 2 wrong arguments, 3 no kernel could be reached or
    started.
    """
    from antiphon_kernel.client.transfers import export_context
    from antiphon_kernel.text.sanitize import escape_json
    from antiphon_kernel.types.errors import AntiphonError

    if shape is not None and format_ != "messages":
        raise click.UsageError("--shape goes with --format messages")
    as_json_on_a_terminal = format_ != "markdown" and sys.stdout.isatty()
    params = {"context": context, "format": format_, **({"shape": shape} if shape else {})}
    try:
        address = kernel.find()()
        for piece in export_context(address, params):
            if as_json_on_a_terminal:
                piece = escape_json(piece.decode()).encode()
            sys.stdout.buffer.write(piece)
    except AntiphonError as error:
        raise call_error(error) from error
    finally:
        sys.stdout.flush()


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
        print_result(made, as_json, map(_imported, made["conversations"]))
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


def _imported(one: dict[str, Any]) -> str:
    said = count_of(one["messages"], "message")
    forks = f" in {one['branches']} branches" if one["branches"] > 1 else ""
    return f"{one['label']}: {said}{forks}, context {one['context_id']}."


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
