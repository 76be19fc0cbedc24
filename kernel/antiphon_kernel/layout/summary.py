"""Compaction of a layout: the summary of the items that it hides, made without a model."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from antiphon_kernel.layout.arrange import ItemType, Layout, LayoutItem
from antiphon_kernel.layout.compaction import (
    MAX_SUMMARY,
    WHOLE_TURNS,
    CompactionPlan,
    plan_compaction,
    plan_last_turns,
)
from antiphon_kernel.layout.paths import rename_derived, summary_path
from antiphon_kernel.layout.reading import file_tokens
from antiphon_kernel.layout.text_forms import LayoutReader, drift_text, item_text
from antiphon_kernel.layout.visible import visible
from antiphon_kernel.messages import MESSAGE_COST, estimate_text
from antiphon_kernel.text.lines import line_count
from antiphon_kernel.text.splice_diff import apply_splices
from antiphon_kernel.types.block_metadata import SUMMARY_TYPE
from antiphon_kernel.types.clock import iso_time
from antiphon_kernel.types.frozen_json import thaw

OPENING: Final = (
    "Earlier parts of this conversation, shortened. block.read shows each block by its path."
)
"""First line of an extract."""

_MIN_QUOTED: Final = 16
"""Tokens; a shorter part of a text is not quoted."""

_TURNS: Final = 500
"""Turns that the metadata of a summary names."""

_NEVER: Final = ("9999", "0000")
"""Begin and end of nothing."""

_LISTED: Final = 50
"""Files, and commands, that the metadata of a summary names: the last ones."""

_COMMAND_LENGTH: Final = 200

_SLACK: Final = 8
"""Tokens by which the estimate of a whole may differ from the sum of its parts."""


@dataclass(frozen=True, slots=True)
class SummaryRecord:
    """Metadata of a summary: what it stands for."""

    turns: tuple[str, ...]
    """Ids of the turns, or parts of turns, that it hides and the summary before did not; of many
    the last ones."""
    begin: str
    """Time of the first block that is hidden, by this summary or one before."""
    end: str
    """Time of the last one."""
    files: tuple[str, ...] = ()
    """Paths of the files that are named in what is hidden."""
    commands: tuple[str, ...] = ()
    """Commands that were run there."""
    previous: str | None = None
    """Path of the summary that is merged into it."""

    @classmethod
    def of(cls, items: Sequence[LayoutItem], previous: LayoutItem | None) -> SummaryRecord:
        """Return the record of a summary that is to stand for some items.

        Args:
            items: at least one, unless there is a summary before.
            previous: the summary that they were read behind.
        """
        before = read_record(previous.block.metadata) if previous is not None else None
        known = before or cls((), *_NEVER)
        times = [iso_time(item.block.created) for item in items]
        return cls(
            turns=tuple(dict.fromkeys(item.turn for item in items))[-_TURNS:],
            begin=min((known.begin, *times)),
            end=max((known.end, *times)),
            files=_latest(known.files, _files(items)),
            commands=_latest(known.commands, _commands(items)),
            previous=str(previous.path) if previous is not None else None,
        )

    def moved(self, turns: Mapping[str, str]) -> SummaryRecord:
        """Return the record of a copy in another context.

        Args:
            turns: the id of each turn there, as `copied_ids` gives it; the others are not known
                there.
        """
        path = self.previous or ""
        splices = rename_derived(path, turns)
        previous = apply_splices(path, splices) if splices else None
        there = tuple(turns[turn] for turn in self.turns if turn in turns)
        return replace(self, turns=there, previous=previous)

    def as_metadata(self) -> dict[str, Any]:
        """Return the metadata of the block."""
        said = {"type": SUMMARY_TYPE, **asdict(self)}
        for name in ("files", "commands", "previous"):
            if not said[name]:
                del said[name]
        return {name: list(one) if isinstance(one, tuple) else one for name, one in said.items()}


_RECORD: Final = TypeAdapter(SummaryRecord)


def read_record(metadata: Mapping[str, Any]) -> SummaryRecord | None:
    """Return the record in a block's metadata; None if it holds none that can be read."""
    if metadata.get("type") != SUMMARY_TYPE:
        return None
    try:
        return _RECORD.validate_python({"turns": (), **metadata})
    except ValidationError:
        return None


def moved_metadata(metadata: Mapping[str, Any], turns: Mapping[str, str]) -> dict[str, Any]:
    """Return the metadata of a block for its copy in another context.

    Args:
        turns: as `SummaryRecord.moved` takes them.
    """
    record = read_record(metadata)
    moved = record.moved(turns).as_metadata() if record is not None else {}
    return {**metadata, **moved}


def _files(items: Iterable[LayoutItem]) -> Iterator[str]:
    for item in items:
        if item.is_block and item.block.file is not None:
            yield item.block.file
        elif item.type is ItemType.TOOL_CALL:
            for name in ("path", "file", "file_path"):
                if isinstance(said := item.block.parameters.get(name), str) and said:
                    yield said


def _commands(items: Iterable[LayoutItem]) -> Iterator[str]:
    for item in items:
        if item.type is ItemType.TOOL_CALL:
            said = item.block.parameters.get("command")
            if isinstance(said, str) and said.strip():
                yield excerpt(said, _COMMAND_LENGTH)


def _latest(before: Iterable[str], added: Iterable[str]) -> tuple[str, ...]:
    """Return the last ones of two lists, each once, at the place of its last mention."""
    latest = dict.fromkeys(reversed([*before, *added]))
    return tuple(reversed([*latest][:_LISTED]))


@dataclass(frozen=True, slots=True)
class _Detail:
    """Lengths of what is quoted of a turn, in code points."""

    said: int
    answered: int
    arguments: int | None
    """None counts the calls of each tool instead."""


_DETAILS: Final = (_Detail(80, 80, None), _Detail(200, 200, 80), _Detail(800, 500, 200))


def extract(items: Sequence[LayoutItem], plan: CompactionPlan) -> str | None:
    """Return a summary of what a plan hides; None if it would not be shorter.

    It quotes the beginnings of what was said and lists each call with its arguments, the size of
    its result and its path; of older turns less. The summary before goes in as it reads now. If
    nothing of the last result is kept, its beginning and end are quoted.

    Args:
        items: those that the plan is of.
    """
    room = min(plan.room, plan.replaced - 1)
    left = room - estimate_text(OPENING)
    previous = previous_summary(items)
    # The result that the live turn is cut behind, if nothing was said after it.
    last, behind = items[plan.cut - 1], items[plan.cut :]
    is_live = last.type is ItemType.TOOL_RESULT and last.turn == plan.live
    is_last = is_live and all(one.is_exchange for one in behind if one.turn == plan.live)
    quoted, merged = "", ""
    if is_last:
        title = f"The last result, {last.path}:"
        most = max(left // 2, left - MAX_SUMMARY) - estimate_text(title)
        if shown := head_and_tail(last.block.text, most):
            quoted = f"{title}\n{shown}"
            left -= estimate_text(quoted)
    if previous is not None:
        said = previous.block.text.removeprefix(OPENING).strip()
        merged = head_and_tail(said, min(left // 2, MAX_SUMMARY // 2))
        left -= estimate_text(merged)
    hidden = [item for item in items[: plan.cut] if item.type is not ItemType.SUMMARY]
    turns = quote_turns(hidden, min(left, MAX_SUMMARY), {})
    while True:
        parts = (OPENING, merged, *turns, quoted)
        text = "\n\n".join(part for part in parts if part)
        if estimate_text(text) <= room:
            return text if text != OPENING else None
        if turns:
            del turns[0]
        elif merged:
            merged = ""
        elif quoted:
            quoted = ""
        else:
            return None


def previous_summary(items: Sequence[LayoutItem]) -> LayoutItem | None:
    """Return the summary that items are read behind."""
    return items[0] if items and items[0].type is ItemType.SUMMARY else None


def quote_turns(items: Iterable[LayoutItem], room: int, names: Mapping[str, str]) -> list[str]:
    """Return sections of the latest turns for which there is room, the newest with most.

    Args:
        room: in tokens.
        names: of the blocks, by id, with which a section ends if there are any.
    """
    turns: dict[str, list[LayoutItem]] = {}
    for item in items:
        turns.setdefault(item.turn, []).append(item)
    if not turns:
        return []
    newest, *others = reversed(turns.values())
    # Of the newest turn calls are always listed, with as much detail as there is room for.
    most, (_, short, long) = room * 2 // 3 if others else room, _DETAILS
    first = _section(newest, long, names)
    if estimate_text(first) > most:
        first = head_and_tail(_section(newest, short, names), most)
    room -= estimate_text(first)
    sections: list[str] = []
    costs: list[int] = []
    for detail in _DETAILS:
        for index, turn in enumerate(others):
            section = _section(turn, detail, names)
            cost = estimate_text(section) + 1
            if sum(costs) + cost - sum(costs[index : index + 1]) > room:
                break
            sections[index : index + 1] = [section]
            costs[index : index + 1] = [cost]
    if len(sections) < len(others):
        sections.append(f"[earlier turns that are left out here: {len(others) - len(sections)}]")
    return [*reversed(sections), first]


def _section(turn: Sequence[LayoutItem], detail: _Detail, names: Mapping[str, str]) -> str:
    """Return a turn in short: what was said, and the ledger of its calls."""
    lines = [] if names else [f"### {turn[0].turn}, {iso_time(turn[0].block.created)}"]
    results: dict[str, list[LayoutItem]] = {}
    counts: dict[str, int] = {}
    for item in turn:
        if item.type is ItemType.TOOL_RESULT:
            results.setdefault(item.round or "", []).append(item)
    for item in turn:
        tool = item.block.tool_name or "tool"
        match item.type:
            case _ if item.is_block and item.block.is_drift:
                lines.append(f"- {excerpt(drift_text(item.block), detail.answered)}")
            case ItemType.TOOL_CALL if detail.arguments is not None:
                arguments = json.dumps(thaw(item.block.parameters), ensure_ascii=False)
                said = arguments if item.block.parameters else item.block.text
                found = results.get(item.round or "", ())
                came = "; ".join(f"{_size(result)}, {result.path}" for result in found)
                shown = f"{excerpt(said, detail.arguments)}: {came or f'no result, {item.path}'}"
                lines.append(f"- {tool} {shown}")
            case ItemType.TOOL_CALL:
                counts[tool] = counts.get(tool, 0) + 1
            case ItemType.TURN_HEADER | ItemType.TOOL_RESULT | ItemType.THINKING:
                pass
            case ItemType.NOTES if detail.arguments is None:
                pass
            case ItemType.USER_PROMPT | ItemType.USER_MESSAGE:
                lines.append(f"- {item.block.author.name}: {excerpt(item.block.text, detail.said)}")
            case ItemType.USER_ATTACHMENT | ItemType.FILE:
                lines.append(f"- file {item.path}: {_size(item)}")
            case _:
                said = excerpt(item.block.text, detail.answered)
                lines.append(f"- {item.block.author.name}: {said}")
    if counts:
        called = (f"{tool} x{count}" for tool, count in counts.items())
        lines.append(f"- calls: {', '.join(called)}")
    if names:
        lines.append(f"[{', '.join(names[item.block.id] for item in turn)}]")
    return "\n".join(lines)


def _size(item: LayoutItem) -> str:
    text, code = item.block.text, item.block.exit_code
    failed = f", exit code {code}" if code else ", error" if item.block.is_error else ""
    return f"{line_count(text)} lines, {len(text)} characters{failed}"


def excerpt(text: str, length: int) -> str:
    """Return the beginning of a text on one line."""
    line = " ".join(text[: 2 * length + 80].split())
    return line if len(line) <= length and len(text) <= 2 * length + 80 else line[:length] + "…"


def head_and_tail(text: str, room: int) -> str:
    """Return a text whole if it has room, else its beginning and end; empty without any room."""
    if room < _MIN_QUOTED:
        return ""
    low, high = 0, min(len(text), 16 * room)
    if len(text) <= high and estimate_text(text) <= room:
        return text
    found = ""
    while low < high:
        length = (low + high + 1) // 2
        shortened = _shortened(text, length)
        if estimate_text(shortened) <= room:
            low, found = length, shortened
        else:
            high = length - 1
    return found


def _shortened(text: str, length: int) -> str:
    """Return so many code points of a text from both ends, whole lines if there are some."""
    half = length // 2
    head, tail = text[:half], text[len(text) - (length - half) :]
    head = head[: head.rfind("\n") + 1] or head
    tail = tail[tail.find("\n") + 1 :] or tail
    left_out = len(text) - len(head) - len(tail)
    return f"{head.rstrip()}\n[{left_out} characters are left out here]\n{tail.lstrip()}"


@dataclass(frozen=True, slots=True)
class NewSummary:
    """Summary that a compaction writes into the document."""

    text: str
    record: SummaryRecord
    turn: str
    """Id of the turn that it stands in."""
    parent: str
    """The block that begins the turn."""
    neighbour: str
    """The block next to which it stands."""
    is_before: bool
    """It stands before its neighbour, else behind."""
    hidden: int
    """How many blocks are not read any more."""
    tokens_before: int
    """Estimate of what was read."""
    tokens: int
    """Estimate of what is read from now on."""


def compact(
    layout: Layout,
    place_of: Callable[[str], int],
    *,
    budget: int | None = None,
    reserved: int = 0,
    keep_turns: int = WHOLE_TURNS,
    live: str | None = None,
) -> NewSummary | None:
    """Return the summary that makes a context shorter; None if there is nothing to win.

    With a budget nothing happens until it is exceeded; without one the last turns are kept.

    Args:
        layout: every block, as `arrange` has made it.
        place_of: gives the index of a block in the document.
        budget: tokens of what models read.
        reserved: tokens of what else is in the request.
        keep_turns: how many turns are kept without a budget.
        live: id of the turn that is played; the last one if absent.

    Raises:
        CompactionError: if what has to go on being read is larger than the budget.
    """
    shown = visible(layout, live=live)
    items, reader = shown.items, LayoutReader.of(layout)
    weights = [weigh(item, reader) for item in items]
    frame = 0
    if items:  # a summary that says nothing, with as long a path as it may have
        near = items[-1]
        block, path = near.block._replace(text="", blob=None), summary_path(near.turn, "0" * 6)
        frame = _SLACK + weigh(LayoutItem(ItemType.SUMMARY, near.turn, block, path), reader)
    if budget is None:
        plan = plan_last_turns(items, weights, keep_turns, frame=frame)
    else:
        plan = plan_compaction(items, weights, budget, reserved=reserved, frame=frame, live=live)
    if plan is None or (text := extract(items, plan)) is None:
        return None
    turn, neighbour, is_before = _place(layout, items, plan, place_of)
    covered = [items[index] for index in plan.covered]
    return NewSummary(
        text,
        SummaryRecord.of(covered, previous_summary(items)),
        turn,
        next(one.items[0].block.id for one in layout.turns if one.id == turn),
        neighbour,
        is_before,
        sum(item.is_block for item in covered),
        sum(weights),
        plan.kept + estimate_text(text) + frame,
    )


def weigh(item: LayoutItem, reader: LayoutReader) -> int:
    """Estimate the tokens of an item in a request, as a message of its own."""
    return MESSAGE_COST + estimate_text(item_text(item, reader)) + file_tokens(item)


def _place(
    layout: Layout,
    items: Sequence[LayoutItem],
    plan: CompactionPlan,
    place_of: Callable[[str], int],
) -> tuple[str, str, bool]:
    """Return the turn that the summary stands in, and the block next to which it does."""
    if plan.cut < len(items) and items[plan.cut].type is not ItemType.TURN_HEADER:
        behind = items[plan.cut]
        return behind.turn, behind.block.id, True
    last = items[plan.cut - 1]
    if last.type is ItemType.SUMMARY:
        return last.turn, last.block.id, False
    turn = next(one for one in layout.turns if one.id == last.turn)
    return turn.id, max((item.block.id for item in turn.items), key=place_of), False
