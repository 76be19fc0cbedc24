"""`antiphon tail` and `antiphon send`: reading along and having a say without the app."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import click

from antiphon.command_line.failures import Failure, failed_call
from antiphon_kernel.types.conventions import DEFAULT_CONTEXT, ExitCode

_data = click.option(
    "--data",
    type=click.Path(file_okay=False, path_type=Path),
    envvar="ANTIPHON_DATA",
    help="Where the kernel keeps its files.  [default: .antiphon in the project]",
)
_context = click.argument("context", default=DEFAULT_CONTEXT)


@click.command()
@_context
@click.option(
    "-n",
    "--blocks",
    "last",
    type=click.IntRange(0),
    default=10,
    show_default=True,
    help="How many of the last blocks to print first.",
)
@click.option("--json", "as_json", is_flag=True, help="Print each event as one line of JSON.")
@_data
def tail(context: str, last: int, as_json: bool, data: Path | None) -> None:
    """Print CONTEXT as it grows (id or label; by default `default`), and go on until it is stopped.

    Nothing that is printed is drawn again: what somebody changes in it comes as lines with - and +.
    Ends with the kernel, with whoever reads its output, and with Ctrl+C.

    Exit codes: 0 ended, 1 the kernel refused, 2 wrong arguments, 3 no kernel could be reached or
    started.
    """
    import asyncio

    from antiphon.command_line.running import running_data
    from antiphon_kernel.types.errors import AntiphonError

    try:
        asyncio.run(_tail(running_data(data), context, last, as_json))
    except AntiphonError as error:
        raise failed_call(error, as_json=as_json) from error
    except KeyboardInterrupt:
        return
    except BrokenPipeError:
        # Nobody reads any more: what Python flushes at its end goes nowhere, without a word.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


async def _tail(data: Path, context: str, last: int, as_json: bool) -> None:
    from antiphon.command_line.tailing import Tail
    from antiphon_kernel.client.address import read_address
    from antiphon_kernel.client.calls import KernelCalls

    calls = KernelCalls(lambda: read_address(data))
    try:
        await Tail(calls, sys.stdout.buffer, as_json=as_json).run(context, last)
    finally:
        await calls.close()


@click.command()
@_context
@click.option(
    "--as",
    "as_name",
    metavar="NAME",
    help="Who says it, made on first use.  [default: the owner]",
)
@click.option("--json", "as_json", is_flag=True, help="Print the id of the message's block.")
@_data
def send(context: str, as_name: str | None, as_json: bool, data: Path | None) -> None:
    """Send what standard input says as a message to CONTEXT (id or label; by default `default`).

    It is one message, however many lines; newlines at its end are left out. A model answers it as
    it answers what is written in the app.

    Exit codes: 0 sent, 1 the kernel refused, 2 wrong arguments or nothing to send, 3 no kernel
    could be reached or started.
    """
    import asyncio

    from antiphon.command_line.calling import as_line
    from antiphon.command_line.running import running_data
    from antiphon_kernel.types.errors import AntiphonError

    text = _message()
    try:
        sent = asyncio.run(_send(running_data(data), as_name, context, text))
    except AntiphonError as error:
        raise failed_call(error, as_json=as_json) from error
    if as_json:
        click.echo(as_line(sent))


def _message() -> str:
    """Standard input, to its end.

    Raises:
        Failure: if there is nothing in it, or not text.
    """
    if sys.stdin.isatty():
        click.echo("antiphon: write the message; Ctrl+D on an empty line sends it.", err=True)
    try:
        text = sys.stdin.buffer.read().decode("utf-8").rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise Failure(
            f"standard input is not UTF-8 ({error.reason} at byte {error.start}): a message is"
            " text.",
            ExitCode.USAGE,
        ) from error
    if not text.strip():
        raise Failure(
            "standard input is empty: give it the message, as in `echo Hello | antiphon send`.",
            ExitCode.USAGE,
        )
    return text


async def _send(data: Path, as_name: str | None, context: str, text: str) -> dict[str, Any]:
    from antiphon_kernel.client.address import read_address
    from antiphon_kernel.client.calls import KernelCalls

    message = {"role": "user", "kind": "text", "status": "done"}
    calls = KernelCalls(lambda: read_address(data), as_name=as_name)
    try:
        return await calls.call("block.create", {**message, "context": context, "content": text})
    finally:
        await calls.close()


COMMANDS = (tail, send)
