"""`permission.list`, `permission.decide` and `permission.revoke`."""

from __future__ import annotations

import json
from typing import Any, Final, Literal

from pydantic import Field

from antiphon_kernel.kernel import Call
from antiphon_kernel.registry import REFERENCES, Params, Result, tool
from antiphon_kernel.storage import ToolPermission
from antiphon_kernel.turns.runner import runner_of
from antiphon_kernel.types.clock import iso_time
from antiphon_kernel.types.enums import CallPermission
from antiphon_kernel.types.errors import ErrorCode, invalid_params
from antiphon_kernel.types.roles import Permission

_DECISIONS: Final = {
    "once": CallPermission.ONCE,
    "always": CallPermission.ALWAYS,
    "no": CallPermission.DENIED,
}


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


class DecideParams(Params):
    """A call, and whether it may run."""

    block_id: str
    """The call."""
    decision: Literal["once", "always", "no"]
    """`always`: each later call with the same tool and arguments in this context runs, too."""
    reason: str | None = Field(default=None, max_length=2_000)
    """With `no`: what the model is told."""


class DecideResult(Result):
    """The call after the decision."""

    block_id: str
    name: str
    permission: str
    """`once`, `always` or `denied`."""
    version: int
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
            for one in stored.undecided()
            if only in (None, one.context)
        ],
        rules=[
            PermissionRule(
                **_described(call, one),
                rule=one.number,
                decided_by=_username(call, one.decided_by),
                decided=clock(one.decided or one.asked),
            )
            for one in stored.rules()
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
        "tool": one.tool,
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
    """Decide whether a tool call of a model may run that waits for that.

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
    decision = _DECISIONS[params.decision]
    reason = (params.reason or "").strip()
    await runner.permissions.settle(context, block, call.actor, decision, reason)
    return DecideResult(
        block_id=block,
        name=context.block_name(block),
        permission=decision,
        version=context.blocks.version(block),
        context_version=context.seq,
    )


@tool("permission.revoke", needs=Permission.WRITE, errors=REFERENCES)
async def revoke(call: Call, params: RevokeRulesParams) -> RevokeRulesResult:
    """End rules: calls that always ran are asked about again.

    Whoever made a rule may, and whoever may decide about its calls.
    """
    desk, rules = runner_of(call.kernel).permissions, call.kernel.tool_permissions.rules()
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
