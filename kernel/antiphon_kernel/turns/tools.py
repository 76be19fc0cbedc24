"""The tools of this layer: stopping what runs, and people's shell commands."""

from __future__ import annotations

from pydantic import Field

from antiphon_kernel.access import check_interrupt, check_shell
from antiphon_kernel.kernel import Call
from antiphon_kernel.registry import REFERENCES, Params, Result, Tool, tool
from antiphon_kernel.turns.runner import runner_of
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.roles import Permission


class InterruptParams(Params):
    """Turns and commands to stop."""

    context: str | None = None
    """Label or id; the default context if absent."""
    principal: str | None = None
    """Username or id of the model (or person, for a command) to stop; all if absent."""


class InterruptResult(Result):
    """Principals that were stopped."""

    stopped: list[str]
    """Usernames; empty if nothing was running."""


class ShellRunParams(Params):
    """A command for the kernel's host, run in the project's root."""

    context: str | None = None
    """Label or id; the default context if absent."""
    command: str = Field(min_length=1)
    """A line for the shell: bash, or sh where there is none."""
    wait: bool = False
    """Answer when the command has ended, not when it has begun."""


class ShellRunResult(Result):
    """Blocks of the command and its output."""

    block_id: str
    """The call."""
    name: str
    result_id: str
    """Its result, which the output streams into."""
    result_name: str
    version: int
    """Of the call."""
    context_version: int
    exit_code: int | None = None
    """Only when waited for, and if the command came to an end by itself."""


@tool("turn.interrupt", needs=Permission.WRITE, errors=REFERENCES)
async def interrupt(call: Call, params: InterruptParams) -> InterruptResult:
    """Stop the running turns and commands of one principal or of all.

    The blocks that programs are writing from outside end, too: their next write is rejected. What
    has been written stays, with status error, stop_reason interrupted and who stopped it.
    """
    check_interrupt(params.principal, call.actor.principal, call.role)
    context = await call.context(params.context)
    runner = runner_of(call.kernel)
    stopped = await runner.interrupt(context, params.principal, call.actor.principal)
    return InterruptResult(stopped=stopped)


@tool("shell.run", needs=Permission.WRITE, errors=REFERENCES)
async def run(call: Call, params: ShellRunParams) -> ShellRunResult:
    """Run a shell command in the project's root; only the owner of the kernel may.

    Answers once the call and its result are blocks; the output streams into the result.
    """
    check_shell(call.actor.principal, call.role)
    if not params.command.strip():
        raise AntiphonError(
            ErrorCode.INVALID_PARAMS,
            "The command is empty: say what to run.",
            field="command",
        )
    context = await call.context(params.context)
    work, blocks = await runner_of(call.kernel).start_command(context, call.actor, params.command)
    if params.wait:
        await work.wait_ended()
    return ShellRunResult(
        block_id=blocks.call,
        name=context.block_name(blocks.call),
        result_id=blocks.result,
        result_name=context.block_name(blocks.result),
        version=context.version(blocks.call),
        context_version=context.seq,
        exit_code=context.document.header(blocks.call).exit_code,
    )


TURN_TOOLS: tuple[Tool, ...] = (interrupt, run)
