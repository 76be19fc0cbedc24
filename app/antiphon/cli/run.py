"""`antiphon run`: one message to a model, its answer on standard output, an exit code."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

import click

from antiphon.cli.chat import read_message
from antiphon.cli.errors import CommandError
from antiphon.cli.kernel_option import KernelTarget, kernel_options, run_with_kernel
from antiphon.cli.signals import default_sigint
from antiphon_kernel.types.constants import DEFAULT_CONTEXT, ExitCode

if TYPE_CHECKING:
    from antiphon_kernel.client.tool_client import ToolClient


STOP_SECONDS: Final = 60.0
"""Time that an interrupted turn has to end; Ctrl+C once more does not wait for it."""


@click.command()
@click.argument("prompt", required=False)
@click.option("--model", metavar="NAME", help="The model that answers.  [default: as in the app]")
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
    names its tool. Ctrl+C stops the turn; what was written stays in the context.

    Exit codes: 0 done, 1 the turn failed or the kernel refused, 2 wrong arguments, 3 no kernel
    could be reached or started, 6 a call needed a permission that nobody gave, 7 a limit or budget
    ended the turn, 130 the turn was interrupted.
    """
    text = read_message("run") if prompt in (None, "-") else str(prompt)
    if not text.strip():
        raise CommandError("the prompt is empty: say what the model is to do.", ExitCode.USAGE)
    with default_sigint():
        from antiphon.cli.headless_turn import HeadlessTurn, TurnRequest

    request = TurnRequest(
        text=text,
        context=context or kernel.context or DEFAULT_CONTEXT,
        model=model,
        allow=frozenset(one.replace(".", "_") for one in allow),
        max_rounds=max_rounds,
    )

    async def play(calls: ToolClient) -> ExitCode:
        turn = HeadlessTurn(calls, request, sys.stdout.buffer, output)
        return await turn.play()

    is_json = output != "text"
    try:
        code = run_with_kernel(kernel, play, as_json=is_json, once=False, grace=STOP_SECONDS)
    except KeyboardInterrupt:
        code = ExitCode.INTERRUPTED
    sys.exit(code)
