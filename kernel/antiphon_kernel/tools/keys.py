"""SSH keys and the sessions of those who come with them."""

from __future__ import annotations

from typing import Final, Literal

from pydantic import Field

from antiphon_kernel.access import (
    GUEST,
    IN_THE_KERNEL,
    VIA_SSH,
    VIA_WEB,
    EndedSession,
    check_invite_as,
)
from antiphon_kernel.kernel import Call
from antiphon_kernel.registry import NoParams, Params, Result, tool
from antiphon_kernel.tools._common import PrincipalResult
from antiphon_kernel.tools.kernel import YEAR_MINUTES
from antiphon_kernel.types.clock import iso_time, iso_time_if
from antiphon_kernel.types.errors import AntiphonError, ErrorCode, invalid_params
from antiphon_kernel.types.ids import NAME_LENGTH, NAME_PATTERN, SessionId, as_name, resolve
from antiphon_kernel.types.public_keys import (
    LONGEST_KEY,
    PublicKey,
    PublicKeyError,
    parse_public_key,
)
from antiphon_kernel.types.quoting import quote
from antiphon_kernel.types.records import Principal
from antiphon_kernel.types.roles import AccessRole, CredentialKind, Permission

_NAME: Final = f"^{NAME_PATTERN.pattern}$"

GuestRole = Literal["editor", "viewer"]


class KeyAddParams(Params):
    """A public SSH key, and who comes with it."""

    key: str = Field(min_length=1, max_length=LONGEST_KEY)
    """One line as in a `.pub` file: `TYPE BASE64 [COMMENT]`."""
    name: str = Field(pattern=_NAME, max_length=NAME_LENGTH)
    """Username of whoever has it; made now if nobody has it."""
    role: GuestRole | None = None
    """Their role; for somebody new an editor if absent."""
    known: bool = False
    """Whether `name` may be somebody whom the kernel knows already."""
    minutes: int = Field(default=0, ge=0, le=YEAR_MINUTES)
    """After how long nobody can come in with it any more; 0: never."""


class KeyInfo(PrincipalResult):
    """One SSH key, and whoever has it."""

    fingerprint: str
    invitation: int
    """Its number among the credentials, as sessions name it."""
    role: AccessRole
    """Their role now."""
    state: Literal["good", "expired", "revoked"]
    """Whether it lets somebody in."""
    added: str
    """When it was added last."""
    expires: str | None = None


class KeyListResult(Result):
    """Every key that was ever added, oldest first."""

    keys: list[KeyInfo]
    """One entry a key."""


class KeyRevokeParams(Params):
    """A key, or every key of one principal: one of the two."""

    fingerprint: str | None = Field(default=None, max_length=200)
    principal: str | None = None
    """Username or id: every key of theirs."""


class KeyRevokeResult(Result):
    """Revoked keys."""

    revoked: list[str]
    """Fingerprints of the keys that were good until now."""
    ended: int


@tool("key.add", needs=Permission.OWN)
async def add_key(call: Call, params: KeyAddParams) -> KeyInfo:
    """Let somebody in over SSH by a public key: whoever has the private one is that principal.

    The role of somebody whom the kernel knows stays; naming another one is an error. Only whose
    kernel it is adds keys for somebody who is here already.
    """
    key, name, role, kernel = _public_key(params.key), params.name, params.role, call.kernel
    before = kernel.invitations.key(key.fingerprint)
    has_it = before is not None and kernel.members.of_user(before.user).username == name
    if name in kernel.members:
        principal = kernel.members[name]
        if not has_it:
            if not params.known:
                is_own = principal.id == call.actor.principal.id
                raise invalid_params(
                    f"{name} is {'your own name' if is_own else 'known here already'}: give the key"
                    " another name (--name NAME of antiphon share), or, if it is"
                    f" {'yours' if is_own else 'theirs'}, say so (known, or --name {name}).",
                    field="name",
                )
            check_invite_as(principal, call.actor.principal, kernel.owner)
        now = kernel.members.role_of(principal)
        if role is not None and now is not AccessRole(role) and now is not AccessRole.AUTHOR:
            raise invalid_params(
                f"{name} is {now.described()} already: leave role out, or change it with"
                " kernel.role.",
                username=name,
                role=str(now),
            )
    principal = await kernel.members.principal(name, role=AccessRole(role or "editor"))
    expires = kernel.clock.now_ms() + params.minutes * 60_000 if params.minutes else None
    return await _store(call, key, principal, expires)


@tool("key.list", needs=Permission.OWN)
async def list_keys(call: Call, params: NoParams) -> KeyListResult:
    """List the SSH keys that let somebody in, or did."""
    keys = call.kernel.invitations.of_kind(CredentialKind.SSH_KEY)
    return KeyListResult(keys=[_info(call, one.fingerprint) for one in keys])


@tool("key.revoke", needs=Permission.OWN, errors=[ErrorCode.AMBIGUOUS_ID])
async def revoke_key(call: Call, params: KeyRevokeParams) -> KeyRevokeResult:
    """Revoke a key, or all of one principal; sessions that came with it end at once."""
    kernel = call.kernel
    if (params.fingerprint is None) == (params.principal is None):
        raise invalid_params(
            "Name either a `fingerprint` (key.list lists them) or a `principal`.",
            allowed=["fingerprint", "principal"],
        )
    keys = kernel.invitations.of_kind(CredentialKind.SSH_KEY)
    if params.principal is not None:
        user = kernel.members.user(kernel.members.find(params.principal)).number
        found = [one for one in keys if one.user == user]
    else:
        found = [one for one in keys if one.fingerprint == params.fingerprint]
        if not found:
            raise invalid_params(
                f"There is no key {quote(params.fingerprint)}: key.list lists them.",
                found=params.fingerprint,
            )
    by = call.actor.principal
    revoked, ended = await kernel.access.revoke([one.number for one in found], by, "key")
    gone = [one for one in found if one.number in revoked]
    for one in gone:
        username = kernel.members.of_user(one.user).username
        await kernel.members.record(by, f"revoked the key {one.fingerprint} of {username}")
    return KeyRevokeResult(revoked=[one.fingerprint for one in gone], ended=ended)


class KeyAskParams(Params):
    """A key that is not known, and how long to wait for the decision."""

    key: str = Field(min_length=1, max_length=LONGEST_KEY)
    """One line as in a `.pub` file; whoever asks has verified that the person has the key."""
    name: str = Field(max_length=1_000)
    """The username that they would like: a claim."""
    wait: float = Field(default=300, ge=0, le=3_600)
    """Seconds after which the answer is no."""


class KeyAskResult(Result):
    """The decision."""

    role: AccessRole | None = None
    """The role with which the key lets them in from now on; absent: it does not."""


class KeyRequestsParams(Params):
    """From where on, and how long to wait."""

    after: int = Field(default=0, ge=0)
    """`last` of the answer before this one."""
    wait: float = Field(default=0, ge=0, le=3_600)
    """Seconds to wait for a request, if there is none since."""


class KeyRequestInfo(Result):
    """Somebody who wants to join with a key that is not known."""

    request: int
    """Number, for key.decide."""
    fingerprint: str
    """Fingerprint of the key, as OpenSSH prints it: ask the person whether it is theirs."""
    type: str
    """Type of the key."""
    name: str
    """The username that they would like: a claim, and no more."""
    asked: str
    """When."""


class KeyRequestsResult(Result):
    """The requests that wait, oldest first."""

    requests: list[KeyRequestInfo]
    """One entry a key."""
    last: int


class KeyDecideParams(Params):
    """A request, and whether its sender comes in."""

    request: int
    """Number of the request."""
    role: Literal["editor", "viewer", "no"]
    """Their role; `no`: they are turned away."""


class KeyDecideResult(Result):
    """The decision, as it is stored."""

    fingerprint: str
    username: str | None = None
    """Name of whoever has it: the claimed one, or with a number behind it if that is taken; absent
    if they are turned away."""
    role: AccessRole | None = None
    """Their role; absent if they are turned away."""


@tool("key.ask", needs=Permission.OWN, errors=[ErrorCode.RATE_LIMITED])
async def ask_key(call: Call, params: KeyAskParams) -> KeyAskResult:
    """Ask the owners whether an unknown SSH key may come in, and wait for the answer.

    An SSH host asks so, when it was started with `antiphon share --ask`.
    """
    key = _public_key(params.key)
    role = await call.kernel.key_requests.ask(key, as_name(params.name) or GUEST, params.wait)
    return KeyAskResult(role=role)


@tool("key.requests", needs=Permission.OWN)
async def key_requests(call: Call, params: KeyRequestsParams) -> KeyRequestsResult:
    """List unknown keys that wait for a decision; with `wait` answer as soon as one comes.

    Each of several kernels on one database tells of those who wait at its SSH hosts.
    """
    waiting = await call.kernel.key_requests.since(params.after, params.wait)
    return KeyRequestsResult(
        requests=[
            KeyRequestInfo(
                request=one.number,
                fingerprint=one.key.fingerprint,
                type=one.key.kind,
                name=one.name,
                asked=iso_time(one.asked),
            )
            for one in waiting
        ],
        last=call.kernel.key_requests.last,
    )


@tool("key.decide", needs=Permission.OWN)
async def decide_key(call: Call, params: KeyDecideParams) -> KeyDecideResult:
    """Let somebody in who waits with an unknown SSH key, or turn them away.

    Whoever is let in is somebody new, whatever name they would like.
    """
    kernel, by = call.kernel, call.actor.principal
    request = kernel.key_requests.take(params.request)
    fingerprint = request.key.fingerprint
    if params.role == "no":
        kernel.key_requests.answer(request.number, None)
        await kernel.members.record(by, f"turned away the key {fingerprint}")
        return KeyDecideResult(fingerprint=fingerprint)
    role = AccessRole(params.role)
    principal = await kernel.members.create_guest(request.name, role)
    await _store(call, request.key, principal, None)
    kernel.key_requests.answer(request.number, role)
    return KeyDecideResult(fingerprint=fingerprint, username=principal.username, role=role)


class SshCheckParams(Params):
    """A key."""

    fingerprint: str = Field(max_length=200)


class SshCheckResult(Result):
    """The answer."""

    refused: str | None = None
    """Why nobody comes in with it; absent: somebody does."""


class SshOpenParams(Params):
    """A verified key or an invitation, which whoever comes has shown to have."""

    host: str
    """Session that lasts as long as the host does: all that it has opened ends with it."""
    fingerprint: str | None = Field(default=None, max_length=200)
    invitation: str | None = Field(default=None, max_length=200)
    """Token of an invitation, of somebody in a browser."""
    client: str | None = Field(default=None, min_length=16, max_length=200)
    """A secret of the browser, by which it is known when it comes again with the invitation."""


class SshOpenResult(PrincipalResult):
    """A new session at a host, and whose it is. The token is shown here and nowhere else."""

    session: str
    token: str
    """The secret with which the app of this session comes in, until the session ends."""
    role: AccessRole
    """Their role."""


class SshEndedParams(Params):
    """How long to wait."""

    wait: float = Field(default=0, ge=0, le=3_600)
    """Seconds to wait for the end of a session, if none has been ended since."""


class SshEndedResult(Result):
    """Sessions of this host that the kernel has ended since the call before this one."""

    ended: list[EndedSession]
    """One entry a session."""


class SshCloseParams(Params):
    """A session over SSH that is over."""

    host: str
    """Session of the SSH host."""
    session: str


class SessionEndParams(Params):
    """A session to end."""

    session: str = Field(min_length=1, max_length=NAME_LENGTH)
    """Its id, or a prefix of it that no other has."""
    reason: str = Field(default="", max_length=200)


class EndedResult(Result):
    """Number of ended connections."""

    ended: int


@tool("ssh.check", needs=Permission.OWN)
async def check_ssh(call: Call, params: SshCheckParams) -> SshCheckResult:
    """Say whether somebody comes in with a key; an SSH host asks so before it verifies anything."""
    try:
        call.kernel.invitations.check_key(params.fingerprint)
    except AntiphonError as error:
        return SshCheckResult(refused=error.message)
    return SshCheckResult()


@tool("ssh.open", needs=Permission.OWN)
async def open_ssh(call: Call, params: SshOpenParams) -> SshOpenResult:
    """Begin a session for somebody whose SSH key has been verified, or who has an invitation.

    Hosts call this. The session is the principal's of the key or of the invitation; it ends with
    the host, or when the principal is kicked, or what let them in is revoked or expires. With
    another role its app goes on as soon as it has connected again.
    """
    kernel = call.kernel
    host = next(
        (one for one in kernel.sessions.of(call.actor.principal.id) if one.session == params.host),
        None,
    )
    if host is None:
        raise invalid_params(
            f"{quote(params.host)} is no open session of yours: session.whoami says one's id.",
            field="host",
        )
    if params.invitation is not None:
        principal, credential = await kernel.invitations.authenticate(
            params.invitation, params.client
        )
    else:
        credential = kernel.invitations.check_key(params.fingerprint or "")
        principal = kernel.members.of_user(credential.user)
    kernel.access.check_admission(principal)
    via = VIA_WEB if params.invitation is not None else VIA_SSH
    actor = kernel.open_session(principal, via, credential=credential.number)
    token = kernel.ssh.add(actor, host)
    return SshOpenResult.of(principal, session=actor.session, token=token, role=actor.role)


@tool("ssh.ended", needs=Permission.OWN)
async def ended_ssh(call: Call, params: SshEndedParams) -> SshEndedResult:
    """Say which sessions over SSH the kernel has ended; with `wait` as soon as it ends one.

    An SSH host asks so in the session that it names as `host`.
    """
    return SshEndedResult(ended=await call.kernel.ssh.ended(call.actor.session, params.wait))


@tool("ssh.close", needs=Permission.OWN)
async def close_ssh(call: Call, params: SshCloseParams) -> EndedResult:
    """End a session over SSH that the SSH host says is over, with everything that came by it."""
    kernel = call.kernel
    actor = kernel.ssh.remove(SessionId(params.host), SessionId(params.session))
    if actor is None:
        return EndedResult(ended=0)
    ended = kernel.access.end_session(actor.session, "The SSH connection has ended.")
    await kernel.close_session(actor)
    return EndedResult(ended=ended)


@tool("session.end", needs=Permission.OWN, errors=[ErrorCode.AMBIGUOUS_ID])
async def end_session(call: Call, params: SessionEndParams) -> EndedResult:
    """End one session, with everything that came by it. Its principal may come again.

    kernel.members lists the sessions; kernel.kick keeps somebody out for a while.
    """
    kernel, by = call.kernel, call.actor.principal
    open_now = {
        one.session: one
        for principal in kernel.members
        for one in kernel.sessions.of(principal.id)
        if one.via not in IN_THE_KERNEL
    }
    session = resolve(
        params.session,
        {str(one): str(one) for one in open_now},
        what="session",
        missing=ErrorCode.INVALID_PARAMS,
    )
    name = open_now[SessionId(session)].principal.username
    why = f": {params.reason}" if params.reason else "."
    ended = kernel.access.end_session(SessionId(session), f"{by.username} ended your session{why}")
    await kernel.members.record(by, f"ended a session of {name}")
    return EndedResult(ended=ended)


async def _store(call: Call, key: PublicKey, principal: Principal, expires: int | None) -> KeyInfo:
    kernel = call.kernel
    await kernel.invitations.add_key(key.fingerprint, principal, expires)
    role = kernel.members.role_of(principal).described()
    words = f"added the key {key.fingerprint} of {principal.username}, {role}"
    await kernel.members.record(call.actor.principal, words)
    return _info(call, key.fingerprint)


def _info(call: Call, fingerprint: str) -> KeyInfo:
    kernel = call.kernel
    one = kernel.invitations.key(fingerprint)
    assert one is not None
    principal = kernel.members.of_user(one.user)
    state: Literal["good", "expired", "revoked"] = "good"
    if not kernel.invitations.is_good(one):
        state = "revoked" if one.revoked is not None else "expired"
    return KeyInfo.of(
        principal,
        fingerprint=one.fingerprint,
        invitation=one.number,
        role=kernel.members.role_of(principal),
        state=state,
        added=iso_time(one.created),
        expires=iso_time_if(one.expires),
    )


def _public_key(line: str) -> PublicKey:
    try:
        return parse_public_key(line)
    except PublicKeyError as error:
        text = str(error)
        raise invalid_params(f"{text[:1].upper()}{text[1:]}.", field="key") from error
