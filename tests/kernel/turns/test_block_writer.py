"""How a model's tokens, and those of programs from outside, get into blocks."""

from __future__ import annotations

import pytest

from antiphon_kernel.turns.block_writer import BlockWriter
from antiphon_kernel.turns.models import Models
from antiphon_kernel.types.enums import Activity, BlockKind, PrincipalKind, Status
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.records import Actor
from antiphon_kernel.types.roles import AccessRole
from tests.errors import raises
from tests.kernel.turns.stage import Gate, OpenStage, Stage, scripted
from tests.waiting import until


async def begun(open_stage: OpenStage) -> tuple[Stage, Actor, BlockWriter, str]:
    stage = await open_stage(Models({}))
    aria = await stage.kernel.principal("aria", PrincipalKind.SHELL)
    model = stage.kernel.open_session(aria, "turn")
    writer = BlockWriter(stage.kernel, stage.context, model)
    return stage, model, writer, await writer.create(BlockKind.TEXT, None)


async def test_streamed_token_that_may_not_be_written_is_refused(open_stage: OpenStage) -> None:
    stage, model, writer, block = await begun(open_stage)
    with raises(ErrorCode.INVALID_PARAMS):
        await writer.append(block, "\ud83d")
    await writer.append(block, "x" * stage.context.limits.block_code_points)
    with raises(ErrorCode.TOO_LARGE):
        await writer.append(block, "word")
    await writer.finish(block, Status.DONE)
    with raises(ErrorCode.INVALID_TRANSITION):
        await writer.append(block, "word")
    block = await writer.create(BlockKind.TEXT, None)
    await stage.kernel.members.give_role(model.principal, AccessRole.VIEWER)
    with raises(ErrorCode.PERMISSION_DENIED):
        await writer.append(block, "word")
    await stage.kernel.members.give_role(model.principal, AccessRole.AGENT)
    await writer.append(block, "word")
    await stage.call("kernel.kick", principal="aria")
    with raises(ErrorCode.PERMISSION_DENIED):
        await writer.append(block, "word")
    await stage.kernel.close()
    with raises(ErrorCode.NO_KERNEL):
        await writer.append(block, "word")


async def nova(stage: Stage, *, lasts: bool = True) -> Actor:
    principal = await stage.kernel.principal("nova", PrincipalKind.MODEL)
    return stage.kernel.open_session(principal, "tcp", lasts=lasts)


async def begin(stage: Stage, actor: Actor) -> str:
    answer = {"parent_id": await stage.submit("a question"), "kind": "text"}
    block = str((await stage.kernel.call(actor, "block.create", answer))["block_id"])
    await append(stage, actor, block, "one ")
    return block


async def append(stage: Stage, actor: Actor, block: str, text: str) -> None:
    await stage.kernel.call(actor, "block.append", {"block_id": block, "text": text})


async def test_program_that_appends_is_present_with_its_cursor_until_the_block_ends(
    open_stage: OpenStage,
) -> None:
    stage = await open_stage(scripted(Gate()))
    actor = await nova(stage)
    block = await begin(stage, actor)
    await append(stage, actor, block, "two")
    states = stage.context.presence.states()
    await until(lambda: [one.cursor for one in states.values()] == [7], "the cursor at the end")
    (shown,) = states.values()
    assert (shown.username, shown.kind, shown.block) == ("nova", PrincipalKind.MODEL, block)
    assert shown.activity == Activity.STREAMING
    await stage.kernel.call(actor, "block.status", {"block_id": block, "status": "done"})
    assert not states


async def test_program_stays_present_between_single_calls_and_not_after_its_session(
    open_stage: OpenStage,
) -> None:
    stage = await open_stage(scripted(Gate()))
    states = stage.context.presence.states()
    actor = await nova(stage, lasts=False)
    block = await begin(stage, actor)
    await stage.kernel.close_session(actor)
    assert [one.block for one in states.values()] == [block]
    actor = await nova(stage, lasts=False)
    await append(stage, actor, block, "more")
    await stage.kernel.close_session(actor)
    assert len(states) == 1
    actor = await nova(stage)
    await append(stage, actor, block, "and more")
    await stage.kernel.close_session(actor)
    assert not states


@pytest.mark.parametrize("target", [{}, {"principal": "nova"}])
async def test_interrupt_ends_the_block_of_a_program_which_learns_it(
    open_stage: OpenStage, target: dict[str, str]
) -> None:
    stage = await open_stage(scripted(Gate()))
    actor = await nova(stage)
    block = await begin(stage, actor)
    assert await stage.interrupt(**target) == ["nova"]
    header = stage.context.document.header(block)
    owner = stage.kernel.owner.username
    assert (header.status, header.stop_reason, header.stopped_by) == ("error", "interrupted", owner)
    with pytest.raises(AntiphonError) as refused:
        await append(stage, actor, block, "more")
    assert refused.value.code is ErrorCode.INVALID_TRANSITION
    assert await stage.interrupt(**target) == []
