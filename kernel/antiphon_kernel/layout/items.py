"""Layout of a context: its blocks as plain values, by turns and rounds, in order."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, NamedTuple

from antiphon_kernel.layout.paths import BlockPath
from antiphon_kernel.types.block_metadata import SUMMARY_TYPE, stands_for_earlier
from antiphon_kernel.types.enums import BlockKind, PrincipalKind, Role, Status
from antiphon_kernel.types.frozen_json import JsonObject
from antiphon_kernel.types.lazy_fields import LazyFields

_TERMINAL: Final = (Status.DONE, Status.ERROR)


@dataclass(frozen=True, slots=True)
class BlockAuthor:
    """Author of a block: who created it."""

    id: str
    name: str
    kind: PrincipalKind | str = PrincipalKind.HUMAN


class LayoutBlock(NamedTuple):
    """One block, with its text as it reads now. Drafts are not among them."""

    id: str
    author: BlockAuthor
    created: int
    """Milliseconds since the epoch."""
    text: str
    parameters: JsonObject
    """Input of a tool call."""
    role: Role | str
    kind: BlockKind | str
    status: Status | str = Status.DONE
    parent: str | None = None
    """Id of the block it answers."""
    excluded: bool = False
    tool_name: str | None = None
    tool_call_id: str | None = None
    """The id that ties a result to its call."""
    exit_code: int | None = None
    is_error: bool = False
    truncated: bool = False
    stop_reason: str | None = None
    file: str | None = None
    """Path of the file it is about."""
    media_type: str | None = None
    """Type of the file that was attached with it."""
    blob: str | None = None
    """SHA-256 of the bytes of that file."""
    blob_bytes: int | None = None
    metadata: Mapping[str, Any] = {}

    @property
    def is_finished(self) -> bool:
        """Return whether nobody is expected to go on with it."""
        return self.status in _TERMINAL

    @property
    def is_call(self) -> bool:
        return self.kind == BlockKind.TOOL_CALL

    @property
    def is_result(self) -> bool:
        return self.kind == BlockKind.TOOL_RESULT

    @property
    def is_summary(self) -> bool:
        """Return whether models read from here on: a finished summary that says something."""
        return stands_for_earlier(self, self.text)

    @property
    def begins_turn(self) -> bool:
        """Return whether it is a submission, or a prompt of the kernel's own."""
        return (
            (
                self.role == Role.USER
                or (self.role == Role.SYSTEM and self.author.kind == PrincipalKind.SYSTEM)
            )
            and self.kind == BlockKind.TEXT
            and self.is_finished
            and self.metadata.get("type") != SUMMARY_TYPE
        )


class ItemType(StrEnum):
    """Type of an item, by which contributions are filtered."""

    TURN_HEADER = "turn.header"
    USER_PROMPT = "user.prompt"
    USER_ATTACHMENT = "user.attachment"
    USER_MESSAGE = "user.message"
    ASSISTANT_COMPLETION = "assistant.completion"
    ASSISTANT_ERROR = "assistant.error"
    NOTES = "react.notes"
    THINKING = "react.thinking"
    TOOL_CALL = "react.tool.call"
    TOOL_RESULT = "react.tool.result"
    SYSTEM_MESSAGE = "system.message"
    FILE = "file"
    DRIFT = "drift"
    OTHER = "block"
    SUMMARY = "conv.range.summary"

    @property
    def is_said(self) -> bool:
        """Return whether it is what people have said."""
        return self in _SAID

    @property
    def is_contribution(self) -> bool:
        """Return whether filters apply: to all but what people have said, and the frame."""
        return self not in _SAID and self not in (ItemType.TURN_HEADER, ItemType.SUMMARY)


_SAID = (ItemType.USER_PROMPT, ItemType.USER_ATTACHMENT, ItemType.USER_MESSAGE)


class LayoutItem(NamedTuple):
    """One item of the layout: a block in its place, or the header of a turn."""

    type: ItemType
    turn: str
    """Id of its turn."""
    block: LayoutBlock
    """The block; of a header the one that begins the turn."""
    path: BlockPath | None
    """None of a header."""
    round: str | None = None
    """Key of its round: the id of the call, or the turn and author whose last texts they are."""
    tool: str | None = None
    """Name of the tool that is called; of a call and its results."""

    @property
    def is_block(self) -> bool:
        return self.type is not ItemType.TURN_HEADER

    @property
    def is_exchange(self) -> bool:
        """Return whether it is a call or a result, which are read together or not at all."""
        return self.type in (ItemType.TOOL_CALL, ItemType.TOOL_RESULT)


@dataclass(frozen=True, slots=True)
class LayoutTurn(LazyFields):
    """One turn: its header, then the prompt, attachments, and what came of it."""

    id: str
    items: tuple[LayoutItem, ...]
    """The header first."""
    blocks: tuple[LayoutBlock, ...] = field(default=(), repr=False, compare=False)
    """All its blocks in document order."""
    whole: LayoutTurn | None = field(default=None, repr=False, compare=False)
    """The turn of which these items are all that is read; None if it is whole, or cut."""
    authors: tuple[BlockAuthor, ...] = field(init=False, repr=False, compare=False)
    """The authors of its items but summaries, each once."""
    summary: LayoutItem | None = field(init=False, repr=False, compare=False)
    """Its last summary from which models may read; None if it has none."""
    parents_elsewhere: frozenset[str] = field(init=False, repr=False, compare=False)
    """Ids of the blocks that its own answer and that are not in it."""

    @property
    def opening(self) -> LayoutBlock:
        """The block that begins it."""
        return self.items[0].block

    @property
    def prompt(self) -> LayoutItem | None:
        """The message that began it; None if it begins without one, or that is not shown."""
        return next((item for item in self.items if item.type is ItemType.USER_PROMPT), None)

    def _make_authors(self) -> tuple[BlockAuthor, ...]:
        blocks = [item.block for item in self.items if item.type is not ItemType.SUMMARY]
        return tuple({block.author.id: block.author for block in blocks}.values())

    def _make_summary(self) -> LayoutItem | None:
        summaries = (item for item in reversed(self.items) if item.type is ItemType.SUMMARY)
        return next((item for item in summaries if item.block.is_summary), None)

    def _make_parents_elsewhere(self) -> frozenset[str]:
        answering = [block for block in self.blocks if not block.begins_turn]
        parents = {block.parent for block in answering if block.parent is not None}
        return frozenset(parents - {block.id for block in self.blocks})


@dataclass(frozen=True, slots=True)
class Layout:
    """Turns in order, oldest first, behind the summary of what came before them."""

    turns: tuple[LayoutTurn, ...] = ()
    summary: LayoutItem | None = None
    """The summary that models read from; None if they read from the beginning."""

    @property
    def authors(self) -> Collection[BlockAuthor]:
        """Everybody who has written, each once."""
        return {one.id: one for turn in self.turns for one in turn.authors}.values()

    @property
    def items(self) -> list[LayoutItem]:
        """Every item in the order in which it is read."""
        first = [self.summary] if self.summary is not None else []
        return [*first, *(item for turn in self.turns for item in turn.items)]


def rounds_of(items: Sequence[LayoutItem]) -> dict[str, list[int]]:
    """Return the indices of the items of each round, in the order of their first items."""
    return group_indices(item.round for item in items)


def group_indices(keys: Iterable[str | None]) -> dict[str, list[int]]:
    """Return the indices at which each key stands, in the order of the first ones."""
    found: dict[str, list[int]] = {}
    for index, key in enumerate(keys):
        if key is not None:
            found.setdefault(key, []).append(index)
    return found
