"""Merges that something comes between: others, rights, drafts, a kernel that dies."""

from __future__ import annotations

import asyncio

import pytest

from antiphon_kernel.contexts import Context
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.tools.drift import resume_drifts
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.records import Actor
from antiphon_kernel.types.roles import AccessRole
from tests.kernel.drift.staging import content, listed, staged
from tests.kernel.kernel.calls import Caller, Make, refused


class Forked:
    """A conversation of one block, and its fork, which has changed it and has a new one."""

    def __init__(self, call: Caller, make: Make, target: Context, fork: Context) -> None:
        self.call, self.make, self.target, self.fork = call, make, target, fork
        (self.shared, self.new) = fork.document.block_ids()

    def texts(self, context: Context) -> list[str]:
        return [text for _, kind, text in content(context) if kind != "drift"]


@pytest.fixture
async def forked(call: Caller, make: Make) -> Forked:
    await make("one\ntwo\n", role="user", status="done")
    await call("context.fork", context="default", label="fork")
    fork = await call.context("fork")
    (shared,) = fork.document.block_ids()
    await call("block.splice", block_id=shared, offset=8, insert="three\n")
    await make("new", role="user", status="done", context="fork")
    return Forked(call, make, await call.context(), fork)


async def test_of_two_merges_at_once_one_brings_all_and_the_other_nothing(forked: Forked) -> None:
    answers = await asyncio.gather(
        *(forked.call("drift.merge", source="fork") for _ in range(2)), return_exceptions=True
    )
    errors = [one for one in answers if isinstance(one, AntiphonError)]
    assert [one.code for one in errors] == [ErrorCode.INVALID_PARAMS]
    assert forked.texts(forked.target) == ["one\ntwo\nthree\n", "new"]
    states = [one["state"] for one in (await forked.call("drift.list"))["drifts"]]
    assert sorted(states) == ["delivered", "refused"]


async def test_merge_that_is_delivered_later_brings_what_there_is_then(
    kernel: Kernel, forked: Forked
) -> None:
    drift_id = await staged(forked.call, "drift.merge", source="fork")
    await forked.call("block.splice", block_id=forked.new, offset=3, insert="er")
    await resume_drifts(kernel)
    assert (await listed(kernel, drift_id))["state"] == "delivered"
    assert forked.texts(forked.target) == ["one\ntwo\nthree\n", "newer"]
    assert (await listed(kernel, drift_id))["source_version"] == forked.fork.seq


async def test_merge_of_what_was_shown_is_refused_when_it_is_something_else(
    kernel: Kernel, forked: Forked
) -> None:
    plan = (await forked.call("drift.preview", source="fork"))["plan"]
    drift_id = await staged(forked.call, "drift.merge", source="fork", plan=plan)
    await forked.call("block.splice", block_id=forked.shared, offset=0, insert="zero\n")
    await resume_drifts(kernel)
    found = await listed(kernel, drift_id)
    assert found["state"] == "refused" and "not what was shown" in found["outcome"]
    error = await forked.call.refused("drift.merge", source="fork", plan=plan)
    assert error.code is ErrorCode.STALE_VERSION
    assert forked.texts(forked.target) == ["one\ntwo\n"]


async def test_conflict_that_comes_in_between_refuses_a_merge(
    kernel: Kernel, forked: Forked
) -> None:
    drift_id = await staged(forked.call, "drift.merge", source="fork")
    (here,) = forked.target.document.block_ids()
    await forked.call("block.splice", block_id=here, offset=4, delete_count=4, insert="2\n")
    await forked.call("block.splice", block_id=forked.shared, offset=4, delete_count=3, insert="II")
    await resume_drifts(kernel)
    found = await listed(kernel, drift_id)
    assert found["state"] == "refused" and "resolve" in found["outcome"]
    assert forked.texts(forked.target) == ["one\n2\n"]
    assert forked.texts(forked.fork) == ["one\nII\nthree\n", "new"]


async def test_merge_into_an_archived_context_is_refused_and_the_fork_stays(forked: Forked) -> None:
    call = forked.call
    await call("context.fork", context="fork", label="twig")
    twig = await call.context("twig")
    await call("block.splice", block_id=twig.document.block_ids()[0], offset=0, insert="zero\n")
    before = content(forked.fork)
    await call("context.archive", context="fork")
    with pytest.raises(AntiphonError) as caught:
        await call("drift.merge", source="twig", conclude=True)
    assert caught.value.code is ErrorCode.INVALID_TRANSITION
    assert content(forked.fork) == before and twig.row.archived is None
    await call("context.archive", context="fork", archived=False)
    await call("drift.merge", source="twig", conclude=True)
    assert forked.texts(forked.fork) == ["zero\none\ntwo\nthree\n", "new"]
    assert twig.row.archived is not None


async def test_draft_here_that_was_sent_in_the_fork_does_not_stop_a_merge(
    kernel: Kernel, call: Caller, make: Make, bo: Actor
) -> None:
    await kernel.members.give_role(bo.principal, AccessRole.EDITOR)
    draft = await kernel.call(bo, "block.create", {"kind": "text", "content": "bo's draft"})
    await make("one\n", role="user", status="done")
    await call("context.fork", context="default", label="fork")
    fork, target = await call.context("fork"), await call.context()
    for block in fork.document.block_ids():
        if fork.document.is_draft(block):
            await kernel.call(bo, "block.splice", {"block_id": block, "offset": 0, "insert": "x "})
            await kernel.call(bo, "block.status", {"block_id": block, "status": "done"})
    await make("new", role="user", status="done", context="fork")
    await call("drift.merge", source="fork")
    assert target.document.text(draft["block_id"]) == "bo's draft"
    assert "new" in [text for _, _, text in content(target)]


async def test_rights_are_those_of_the_moment(
    kernel: Kernel, forked: Forked, bo: Actor, aria: Actor
) -> None:
    viewer = await kernel.principal("vic")
    await kernel.members.give_role(viewer, AccessRole.VIEWER)
    vic = kernel.open_session(viewer, "test")
    shown = await kernel.call(vic, "drift.preview", {"source": "fork"})
    assert len(shown["changes"]) == 1 and len(shown["offers"]) == 1
    for tool, params in (
        ("drift.merge", {"source": "fork"}),
        ("drift.push", {"to": "fork", "blocks": [forked.new]}),
        ("drift.cancel", {"drift_id": "1"}),
    ):
        error = await refused(kernel, vic, tool, params)
        assert error.code is ErrorCode.PERMISSION_DENIED
    await kernel.members.give_role(aria.principal, AccessRole.AGENT)
    error = await refused(kernel, aria, "drift.merge", {"source": "fork", "conclude": True})
    assert error.code is ErrorCode.PERMISSION_DENIED
    assert (await forked.call("drift.list"))["drifts"] == []


async def test_many_blocks_are_merged_and_taken_back_in_one_step(call: Caller, make: Make) -> None:
    for number in range(30):
        await make(f"{number}\n", role="user", status="done")
    await call("context.fork", context="default", label="fork")
    fork, target = await call.context("fork"), await call.context()
    before = content(target)
    for block in fork.document.block_ids():
        await call("block.splice", block_id=block, offset=0, insert="> ")
    merged = await call("drift.merge", source="fork")
    assert len(merged["changed"]) == 30
    assert all(text.startswith("> ") for _, kind, text in content(target) if kind != "drift")
    await call("block.undo", context="default")
    assert [one for one in content(target) if one[1] != "drift"] == before
    await call("block.redo", context="default")
    again = await call.refused("drift.merge", source="fork")
    assert again.code is ErrorCode.INVALID_PARAMS
