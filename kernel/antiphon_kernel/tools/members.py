"""`kernel.members`, `kernel.role` and `kernel.kick`: who is here, and how far each is trusted."""

from __future__ import annotations

from pydantic import Field

from antiphon_kernel.kernel import Call
from antiphon_kernel.registry import Params, Result, tool
from antiphon_kernel.types.clock import iso_time, iso_time_if
from antiphon_kernel.types.errors import ErrorCode
from antiphon_kernel.types.roles import AccessRole, Permission


class MembersParams(Params):
    """Nothing to say."""


class SessionInfo(Result):
    """One connection of a principal."""

    session: str
    """Id of the session."""
    via: str
    """How it came in: `unix`, `tcp`, `turn`, `kernel`."""
    since: str
    """When it began."""
    invitation: int | None = None
    """Number of the invitation that let it in; absent for the owner and what the owner acts as."""


class MemberInfo(Result):
    """One principal of the kernel."""

    principal: str
    """Id."""
    username: str
    """Name."""
    kind: str
    """`human`, `model`, `shell`, `system`, `source`."""
    role: AccessRole
    """What it may do."""
    founder: bool
    """Whether the kernel was founded by it: its role stays owner."""
    barred_until: str | None = None
    """Kicked: it is let in again at this time."""
    sessions: list[SessionInfo]
    """Where it is connected now; empty for those who are away."""


class MembersResult(Result):
    """Everybody whom the kernel knows, in the order in which they became known."""

    members: list[MemberInfo]
    """One entry a principal."""


class RoleParams(Params):
    """Principal and its new role."""

    principal: str
    """Username or id."""
    role: AccessRole
    """The new role."""


class RoleResult(Result):
    """The principal as it is now."""

    principal: str
    """Id."""
    username: str
    """Name."""
    role: AccessRole
    """What it may do from now on."""
    ended: int
    """How many of its connections were ended; they may come again at once, with the new role."""


class KickParams(Params):
    """Principal to kick, and duration."""

    principal: str
    """Username or id."""
    minutes: int = Field(default=10, ge=0, le=525_600)
    """How long the principal is not let in again; 0: it may come back at once."""
    reason: str = Field(default="", max_length=200)
    """What the principal is told."""


class KickResult(Result):
    """Ended connections."""

    principal: str
    """Id."""
    username: str
    """Name."""
    ended: int
    """How many connections there were."""
    barred_until: str | None = None
    """When the principal is let in again; absent if it may come back at once."""


@tool("kernel.members", needs=Permission.READ)
async def members(call: Call, params: MembersParams) -> MembersResult:
    """List everybody whom the kernel knows, with role and open connections."""
    kernel = call.kernel
    found = []
    for one in kernel.members:
        until = kernel.members.banned_until(one)
        sessions = [
            SessionInfo(
                session=open_one.actor.session,
                via=open_one.actor.via,
                since=iso_time(open_one.actor.since),
                invitation=open_one.credential,
            )
            for open_one in kernel.sessions.of(one.id)
        ]
        found.append(
            MemberInfo(
                principal=one.id,
                username=one.username,
                kind=one.kind,
                role=kernel.role_of(one),
                founder=one.id == kernel.owner.id,
                barred_until=iso_time_if(until),
                sessions=sessions,
            )
        )
    return MembersResult(members=found)


@tool("kernel.role", needs=Permission.OWN, errors=[ErrorCode.AMBIGUOUS_ID])
async def role(call: Call, params: RoleParams) -> RoleResult:
    """Give a principal another role.

    It counts at once: what the principal has open is ended, and what it wrote meanwhile is taken
    or refused by the new role. The founder's role does not change.
    """
    principal = call.kernel.find_principal(params.principal)
    ended = await call.kernel.gate.change_role(principal, params.role, call.actor.principal)
    return RoleResult(
        principal=principal.id,
        username=principal.username,
        role=call.kernel.role_of(principal),
        ended=ended,
    )


@tool("kernel.kick", needs=Permission.OWN, errors=[ErrorCode.AMBIGUOUS_ID])
async def kick(call: Call, params: KickParams) -> KickResult:
    """End every connection of a principal and keep it out for a while.

    Its invitations stay good; kernel.revoke takes those back. The founder cannot be kicked.
    """
    kernel, principal = call.kernel, call.kernel.find_principal(params.principal)
    ended = await kernel.gate.kick(principal, params.minutes, params.reason, call.actor.principal)
    until = kernel.members.banned_until(principal)
    return KickResult(
        principal=principal.id,
        username=principal.username,
        ended=ended,
        barred_until=iso_time_if(until),
    )
