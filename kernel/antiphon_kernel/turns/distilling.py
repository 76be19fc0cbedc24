"""`drift.distill`: a summary of blocks of one context in another, by a model or by quoting them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Final

from pydantic import Field

from antiphon_kernel.contexts import CommitHandle, Context, WriterPresence
from antiphon_kernel.contexts.lineage import Changes, TakenBlocks, write_drift
from antiphon_kernel.conversation import current_layout
from antiphon_kernel.kernel import Call, DeliveredDrift, Kernel
from antiphon_kernel.layout import LayoutItem, ModelRequest, visible
from antiphon_kernel.layout.distillation import (
    INSTRUCTIONS,
    distilled_items,
    name_blocks,
    numbered_text,
    quoted_text,
)
from antiphon_kernel.messages import TextBlock, UserMessage, estimate_text
from antiphon_kernel.providers import (
    ModelPrompt,
    ProviderError,
    RoundRequest,
    TextDelta,
    TokenUsage,
    Usage,
)
from antiphon_kernel.registry import Params, tool
from antiphon_kernel.storage import DriftRow
from antiphon_kernel.text.splice_diff import plan_difference
from antiphon_kernel.tools._common import block_in
from antiphon_kernel.tools.drift import (
    ERRORS,
    DeliveredResult,
    check_open,
    check_target,
    lineage_of,
    wakes,
)
from antiphon_kernel.tools.drift_merge import MOST_BLOCKS
from antiphon_kernel.turns.block_writer import BlockWriter
from antiphon_kernel.turns.prompt_reading import AnsweringModel
from antiphon_kernel.turns.runner import runner_of
from antiphon_kernel.types.block_metadata import USAGE
from antiphon_kernel.types.drift import DriftOrigin
from antiphon_kernel.types.enums import DriftKind, Status
from antiphon_kernel.types.errors import AntiphonError, ErrorCode, invalid_params
from antiphon_kernel.types.json_validation import replace_half_characters
from antiphon_kernel.types.records import Actor
from antiphon_kernel.types.roles import Permission

_QUOTED: Final = 4_000
"""Most tokens of a summary that quotes."""

_WINDOW: Final = 32_000
"""Tokens that a model is given if its limits are not known."""

_FILLED: Final = 0.9
"""Part of a model's room that is used, since tokens are estimated."""

_log = logging.getLogger(__name__)


class DistillParams(Params):
    """A context, and where its summary goes."""

    source: str
    """Label or id."""
    blocks: list[str] | None = Field(default=None, min_length=1, max_length=MOST_BLOCKS)
    """Blocks of it; all that models read if absent."""
    context: str | None = None
    """The context that the summary goes to, which may be the source."""
    model: str | None = None
    """Name of the model that writes it; if absent, the beginnings of what was said are quoted."""
    wake: bool | None = None
    """Whether the models of the target answer it; true of people, false of models if absent."""


@tool("drift.distill", needs=Permission.WRITE, errors=ERRORS)
async def distill(call: Call, params: DistillParams) -> DeliveredResult:
    """Sum up a context, or blocks of it, in one block of a context that says where from.

    Each paragraph ends with the names of the blocks that it rests on. What a model writes is
    streamed into the block, and people may edit it meanwhile. Answers when it is written.
    """
    source, target = await call.context(params.source), await call.context(params.context)
    if source is not target:
        check_target(source, target)
    check_open(target.row)
    named = {await block_in(call, source, one) for one in params.blocks or ()}
    layout = await current_layout(source)
    read = (item for item in layout.items if item.block.id in named)
    items = distilled_items(read if named else visible(layout).items)
    if not items:
        raise invalid_params(
            f"Nothing of context {source.label} can be summed up: it has no text.", field="source"
        )
    blocks = tuple(item.block.id for item in items)
    names = [source.block_name(one) for one in blocks]
    kernel = call.kernel
    origin = DriftOrigin(
        kernel.ids.uuid7(),
        *(source.id, source.label, source.seq, call.actor.principal.username),
        blocks[:MOST_BLOCKS],
        lineage_of(source, blocks),
        wakes(call, params.wake),
    )
    made = Distillation(kernel, source, target, origin, items, names)
    await source.wait_persisted()
    if params.model is None:
        await made.deliver(call.actor, Changes(quoted_text(items, names, _QUOTED))).saved()
        made.announce(call.actor)
    else:
        runner = runner_of(kernel)
        runner.models.check_known(params.model)
        model = await runner.model(params.model)
        job = runner.start_writing(target, model, call.actor, made.write)
        await asyncio.wait({job.task})
        if made.row is None and not job.task.cancelled():
            job.task.result()
    return made.result()


@dataclass(eq=False)
class Distillation:
    """A summary, from being asked for to its end."""

    kernel: Kernel
    source: Context
    target: Context
    origin: DriftOrigin
    items: Sequence[LayoutItem]
    names: Sequence[str]
    """Names of their blocks."""
    row: DriftRow | None = None
    """Its row in the journal, once it is at the target."""

    def deliver(self, actor: Actor, changes: Changes) -> CommitHandle:
        """Create its block."""
        kernel, now = self.kernel, self.kernel.clock.now_ms()
        source, target = self.source.row, self.target.row
        numbers = source.number, self.origin.version, target.number
        row = DriftRow(self.origin.id, DriftKind.DISTILL, *numbers, actor.principal.id, now)
        taken = TakenBlocks(source, self.source.document, (), {})
        find = kernel.members.find
        written = write_drift(self.target, actor, row, self.origin, taken, find, now, changes)
        self.row = written.row
        kernel.drifts.know(written.row)
        return written.handle

    async def write(
        self,
        model: AnsweringModel,
        asked: BlockWriter,
        writer: BlockWriter,
        presence: WriterPresence,
    ) -> None:
        """Let a model write it, in a block of whoever asked for it."""
        await self.deliver(asked.actor, Changes(status=Status.RUNNING)).saved()
        assert self.row is not None
        block = self.row.block
        asked.adopt(block)
        self.kernel.writers.writes(writer.actor, block)
        presence.write_in(block)
        try:
            failure = await self._stream(model, writer, block, asked.actor.principal.id)
        except Exception as error:  # noqa: BLE001  whatever it is, everybody is to see it
            _log.exception("a summary of %s was not written", self.source.label)
            failure = error.message if isinstance(error, AntiphonError) else repr(error)
        document = self.target.document
        if document.header(block).status != Status.RUNNING:
            return  # somebody else has ended it
        text = document.text(block)
        if failure is not None:
            outcome = f"The summary was not written to its end: {failure}"
            says = BlockWriter(self.kernel, self.target, self.kernel.system)
            await says.append(block, f"\n\n{outcome}" if text else outcome)
            await asked.finish(block, Status.ERROR, is_error=True)
        else:
            named, unknown = name_blocks(text, self.names)

            def change() -> None:
                for one in plan_difference(text, named):
                    document.splice(block, one.offset, one.deleted, one.inserted)

            self.target.write(writer.actor, "splice", change, blocks=[block])
            await asked.finish(block, Status.DONE)
            self.announce(asked.actor)
            if not unknown:
                return
            numbers = ", ".join(map(str, unknown))
            outcome = f"{model.name} has named blocks that it was not given: {numbers}."
        self.row = replace(self.kernel.drifts[self.row.id], outcome=outcome)
        await self.kernel.drifts.store(self.row)

    async def _stream(
        self, model: AnsweringModel, writer: BlockWriter, block: str, asker: str
    ) -> str | None:
        """Write what the model says into the block; return why it is not all, if it is not."""
        context, principal = self.target, writer.actor.principal.id
        reader = await runner_of(self.kernel).reader(context, model, principal)
        instructions, factor = estimate_text(INSTRUCTIONS), model.calibration.factor
        room = (reader.budget or _WINDOW) / factor - instructions
        text = numbered_text(self.items, int(room * _FILLED))
        conversation = ModelRequest((UserMessage((TextBlock(text),)),))
        estimate = int(factor * (instructions + estimate_text(text)))
        answer = reader.answer_tokens(estimate)
        prompt = ModelPrompt(conversation, INSTRUCTIONS, max_tokens=answer)

        async def read() -> ModelPrompt:
            return prompt

        async with aclosing(model.provider.stream(RoundRequest(context.id, 0, read))) as events:
            async for event in events:
                match event:
                    case TextDelta(text):
                        await writer.append(block, replace_half_characters(text))
                    case Usage():
                        price = model.config.price if model.config is not None else None
                        used = TokenUsage.of(event, price)
                        writer.describe(block, metadata={USAGE: used.as_json()})
                        await self.kernel.usage.add(context.id, principal, asker, used)
                    case ProviderError(message):
                        return message
        context.appends.flush(block)
        return None if context.document.length(block) else "the model has answered nothing."

    def announce(self, actor: Actor) -> None:
        """Let models answer it, if they are to."""
        assert self.row is not None
        block = self.row.block
        text, wakes = self.target.document.text(block), self.origin.wakes
        self.kernel.drifted.notify(DeliveredDrift(self.target, block, text, actor, wakes))

    def result(self) -> DeliveredResult:
        """Return what has come of it.

        Raises:
            AntiphonError: invalid_transition if it was stopped before there was a block.
        """
        row, document = self.row, self.target.document
        if row is None:
            raise AntiphonError(
                ErrorCode.INVALID_TRANSITION,
                "The summary was stopped before it began: ask for it again.",
            )
        if document.header(row.block).status != Status.DONE and not row.outcome:
            row = replace(row, outcome="It was stopped while it was written.")
        return DeliveredResult.of(self.kernel, row)
