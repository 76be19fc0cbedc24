"""`kernel.invite`, `kernel.invites` and `kernel.revoke`: letting people in, and no longer."""

from __future__ import annotations

from typing import Final, Literal

from pydantic import Field

from antiphon_kernel.access import check_invite_as
from antiphon_kernel.kernel import Call
from antiphon_kernel.registry import Params, Result, tool
from antiphon_kernel.storage import Credential
from antiphon_kernel.types.clock import iso_time, iso_time_if
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.ids import NAME_LENGTH, NAME_PATTERN
from antiphon_kernel.types.quoting import quote
from antiphon_kernel.types.roles import AccessRole, Permission

DAY_MINUTES: Final = 24 * 60
YEAR_MINUTES: Final = 365 * DAY_MINUTES


class InviteParams(Params):
    """Name and role to invite."""

    role: Literal["editor", "viewer"]
    """What they may do: write, or only read."""
    name: str | None = Field(
        default=None, pattern=f"^{NAME_PATTERN.pattern}$", max_length=NAME_LENGTH
    )
    """Username of whoever comes; a new `guest` for each client if absent."""
    minutes: int = Field(default=DAY_MINUTES, ge=0, le=YEAR_MINUTES)
    """After how long nobody can come in with it any more; 0: never."""
    uses: int | None = Field(default=None, ge=1, le=1_000)
    """How many clients may come in with it; any number if absent."""


class InviteResult(Result):
    """A new invitation. The token is shown here and nowhere else."""

    invitation: int
    """Number, for kernel.revoke."""
    token: str
    """The secret that lets them in: in a Bearer header, or as `?token=` of a WebSocket."""
    principal: str
    """Id of whoever comes in first."""
    username: str
    """Name of whoever comes in first."""
    role: AccessRole
    """What they may do."""
    expires: str | None = None
    """When it stops to let anybody in; absent: never."""
    join: str | None = None
    """The command that joins, for shells that leave `?` alone; absent without open doors."""


class InvitesParams(Params):
    """Nothing to say."""


class InvitationInfo(Result):
    """One invitation."""

    invitation: int
    """Number."""
    username: str
    """Whom it was made for."""
    role: AccessRole
    """What that principal may do now."""
    state: Literal["open", "used_up", "expired", "revoked"]
    """Whether it lets in new clients; `used_up` still lets in those that came with it before."""
    created: str
    """When it was made."""
    expires: str | None = None
    """When it stops to let anybody in; absent: never."""
    uses: int
    """How many clients have come in with it."""
    uses_allowed: int | None = None
    """How many may; any number if absent."""


class InvitesResult(Result):
    """Every invitation, oldest first."""

    invitations: list[InvitationInfo]
    """One entry an invitation."""


class RevokeParams(Params):
    """Invitation or principal: one of the two."""

    invitation: int | None = None
    """Number of an invitation."""
    principal: str | None = None
    """Username or id: every invitation that this principal could come in with, whoever else did."""


class RevokeResult(Result):
    """Revoked invitations."""

    revoked: list[int]
    """Numbers of the invitations that were good until now."""
    ended: int
    """How many connections that had come in with them were ended."""


@tool("kernel.invite", needs=Permission.OWN)
async def invite(call: Call, params: InviteParams) -> InviteResult:
    """Make an invitation: a token that lets somebody in with a role and a name of their own.

    The kernel keeps only the token's hash. Somebody whom the kernel knows already is invited
    anew by whose kernel it is only.
    """
    kernel = call.kernel
    if params.name is not None and params.name in kernel.members:
        check_invite_as(kernel.members[params.name], call.actor.principal, kernel.owner)
    expires = kernel.clock.now_ms() + params.minutes * 60_000 if params.minutes else None
    issued = await kernel.invitations.invite(
        AccessRole(params.role), name=params.name, expires=expires, uses=params.uses
    )
    join = None
    if kernel.reached_at is not None:
        join = f"antiphon join {kernel.reached_at}?token={issued.token}"
    return InviteResult(
        invitation=issued.credential.number,
        token=issued.token,
        principal=issued.principal.id,
        username=issued.principal.username,
        role=kernel.role_of(issued.principal),
        expires=iso_time_if(expires),
        join=join,
    )


@tool("kernel.invites", needs=Permission.OWN)
async def invites(call: Call, params: InvitesParams) -> InvitesResult:
    """List the invitations, without their tokens, which nobody keeps."""
    found = []
    for one in call.kernel.invitations.all():
        principal = call.kernel.members.of_user(one.user)
        found.append(
            InvitationInfo(
                invitation=one.number,
                username=principal.username,
                role=call.kernel.role_of(principal),
                state=_state(one, call.kernel.clock.now_ms()),
                created=iso_time(one.created),
                expires=iso_time_if(one.expires),
                uses=one.uses,
                uses_allowed=one.uses_allowed,
            )
        )
    return InvitesResult(invitations=found)


@tool("kernel.revoke", needs=Permission.OWN, errors=[ErrorCode.AMBIGUOUS_ID])
async def revoke(call: Call, params: RevokeParams) -> RevokeResult:
    """Take back an invitation, or all of one principal: who came in with it has to go at once."""
    invitations = call.kernel.invitations
    if (params.invitation is None) == (params.principal is None):
        raise AntiphonError(
            ErrorCode.INVALID_PARAMS,
            "Name either an `invitation` (kernel.invites lists them) or a `principal`.",
            allowed=["invitation", "principal"],
        )
    if params.principal is not None:
        numbers = invitations.of(call.kernel.find_principal(params.principal))
    else:
        numbers = [one.number for one in invitations.all() if one.number == params.invitation]
        if not numbers:
            raise AntiphonError(
                ErrorCode.INVALID_PARAMS,
                f"There is no invitation {quote(params.invitation)}: kernel.invites lists them.",
                found=params.invitation,
            )
    revoked, ended = await call.kernel.gate.revoke(numbers, call.actor.principal)
    return RevokeResult(revoked=revoked, ended=ended)


def _state(one: Credential, now: int) -> Literal["open", "used_up", "expired", "revoked"]:
    if one.revoked is not None:
        return "revoked"
    if one.expires is not None and one.expires <= now:
        return "expired"
    if one.uses_allowed is not None and one.uses >= one.uses_allowed:
        return "used_up"
    return "open"
