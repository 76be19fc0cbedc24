"""How a model's tokens get into blocks."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Awaitable, Callable
from types import FrameType

import pytest
from pydantic import BaseModel

from antiphon_kernel.registry import Tool
from antiphon_kernel.turns.block_writer import BlockWriter
from antiphon_kernel.turns.models import Models
from antiphon_kernel.types.enums import BlockKind, PrincipalKind, Status
from antiphon_kernel.types.errors import ErrorCode
from antiphon_kernel.types.records import Actor
from antiphon_kernel.types.roles import AccessRole
from tests.errors import raises
from tests.kernel.turns.stage import OpenStage, Stage

TOKENS = 20
SERIALISING = {Tool.parse.__code__: "parse", BaseModel.model_dump.__code__: "dump"}


async def serialisations(append: Callable[[str, str], Awaitable[None]], block: str) -> Counter[str]:
    """How often parameters are read, and results written, for so many tokens."""
    seen: Counter[str] = Counter()

    def count(frame: FrameType, event: str, argument: object) -> None:
        if event == "call" and frame.f_code in SERIALISING:
            seen[SERIALISING[frame.f_code]] += 1

    sys.setprofile(count)
    try:
        for _ in range(TOKENS):
            await append(block, "word ")
    finally:
        sys.setprofile(None)
    return seen


async def begun(open_stage: OpenStage) -> tuple[Stage, Actor, BlockWriter, str]:
    stage = await open_stage(Models({}))
    aria = await stage.kernel.principal("aria", PrincipalKind.SHELL)
    model = stage.kernel.open_session(aria, "turn")
    writer = BlockWriter(stage.kernel, stage.context, model)
    return stage, model, writer, await writer.create(BlockKind.TEXT, None)


async def test_streamed_token_is_neither_parsed_nor_dumped(open_stage: OpenStage) -> None:
    stage, _, writer, block = await begun(open_stage)
    assert not await serialisations(writer.append, block)
    await writer.finish(block, Status.DONE)
    assert stage.text(block) == TOKENS * "word "


async def test_token_by_a_call_is_parsed_and_dumped(open_stage: OpenStage) -> None:
    stage, model, _, block = await begun(open_stage)

    async def call(block: str, text: str) -> None:
        params = {"block_id": block, "text": text, "stream": True}
        await stage.kernel.call(model, "block.append", params)

    assert await serialisations(call, block) == {"parse": TOKENS, "dump": TOKENS}


async def demote(stage: Stage, writer: BlockWriter, block: str) -> None:
    await stage.kernel.members.give_role(writer.actor.principal, AccessRole.VIEWER)


async def kick(stage: Stage, writer: BlockWriter, block: str) -> None:
    await stage.call("kernel.kick", principal="aria")


async def finish(stage: Stage, writer: BlockWriter, block: str) -> None:
    await writer.finish(block, Status.DONE)


async def fill(stage: Stage, writer: BlockWriter, block: str) -> None:
    await writer.append(block, "x" * stage.context.limits.block_code_points)


async def close(stage: Stage, writer: BlockWriter, block: str) -> None:
    await stage.kernel.close()


@pytest.mark.parametrize(
    ("before", "text", "code"),
    [
        (demote, "word", ErrorCode.PERMISSION_DENIED),
        (kick, "word", ErrorCode.PERMISSION_DENIED),
        (finish, "word", ErrorCode.INVALID_TRANSITION),
        (fill, "word", ErrorCode.TOO_LARGE),
        (close, "word", ErrorCode.NO_KERNEL),
        (None, "\ud83d", ErrorCode.INVALID_PARAMS),
    ],
)
async def test_streamed_token_that_may_not_be_written_is_refused(
    open_stage: OpenStage,
    before: Callable[[Stage, BlockWriter, str], Awaitable[None]] | None,
    text: str,
    code: ErrorCode,
) -> None:
    stage, _, writer, block = await begun(open_stage)
    if before is not None:
        await before(stage, writer, block)
    with raises(code):
        await writer.append(block, text)


async def test_streamed_token_into_a_draft_of_another_is_refused(open_stage: OpenStage) -> None:
    stage, _, writer, _ = await begun(open_stage)
    with raises(ErrorCode.PERMISSION_DENIED):
        await writer.append(await stage.draft("Mine."), "word")
