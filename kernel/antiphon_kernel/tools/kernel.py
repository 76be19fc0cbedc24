"""A kernel and its people: who one is, who is here, who may come in, and which tools there are."""

from __future__ import annotations

from typing import Any, Final, Literal

from pydantic import Field

from antiphon_kernel.access import check_invite_as
from antiphon_kernel.kernel import Call
from antiphon_kernel.registry import NoParams, Params, Result, described_schema, tool
from antiphon_kernel.storage import Credential
from antiphon_kernel.tools._common import PrincipalResult
from antiphon_kernel.types.clock import iso_time, iso_time_if
from antiphon_kernel.types.enums import PrincipalKind
from antiphon_kernel.types.errors import ErrorCode, invalid_params
from antiphon_kernel.types.ids import NAME_LENGTH, NAME_PATTERN
from antiphon_kernel.types.quoting import quote
from antiphon_kernel.types.roles import AccessRole, CredentialKind, Permission

_SHOWN: Final = r"^[^\x00-\x1f\x7f-\x9f]*$"
"""A text that can be shown in one line."""


class WhoamiResult(PrincipalResult):
    """Identity of the caller in the kernel."""

    display_name: str
    kind: str
    """Kind of the caller: `human`, `model`, ..."""
    session: str
    """Id of this connection."""
    role: str
    """`owner`, `editor`, `agent` or `viewer`."""
    kernel: str
    """Id of the kernel."""


class ToolInfo(Result):
    """One tool."""

    name: str
    """Name of the tool."""
    description: str
    """Purpose of the tool."""
    parameters: dict[str, Any]
    """JSON Schema of the parameters."""
    needs: str
    """Permission that the caller must have: `read`, `write` or `own`."""
    errors: list[str]
    """Every code it can fail with."""


class ToolsResult(Result):
    """Every tool of this kernel."""

    tools: list[ToolInfo]
    """By name."""


@tool("session.whoami", needs=Permission.READ)
async def whoami(call: Call, params: NoParams) -> WhoamiResult:
    """Say who the caller is and what role it has."""
    principal = call.kernel.members.find(call.actor.principal.id)
    return WhoamiResult.of(
        principal,
        display_name=principal.display_name or principal.username,
        kind=principal.kind,
        session=call.actor.session,
        role=call.role,
        kernel=call.kernel.id,
    )


class SessionNameParams(Params):
    """The caller's new display name."""

    display_name: str = Field(min_length=1, max_length=NAME_LENGTH, pattern=_SHOWN)
    """At most 64 code points, without control characters."""


class SessionNameResult(Result):
    """The caller's names."""

    username: str
    display_name: str


@tool("session.name", needs=Permission.READ)
async def set_display_name(call: Call, params: SessionNameParams) -> SessionNameResult:
    """Set one's display name. The username, which ids and commands use, stays the same."""
    await call.kernel.members.set_display_name(call.actor.principal, params.display_name)
    return SessionNameResult(
        username=call.actor.principal.username, display_name=params.display_name
    )


@tool("kernel.tools", needs=Permission.READ)
async def tools(call: Call, params: NoParams) -> ToolsResult:
    """List the tools with their parameters."""
    registry = call.kernel.registry
    return ToolsResult(
        tools=[
            ToolInfo(
                name=one.name,
                description=one.doc,
                parameters=described_schema(one.params),
                needs=one.needs,
                errors=[str(code) for code in one.errors],
            )
            for one in map(registry.__getitem__, registry.names)
        ]
    )


class KernelInfoResult(PrincipalResult):
    """Identity of a kernel, and its founder."""

    kernel: str
    """Id."""
    label: str
    """How people call it; the name of the project's folder unless it was given another."""


class KernelLabelParams(Params):
    """The kernel's new label."""

    label: str = Field(min_length=1, max_length=NAME_LENGTH, pattern=_SHOWN)
    """At most 64 code points, without control characters."""


@tool("kernel.info", needs=Permission.READ)
async def info(call: Call, params: NoParams) -> KernelInfoResult:
    """Say which kernel this is, and who founded it."""
    kernel = call.kernel
    return KernelInfoResult.of(kernel.owner, kernel=kernel.id, label=kernel.label)


@tool("kernel.label", needs=Permission.OWN)
async def set_label(call: Call, params: KernelLabelParams) -> KernelInfoResult:
    """Give the kernel a label for people. Its id stays, and no address changes."""
    kernel = call.kernel
    await kernel.rename(params.label)
    return KernelInfoResult.of(kernel.owner, kernel=kernel.id, label=kernel.label)


class SessionInfo(Result):
    """One connection of a principal."""

    session: str
    via: str
    """How it came in: `unix`, `tcp`, `ssh`, `turn`, `kernel`."""
    since: str
    """When it began."""
    invitation: int | None = None
    """Number of the invitation or SSH key that let it in; absent for the owner and what the owner
    acts as."""
    within: str | None = None
    """Id of the session over SSH that it is a part of."""


class MemberInfo(PrincipalResult):
    """One principal of the kernel."""

    display_name: str
    kind: str
    """`human`, `model`, `shell`, `system`, `source`."""
    role: AccessRole
    """Its role."""
    founder: bool
    """Whether the kernel was founded by it: its role stays owner."""
    barred_until: str | None = None
    """Kicked: it is let in again at this time."""
    sessions: list[SessionInfo]
    """Connections now; empty for those who are away."""


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


class RoleResult(PrincipalResult):
    """The principal as it is now; its connections may come again at once, with the new role."""

    role: AccessRole
    """Role from now on."""
    ended: int


class KickParams(Params):
    """Principal to kick, and duration."""

    principal: str
    """Username or id."""
    minutes: int = Field(default=10, ge=0, le=525_600)
    """How long the principal is not let in again; 0: it may come back at once."""
    reason: str = Field(default="", max_length=200)


class KickResult(PrincipalResult):
    """Ended connections."""

    ended: int
    barred_until: str | None = None
    """When the principal is let in again; absent if it may come back at once."""


@tool("kernel.members", needs=Permission.READ)
async def members(call: Call, params: NoParams) -> MembersResult:
    """List everybody whom the kernel knows, with role and open connections.

    Connections of SSH hosts, by which nobody is here, are left out. Each of several kernels on one
    database lists its own.
    """
    kernel = call.kernel
    found = [
        MemberInfo.of(
            one,
            display_name=one.display_name or one.username,
            kind=one.kind,
            role=kernel.members.role_of(one),
            founder=one.id == kernel.owner.id,
            barred_until=iso_time_if(kernel.members.banned_until(one)),
            sessions=[
                SessionInfo(
                    session=open_one.session,
                    via=open_one.via,
                    since=iso_time(open_one.since),
                    invitation=open_one.credential,
                    within=open_one.within,
                )
                for open_one in kernel.sessions.of(one.id)
                if not kernel.ssh.is_host(open_one.session)
            ],
        )
        for one in kernel.members
    ]
    return MembersResult(members=found)


@tool("kernel.role", needs=Permission.OWN, errors=[ErrorCode.AMBIGUOUS_ID])
async def role(call: Call, params: RoleParams) -> RoleResult:
    """Give a principal another role.

    It counts at once: what the principal has open is ended, and what it wrote meanwhile is taken
    or refused by the new role. The founder's role does not change.
    """
    principal = call.kernel.members.find(params.principal)
    by = call.actor.principal
    ended = await call.kernel.access.change_role(principal, params.role, by)
    await call.kernel.members.record(by, f"made {principal.username} {params.role.described()}")
    return RoleResult.of(principal, role=call.kernel.members.role_of(principal), ended=ended)


@tool("kernel.kick", needs=Permission.OWN, errors=[ErrorCode.AMBIGUOUS_ID])
async def kick(call: Call, params: KickParams) -> KickResult:
    """End every connection of a principal and keep it out for a while.

    Its invitations stay good; kernel.revoke takes those back. The founder cannot be kicked.
    """
    kernel, principal = call.kernel, call.kernel.members.find(params.principal)
    ended = await kernel.access.kick(principal, params.minutes, params.reason, call.actor.principal)
    until = kernel.members.banned_until(principal)
    await kernel.members.record(
        call.actor.principal,
        f"kicked {principal.username}" + (f" until {iso_time(until)}" if until else ""),
    )
    return KickResult.of(principal, ended=ended, barred_until=iso_time_if(until))


DAY_MINUTES: Final = 24 * 60
YEAR_MINUTES: Final = 365 * DAY_MINUTES


_INVITED_KINDS: Final = {"agent": PrincipalKind.AGENT, "source": PrincipalKind.SOURCE}
"""The kinds of those who are invited and are no people, by what the request calls them."""


class InviteParams(Params):
    """Name and role to invite."""

    role: Literal["editor", "viewer", "agent", "source"]
    """Their role: write, or only read. An agent is a program with a model, a source one that writes
    what is read-only; each needs a name."""
    name: str | None = Field(
        default=None, pattern=f"^{NAME_PATTERN.pattern}$", max_length=NAME_LENGTH
    )
    """Username of whoever comes; a new `guest` for each client if absent."""
    minutes: int = Field(default=DAY_MINUTES, ge=0, le=YEAR_MINUTES)
    """After how long nobody can come in with it any more; 0: never."""
    uses: int | None = Field(default=None, ge=1, le=1_000)
    """How many clients may come in with it; any number if absent."""


class InviteResult(PrincipalResult):
    """A new invitation, and who comes first with it. The token is shown here and nowhere else."""

    invitation: int
    """Number, for kernel.revoke."""
    token: str
    """The secret that lets them in: in a Bearer header, or as `?token=` of a WebSocket."""
    role: AccessRole
    """Their role."""
    expires: str | None = None
    join: str | None = None
    """The command that joins, for shells that leave `?` alone; absent if it is not served."""


class InvitationInfo(Result):
    """One invitation."""

    invitation: int
    """Number."""
    username: str
    """Name of the invited person."""
    role: AccessRole
    """Role of that principal now."""
    state: Literal["open", "used_up", "expired", "revoked"]
    """Whether it lets in new clients; `used_up` still lets in those that came with it before."""
    created: str
    expires: str | None = None
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


@tool("kernel.invite", needs=Permission.OWN)
async def invite(call: Call, params: InviteParams) -> InviteResult:
    """Make an invitation: a token that lets somebody in with a role and a name of their own.

    The kernel keeps only the token's hash. Somebody whom the kernel knows already is invited
    anew by whose kernel it is only.
    """
    kernel = call.kernel
    kind = _INVITED_KINDS.get(params.role, PrincipalKind.HUMAN)
    if kind is not PrincipalKind.HUMAN and params.name is None:
        raise invalid_params(
            f"An invitation of kind {kind} is for somebody with a name: give name.",
            field="name",
        )
    if params.name is not None and params.name in kernel.members:
        check_invite_as(kernel.members[params.name], call.actor.principal, kernel.owner)
    expires = kernel.clock.now_ms() + params.minutes * 60_000 if params.minutes else None
    access = AccessRole.of_kind(kind) if params.role in _INVITED_KINDS else AccessRole(params.role)
    issued = await kernel.invitations.invite(
        access, kind, name=params.name, expires=expires, uses=params.uses
    )
    name, number = issued.principal.username, issued.credential.number
    await kernel.members.record(
        call.actor.principal, f"invited {name} as {access.described()} (invitation {number})"
    )
    join = None
    if kernel.reached_at is not None:
        join = f"antiphon join {kernel.reached_at}?token={issued.token}"
    return InviteResult.of(
        issued.principal,
        invitation=number,
        token=issued.token,
        role=kernel.members.role_of(issued.principal),
        expires=iso_time_if(expires),
        join=join,
    )


@tool("kernel.invites", needs=Permission.OWN)
async def invites(call: Call, params: NoParams) -> InvitesResult:
    """List the invitations, without their tokens, which nobody keeps."""
    found = []
    for one in call.kernel.invitations.of_kind(CredentialKind.TOKEN):
        principal = call.kernel.members.of_user(one.user)
        found.append(
            InvitationInfo(
                invitation=one.number,
                username=principal.username,
                role=call.kernel.members.role_of(principal),
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
    """Revoke an invitation, or all of one principal; sessions that came with it end at once."""
    invitations = call.kernel.invitations
    if (params.invitation is None) == (params.principal is None):
        raise invalid_params(
            "Name either an `invitation` (kernel.invites lists them) or a `principal`.",
            allowed=["invitation", "principal"],
        )
    if params.principal is not None:
        numbers = invitations.of(call.kernel.members.find(params.principal))
    else:
        known = invitations.of_kind(CredentialKind.TOKEN)
        numbers = [one.number for one in known if one.number == params.invitation]
        if not numbers:
            raise invalid_params(
                f"There is no invitation {quote(params.invitation)}: kernel.invites lists them.",
                found=params.invitation,
            )
    by = call.actor.principal
    revoked, ended = await call.kernel.access.revoke(numbers, by)
    for number in revoked:
        await call.kernel.members.record(by, f"revoked invitation {number}")
    return RevokeResult(revoked=revoked, ended=ended)


def _state(one: Credential, now: int) -> Literal["open", "used_up", "expired", "revoked"]:
    if one.revoked is not None:
        return "revoked"
    if one.expires is not None and one.expires <= now:
        return "expired"
    if one.uses_allowed is not None and one.uses >= one.uses_allowed:
        return "used_up"
    return "open"


class JoinsParams(Params):
    """From where on, and how long to wait."""

    after: int | None = Field(default=None, ge=0)
    """`last` of the answer before this one; absent: only those who come from now on."""
    wait: float = Field(default=0, ge=0, le=3_600)
    """Seconds to wait for somebody, if nobody has come since."""


class JoinInfo(PrincipalResult):
    """Somebody has come in who was not here."""

    role: AccessRole
    """Their role."""
    invitation: int
    """Number of the invitation that they came with."""
    time: str


class JoinsResult(Result):
    """Arrivals, oldest first; only the last hundred are remembered, until the kernel ends."""

    joins: list[JoinInfo]
    """One entry an arrival; further connections of somebody who is here are none."""
    last: int


@tool("kernel.joins", needs=Permission.OWN)
async def joins(call: Call, params: JoinsParams) -> JoinsResult:
    """Say who has come in by invitation; with `wait` the answer comes when somebody does.

    Each of several kernels on one database tells of those who have come to it.
    """
    access = call.kernel.access
    after = access.last_join if params.after is None else params.after
    return JoinsResult(
        joins=[
            JoinInfo.of(
                one.principal,
                role=one.role,
                invitation=one.credential,
                time=iso_time(one.time),
            )
            for one in await access.joined_since(after, params.wait)
        ],
        last=access.last_join,
    )
