"""The tools of this layer: asking again, stopping what runs, shell commands, permissions."""

from __future__ import annotations

import asyncio
import json
from enum import StrEnum
from typing import Any, Literal

from pydantic import Field

from antiphon_kernel.access import check_interrupt, check_role, check_shell
from antiphon_kernel.contexts import Context
from antiphon_kernel.conversation import Branch
from antiphon_kernel.document.rendering import render
from antiphon_kernel.kernel import Call
from antiphon_kernel.messages import MessageRole
from antiphon_kernel.registry import REFERENCES, BlockParams, ContextParams, Params, Result, tool
from antiphon_kernel.storage import ToolPermission
from antiphon_kernel.tools._common import BlockResult
from antiphon_kernel.tools.message import SiblingPlace, fork_branch
from antiphon_kernel.turns.permission import tool_of
from antiphon_kernel.turns.runner import Job, runner_of
from antiphon_kernel.turns.turn import Turn
from antiphon_kernel.types.block_metadata import CAN_RETRY
from antiphon_kernel.types.clock import iso_time
from antiphon_kernel.types.drift import is_drifted
from antiphon_kernel.types.enums import BlockKind, CallPermission, Role
from antiphon_kernel.types.errors import AntiphonError, ErrorCode, invalid_params, permission_denied
from antiphon_kernel.types.quoting import quote
from antiphon_kernel.types.roles import Permission


class StartTurnParams(Params):
    """A message of a person, or an answer to it."""

    message: str
    """A block of it. Of an answer, the model that wrote it is asked again; of a person's message,
    those that it addresses."""


class StartTurnResult(SiblingPlace):
    """The message that is answered, and the models that are asked."""

    message_id: str
    """The message where it is answered now."""
    context_version: int
    forked: bool
    """Whether it is answered in a branch that was made for that."""
    models: list[str]
    """Empty if there is no model here; nothing has been done then."""


@tool("turn.start", needs=Permission.WRITE, errors=(*REFERENCES, ErrorCode.TOO_LARGE))
async def start(call: Call, params: StartTurnParams) -> StartTurnResult:
    """Have a person's message answered, or answered once more.

    Where something follows it already, the answer is written in a branch that ends with it. Only
    people ask; the models have the rights of whoever asks, not those of the message's author.
    """
    check_role(Role.USER, BlockKind.TEXT, call.actor.principal)
    runner, trees = runner_of(call.kernel), call.kernel.trees
    async with trees.writing:
        source, block = await call.block(params.message)
        branch = await trees.branch(source)
        at = _answered(branch, block)
        prompt, document = branch.messages[at].id, source.document
        end = at + 1
        text = render(document, prompt)
        models = await runner.answering(source, document.header(block).author, text)
        is_end = end == len(branch.messages) and not branch.path.is_followed()
        is_forked = bool(models) and not (is_end and not runner.works(source))
        if is_forked:
            branch = await fork_branch(call, branch, end)
            prompt = branch.messages[at].id
        context = branch.context
        for model in models:
            runner.start_turn(context, model, prompt, call.actor)
    return StartTurnResult.of(
        branch, at, context_version=context.seq, forked=is_forked, models=models
    )


def _answered(branch: Branch, block: str) -> int:
    """Return the number of the person's message that a block is of, or answers."""
    document, path, seen = branch.context.document, branch.path, set[str]()
    said_by_people = {
        number for number, one in enumerate(branch.messages) if one.message.role is MessageRole.USER
    }
    parent: str | None = block
    while parent is not None and parent in document and parent not in seen:
        seen.add(parent)
        at = path.index.get(parent)
        if at in said_by_people:
            return at
        parent = document.header(parent).parent
    index = path.index.get(block)
    before = [number for number in said_by_people if index is not None and number < index]
    if before:
        return max(before)
    raise invalid_params(
        f"Block {quote(block)} answers no message of a person: nothing of that kind stands before"
        " it. message.path names the messages of a context.",
        field="message",
    )


class RetryParams(Params):
    """A turn that has failed or was interrupted."""

    message: str
    """The block of kind error that ends the turn, or another block that its model has written."""


class RetryResult(Result):
    """The turn that goes on."""

    model: str | None = None
    """Name of the model that is asked again; absent if there is no model here, and nothing has been
    done then."""
    message_id: str
    """The message that it answers."""
    message_name: str
    context_version: int


@tool("turn.retry", needs=Permission.WRITE, errors=(*REFERENCES, ErrorCode.INVALID_TRANSITION))
async def retry(call: Call, params: RetryParams) -> RetryResult:
    """Go on with a turn that has failed or was interrupted, where it ended, in the same context.

    The model reads what it has said and done so far. Only people ask; it has the rights of whoever
    asks. `turn.start` has the message answered once more from the beginning.
    """
    check_role(Role.USER, BlockKind.TEXT, call.actor.principal)
    runner = runner_of(call.kernel)
    context, block = await call.block(params.message)
    if not runner.names:
        return RetryResult(
            message_id=block, message_name=context.block_name(block), context_version=context.seq
        )
    document, header = context.document, context.document.header(block)
    model = await runner.named(header.author)
    prompt = None if is_drifted(header.metadata) else header.parent
    if header.kind == BlockKind.TOOL_RESULT and prompt is not None and prompt in document:
        prompt = document.header(prompt).parent
    if model is None or prompt is None or prompt not in document:
        raise invalid_params(
            f"Block {quote(params.message)} was written by no model that is here now in answer to"
            " a message: name the error that ended its turn.",
            field="message",
        )
    failed = header.metadata.get(CAN_RETRY) is True or header.stop_reason is not None
    if not failed or any(one.prompt == prompt for one in runner.works(context)):
        raise AntiphonError(
            ErrorCode.INVALID_TRANSITION,
            f"The turn of block {quote(params.message)} has not failed, or runs again already:"
            " name the error that ended it, or use turn.start to have the message answered anew.",
            status=str(header.status),
        )
    runner.start_turn(context, model, prompt, call.actor)
    return RetryResult(
        model=model,
        message_id=prompt,
        message_name=context.block_name(prompt),
        context_version=context.seq,
    )


class WorkState(StrEnum):
    """State of a turn or a command that is not over."""

    WAITING = "waiting"
    """Queued behind another turn of the same model."""
    RUNNING = "running"
    RETRYING = "retrying"
    """Waiting until its request is sent again."""
    STOPPING = "stopping"


class QueuedWork(Result):
    """A turn or a command that is not over."""

    username: str
    """Name of the model, or of whoever runs the command."""
    state: WorkState
    """State now."""
    model: str | None = None
    """Name of the model whose turn it is; absent of a command."""
    message_id: str | None = None
    """The message that is answered; absent of a command."""
    message_name: str | None = None
    round: int | None = None
    """Number of the round that is played, from 1; absent of a turn that waits."""


class QueueResult(Result):
    """Work of a context that is not over."""

    works: list[QueuedWork]
    """In the order in which it was asked for."""


@tool("turn.queue", needs=Permission.READ, errors=REFERENCES[1:])
async def queue(call: Call, params: ContextParams) -> QueueResult:
    """List the turns and commands that run or wait in a context."""
    context = await call.context(params.context)
    works = runner_of(call.kernel).works(context)
    return QueueResult(works=[_queued(context, one) for one in works])


def _queued(context: Context, work: Job) -> QueuedWork:
    turn = work.turn if isinstance(work.turn, Turn) else None
    state = WorkState.RUNNING
    if work.stopping:
        state = WorkState.STOPPING
    elif work.waiting:
        state = WorkState.WAITING
    elif turn is not None and turn.is_retrying:
        state = WorkState.RETRYING
    return QueuedWork(
        username=work.username,
        state=state,
        model=work.model,
        message_id=work.prompt,
        message_name=context.block_name(work.prompt) if work.prompt is not None else None,
        round=turn.round + 1 if turn is not None else None,
    )


class ContextModelParams(ContextParams):
    """A context, and the model that is to answer in it."""

    model: str | None = None
    """Name of the model that answers messages which name none; if absent, nothing changes."""


class ContextModelResult(Result):
    """Models that answer here."""

    context_version: int
    model: str | None = None
    """The one that answers messages which name none; absent if there is no model."""
    models: list[str]
    """All of them, by the names that messages call them by."""
    instruction_tokens: int
    """Estimate of the instructions and tools that go with every request to the one that answers
    messages which name none; 0 if there is no model."""


@tool("context.model", needs=Permission.WRITE, errors=REFERENCES[1:])
async def context_model(call: Call, params: ContextModelParams) -> ContextModelResult:
    """Choose the model that answers messages which name none, for everybody in a context."""
    context = await call.context(params.context, is_partial=True)
    runner, named = runner_of(call.kernel), params.model
    if named is not None and runner.is_agent(named):
        if not call.role.may(Permission.OWN):
            raise permission_denied(
                f"You are {call.role.described()}, and {named} is an agent, which works on the"
                " owner's machine: ask an owner to choose it."
            )
    elif named is not None:
        runner.models.check_known(named)
    if named is not None and named != context.document.default_model:
        # A value that is left out would not be known to be replaced.
        await context.whole()
        document = context.document
        written = context.write(
            call.actor, "model", lambda: document.set_meta(model=named), blocks=(), undo=None
        )
        await written.saved()
    await context.wait_persisted()
    model = runner.default_model(context)
    return ContextModelResult(
        context_version=context.seq,
        model=model,
        models=list(runner.models),
        instruction_tokens=(
            await runner.instruction_tokens(context, model)
            if model is not None and model in runner.models
            else 0
        ),
    )


class InterruptParams(ContextParams):
    """Turns and commands to stop."""

    principal: str | None = None
    """Username or id of the model (or person, for a command) to stop; all if absent."""
    message: str | None = None
    """Only the turns that answer this block, also those that have not begun."""


class InterruptResult(Result):
    """Principals that were stopped."""

    stopped: list[str]
    """Usernames; empty if nothing was running."""


class ShellRunParams(ContextParams):
    """A command for the kernel's host, run in the project's root."""

    command: str = Field(min_length=1)
    """A line for the shell: bash, or sh where there is none."""
    wait: bool = False
    """Answer when the command has ended, not when it has begun."""


class ShellRunResult(BlockResult):
    """The call of the command, and the block of its output."""

    result_id: str
    """Its result, which the output streams into."""
    result_name: str
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
    runner, by, message = runner_of(call.kernel), call.actor.principal, None
    if params.message is None:
        context = await call.context(params.context)
    else:
        context, message = await call.block(params.message)
    stopped = await runner.interrupt(context, params.principal, by, message)
    return InterruptResult(stopped=stopped)


@tool("shell.run", needs=Permission.WRITE, errors=REFERENCES)
async def run(call: Call, params: ShellRunParams) -> ShellRunResult:
    """Run a shell command in the project's root; only the owner of the kernel may.

    Answers once the call and its result are blocks; the output streams into the result.
    Of more than 200,000 code points the first and the last 100,000 are kept, with a line between
    them that says how much is left out; the last ones are written when the command ends.
    """
    check_shell(call.actor.principal, call.role)
    if not params.command.strip():
        raise invalid_params(
            "The command is empty: say what to run.",
            field="command",
        )
    context = await call.context(params.context)
    work, blocks = await runner_of(call.kernel).start_command(context, call.actor, params.command)
    if params.wait:
        await asyncio.wait({work.task})
    return ShellRunResult.of(
        context,
        blocks.call,
        result_id=blocks.result,
        result_name=context.block_name(blocks.result),
        context_version=context.seq,
        exit_code=context.document.header(blocks.call).exit_code,
    )


class WaitTurnsParams(Params):
    """A message."""

    message: str
    """The block that is answered."""


class WaitTurnsResult(Result):
    """The last turns that answered."""

    models: list[str]
    """Usernames of the models that have answered, or were to; those of long ago are forgotten."""
    interrupted: list[str]
    """Those of them whose last turn was stopped."""


@tool("turn.wait", needs=Permission.READ, errors=REFERENCES)
async def wait_turns(call: Call, params: WaitTurnsParams) -> WaitTurnsResult:
    """Wait until no model answers a message any more; answers at once if none does.

    The connection answers no other call meanwhile.
    """
    context, block = await call.block(params.message)
    ended = await runner_of(call.kernel).wait_answered(context, block)
    return WaitTurnsResult(
        models=[job.username for job in ended],
        interrupted=[job.username for job in ended if job.stopping],
    )


class ListPermissionsParams(Params):
    """Calls and rules of one context, or of all."""

    context: str | None = None
    """Label or id; every context if absent."""


class ListedCall(Result):
    """A tool call of a model, as people decide about it."""

    block_id: str
    """The call."""
    name: str
    context_id: str
    model: str
    """Username of the model."""
    tool: str
    """Name of the tool for models."""
    arguments: dict[str, Any]
    """Arguments that it runs with."""
    runs_for: str
    """Username of whoever's rights it has."""
    may_decide: bool
    """Whether the caller may decide about it, or revoke it."""


class UndecidedCall(ListedCall):
    """A call that waits for a decision."""

    asked: str
    """Time since which it waits: ISO 8601, UTC, milliseconds."""


class PermissionRule(ListedCall):
    """A rule: every call of this model in this context with this tool and these arguments runs."""

    rule: int
    """Number of the rule."""
    decided_by: str
    """Username of whoever allowed it."""
    decided: str
    """Time at which it was allowed: ISO 8601, UTC, milliseconds."""


class ListPermissionsResult(Result):
    """Calls that wait for a decision, and rules in force, oldest first."""

    undecided: list[UndecidedCall]
    """Calls that wait."""
    rules: list[PermissionRule]
    """Rules in force."""


class DecideParams(BlockParams):
    """The block of a call, and whether it may run."""

    decision: Literal["once", "always", "no"]
    """`always`: each later call with the same tool and arguments in this context runs, too."""
    reason: str | None = Field(default=None, max_length=2_000)
    """With `no`: what the model is told."""


class DecideResult(BlockResult):
    """The call after the decision."""

    permission: str
    """`once`, `always` or `denied`."""
    context_version: int


class RevokeRulesParams(Params):
    """Rules to end: one, or all of a context."""

    rule: int | None = None
    """Number of the rule, as `permission.list` gives it."""
    context: str | None = None
    """Label or id, without `rule`: all rules there that the caller may revoke."""


class RevokeRulesResult(Result):
    """Rules that were ended."""

    revoked: list[int]
    """Their numbers."""


@tool("permission.list", needs=Permission.READ, errors=REFERENCES)
async def list_permissions(call: Call, params: ListPermissionsParams) -> ListPermissionsResult:
    """List the tool calls of models that wait for a decision, and those that always run."""
    only = None if params.context is None else (await call.context(params.context)).id
    stored, clock = call.kernel.tool_permissions, iso_time
    return ListPermissionsResult(
        undecided=[
            UndecidedCall(**_described(call, one), asked=clock(one.asked))
            for one in stored.undecided.values()
            if only in (None, one.context)
        ],
        rules=[
            PermissionRule(
                **_described(call, one),
                rule=one.number,
                decided_by=_username(call, one.decided_by),
                decided=clock(one.decided or one.asked),
            )
            for one in stored.rules.values()
            if only in (None, one.context)
        ],
    )


def _described(call: Call, one: ToolPermission) -> dict[str, Any]:
    caller = call.actor.principal
    may = runner_of(call.kernel).permissions.may_decide(caller, one.asker, one.tool)
    return {
        "block_id": one.call,
        "name": call.kernel.block_name(one.call),
        "context_id": one.context,
        "model": _username(call, one.model),
        "tool": tool_of(one),
        "arguments": json.loads(one.arguments),
        "runs_for": _username(call, one.asker),
        "may_decide": may or one.decided_by == caller.id,
    }


def _username(call: Call, principal: str | None) -> str:
    return call.kernel.members.find(principal or "").username


@tool(
    "permission.decide",
    needs=Permission.WRITE,
    errors=(*REFERENCES, ErrorCode.INVALID_TRANSITION),
)
async def decide(call: Call, params: DecideParams) -> DecideResult:
    """Decide whether a tool call of a model that waits may run.

    Whoever's message is answered may, and every owner of the kernel; about shell commands owners
    only. Models may not. The first decision counts. The call runs with the rights of whoever's
    message is answered, whoever decides.
    """
    if params.reason is not None and params.decision != "no":
        raise invalid_params(
            "A reason goes with the decision no, and tells the model why: leave it out.",
            field="reason",
        )
    context, block = await call.block(params.block_id)
    runner = runner_of(call.kernel)
    is_no = params.decision == "no"
    decision = CallPermission.DENIED if is_no else CallPermission(params.decision)
    reason = (params.reason or "").strip()
    await runner.permissions.settle(context, block, call.actor, decision, reason)
    return DecideResult.of(context, block, permission=decision, context_version=context.seq)


@tool("permission.revoke", needs=Permission.WRITE, errors=REFERENCES)
async def revoke(call: Call, params: RevokeRulesParams) -> RevokeRulesResult:
    """End rules: calls that always ran are asked about again.

    Whoever made a rule may, and whoever may decide about its calls.
    """
    desk, rules = runner_of(call.kernel).permissions, [*call.kernel.tool_permissions.rules.values()]
    if (params.rule is None) == (params.context is None):
        raise invalid_params(
            "permission.revoke takes either rule or context: name one rule, or the context whose"
            " rules are to end.",
            field="rule",
        )
    if params.context is not None:
        context = await call.context(params.context)
        due = [
            one
            for one in rules
            if one.context == context.id and _described(call, one)["may_decide"]
        ]
    else:
        due = [one for one in rules if one.number == params.rule]
        if not due:
            raise invalid_params(
                f"There is no rule {params.rule}: permission.list names those that there are.",
                field="rule",
            )
    for one in due:
        await desk.revoke(one, call.actor)
    return RevokeRulesResult(revoked=[one.number for one in due])
