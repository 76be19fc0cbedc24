"""Grouping of blocks into turns and rounds, with the path of each."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from posixpath import basename

from antiphon_kernel.layout.blocks import LayoutBlock
from antiphon_kernel.layout.derived_ids import block_hash, tool_call_id, turn_id
from antiphon_kernel.layout.items import ItemType, Layout, LayoutItem, LayoutTurn
from antiphon_kernel.layout.paths import (
    ArtifactName,
    ArtifactPath,
    BlockPath,
    CallPath,
    FilePath,
    SummaryPath,
    is_path,
)
from antiphon_kernel.types.enums import BlockKind, Role
from antiphon_kernel.types.summaries import SUMMARY_TYPE


def arrange(blocks: Iterable[LayoutBlock], before: Layout | None = None) -> Layout:
    """Return every block in its turn and round, hidden ones and summaries included.

    Args:
        blocks: in document order, without drafts.
        before: an earlier layout, from which turns are taken whose blocks are the same objects.
    """
    stored = list(blocks)
    by_id = {block.id: block for block in stored}
    known = {turn.id: turn for turn in before.turns} if before is not None else {}
    turns: list[LayoutTurn] = []
    for collected in _turns(stored, by_id):
        turn = known.get(collected.id)
        if turn is None or not _same(turn.blocks, collected.blocks):
            turn = _arranged(collected, by_id)
        turns.append(turn)
    return Layout(tuple(turns))


def _same(one: Sequence[LayoutBlock], other: Sequence[LayoutBlock]) -> bool:
    return len(one) == len(other) and all(map(operator.is_, one, other))


@dataclass(frozen=True, slots=True)
class _TurnBlocks:
    """A turn while its blocks are collected."""

    opening: LayoutBlock
    blocks: list[LayoutBlock]
    """In document order."""

    @property
    def id(self) -> str:
        return turn_id(self.opening.id, self.opening.created)

    @property
    def prompt(self) -> LayoutBlock | None:
        return self.opening if self.opening.begins_turn else None


def _turns(stored: Sequence[LayoutBlock], by_id: Mapping[str, LayoutBlock]) -> list[_TurnBlocks]:
    """Return the turns in the order of their prompts, first the one that has none."""
    begun: dict[str, list[LayoutBlock]] = {}
    latest: dict[str, str | None] = {}
    opening: str | None = None
    for block in stored:
        if block.begins_turn:
            opening = block.id
            begun[opening] = []
        latest[block.id] = opening
    without_prompt: list[LayoutBlock] = []
    opening_of: dict[str, str | None] = {}
    for block in stored:
        chain: dict[str, None] = {}
        at = block
        while at.id not in begun and at.id not in opening_of:
            chain[at.id] = None
            parent = by_id.get(at.parent) if at.parent is not None else None
            if parent is None or parent.id in chain:
                break
            at = parent
        opening = at.id if at.id in begun else opening_of.get(at.id, latest[at.id])
        opening_of.update(dict.fromkeys(chain, opening))
        (without_prompt if opening is None else begun[opening]).append(block)
    turns = [_TurnBlocks(by_id[opening], blocks) for opening, blocks in begun.items()]
    return [_TurnBlocks(without_prompt[0], without_prompt), *turns] if without_prompt else turns


def _ordered(turn: _TurnBlocks, by_id: Mapping[str, LayoutBlock]) -> list[LayoutItem]:
    """Return the items of a turn without its header, in order and with their rounds.

    The paths are not yet told apart.
    """
    first: list[LayoutItem] = []
    progress: list[LayoutBlock] = []
    results: dict[str, list[LayoutBlock]] = {}
    for block in turn.blocks:
        if block is turn.prompt:
            path = ArtifactPath(turn.id, "user.prompt")
            first.insert(0, LayoutItem(ItemType.USER_PROMPT, turn.id, block, path))
        elif _is_attachment(block, turn.prompt):
            name = basename(block.file or "") or block_hash(block.id)
            path_of_file = FilePath(turn.id, "user.attachments", name)
            first.append(LayoutItem(ItemType.USER_ATTACHMENT, turn.id, block, path_of_file))
        elif (call := answered_call(block, by_id)) is not None:
            results.setdefault(call.id, []).append(block)
        else:
            progress.append(block)
    return first + _in_rounds(turn.id, progress, results)


def answered_call(block: LayoutBlock, by_id: Mapping[str, LayoutBlock]) -> LayoutBlock | None:
    """Return the call that a block is a result of; None if it is none, or its call is not there."""
    if not block.is_result or block.parent is None:
        return None
    call = by_id.get(block.parent)
    return call if call is not None and call.is_call else None


def _is_attachment(block: LayoutBlock, prompt: LayoutBlock | None) -> bool:
    return (
        prompt is not None
        and block.kind == BlockKind.FILE
        and block.role == Role.USER
        and block.parent == prompt.id
    )


def _in_rounds(
    turn: str, progress: Iterable[LayoutBlock], results: Mapping[str, Sequence[LayoutBlock]]
) -> list[LayoutItem]:
    items: list[LayoutItem] = []
    open_texts: dict[str, list[int]] = {}
    for block in progress:
        if block.is_call:
            call = tool_call_id(block.id)
            for index in open_texts.pop(block.author.id, ()):
                items[index] = _leading_to(items[index], call)
            path: BlockPath = CallPath(turn, call, "call")
            tool = block.tool_name
            items.append(LayoutItem(ItemType.TOOL_CALL, turn, block, path, call, tool))
            for result in results.get(block.id, ()):
                path = CallPath(turn, call, "result")
                if result.file is not None and not is_path(result.file):
                    path = FilePath(turn, "files", result.file)
                items.append(LayoutItem(ItemType.TOOL_RESULT, turn, result, path, call, tool))
        else:
            item = _contribution(turn, block)
            if item.type in (ItemType.ASSISTANT_COMPLETION, ItemType.THINKING):
                open_texts.setdefault(block.author.id, []).append(len(items))
                item = replace(item, round=f"{turn}.{block.author.id}")
            items.append(item)
    return items


def _leading_to(item: LayoutItem, call: str) -> LayoutItem:
    """Return a model's text or thinking as part of the round of the call that follows it."""
    if item.type is ItemType.THINKING:
        path = ArtifactPath(item.turn, "react.thinking", call)
        return replace(item, path=path, round=call)
    path = ArtifactPath(item.turn, "react.notes", call)
    return replace(item, type=ItemType.NOTES, path=path, round=call)


def _contribution(turn: str, block: LayoutBlock) -> LayoutItem:
    name: ArtifactName
    match block.kind, block.role:
        case BlockKind.TEXT, Role.SYSTEM if block.metadata.get("type") == SUMMARY_TYPE:
            return LayoutItem(ItemType.SUMMARY, turn, block, SummaryPath(turn))
        case BlockKind.FILE, _ if block.file:
            return LayoutItem(ItemType.FILE, turn, block, FilePath(turn, "files", block.file))
        case BlockKind.TEXT, Role.USER:
            kind, name = ItemType.USER_MESSAGE, "user.message"
        case BlockKind.TEXT, Role.MODEL:
            kind, name = ItemType.ASSISTANT_COMPLETION, "assistant.completion"
        case BlockKind.THINKING, Role.MODEL:
            kind, name = ItemType.THINKING, "react.thinking"
        case BlockKind.TEXT, Role.SYSTEM:
            kind, name = ItemType.SYSTEM_MESSAGE, "system.message"
        case BlockKind.ERROR, _:
            kind, name = ItemType.ASSISTANT_ERROR, "assistant.error"
        case BlockKind.DRIFT, _:
            kind, name = ItemType.DRIFT, "drift"
        case _:
            kind, name = ItemType.OTHER, "block"
    return LayoutItem(kind, turn, block, ArtifactPath(turn, name))


def _arranged(turn: _TurnBlocks, by_id: Mapping[str, LayoutBlock]) -> LayoutTurn:
    """Return a turn, with blocks of one path told apart so that no later one takes an earlier's."""
    items = _ordered(turn, by_id)
    alike: dict[BlockPath, list[LayoutItem]] = {}
    for item in items:
        if item.path is not None:
            alike.setdefault(item.path, []).append(item)
    suffixes: dict[str, str] = {}
    for same in alike.values():
        if len(same) > 1:
            _, *others = sorted(same, key=lambda item: (item.block.created, item.block.id))
            suffixes.update((other.block.id, block_hash(other.block.id)) for other in others)
    named = [
        replace(item, path=replace(item.path, suffix=suffixes[item.block.id]))
        if item.path is not None and item.block.id in suffixes
        else item
        for item in items
    ]
    header = LayoutItem(ItemType.TURN_HEADER, turn.id, turn.opening, None)
    return LayoutTurn(turn.id, (header, *named), tuple(turn.blocks))
