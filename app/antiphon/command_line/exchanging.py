"""`antiphon export` and `antiphon import`: a context as text, and back."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from antiphon.command_line.failures import Failure
from antiphon.command_line.reaching import ChosenKernel, ask_kernel, calls_kernel
from antiphon_kernel.types.conventions import DEFAULT_CONTEXT

if TYPE_CHECKING:
    from antiphon_kernel.client.calls import KernelCalls


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
@calls_kernel
def export(context: str, format_: str, kernel: ChosenKernel) -> None:
    """Print the whole content of CONTEXT (id or label; by default `default`).

    Exit codes: 0 printed, 1 the call failed, 2 wrong arguments, 3 no kernel could be reached or
    started.
    """
    exported = _call(kernel, "context.export", {"context": context, "format": format_})
    text = exported["text"]
    if format_ == "jsonl" and sys.stdout.isatty():
        from antiphon_kernel.text.neutral import escape_json

        text = escape_json(text)
    # A lone surrogate cannot be in it: the kernel takes none.
    sys.stdout.buffer.write(text.encode("utf-8"))
    sys.stdout.flush()


@click.command("import")
@click.argument("file", type=click.File("rb"))
@click.option("--label", metavar="LABEL", help="The new context's.  [default: as it was exported]")
@calls_kernel
@click.option("--json", "as_json", is_flag=True, help="Print the result as one line of JSON.")
def import_(file: Any, label: str | None, kernel: ChosenKernel, as_json: bool) -> None:
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
    made = _call(kernel, "context.import", params, as_json)
    if as_json:
        click.echo(as_line(made))
        return
    blocks = "1 block" if made["blocks"] == 1 else f"{made['blocks']} blocks"
    click.echo(f"{made['label']}: {blocks}, context {made['context_id']}.")


def _call(
    kernel: ChosenKernel, tool: str, params: dict[str, Any], as_json: bool = False
) -> dict[str, Any]:
    async def ask(calls: KernelCalls) -> dict[str, Any]:
        return await calls.call(tool, params)

    return ask_kernel(kernel, ask, as_json=as_json)


COMMANDS = (export, import_)
