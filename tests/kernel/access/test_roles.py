"""Roles hold for every tool of the registry, and for raw updates; finer rules for some.

The role of a new block follows from who creates it, through whatever door it comes.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pycrdt import Map, Text

from antiphon_kernel.access import (
    check_act_as,
    check_arrange,
    check_interrupt,
    check_shell,
    check_status,
    check_undo_of,
)
from antiphon_kernel.contexts import Context, apply_update
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.tools.all_tools import KERNEL_TOOLS
from antiphon_kernel.turns import TURN_TOOLS
from antiphon_kernel.types.enums import BlockKind, PrincipalKind, Role
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.ids import DRAFT_SEQ_MIN, PrincipalId
from antiphon_kernel.types.records import Actor, BlockHeader, Principal
from antiphon_kernel.types.roles import AccessRole, Permission
from tests.errors import raises
from tests.kernel.access.test_drafts import deleting, inserting
from tests.kernel.kernel.calls import Caller, Make, OpenKernel, refused
from tests.kernel.served import ServedKernel
from tests.kernel.server.invited import answered
from tests.kernel.validation.peers import Peer

TOOLS = {tool.name: tool for tool in (*KERNEL_TOOLS, *TURN_TOOLS)}

ALLOWED = {
    AccessRole.OWNER: set(Permission),
    AccessRole.EDITOR: {Permission.READ, Permission.WRITE, Permission.ARRANGE},
    AccessRole.AGENT: {Permission.READ, Permission.WRITE},
    AccessRole.VIEWER: {Permission.READ},
    AccessRole.AUTHOR: set(),
}


async def somebody(kernel: Kernel, role: AccessRole) -> Actor:
    principal = await kernel.principal(f"the-{role}")
    await kernel.members.give_role(principal, role)
    return kernel.open_session(principal, "test")


async def outcome(kernel: Kernel, actor: Actor, tool: str, params: dict[str, Any]) -> str:
    try:
        await kernel.call(actor, tool, params)
    except AntiphonError as error:
        return str(error.code)
    return "done"


@pytest.mark.parametrize("role", list(AccessRole))
async def test_role_reaches_the_tools_of_its_rights_and_no_others(
    kernel: Kernel, role: AccessRole
) -> None:
    actor = await somebody(kernel, role)
    state = (await kernel.context()).document.state_vector()
    refused = set()
    for name in kernel.registry.names:
        # Refused before the parameters are looked at: these are wrong for every tool.
        if await outcome(kernel, actor, name, {"\x00": 0}) == ErrorCode.PERMISSION_DENIED:
            refused.add(name)
    names = set(kernel.registry.names)
    assert refused == {name for name in names if TOOLS[name].needs not in ALLOWED[role]}
    assert (await kernel.context()).document.state_vector() == state


def test_every_tool_of_the_process_says_which_right_it_needs() -> None:
    assert {tool.needs for tool in TOOLS.values()} <= set(Permission)
    changing = {"block.edit", "block.create", "block.undo", "shell.run", "turn.interrupt"}
    assert all(TOOLS[name].needs is not Permission.READ for name in changing)
    owning = {name for name in TOOLS if TOOLS[name].needs is Permission.OWN}
    assert {"kernel.invite", "kernel.revoke", "kernel.kick", "kernel.role"} <= owning


async def test_refusal_names_the_role_and_those_that_would_do(kernel: Kernel) -> None:
    viewer = await somebody(kernel, AccessRole.VIEWER)
    with raises(ErrorCode.PERMISSION_DENIED) as refused:
        await kernel.call(viewer, "block.create", {"role": "user", "kind": "text"})
    assert refused.value.details["role"] == "viewer"
    assert refused.value.details["allowed"] == ["owner", "editor", "agent"]


async def test_demotion_counts_for_a_session_that_is_open(kernel: Kernel, call: Caller) -> None:
    bo = await kernel.principal("bo")
    session = kernel.open_session(bo, "test")
    request = {"role": "user", "kind": "text", "content": "x"}
    assert await outcome(kernel, session, "block.create", request) == "done"
    told: list[int] = []
    kernel.sessions.on_dismissal(session, lambda one: told.append(one.code))
    result = await call("kernel.role", principal="bo", role="viewer")
    assert (result["role"], result["ended"], told) == ("viewer", 1, [4500])
    assert await outcome(kernel, session, "block.list", {}) == "permission_denied"
    again = kernel.open_session(bo, "test")
    assert again.role is AccessRole.VIEWER
    assert await outcome(kernel, again, "block.list", {}) == "done"
    assert await outcome(kernel, again, "block.create", request) == "permission_denied"


async def test_kernel_session_after_demotion_has_new_role(
    kernel: Kernel, call: Caller, make: Make
) -> None:
    aria = await kernel.principal("aria", PrincipalKind.MODEL)
    turn = kernel.open_session(aria, "turn")
    request = {"parent_id": await make(), "kind": "text", "content": "x"}
    assert await outcome(kernel, turn, "block.create", request) == "done"
    assert (await call("kernel.role", principal="aria", role="viewer"))["ended"] == 0
    assert await outcome(kernel, turn, "block.list", {}) == "done"
    assert await outcome(kernel, turn, "block.create", request) == "permission_denied"


async def test_roles_are_stored(open_kernel: OpenKernel) -> None:
    first = await open_kernel()
    owner = first.open_session(first.owner, "test")
    for name, role in (("vera", "viewer"), ("ed", "editor"), ("bot", "agent"), ("co", "owner")):
        await first.principal(name)
        await first.call(owner, "kernel.role", {"principal": name, "role": role})
    await first.principal("aria", PrincipalKind.MODEL)
    await first.close()
    again = await open_kernel()
    found = {one.username: str(again.members.role_of(one)) for one in again.members}
    assert found == {
        "system": "owner",
        "amy": "owner",
        "vera": "viewer",
        "ed": "editor",
        "bot": "agent",
        "co": "owner",
        "aria": "agent",
    }


async def test_founder_stays_owner_and_is_not_kicked(kernel: Kernel) -> None:
    co = await somebody(kernel, AccessRole.OWNER)
    for tool, params in (
        ("kernel.role", {"principal": "amy", "role": "viewer"}),
        ("kernel.kick", {"principal": "amy"}),
        ("kernel.kick", {"principal": "system"}),
        ("kernel.role", {"principal": "system", "role": "viewer"}),
    ):
        assert await outcome(kernel, co, tool, params) == "permission_denied"
    assert kernel.members.role_of(kernel.owner) is AccessRole.OWNER


async def test_members_are_listed_with_role_and_connections(kernel: Kernel, bo: Actor) -> None:
    listed = (await kernel.call(bo, "kernel.members"))["members"]
    by_name = {one["username"]: one for one in listed}
    assert by_name["amy"]["founder"] and by_name["amy"]["role"] == "owner"
    assert not by_name["bo"]["founder"]
    assert [one["session"] for one in by_name["bo"]["sessions"]] == [bo.session]


# Raw updates


@pytest.mark.parametrize("deletes", [False, True])
async def test_viewers_raw_update_is_refused_and_an_editors_is_not(
    kernel: Kernel, context: Context, make: Make, *, deletes: bool
) -> None:
    block = await make("text")
    update = (deleting if deletes else inserting)(context.document, block)
    viewer = await somebody(kernel, AccessRole.VIEWER)
    with raises(ErrorCode.PERMISSION_DENIED):
        apply_update(context, viewer, update, object())
    assert context.document.text(block) == "text"
    editor = await somebody(kernel, AccessRole.EDITOR)
    await apply_update(context, editor, update, object())
    assert context.document.text(block) != "text"


async def test_viewer_update_without_news_is_accepted_and_not_committed(
    kernel: Kernel, context: Context, make: Make
) -> None:
    await make("text")
    viewer = await somebody(kernel, AccessRole.VIEWER)
    before = context.seq
    await apply_update(context, viewer, context.document.update_since(), object())
    assert context.seq == before


# Finer rules, as a table

AMY = Principal(PrincipalId("a" * 32), "amy", PrincipalKind.HUMAN)
BO = Principal(PrincipalId("b" * 32), "bo", PrincipalKind.HUMAN)
ARIA = Principal(PrincipalId("c" * 32), "aria", PrincipalKind.MODEL)


def block_of(author: Principal) -> BlockHeader:
    return BlockHeader("x.y.1", "text", "user", "done", "a", "", author.id)


RULES: list[tuple[str, Callable[[Principal, AccessRole], None], set[str]]] = [
    ("status of bo's block", lambda who, role: check_status(block_of(BO), who, role), {"owner"}),
    (
        "arranging bo's block",
        lambda who, role: check_arrange(block_of(BO), who, role),
        {"owner", "editor"},
    ),
    ("undo of a person", lambda who, role: check_undo_of(BO, who, role), {"owner"}),
    ("undo of a model", lambda who, role: check_undo_of(ARIA, who, role), {"owner", "editor"}),
    ("stopping bo", lambda who, role: check_interrupt("bo", who, role), {"owner", "editor"}),
    ("stopping all", lambda who, role: check_interrupt(None, who, role), {"owner", "editor"}),
    ("a command", check_shell, {"owner"}),
]


@pytest.mark.parametrize(("rule", "allowed"), [(one[1], one[2]) for one in RULES])
def test_role_rule_allows_named_roles_only(
    rule: Callable[[Principal, AccessRole], None], allowed: set[str]
) -> None:
    for role in AccessRole:
        if role in allowed:
            rule(AMY, role)
            continue
        with raises(ErrorCode.PERMISSION_DENIED) as refused:
            rule(AMY, role)
        assert refused.value.details["role"] == role


@pytest.mark.parametrize("role", [AccessRole.EDITOR, AccessRole.AGENT])
def test_ones_own_is_ones_own(role: AccessRole) -> None:
    check_status(block_of(AMY), AMY, role)
    check_arrange(block_of(AMY), AMY, role)
    check_undo_of(AMY, AMY, role)
    check_interrupt("amy", AMY, role)


def test_check_act_as_of_others_is_allowed_to_founder_only() -> None:
    check_act_as("bo", AMY, founder=AMY)
    check_act_as("bo", BO, founder=AMY)
    with pytest.raises(AntiphonError, match="acts as somebody else"):
        check_act_as("amy", BO, founder=AMY)


async def test_tools_apply_the_finer_rules(kernel: Kernel, make: Make, bo: Actor) -> None:
    block = await make("amy's")
    status = {"block_id": block, "status": "error"}
    assert await outcome(kernel, bo, "block.status", status) == "permission_denied"
    undo = {"block_id": block, "principal": "amy"}
    assert await outcome(kernel, bo, "block.undo", undo) == "permission_denied"


@pytest.mark.sqlite
async def test_data_folder_from_before_there_were_roles_gets_them(
    data: Path, open_kernel: OpenKernel
) -> None:
    kernel = await open_kernel()
    await kernel.principal("bo")
    await kernel.principal("aria", PrincipalKind.MODEL)
    await kernel.close()
    (data / "auth.db").unlink()
    again = await open_kernel()
    roles = {one.username: str(again.members.role_of(one)) for one in again.members}
    assert roles == {"system": "owner", "amy": "owner", "bo": "editor", "aria": "agent"}


ROLES = {
    PrincipalKind.HUMAN: Role.USER,
    PrincipalKind.MODEL: Role.MODEL,
    PrincipalKind.AGENT: Role.MODEL,
    PrincipalKind.SHELL: Role.TOOL,
    PrincipalKind.SOURCE: Role.SYSTEM,
    PrincipalKind.SYSTEM: Role.SYSTEM,
}


async def writer(kernel: Kernel, kind: PrincipalKind) -> Actor:
    if kind is PrincipalKind.SYSTEM:
        return kernel.system
    return kernel.open_session(await kernel.principal(f"a-{kind}", kind), "test")


async def test_create_takes_the_role_that_follows_and_no_other(kernel: Kernel, make: Make) -> None:
    for who, kind in itertools.product(PrincipalKind, BlockKind):
        actor = await writer(kernel, who)
        follows = Role.TOOL if kind is BlockKind.TOOL_RESULT else ROLES[who]
        metadata = {"more": True} if kind is BlockKind.TOOL_RESULT else {}
        request = {"kind": kind, "parent_id": await make(kind="tool_call"), "metadata": metadata}
        for asked in set(Role) - {follows}:
            error = await refused(kernel, actor, "block.create", {**request, "role": asked})
            assert (error.code, error.details["field"]) == (ErrorCode.INVALID_PARAMS, "role")
            assert error.details["allowed"] == [follows] and f"is {follows}" in error.message
        for right in ({}, {"role": follows}):
            made = await kernel.call(actor, "block.create", {**request, **right})
            header = (await kernel.context()).document.header(made["block_id"])
            assert (header.role, header.author) == (follows, actor.principal.id), (who, kind)


@pytest.mark.parametrize(("kind", "role"), [("model", "model"), ("source", "system")])
async def test_caller_acting_as_a_kind_writes_its_role(
    served: ServedKernel, kind: str, role: str
) -> None:
    path = f"/call/block.create?as=robot&kind={kind}"
    request = {"kind": "text", "parent_id": await served.block()}
    authorization = f"Bearer {served.doors.token}"
    for asked in Role:
        body = json.dumps({**request, "role": asked}).encode()
        found = await answered(served, "POST", path, body, Authorization=authorization)
        if asked == role:
            header = (await served.context()).document.header(found.body["block_id"])
            assert header.role == role
        else:
            assert found.body["error"]["code"] == "invalid_params"
            assert found.body["error"]["allowed"] == [role]


async def send_draft(kernel: Kernel, actor: Actor, fields: dict[str, object]) -> str:
    """A raw update that creates a draft with these header fields."""
    peer = Peer(await kernel.context())
    block = f"{peer.context.id}.{actor.principal.id}.{DRAFT_SEQ_MIN}"
    peer.blocks[block] = Map({"order": "a5", "content": Text("x"), **fields})
    await peer.send(actor)
    return block


@pytest.mark.parametrize("asked", [None, *Role])
async def test_raw_draft_of_a_person_has_role_user_or_is_rejected(
    kernel: Kernel, bo: Actor, asked: Role | None
) -> None:
    fields: dict[str, object] = {} if asked is None else {"role": asked.value}
    if asked in (None, Role.USER):
        block = await send_draft(kernel, bo, fields)
        assert (await kernel.context()).document.header(block).role is Role.USER
        return
    with raises(ErrorCode.INVALID_PARAMS) as rejected:
        await send_draft(kernel, bo, fields)
    assert rejected.value.details["allowed"] == ["user"]


@pytest.mark.parametrize("who", [one for one in PrincipalKind if one is not PrincipalKind.HUMAN])
async def test_raw_draft_of_a_program_is_rejected_and_names_the_tool(
    kernel: Kernel, who: PrincipalKind
) -> None:
    actor = await writer(kernel, who)
    with raises(ErrorCode.PERMISSION_DENIED) as rejected:
        await send_draft(kernel, actor, {"role": ROLES[who].value})
    assert "block.create" in rejected.value.message


async def test_import_by_an_owner_keeps_every_role(
    kernel: Kernel, amy: Actor, bo: Actor, make: Make
) -> None:
    block = await make("said")
    text = (await kernel.call(amy, "context.export", {}))["text"]
    for number, role in enumerate(Role):
        lines = [json.loads(line) for line in text.splitlines()]
        line = next(one for one in lines if one.get("id") == block)
        line["header"]["role"] = role
        params = {"text": "\n".join(map(json.dumps, lines)), "label": f"copy-{number}"}
        assert (await kernel.call(amy, "context.import", params))["blocks"] == 1
        (found,) = (await kernel.context(params["label"])).document.block_ids()
        assert (await kernel.context(params["label"])).document.header(found).role == role
        error = await refused(kernel, bo, "context.import", params)
        assert error.code is ErrorCode.PERMISSION_DENIED
