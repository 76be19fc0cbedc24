"""Layout of a context: its blocks as plain values, grouped into turns and rounds, with paths."""

from __future__ import annotations

import operator
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from posixpath import basename
from typing import Any, Final, NamedTuple

from antiphon_kernel.layout.paths import (
    BlockPath,
    block_hash,
    file_path,
    is_path,
    summary_path,
    tool_call_id,
    turn_id,
)
from antiphon_kernel.types.block_metadata import SUMMARY_TYPE, stands_for_earlier
from antiphon_kernel.types.drift import drift_id, drift_origin, is_drifted
from antiphon_kernel.types.enums import BlockKind, PrincipalKind, Role, Status
from antiphon_kernel.types.frozen_json import JsonObject

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
    drift_kind: str | None = None
    excluded: bool = False
    tool_name: str | None = None
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
        return self.kind == BlockKind.TOOL_CALL and not is_drifted(self.metadata)

    @property
    def is_result(self) -> bool:
        return self.kind == BlockKind.TOOL_RESULT and not is_drifted(self.metadata)

    @property
    def is_drift(self) -> bool:
        """Return whether it is a drift, or part of one."""
        return self.kind == BlockKind.DRIFT or is_drifted(self.metadata)

    @property
    def is_summary(self) -> bool:
        """Return whether models read from here on: a finished summary that says something."""
        return stands_for_earlier(self, self.text)

    @property
    def begins_turn(self) -> bool:
        """Return whether it is a submission, a prompt of the kernel's, or a drift that wakes."""
        if self.is_drift:
            origin = drift_origin(self.metadata) if self.is_finished else None
            return origin is not None and origin.wakes
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


@dataclass(frozen=True)
class LayoutTurn:
    """One turn: its header, then the prompt, attachments, and what came of it."""

    id: str
    items: tuple[LayoutItem, ...]
    """The header first."""
    blocks: tuple[LayoutBlock, ...] = field(default=(), repr=False, compare=False)
    """All its blocks in document order."""
    whole: LayoutTurn | None = field(default=None, repr=False, compare=False)
    """The turn of which these items are all that is read; None if it is whole, or cut."""

    @cached_property
    def authors(self) -> tuple[BlockAuthor, ...]:
        """Return the authors of its items but summaries and drifts, each once."""
        blocks = [
            item.block
            for item in self.items
            if item.type is not ItemType.SUMMARY and not item.block.is_drift
        ]
        return tuple({block.author.id: block.author for block in blocks}.values())

    @cached_property
    def summary(self) -> LayoutItem | None:
        """Return its last summary from which models may read; None if it has none."""
        summaries = (item for item in reversed(self.items) if item.type is ItemType.SUMMARY)
        return next((item for item in summaries if item.block.is_summary), None)

    @cached_property
    def parents_elsewhere(self) -> frozenset[str]:
        """Return the ids of the blocks that its own answer and that are not in it."""
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


def arrange(blocks: Iterable[LayoutBlock], before: Layout | None = None) -> Layout:
    """Return every block in its turn and round, hidden ones and summaries included.

    Args:
        blocks: in document order, without drafts.
        before: an earlier layout, from which turns are taken whose blocks are the same objects.
    """
    stored = list(blocks)
    earlier = before.turns if before is not None else ()
    turns = _beginning(stored, earlier)
    behind = _collected(stored[sum([len(turn.blocks) for turn in turns]) :])
    if turns and _are_linked(turns, behind):
        turns, behind = [], _collected(stored)
    known = {turn.items[0].block.id: turn for turn in earlier[len(turns) :]}
    for collected in behind:
        turn = known.get(collected.opening.id)
        if (
            turn is None
            or len(turn.blocks) != len(collected.blocks)
            or not all(map(operator.is_, turn.blocks, collected.blocks))
        ):
            turn = _arranged(collected)
        turns.append(turn)
    return Layout(tuple(turns))


def _beginning(stored: Sequence[LayoutBlock], earlier: Iterable[LayoutTurn]) -> list[LayoutTurn]:
    """Return the earlier turns that a document begins with, without the last one.

    What stands behind them without a prompt would belong to that.
    """
    found: list[LayoutTurn] = []
    end = 0
    for turn in earlier:
        begin, end = end, end + len(turn.blocks)
        if end > len(stored) or not all(map(operator.is_, turn.blocks, stored[begin:end])):
            break
        found.append(turn)
    return found[:-1]


@dataclass(frozen=True, slots=True)
class _TurnBlocks:
    """A turn while its blocks are collected."""

    opening: LayoutBlock
    blocks: list[LayoutBlock]
    """In document order."""

    @property
    def prompt(self) -> LayoutBlock | None:
        return self.opening if self.opening.begins_turn else None


def _are_linked(turns: Sequence[LayoutTurn], behind: Sequence[_TurnBlocks]) -> bool:
    """Return whether blocks of turns, and of those behind them, belong together."""
    if behind and behind[0].prompt is None:
        return True
    blocks = {block.id: block for turn in behind for block in turn.blocks}
    for turn in turns:
        if not turn.parents_elsewhere.isdisjoint(blocks):
            return True
    answering = [block for block in blocks.values() if not block.begins_turn]
    parents = {block.parent for block in answering} - {None, *blocks}
    return bool(parents) and any(block.id in parents for turn in turns for block in turn.blocks)


def _collected(stored: Sequence[LayoutBlock]) -> list[_TurnBlocks]:
    """Return the turns in the order of their prompts, first the one that has none."""
    by_id = {block.id: block for block in stored}
    begun: dict[str, list[LayoutBlock]] = {}
    opening_of: dict[str | None, str | None] = {}
    latest: dict[str, str | None] = {}
    opening: str | None = None
    for block in stored:
        if block.begins_turn:
            opening = opening_of[block.id] = block.id
            begun[opening] = []
        latest[block.id] = opening
    without_prompt: list[LayoutBlock] = []
    for block in stored:
        if block.id not in opening_of:
            at = block
            chain = {at.id: None}
            while at.parent in by_id and at.parent not in opening_of and at.parent not in chain:
                at = by_id[at.parent]
                chain[at.id] = None
            opening = opening_of.get(at.parent, latest[at.id])
            opening_of.update(dict.fromkeys(chain, opening))
        opening = opening_of[block.id]
        (without_prompt if opening is None else begun[opening]).append(block)
    turns = [_TurnBlocks(by_id[opening], blocks) for opening, blocks in begun.items()]
    return [_TurnBlocks(without_prompt[0], without_prompt), *turns] if without_prompt else turns


def _ordered(turn: str, collected: _TurnBlocks) -> list[LayoutItem]:
    """Return the items of a turn without its header, in order and with their rounds.

    The paths are not yet told apart.
    """
    prompt = collected.prompt
    by_id = {block.id: block for block in collected.blocks}
    first: list[LayoutItem] = []
    progress: list[LayoutBlock] = []
    results: dict[str, list[LayoutBlock]] = {}
    drift = drift_id(prompt.metadata) if prompt is not None else None
    for block in collected.blocks:
        if block is prompt:
            path = BlockPath("ar", turn, "user.prompt")
            first.insert(0, LayoutItem(ItemType.USER_PROMPT, turn, block, path))
        elif drift is not None and drift_id(block.metadata) == drift:
            first.append(_contribution(turn, block)._replace(type=ItemType.USER_ATTACHMENT))
        elif (
            prompt is not None
            and block.kind == BlockKind.FILE
            and block.role == Role.USER
            and block.parent == prompt.id
        ):
            name = basename(block.file or "") or block_hash(block.id)
            path = file_path(turn, "user.attachments", name)
            first.append(LayoutItem(ItemType.USER_ATTACHMENT, turn, block, path))
        elif block.is_result and (call := by_id.get(block.parent or "")) and call.is_call:
            results.setdefault(call.id, []).append(block)
        else:
            progress.append(block)
    return first + _in_rounds(turn, progress, results)


def _in_rounds(
    turn: str, progress: Iterable[LayoutBlock], results: Mapping[str, Sequence[LayoutBlock]]
) -> list[LayoutItem]:
    items: list[LayoutItem] = []
    open_texts: dict[str, list[int]] = {}
    for block in progress:
        if block.is_call:
            call = tool_call_id(block.id)
            for index in open_texts.pop(block.author.id, ()):
                items[index] = _contribution(turn, items[index].block, call)
            path = BlockPath("tc", turn, f"{call}.call")
            tool = block.tool_name
            items.append(LayoutItem(ItemType.TOOL_CALL, turn, block, path, call, tool))
            for result in results.get(block.id, ()):
                path = BlockPath("tc", turn, f"{call}.result")
                if result.file is not None and not is_path(result.file):
                    path = file_path(turn, "files", result.file)
                items.append(LayoutItem(ItemType.TOOL_RESULT, turn, result, path, call, tool))
        else:
            item = _contribution(turn, block)
            if item.round is not None:
                open_texts.setdefault(block.author.id, []).append(len(items))
            items.append(item)
    return items


def _contribution(turn: str, block: LayoutBlock, call: str | None = None) -> LayoutItem:
    """Return the item of what is neither a call nor a result.

    Args:
        call: the call that follows it in its round; only of a model's text or thinking.
    """
    match block.kind, block.role:
        case _ if block.is_drift:
            kind, name = ItemType.DRIFT, "drift"
        case BlockKind.TEXT, Role.SYSTEM if block.metadata.get("type") == SUMMARY_TYPE:
            return LayoutItem(ItemType.SUMMARY, turn, block, summary_path(turn))
        case BlockKind.FILE, _ if block.file:
            return LayoutItem(ItemType.FILE, turn, block, file_path(turn, "files", block.file))
        case BlockKind.TEXT, Role.USER:
            kind, name = ItemType.USER_MESSAGE, "user.message"
        case BlockKind.TEXT, Role.MODEL if call is not None:
            kind, name = ItemType.NOTES, "react.notes"
        case BlockKind.TEXT, Role.MODEL:
            kind, name = ItemType.ASSISTANT_COMPLETION, "assistant.completion"
        case BlockKind.THINKING, Role.MODEL:
            kind, name = ItemType.THINKING, "react.thinking"
        case BlockKind.TEXT, Role.SYSTEM:
            kind, name = ItemType.SYSTEM_MESSAGE, "system.message"
        case BlockKind.ERROR, _:
            kind, name = ItemType.ASSISTANT_ERROR, "assistant.error"
        case _:
            kind, name = ItemType.OTHER, "block"
    is_said = kind in (ItemType.NOTES, ItemType.ASSISTANT_COMPLETION, ItemType.THINKING)
    made_in = (call or f"{turn}.{block.author.id}") if is_said else None
    # It is older than the drift that it came with, and another one may bring an older one yet.
    suffix = block_hash(block.id) if is_drifted(block.metadata) else None
    name = f"{name}.{call}" if call is not None else name
    return LayoutItem(kind, turn, block, BlockPath("ar", turn, name, suffix), made_in)


def _arranged(collected: _TurnBlocks) -> LayoutTurn:
    """Return a turn, with blocks of one path told apart so that no later one takes an earlier's."""
    opening = collected.opening
    turn = turn_id(opening.id, opening.created)
    items = _ordered(turn, collected)
    if len({item.path for item in items}) < len(items):
        alike: dict[BlockPath | None, list[LayoutItem]] = {}
        for item in items:
            alike.setdefault(item.path, []).append(item)
        suffixes: dict[str, str] = {}
        for same in alike.values():
            _, *others = sorted(same, key=lambda item: (item.block.created, item.block.id))
            suffixes.update((other.block.id, block_hash(other.block.id)) for other in others)
        items = [
            item._replace(path=replace(item.path, suffix=suffixes[item.block.id]))
            if item.path is not None and item.block.id in suffixes
            else item
            for item in items
        ]
    header = LayoutItem(ItemType.TURN_HEADER, turn, opening, None)
    return LayoutTurn(turn, (header, *items), tuple(collected.blocks))
