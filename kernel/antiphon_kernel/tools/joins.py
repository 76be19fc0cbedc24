"""`kernel.joins`: who has come in by invitation, told as it happens."""

from __future__ import annotations

from pydantic import Field

from antiphon_kernel.kernel import Call
from antiphon_kernel.registry import Params, Result, tool
from antiphon_kernel.types.clock import iso_time
from antiphon_kernel.types.roles import AccessRole, Permission


class JoinsParams(Params):
    """From where on, and how long to wait."""

    after: int | None = Field(default=None, ge=0)
    """`last` of the answer before this one; absent: only those who come from now on."""
    wait: float = Field(default=0, ge=0, le=3_600)
    """Seconds to wait for somebody, if nobody has come since."""


class JoinInfo(Result):
    """Somebody has come in who was not here."""

    principal: str
    """Id."""
    username: str
    """Name."""
    role: AccessRole
    """What they may do."""
    invitation: int
    """Number of the invitation that they came with."""
    time: str
    """When."""


class JoinsResult(Result):
    """Arrivals, oldest first; only the last hundred are remembered, until the kernel ends."""

    joins: list[JoinInfo]
    """One entry an arrival; further connections of somebody who is here are none."""
    last: int
    """What to pass as `after` next time."""


@tool("kernel.joins", needs=Permission.OWN)
async def joins(call: Call, params: JoinsParams) -> JoinsResult:
    """Say who has come in by invitation; with `wait` the answer comes when somebody does."""
    gate = call.kernel.gate
    after = gate.last_join if params.after is None else params.after
    return JoinsResult(
        joins=[
            JoinInfo(
                principal=one.principal.id,
                username=one.principal.username,
                role=one.role,
                invitation=one.credential,
                time=iso_time(one.time),
            )
            for one in await gate.joined_since(after, params.wait)
        ],
        last=gate.last_join,
    )
