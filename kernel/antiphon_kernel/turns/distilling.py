"""`drift.distill`: a summary of blocks of one context in another, by a model or by quoting them."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from pydantic import Field

from antiphon_kernel.contexts import Context, Submission, WriterPresence
from antiphon_kernel.contexts.lineage.drifting import Changes, write_drift
from antiphon_kernel.conversation import current_layout
from antiphon_kernel.kernel import Call, Kernel
from antiphon_kernel.layout import ItemType, LayoutItem, ModelRequest, visible
from antiphon_kernel.layout.summary import head_and_tail, quote_turns
from antiphon_kernel.layout.text_forms import block_title
from antiphon_kernel.messages import TextBlock, UserMessage, estimate_text
from antiphon_kernel.providers import (
    ModelPrompt,
    ProviderError,
    RoundRequest,
    TextDelta,
    TokenUsage,
)
from antiphon_kernel.registry import Params, tool
from antiphon_kernel.storage import DriftRow
from antiphon_kernel.text.splice_diff import plan_difference
from antiphon_kernel.tools._common import block_in
from antiphon_kernel.tools.drift import ERRORS, DeliveredResult, check_open, lineage_of, wakes
from antiphon_kernel.tools.drift_merge import MOST_BLOCKS
from antiphon_kernel.turns.asker import Asker
from antiphon_kernel.turns.block_writer import BlockWriter
from antiphon_kernel.turns.prompt_reading import AnsweringModel
from antiphon_kernel.turns.runner import Job, runner_of
from antiphon_kernel.types.drift import DriftOrigin
from antiphon_kernel.types.enums import DriftKind, Status
from antiphon_kernel.types.errors import invalid_params
from antiphon_kernel.types.ids import PrincipalId
from antiphon_kernel.types.json_validation import replace_half_characters
from antiphon_kernel.types.records import Actor
from antiphon_kernel.types.roles import Permission

INSTRUCTIONS: Final = """\
You sum up numbered blocks of a conversation for people and models who go on with the work in
another one. Keep what was found, decided and left open; names, paths, numbers and commands stay as
they are. Write short paragraphs without headings, and nothing else. End each paragraph with the
numbers of the blocks that it rests on, in brackets: [2, 5]"""

_QUOTED: Final = 4_000
"""Most tokens of a summary that quotes."""

_WINDOW: Final = 32_000
"""Tokens that a model is given if its limits are not known."""

_FILLED: Final = 0.9
"""Part of a model's room that is used, since tokens are estimated."""

_SHORT: Final = 16
"""Tokens up to which a block is not shortened."""

_NUMBERS: Final = re.compile(r"(?<!\w)\[(\d+(?:, *\d+)*)\](?=[\[\]\d, ]*\.?$)", re.MULTILINE)
"""Numbers of blocks at the end of a line."""

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
    """Write a summary of a context, or of blocks of it, into a context, with its origin.

    Each paragraph ends with the names of the blocks that it rests on. What a model writes is
    streamed into the block, and people may edit it meanwhile. Answers when it is written.
    """
    source, target = await call.context(params.source), await call.context(params.context)
    check_open(target.row)
    named = {await block_in(call, source, one) for one in params.blocks or ()}
    layout = await current_layout(source)
    items = [
        item
        for item in (layout if named else visible(layout)).items
        if item.is_block
        and (item.block.id in named or not named)
        and item.type not in (ItemType.THINKING, ItemType.ASSISTANT_ERROR)
        and (item.block.text.strip() or item.block.is_drift)
    ]
    if not items:
        raise invalid_params(
            f"Nothing of context {source.label} can be summed up: it has no text.", field="source"
        )
    names = {item.block.id: source.block_name(item.block.id) for item in items}
    kernel, actor = call.kernel, call.actor
    who, now, version = actor.principal, kernel.clock.now_ms(), source.seq
    origin = DriftOrigin(
        kernel.ids.uuid7(),
        *(source.id, source.label, version, who.username),
        tuple(names)[:MOST_BLOCKS],
        lineage_of(source, [*names]),
        wakes(call, params.wake),
    )
    numbers = source.row.number, version, target.row.number
    row = DriftRow(origin.id, DriftKind.DISTILL, *numbers, who.id, now)
    model, changes = None, Changes(status=Status.RUNNING)
    if params.model is None:
        changes = Changes("\n\n".join(quote_turns(items, _QUOTED, names)))
    else:
        runner = runner_of(kernel)
        runner.models.check_known(params.model)
        model = await runner.models.open(params.model)
    await source.wait_persisted()
    written = write_drift(target, actor, row, origin, kernel.members.find, now, changes)
    kernel.drifts.know(written.row)
    await written.handle.saved()
    made = Distillation(kernel, target, written.row.block, origin.wakes, items, [*names.values()])
    if model is None:
        made.announce(actor)
    else:
        asker = Asker(kernel, actor, Permission.WRITE)
        job = Job(target.id, model.config.name, model=model.config.name)
        write = partial(made.write, model, asker.session, job)
        runner_of(kernel).start_writing(target, job, asker, write)
        await asyncio.wait({job.task})
    return DeliveredResult.of(kernel, replace(written.row, outcome=made.outcome))


@dataclass(eq=False)
class Distillation:
    """A summary that a model writes in the block of a drift."""

    kernel: Kernel
    context: Context
    block: str
    wakes: bool
    items: Sequence[LayoutItem]
    names: Sequence[str]
    """Names of their blocks."""
    outcome: str = ""
    """Why it was not written to its end."""

    async def write(
        self,
        model: AnsweringModel,
        asker: Actor,
        job: Job,
        writer: BlockWriter,
        presence: WriterPresence,
    ) -> None:
        """Write it, and end its block."""
        block, document = self.block, self.context.document
        self.kernel.writers.writes(writer.actor, block)
        presence.write_in(block)
        self.outcome = "It was stopped while it was written."
        try:
            failure = await self._stream(model, writer, asker.principal.id)
        except asyncio.CancelledError:
            stop = self.kernel.writers.interrupt
            stop(self.context, {block}.__contains__, stopped_by=job.stopped_by)
            raise
        except Exception as error:  # noqa: BLE001  whatever it is, everybody is to see it
            _log.exception("the summary %s was not written", block)
            failure = str(error) or type(error).__name__
        self.context.appends.flush(block)
        if document.header(block).status != Status.RUNNING:
            return  # somebody else has ended it
        text = document.text(block)
        failure = failure or ("" if text else "the model has answered nothing.")
        self.outcome = failure and f"The summary was not written to its end: {failure}"
        after = f"{text}\n\n{self.outcome}".strip() if failure else name_blocks(text, self.names)

        def change() -> None:
            for one in plan_difference(text, after):
                document.splice(block, one.offset, one.deleted, one.inserted)
            status = Status.ERROR if failure else Status.DONE
            document.set_fields(block, status=status, is_error=bool(failure))

        # The block is not the model's own, so it ends it by no call.
        self.context.write(writer.actor, "status", change, blocks=[block], undo=None)
        if not failure:
            self.announce(asker)

    async def _stream(self, model: AnsweringModel, writer: BlockWriter, asker: PrincipalId) -> str:
        """Write what the model says into the block; return its provider's error if any."""
        context = self.context
        reader = await runner_of(self.kernel).reader(context, model, writer.actor.principal.id)
        budget = reader.budget or _WINDOW
        room = int(budget / model.calibration.factor * _FILLED) - estimate_text(INSTRUCTIONS)
        conversation = ModelRequest((UserMessage((TextBlock(numbered_text(self.items, room)),)),))
        most = reader.answer_tokens(budget)
        prompt = ModelPrompt(conversation, INSTRUCTIONS, max_tokens=most)
        async with aclosing(model.provider.stream(RoundRequest(context.id, 0, prompt))) as events:
            async for event in events:
                match event:
                    case TextDelta(text):
                        await writer.append(self.block, replace_half_characters(text))
                    case TokenUsage():
                        await writer.count(event.priced(model.config.price), asker, self.block)
                    case ProviderError(message):
                        return message
        return ""

    def announce(self, actor: Actor) -> None:
        """Let models answer it, if they are to."""
        if self.wakes:
            text = self.context.document.text(self.block)
            self.kernel.submissions.notify(Submission(self.context, self.block, text, actor))


def numbered_text(items: Sequence[LayoutItem], room: int) -> str:
    """Return items by number from 1, the longest shortened until all have room.

    Args:
        room: in tokens.
    """
    texts = [item.block.text.strip() for item in items]
    titles = [f"[{number}] {block_title(item.block)}:" for number, item in enumerate(items, 1)]
    sizes, left = list(map(estimate_text, texts)), room - estimate_text("\n\n".join(titles))
    most = max(sizes)
    while most > _SHORT and sum(min(size, most) for size in sizes) > left:
        most = most * 9 // 10
    shown = (head_and_tail(text, max(most, _SHORT)) for text in texts)
    return "\n\n".join(f"{title}\n{text}" for title, text in zip(titles, shown, strict=True))


def name_blocks(text: str, names: Sequence[str]) -> str:
    """Return a text with the names of blocks in the place of their numbers, which begin with 1."""
    known = {str(number): name for number, name in enumerate(names, 1)}

    def named(found: re.Match[str]) -> str:
        numbers = re.split(", *", found[1])
        return f"[{', '.join(known.get(one, one) for one in numbers)}]"

    return _NUMBERS.sub(named, text)
