"""A client submits its own draft by a raw update, and sets no other status."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, Final

import pytest
from pycrdt import Text

from antiphon_kernel.contexts import Context, Submission, apply_update
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.maintenance.run_checks import run_checks
from antiphon_kernel.types.enums import PrincipalKind, Status
from antiphon_kernel.types.errors import ErrorCode
from antiphon_kernel.types.records import Actor
from antiphon_kernel.types.roles import AccessRole
from tests.kernel.kernel.calls import Make
from tests.kernel.validation.peers import Peer, refused


@pytest.fixture
def submitted(kernel: Kernel) -> list[Submission]:
    found: list[Submission] = []
    kernel.submissions.listen(found.append)
    return found


async def denied(peer: Peer, actor: Actor) -> None:
    await refused(peer.context, actor, peer.update(), ErrorCode.PERMISSION_DENIED)


async def sound(kernel: Kernel, data: Path) -> None:
    await kernel.close()
    assert [str(finding) for finding in (await run_checks(data)).all()] == []


@pytest.mark.sqlite
async def test_draft_that_its_author_calls_done_is_submitted(
    kernel: Kernel,
    context: Context,
    bo: Actor,
    make: Make,
    submitted: list[Submission],
    data: Path,
    open_kernel: Any,
) -> None:
    client = Peer(context)
    block = client.draft(bo, "a question")
    await client.send(bo)
    later = await make("written meanwhile", status="done")
    submitted.clear()
    client.hear()
    client.blocks[block]["status"] = "done"
    update = client.update()
    waiting = apply_update(context, bo, update, "client")
    assert submitted == []
    await waiting
    await asyncio.sleep(0)
    assert [(one.block, one.actor) for one in submitted] == [(block, bo)]
    header = context.document.header(block)
    assert header.status is Status.DONE
    assert not header.edited_after_done
    assert context.document.block_ids()[-2:] == [later, block]
    version = context.blocks.version(block)
    await apply_update(context, bo, update, "client")
    assert len(submitted) == 1
    assert context.blocks.version(block) == version
    await sound(kernel, data)
    again = (await (await open_kernel()).context()).document
    assert again.header(block).status is Status.DONE


@pytest.mark.sqlite
@pytest.mark.parametrize("client_id", [1, 2**52])
async def test_submission_concurrent_with_running_status_is_accepted(
    kernel: Kernel,
    context: Context,
    bo: Actor,
    submitted: list[Submission],
    data: Path,
    client_id: int,
) -> None:
    client = Peer(context, client_id)
    block = client.draft(bo)
    await client.send(bo)
    client.blocks[block]["content"].insert(0, "hello")
    await client.send(bo)
    assert context.document.header(block).status is Status.RUNNING
    assert client.blocks[block]["status"] == "pending"
    client.blocks[block]["status"] = "done"
    await client.send(bo)
    assert context.document.header(block).status is Status.DONE
    assert len(submitted) == 1
    client.hear()
    assert client.blocks[block]["status"] == "done"
    await sound(kernel, data)


@pytest.mark.sqlite
async def test_typing_and_submitting_in_one_update_is_no_edit_afterwards(
    kernel: Kernel, context: Context, bo: Actor, submitted: list[Submission], data: Path
) -> None:
    client = Peer(context)
    block = client.draft(bo)
    await client.send(bo)
    with client.doc.transaction():
        client.blocks[block]["content"].insert(0, "all at once")
        client.blocks[block]["status"] = "done"
    await client.send(bo)
    header = context.document.header(block)
    assert (header.status, header.edited_after_done) == (Status.DONE, False)
    assert len(submitted) == 1
    client.blocks[block]["content"].insert(0, "not ")
    await client.send(bo)
    assert context.document.header(block).edited_after_done
    await sound(kernel, data)


@pytest.mark.sqlite
async def test_draft_submitted_offline_is_submitted_on_arrival(
    kernel: Kernel, context: Context, bo: Actor, submitted: list[Submission], data: Path
) -> None:
    client = Peer(context)
    blocks = [client.draft(bo, f"offline {number}", number) for number in range(3)]
    for block in blocks[:2]:
        client.blocks[block]["status"] = "done"
    await client.send(bo)
    assert [one.block for one in submitted] == blocks[:2]
    statuses = [context.document.header(block).status for block in blocks]
    assert statuses == [Status.DONE, Status.DONE, Status.RUNNING]
    await sound(kernel, data)


@pytest.mark.sqlite
async def test_empty_draft_stays_one(
    kernel: Kernel, context: Context, bo: Actor, submitted: list[Submission], data: Path
) -> None:
    client = Peer(context)
    blocks = [client.draft(bo), client.draft(bo, "to be deleted", 1), client.draft(bo, " \n", 2)]
    await client.send(bo)
    before = [context.document.header(block).status for block in blocks]
    with client.doc.transaction():
        client.blocks[blocks[1]]["content"].clear()
        for block in blocks:
            client.blocks[block]["status"] = "done"
    await client.send(bo)
    assert [context.document.header(block).status for block in blocks] == before
    assert submitted == []
    client.hear()
    with client.doc.transaction():
        client.blocks[blocks[0]]["content"].insert(0, "now")
        client.blocks[blocks[0]]["status"] = "done"
    await client.send(bo)
    assert [one.block for one in submitted] == [blocks[0]]
    await sound(kernel, data)


NEW_TEXT: Final = object()
"""Stands for a text that is put in the place of another."""

Fields = list[tuple[str, object]]
"""Fields that are written one after the other; None deletes one."""

TAKEN_BACK: Final[Fields] = [("status", "done"), ("status", "pending")]
DELETED: Final[Fields] = [("status", "done"), ("status", None)]

HOSTILE: Final[dict[str, Fields]] = {
    "running": [("status", "running")],
    "error": [("status", "error")],
    "no status": [("status", True)],
    "taken back": TAKEN_BACK,
    "twice": [("status", "done"), ("status", "done")],
    "status deleted": [("status", None)],
    "submitted and deleted": DELETED,
    "role": [("status", "done"), ("role", "model")],
    "content replaced": [("status", "done"), ("content", NEW_TEXT)],
    "content deleted": [("status", "done"), ("content", None)],
}


def write(block: Any, fields: Fields) -> None:
    for name, value in fields:
        if value is None:
            del block[name]
        else:
            block[name] = Text("something else") if value is NEW_TEXT else value


async def test_submission_with_other_field_changes_is_rejected(
    context: Context, bo: Actor, submitted: list[Submission]
) -> None:
    first = Peer(context)
    block = first.draft(bo, "mine")
    await first.send(bo)
    for name, fields in HOSTILE.items():
        client = Peer(context, 78)
        with client.doc.transaction():
            write(client.blocks[block], fields)
        await denied(client, bo)
        assert context.document.header(block).status is Status.RUNNING, name
        assert context.document.text(block) == "mine", name
    assert submitted == []


async def test_draft_that_came_with_its_end_undone_is_not_submitted(
    context: Context, bo: Actor, submitted: list[Submission]
) -> None:
    for number, fields in enumerate((TAKEN_BACK, DELETED)):
        client = Peer(context, 100 + number)
        block = client.draft(bo, "mine", number)
        write(client.blocks[block], fields)
        await client.send(bo)
        assert context.document.header(block).status is Status.RUNNING
    assert submitted == []


@pytest.mark.parametrize("whose", ["somebody's draft", "somebody's", "own", "model's", "viewer"])
async def test_submission_of_other_than_own_draft_is_rejected(
    kernel: Kernel,
    context: Context,
    amy: Actor,
    bo: Actor,
    make: Make,
    submitted: list[Submission],
    whose: str,
) -> None:
    actor = amy
    if whose == "somebody's draft":
        client = Peer(context, 12)
        block = client.draft(bo, "not yet")
        await client.send(bo)
    elif whose == "somebody's":
        block = await make("finished", status="done")
        actor = bo
    elif whose == "own":
        block = await make("finished", status="done")
    elif whose == "model's":
        aria = kernel.open_session(await kernel.principal("aria", PrincipalKind.MODEL), "turn")
        prompt = await make("speak", status="done")
        request = {"role": "model", "kind": "text", "content": "I say", "parent_id": prompt}
        block = str((await kernel.call(aria, "block.create", request))["block_id"])
        actor = aria
    else:
        client = Peer(context, 12)
        block = client.draft(bo, "not yet")
        await client.send(bo)
        await kernel.members.give_role(bo.principal, AccessRole.VIEWER)
        actor = kernel.open_session(bo.principal, "test")
    submitted.clear()
    client = Peer(context)
    client.blocks[block]["status"] = "done"
    await denied(client, actor)
    assert submitted == []
