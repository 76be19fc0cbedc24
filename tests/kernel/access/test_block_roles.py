"""The role of a new block follows from who creates it, through whatever door it comes."""

from __future__ import annotations

import itertools
import json

import pytest
from pycrdt import Map, Text

from antiphon_kernel.kernel import Kernel
from antiphon_kernel.types.enums import BlockKind, PrincipalKind, Role
from antiphon_kernel.types.errors import ErrorCode
from antiphon_kernel.types.ids import DRAFT_SEQ_MIN
from antiphon_kernel.types.records import Actor
from tests.errors import raises
from tests.kernel.kernel.calls import Make, refused
from tests.kernel.served import ServedKernel
from tests.kernel.server.invited import answered
from tests.kernel.validation.peers import Peer

ROLES = {
    PrincipalKind.HUMAN: Role.USER,
    PrincipalKind.MODEL: Role.MODEL,
    PrincipalKind.SHELL: Role.TOOL,
    PrincipalKind.SOURCE: Role.SYSTEM,
    PrincipalKind.SYSTEM: Role.SYSTEM,
}


async def writer(kernel: Kernel, kind: PrincipalKind) -> Actor:
    if kind is PrincipalKind.SYSTEM:
        return kernel.system
    return kernel.open_session(await kernel.principal(f"a-{kind}", kind), "test")


@pytest.mark.parametrize(("who", "kind"), itertools.product(PrincipalKind, BlockKind))
async def test_create_takes_the_role_that_follows_and_no_other(
    kernel: Kernel, make: Make, who: PrincipalKind, kind: BlockKind
) -> None:
    actor = await writer(kernel, who)
    follows = Role.TOOL if kind is BlockKind.TOOL_RESULT else ROLES[who]
    metadata = {"more": True} if kind is BlockKind.TOOL_RESULT else {}
    request = {"kind": kind, "parent_id": await make(kind="tool_call"), "metadata": metadata}
    for asked in Role:
        if asked is not follows:
            error = await refused(kernel, actor, "block.create", {**request, "role": asked})
            assert (error.code, error.details["field"]) == (ErrorCode.INVALID_PARAMS, "role")
            assert error.details["allowed"] == [follows] and f"is {follows}" in error.message
    for right in ({}, {"role": follows}):
        made = await kernel.call(actor, "block.create", {**request, **right})
        header = (await kernel.context()).document.header(made["block_id"])
        assert (header.role, header.author) == (follows, actor.principal.id)


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
