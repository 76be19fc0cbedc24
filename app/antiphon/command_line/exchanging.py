"""`antiphon export` and `antiphon import`: a context as text, and back."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from antiphon.command_line.failures import Failure, failed_call
from antiphon_kernel.types.conventions import DEFAULT_CONTEXT

_data = click.option(
    "--data",
    type=click.Path(file_okay=False, path_type=Path),
    envvar="ANTIPHON_DATA",
    help="Where the kernel keeps its files.  [default: .antiphon in the project]",
)


@click.command("export")
@click.argument("context", default=DEFAULT_CONTEXT)
@click.option(
    "--format",
    "format_",
    type=click.Choice(["jsonl", "markdown"]),
    default="jsonl",
    show_default=True,
    help="Lines of JSON that can be imported again, or Markdown to be read.",
)
@_data
def export(context: str, format_: str, data: Path | None) -> None:
    """Print the whole content of CONTEXT (id or label; by default `default`).

    Exit codes: 0 printed, 1 the call failed, 2 wrong arguments, 3 no kernel could be reached or
    started.
    """
    exported = _call(data, "context.export", {"context": context, "format": format_})
    # A lone surrogate cannot be in it: the kernel takes none.
    sys.stdout.buffer.write(exported["text"].encode("utf-8"))
    sys.stdout.flush()


@click.command("import")
@click.argument("file", type=click.File("rb"))
@click.option("--label", metavar="LABEL", help="The new context's.  [default: as it was exported]")
@_data
@click.option("--json", "as_json", is_flag=True, help="Print the result as one line of JSON.")
def import_(file: Any, label: str | None, data: Path | None, as_json: bool) -> None:
    """Make a new context of FILE, which `antiphon export` wrote as jsonl (- is standard input).

    The new context is there whole or not at all; nothing that was there is changed.

    Exit codes: 0 imported, 1 the call failed, 2 wrong arguments, 3 no kernel could be reached or
    started.
    """
    from antiphon.command_line.calling import as_line

    try:
        text = file.read().decode("utf-8")
    except UnicodeDecodeError as error:
        raise Failure(
            f"{file.name} is not UTF-8 ({error.reason} at byte {error.start}):"
            " import what `antiphon export` wrote."
        ) from error
    params = {"text": text, **({"label": label} if label is not None else {})}
    made = _call(data, "context.import", params, as_json)
    if as_json:
        click.echo(as_line(made))
        return
    blocks = "1 block" if made["blocks"] == 1 else f"{made['blocks']} blocks"
    click.echo(f"{made['label']}: {blocks}, context {made['context_id']}.")


def _call(
    data: Path | None, tool: str, params: dict[str, Any], as_json: bool = False
) -> dict[str, Any]:
    import asyncio

    from antiphon.command_line.running import running_data
    from antiphon_kernel.types.errors import AntiphonError

    try:
        return asyncio.run(_call_running(running_data(data), tool, params))
    except AntiphonError as error:
        raise failed_call(error, as_json=as_json) from error


async def _call_running(data: Path, tool: str, params: dict[str, Any]) -> dict[str, Any]:
    from antiphon_kernel.client.address import read_address
    from antiphon_kernel.client.calls import KernelCalls

    calls = KernelCalls(lambda: read_address(data))
    try:
        return await calls.call(tool, params)
    finally:
        await calls.close()


COMMANDS = (export, import_)
