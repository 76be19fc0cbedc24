"""Permission rules, all in one place. The first is general; the others ask for more.

Every tool defines the right that it needs; `check_tool` is applied to every call. Rules that
depend on the block or the person in question are below it, one function a rule. Each raises
AntiphonError permission_denied.
"""

from __future__ import annotations

from typing import Final

from antiphon_kernel.document.document import Document
from antiphon_kernel.registry import Tool
from antiphon_kernel.types.enums import BlockKind, PrincipalKind, Role
from antiphon_kernel.types.errors import AntiphonError, invalid_params, permission_denied
from antiphon_kernel.types.ids import PrincipalId
from antiphon_kernel.types.quoting import quote
from antiphon_kernel.types.records import BlockHeader, Principal
from antiphon_kernel.types.roles import AccessRole, Permission

_ROLES: Final = {
    PrincipalKind.HUMAN: Role.USER,
    PrincipalKind.MODEL: Role.MODEL,
    PrincipalKind.AGENT: Role.MODEL,
    PrincipalKind.SHELL: Role.TOOL,
    PrincipalKind.SOURCE: Role.SYSTEM,
    PrincipalKind.SYSTEM: Role.SYSTEM,
}
"""The role of what principals of each kind write, results of tools excepted."""


def check_tool(tool: Tool, caller: Principal, role: AccessRole) -> None:
    """Raises AntiphonError permission_denied unless the role has the right that the tool needs."""
    if role.may(tool.needs):
        return
    allowed = [one.value for one in AccessRole if one.may(tool.needs)]
    what = f"{tool.name} takes the role {' or '.join(allowed)}"
    needs = {"needs": tool.needs.value, "allowed": allowed}
    raise _denied(what, caller, role, ": ask the owner of the kernel.", **needs)


def check_update(caller: Principal, role: AccessRole) -> None:
    """Raise unless the caller may send raw updates that change anything."""
    if not role.may(Permission.WRITE):
        raise permission_denied(
            f"You are {caller.username}, {role.described()}: you can read, not write."
            " Ask the owner of the kernel for the role editor.",
            username=caller.username,
            role=role.value,
        )


def check_draft(document: Document, block: str, caller: Principal) -> None:
    """Raise unless the caller may write in the block as far as drafts are concerned.

    A draft is changed by its author only, whatever role others have: its author sends it, or runs
    it as a command, as their own words. The kernel itself is exempt.
    """
    if caller.kind is PrincipalKind.SYSTEM or not document.is_draft(block):
        return
    author = document.header(block).author
    if author == caller.id:
        return
    member = document.member(author)
    name = member.username if member is not None else author
    raise permission_denied(
        f"Block {block} is a draft of {name}, who has not sent it yet: only {name} changes it; you"
        f" are {caller.username}. Wait until it is sent, or write in a block of your own.",
        block_id=block,
        author=name,
        username=caller.username,
    )


def check_role(asked: Role | str | None, kind: BlockKind, caller: Principal) -> Role:
    """Return the role of a new block of this kind, which follows from who creates it.

    Raises AntiphonError invalid_params if `asked`, the role that a request names, is another.
    """
    role = Role.TOOL if kind is BlockKind.TOOL_RESULT else _ROLES[caller.kind]
    if asked is None or asked == role:
        return role
    what = f"a {kind}" if kind is BlockKind.TOOL_RESULT else f"every block of a {caller.kind}"
    raise invalid_params(
        f"The role of {what} is {role}, not {quote(str(asked))}; you are {caller.username}, a"
        f" {caller.kind}: leave role out.",
        field="role",
        allowed=[role.value],
    )


def check_speaker(spoken: Role, caller: Principal, role: AccessRole) -> None:
    """Raise unless the caller may write messages of a role.

    Owners write down whole conversations, as they import them. All others speak for themselves;
    programs for their tools too.
    """
    allowed = [_ROLES[caller.kind]]
    if caller.kind is not PrincipalKind.HUMAN:
        allowed.append(Role.TOOL)
    if role is AccessRole.OWNER or spoken in allowed:
        return
    may = f"writes messages of the role {' and '.join(allowed)}, not of the role {spoken}"
    names = [str(one) for one in allowed]
    advice = ": leave them to an owner."
    raise _denied(f"A {caller.kind} {may}", caller, role, advice, allowed=names)


def check_status(header: BlockHeader, caller: Principal, role: AccessRole) -> None:
    """The status of a block is for its author and for owners."""
    if caller.id != header.author and role is not AccessRole.OWNER:
        what = f"Only the author of block {header.id} or the owner of the kernel sets its status"
        raise _denied(what, caller, role)


def check_arrange(header: BlockHeader, caller: Principal, role: AccessRole) -> None:
    """Excluding and moving: one's own blocks; anyone's for owners and editors."""
    if caller.id != header.author and not role.may(Permission.ARRANGE):
        raise permission_denied(
            f"Block {header.id} is not yours, and {role.described()} arranges only its own blocks:"
            " ask an editor.",
            username=caller.username,
            role=role.value,
        )


def check_undo_of(whose: Principal, caller: Principal, role: AccessRole) -> None:
    """Undo and redo: one's own edits; those of models for editors; those of people for owners."""
    if whose.id == caller.id or role is AccessRole.OWNER:
        return
    is_person = whose.kind is PrincipalKind.HUMAN
    if is_person or not role.may(Permission.ARRANGE):
        who = "the owner of the kernel" if is_person else "an editor"
        raise _denied(f"Only {who} undoes edits of {whose.username}", caller, role)


def check_interrupt(whose: str | None, caller: Principal, role: AccessRole) -> None:
    """Stopping what runs: one's own; anyone's (None: everybody's) for owners and editors.

    `whose` is a username or an id.
    """
    if role.may(Permission.ARRANGE) or whose in (caller.username, caller.id):
        return
    advice = f": name yourself ({caller.username}) as the principal to stop."
    raise _denied("Only an editor stops what others run", caller, role, advice)


def check_shell(caller: Principal, role: AccessRole) -> None:
    """Commands run on the kernel's host as its user: for owners only."""
    if role is not AccessRole.OWNER:
        what = "Only the owner of the kernel runs commands on its host"
        raise _denied(what, caller, role, ": ask the owner to run it.")


def check_decide(
    asker: PrincipalId, needs: Permission, caller: Principal, role: AccessRole
) -> None:
    """Raise unless the caller may decide about a model's call, or revoke such a decision.

    Args:
        asker: whoever's rights the call has.
        needs: the right that the call itself needs.
    """
    if caller.kind is PrincipalKind.HUMAN and role.may(Permission.ARRANGE):
        if role is AccessRole.OWNER or (caller.id == asker and role.may(needs)):
            return
    may = "an owner of the kernel"
    if needs is not Permission.OWN:
        may += ", or whoever's message is answered,"
    what = f"Only {may} decides about this call, and no model"
    raise _denied(what, caller, role, ": ask the owner of the kernel.")


def check_project_files(caller: Principal, role: AccessRole) -> None:
    """Files of the project are read on the kernel's host as its user: by path for owners only."""
    if role is not AccessRole.OWNER:
        what = "Only the owner of the kernel names files of its project by their paths"
        advice = ": ask the owner to open it, or send the bytes of a file of your own."
        raise _denied(what, caller, role, advice)


def check_act_as(name: str, caller: Principal, founder: Principal) -> None:
    """`--as`: only the founder, whose data folder it is, acts as somebody else."""
    if name != caller.username and caller.id != founder.id:
        raise permission_denied(
            f"Only the owner of the kernel's folder acts as somebody else; your token is that of"
            f" {caller.username}: leave out --as {name}.",
            username=caller.username,
        )


def check_invite_as(known: Principal, caller: Principal, founder: Principal) -> None:
    """Raise unless the caller may make an invitation as somebody whom the kernel knows.

    Whoever makes an invitation knows its token, and can come in with it as that principal: only
    the founder acts as somebody else.
    """
    if caller.id not in (founder.id, known.id):
        raise permission_denied(
            f"{known.username} is here already, and only {founder.username}, whose kernel it is,"
            f" invites somebody who is: ask {founder.username}, or choose a new name.",
            username=known.username,
        )


def _denied(
    what: str, caller: Principal, role: AccessRole, advice: str = ".", **details: object
) -> AntiphonError:
    """Return the error that says what is not allowed, who the caller is, and what to do."""
    return permission_denied(
        f"{what}; you are {caller.username}, {role.described()}{advice}",
        username=caller.username,
        role=role.value,
        **details,
    )
