"""Prompt of one round: what the model reads, within what it takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Final

from antiphon_kernel.contexts import Context
from antiphon_kernel.conversation import current_layout, layout_of, read_announcement, shown_sources
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.layout import (
    Announcement,
    CompactionError,
    LayoutReading,
    ModelRequest,
    tail_texts,
    weigh,
)
from antiphon_kernel.messages import (
    Calibration,
    DocumentBlock,
    ImageBlock,
    clamp_max_tokens,
    estimate_text,
    estimate_tools,
)
from antiphon_kernel.providers.model_config import ModelConfig
from antiphon_kernel.providers.provider import ModelPrompt, Provider, ToolDefinition
from antiphon_kernel.tools.compaction import write_summary
from antiphon_kernel.tools.file_references import file_changes, read_file_references
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.frozen_json import JsonObject
from antiphon_kernel.types.ids import ContextId
from antiphon_kernel.types.memory import without_collection


@dataclass(eq=False, slots=True)
class AnsweringModel:
    """One model that turns are played with."""

    provider: Provider
    config: ModelConfig
    calibration: Calibration = field(default_factory=Calibration)
    """Correction of the estimate of tokens, by what its provider has reported."""
    looked: dict[ContextId, int] = field(default_factory=dict)
    """For each context, its version when the model last read it."""
    files_read: dict[ContextId, dict[str, int | None]] = field(default_factory=dict)
    """For each context, the files that the model has read there, by path, with the versions as far
    as they are known."""


_ANSWER_SHARE: Final = 4
"""A fourth of the window at most is kept free for the answer."""

_SMALLER: Final = 0.75
"""Share of a request that is kept when the provider has refused it."""

_COMPACTIONS: Final = 2
"""How often a context is compacted before one request."""

_ATTEMPTS: Final = 3
"""How often a budget is lowered until there is something to hide."""

_DEFAULT_ANSWER: Final = 8192
"""Tokens of an answer of a model of which no limits are known."""


@dataclass(frozen=True)
class ReadPrompt:
    """A prompt with its size, which is counted when it is first asked for."""

    prompt: ModelPrompt
    reading: LayoutReading
    version: int
    """The version of the context that it shows."""
    calibration: Calibration

    @cached_property
    def raw_estimate(self) -> int:
        """Tokens as the estimator counts them."""
        of_messages = sum(self.reading.message_tokens())
        return of_messages + instruction_tokens(self.prompt.system, self.prompt.tools)

    @cached_property
    def estimate(self) -> int:
        """Tokens, corrected for the model."""
        return self.calibration.apply(self.raw_estimate)

    @property
    def blocks(self) -> int:
        """Return how many blocks are in it."""
        return sum(item.is_block for item in self.reading.items)


@lru_cache(16)
def instruction_tokens(system: str, tools: tuple[ToolDefinition, ...]) -> int:
    """Return the estimate of what goes with every request: instructions and tools."""
    schemas = [
        JsonObject({"name": one.name, "description": one.description, "parameters": one.parameters})
        for one in tools
    ]
    return estimate_text(system) + estimate_tools(schemas)


@dataclass(eq=False, slots=True)
class PromptReader:
    """Reads a context for one turn of one model."""

    kernel: Kernel
    context: Context
    model: AnsweringModel
    principal: str
    """Id of the model's principal."""
    prompt: str | None
    """The block that is answered; the last message if None."""
    system: str
    tools: tuple[ToolDefinition, ...]
    most_tokens: int | None
    """Tokens that a request may have, if that is less than the model takes."""
    announced: Callable[[Announcement], Announcement] = lambda announcement: announcement
    """Completes an announcement."""

    @property
    def budget(self) -> int | None:
        """Return the tokens that a request may have; None if that is not known."""
        window = self.model.config.window
        if window is None:
            return self.most_tokens
        most = window.input if window.total is None else min(window.input, window.total)
        if not window.separate or window.total is not None:
            most -= min(self.model.config.max_tokens or window.output, most // _ANSWER_SHARE)
        return most if self.most_tokens is None else min(most, self.most_tokens)

    async def read(self) -> ReadPrompt:
        """Return the prompt as it is now, without anything done about its size."""
        context = self.context
        await current_layout(context)
        reader = self.kernel.members.find(self.principal)
        shown = await read_file_references(self.kernel, layout_of(context), reader)
        known = self.model.files_read.setdefault(context.id, {})
        known.update({path: version for path, version in shown.items() if path not in known})
        version, is_plain = context.seq, not self.tools
        reading = layout_of(context).read(self.principal, live=self._live(), is_plain=is_plain)
        if not is_plain:
            reading = replace(reading, tail=await self._tail(reading))
        with without_collection():
            conversation = reading.request()
        files = await self._files(conversation)
        most = self.model.config.max_tokens or _DEFAULT_ANSWER
        prompt = ModelPrompt(conversation, self.system, self.tools, files, most)
        read = ReadPrompt(prompt, reading, version, self.model.calibration)
        if self.model.config.window is None:
            return read
        return replace(read, prompt=replace(prompt, max_tokens=self.answer_tokens(read.estimate)))

    async def _tail(self, reading: LayoutReading) -> tuple[str, ...]:
        context = self.context
        announcement = await read_announcement(
            context,
            self.principal,
            reading.items,
            self.kernel.clock.now_ms(),
            self.model.looked.get(context.id),
        )
        files = await file_changes(self.kernel, reading.items)
        announcement = self.announced(replace(announcement, files=files))
        return tail_texts(shown_sources(context.document), announcement)

    async def read_within(self) -> ReadPrompt:
        """Return the prompt as it is now, compacted first if it is larger than the model takes.

        Raises:
            AntiphonError: context_too_long, before anything is sent, if that is not enough.
        """
        read, budget = await self.read(), self.budget
        if budget is None or read.estimate <= budget:
            return read
        for _ in range(_COMPACTIONS):
            await self.compact(read)
            read = await self.read()
            if read.estimate <= budget:
                return read
        raise self._too_long(read)

    async def read_compacted(self) -> ReadPrompt:
        """Return the prompt after a compaction, because the last one did not fit, unnoticed.

        Raises:
            AntiphonError: context_too_long.
        """
        await self.compact(await self.read(), _SMALLER)
        return await self.read_within()

    async def read_smaller(self, refused: ReadPrompt) -> ReadPrompt:
        """Return a prompt that is smaller than one which the provider has refused.

        Raises:
            AntiphonError: context_too_long, if there is none.
        """
        await self.compact(refused, _SMALLER)
        read = await self.read()
        if read.estimate >= refused.estimate or read.blocks >= refused.blocks:
            raise self._too_long(read)
        return read

    async def compact(self, read: ReadPrompt, share: float = 1.0) -> None:
        """Write a summary, so that a prompt comes under the budget and a share of its size.

        Raises:
            AntiphonError: context_too_long, if it cannot be made shorter.
        """
        reading, aim = read.reading, int(read.estimate * share)
        weights = sum(weigh(item, reading.reader) for item in reading.items)
        allowed = int(min(aim, self.budget or aim) / self.model.calibration.factor)
        try:
            for _ in range(_ATTEMPTS):
                written = await write_summary(
                    self.kernel,
                    self.context,
                    self.kernel.system,
                    budget=allowed,
                    reserved=max(0, read.raw_estimate - weights),
                    live=self._live(),
                )
                if written is not None:
                    return
                allowed = int(allowed * _SMALLER)
        except CompactionError as error:
            raise self._too_long(read) from error

    def _live(self) -> str | None:
        """Return the turn of the block that is answered; None if the last message is."""
        return layout_of(self.context).turn_of(self.prompt) if self.prompt is not None else None

    def _too_long(self, read: ReadPrompt) -> AntiphonError:
        """Return the error of a prompt that is not sent."""
        limit, found = self.budget, read.estimate
        if limit is not None and limit >= found:
            limit = None
        most = "the model takes fewer" if limit is None else f"at most {limit:,} are sent"
        return AntiphonError(
            ErrorCode.CONTEXT_TOO_LONG,
            f"The request has about {found:,} tokens, and {most}. Shorten the context, or hide"
            " blocks from the model.",
            limit=limit,
            found=found,
        )

    def answer_tokens(self, estimate: int) -> int:
        """Return the tokens that an answer to a request may have, given those of the request."""
        window = self.model.config.window
        if window is None:
            return self.model.config.max_tokens or _DEFAULT_ANSWER
        return clamp_max_tokens(self.model.config.max_tokens or window.output, window, estimate)

    async def _files(self, conversation: ModelRequest) -> Mapping[str, bytes]:
        files: dict[str, bytes] = {}
        for message in conversation.messages:
            for block in message.content:
                if isinstance(block, ImageBlock | DocumentBlock) and block.hash not in files:
                    data = await self.kernel.journal.blob(block.hash)
                    if data is not None:
                        files[block.hash] = data
        return files
