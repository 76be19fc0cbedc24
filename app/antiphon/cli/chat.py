"""`antiphon tail`, `send`, `run` and `acp`: reading along and having a say without the app."""

from __future__ import annotations

import os
import stat
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from antiphon.cli.errors import CommandError, KernelCommand, require_library
from antiphon.cli.kernel_option import (
    AS_JSON,
    AS_KIND,
    AS_NAME,
    KernelTarget,
    call_kernel,
    kernel_options,
    own_kernel,
    print_result,
    run_with_kernel,
)
from antiphon.cli.shell_completion import complete_context, complete_model
from antiphon.cli.signals import default_sigint
from antiphon.cli.signals import run as run_loop
from antiphon_kernel.client.standard_streams import NoReaderError
from antiphon_kernel.types.constants import DEFAULT_CONTEXT, ExitCode

if TYPE_CHECKING:
    from antiphon_kernel.client.address import Locate
    from antiphon_kernel.client.tool_client import ToolClient

STOP_SECONDS: Final = 60.0
"""Time that an interrupted turn has to end; Ctrl+C once more does not wait for it."""

_context = click.argument("context", required=False, shell_complete=complete_context)


@click.command(cls=KernelCommand)
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
@kernel_options
def tail(context: str | None, last: int, as_json: bool, kernel: KernelTarget) -> None:
    """Print CONTEXT as it grows (id or label; by default `default`), and go on until it is stopped.

    Nothing that is printed is drawn again: what somebody changes in it comes as lines with - and +.
    Ends with the kernel, with whoever reads its output, and with Ctrl+C.
    """
    with default_sigint():
        from antiphon.cli.tail import Tail

    async def follow(calls: ToolClient) -> None:
        tail = Tail(calls, sys.stdout.buffer, as_json=as_json)
        await tail.run(context or DEFAULT_CONTEXT, last)

    try:
        run_with_kernel(kernel, follow, once=False)
    except (KeyboardInterrupt, NoReaderError):
        return


@click.command(cls=KernelCommand)
@_context
@AS_NAME
@AS_KIND
@AS_JSON
@kernel_options
def send(context: str | None, as_json: bool, kernel: KernelTarget) -> None:
    """Send what standard input says as a message to CONTEXT (id or label; by default `default`).

    It is one message, however many lines; newlines at its end are left out. A model answers it as
    it answers what is written in the app.
    """
    message = {
        "role": "user",
        "kind": "text",
        "status": "done",
        "context": context or DEFAULT_CONTEXT,
        "content": _read_message("send"),
    }
    print_result(call_kernel(kernel, "block.create", message), as_json)


@click.command(cls=KernelCommand)
@click.argument("prompt", required=False)
@click.option(
    "--model",
    "--agent",
    "model",
    metavar="NAME",
    shell_complete=complete_model,
    help="The model or agent that answers.  [default: as in the app]",
)
@click.option(
    "--output",
    "--output-format",
    "output",
    type=click.Choice(["text", "json", "stream-json"]),
    default="text",
    show_default=True,
    help="Print the answer, one JSON object at the end, or one for each event.",
)
@click.option(
    "--allow",
    metavar="TOOL",
    multiple=True,
    help="Allow a tool's calls in this run where a person would be asked; * for all.",
)
@click.option(
    "--max-rounds", type=click.IntRange(1), help="End the turn after so many rounds of tool calls."
)
@click.option(
    "--context", metavar="LABEL", help="Context, made if there is none.  [default: default]"
)
@kernel_options
def run(
    prompt: str | None,
    model: str | None,
    output: str,
    allow: tuple[str, ...],
    max_rounds: int | None,
    context: str | None,
    kernel: KernelTarget,
) -> None:
    """Send PROMPT to a model and print its answer; without PROMPT, what standard input says.

    Tools run with your rights. A call that a person would be asked about is refused unless --allow
    names its tool; of agents that is shell, file_edit, or the kind of the call. Ctrl+C stops the
    turn; what was written stays in the context.

    Exit codes: 0 done, 1 the turn failed or the kernel refused, 2 wrong arguments, 3 no kernel
    could be reached or started, 6 a call needed a permission that nobody gave, 7 a limit or budget
    ended the turn, 130 the turn was interrupted.
    """
    text = _read_message("run") if prompt in (None, "-") else str(prompt)
    if not text.strip():
        raise CommandError("the prompt is empty: say what the model is to do.", ExitCode.USAGE)
    with default_sigint():
        from antiphon.cli.headless_turn import HeadlessTurn

    async def play(calls: ToolClient) -> ExitCode:
        turn = HeadlessTurn(
            calls,
            sys.stdout.buffer,
            output,
            text=text,
            context=context or DEFAULT_CONTEXT,
            model=model,
            allow=[one.replace(".", "_") for one in allow],
            max_rounds=max_rounds,
        )
        return await turn.play()

    try:
        code = run_with_kernel(kernel, play, once=False, grace=STOP_SECONDS)
    except KeyboardInterrupt:
        code = ExitCode.INTERRUPTED
    sys.exit(code)


@click.command()
@kernel_options
def acp(kernel: KernelTarget) -> None:
    """Let an editor talk to contexts by the Agent Client Protocol, on standard input and output.

    An editor starts it, and says which project it is about; a kernel is started there if none runs.
    --data or --url names another one.

    Exit codes: 0 the editor has gone, 1 it failed, 2 wrong arguments.
    """
    require_library("acp", "ACP", "agents")
    modes = [os.fstat(file).st_mode for file in (0, 1)]
    if not all(stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) for mode in modes):
        raise CommandError("this is for editors to start: see docs/agents.md.", ExitCode.USAGE)
    with default_sigint():
        from antiphon.acp_agent.agent import serve
        from antiphon.locations import data_folder

    is_chosen = any(click.get_current_context().params.values())

    def find(project: Path) -> Locate:
        return (kernel if is_chosen else own_kernel(data_folder(project))).find()

    with suppress(KeyboardInterrupt):
        run_loop(lambda: serve(find))


def _read_message(command: str) -> str:
    """Read standard input to its end for a command.

    Raises:
        CommandError: if it is empty or no text.
    """
    if sys.stdin.isatty():
        click.echo("antiphon: write the message; Ctrl+D on an empty line sends it.", err=True)
    try:
        text = sys.stdin.buffer.read().decode("utf-8").rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise CommandError(
            f"standard input is not UTF-8 ({error.reason} at byte {error.start}): a message is"
            " text.",
            ExitCode.USAGE,
        ) from error
    if not text.strip():
        raise CommandError(
            "standard input is empty: give it the message, as in"
            f" `echo Hello | antiphon {command}`.",
            ExitCode.USAGE,
        )
    return text
