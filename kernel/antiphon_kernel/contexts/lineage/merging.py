"""Merging a fork into the context that it was forked from: what would be changed, block by block.

A block that both have is merged against what it was when the fork was made, or merged last. What
the fork has changed since is known exactly from its history; what the other has, too, until
something was merged: then it is their difference.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import sha256

from antiphon_kernel.contexts.commit_types import Applied
from antiphon_kernel.contexts.context import Context
from antiphon_kernel.contexts.history.replay import CopiedText, text_paths, texts_of
from antiphon_kernel.contexts.lineage.drifts import Drifts
from antiphon_kernel.document.history.block_history import BlockHistory
from antiphon_kernel.document.schema import TextSchema
from antiphon_kernel.storage import ChangeRow
from antiphon_kernel.text.merge_edits import EditMerge, MergeSplice, merge_edits
from antiphon_kernel.text.splice_diff import as_script, plan_difference
from antiphon_kernel.types.block_metadata import DRIFT, SUMMARY_TYPE, is_cut_out
from antiphon_kernel.types.drift import is_drifted
from antiphon_kernel.types.enums import DriftKind, Role, Status
from antiphon_kernel.types.errors import invalid_params
from antiphon_kernel.types.ids import moved_block
from antiphon_kernel.types.records import Run, Stamp


@dataclass(frozen=True, slots=True)
class MergedBlock:
    """A block of the target that the source has changed too."""

    block: str
    original: str
    """The block of the source."""
    before: str
    """Text of the target."""
    merge: EditMerge
    runs: Sequence[Run]
    """Authors of the text of the source."""


@dataclass(frozen=True, slots=True)
class MergePlan:
    """Outcome that a merge would have; it holds until the next await."""

    version: int
    """Version of the source."""
    changes: tuple[MergedBlock, ...]
    """In the order of the target."""
    offers: tuple[str, ...]
    """Blocks of the source that the target does not have, in order."""
    authors: Mapping[str, Mapping[str | None, CopiedText]]
    """Authors of the texts of what is offered."""

    @property
    def conflicts(self) -> int:
        """How many there are in all blocks."""
        return sum(len(one.merge.conflicts) for one in self.changes)

    @property
    def digest(self) -> str:
        """Return what is the same as long as conflicts, changes and offers are.

        Where in a text they stand may change: others write there.
        """
        said = [
            (
                one.block,
                [(splice.deleted, splice.inserted) for splice in one.merge.splices],
                [(two.base.text, two.ours.text, two.theirs.text) for two in one.merge.conflicts],
            )
            for one in self.changes
        ]
        return sha256(repr((said, self.offers)).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class _Pair:
    """A block that both contexts have."""

    block: str
    original: str
    since: int
    """Version of the source with which the last of it came to the target."""
    at: int | None
    """Version of the target from which on its changes are known exactly; None if they are not."""


def check_mergeable(source: Context, target: Context) -> None:
    """Raises AntiphonError invalid_params if one context is not forked from the other."""
    origin = source.row.origin
    if origin is None or origin.source != target.row.number:
        raise invalid_params(
            f"Context {source.label} was not forked from {target.label}, so nothing says what both"
            " began with: push or pull blocks instead.",
            field="source",
        )


async def plan_merge(drifts: Drifts, source: Context, target: Context) -> MergePlan:
    """Return what it is to merge a fork into the context that it was forked from."""
    while True:
        touched = set[str]()
        stop = source.applied.listen(partial(_note, touched))
        try:
            await source.wait_persisted()
            await target.wait_persisted()
            brought = drifts.in_force(source.row, target.row)
            pairs = _Pairs(drifts, source, target)
            changed = await source.journal.changes_since(pairs.first)
            plan = await _plan(source, target, pairs, changed)
        finally:
            stop()
        # A plan is of all that the source has at its version, and nobody else has brought it.
        if touched <= changed.keys() and brought == drifts.in_force(source.row, target.row):
            return plan


def _note(touched: set[str], applied: Applied) -> None:
    touched.update(applied.versions)


async def _plan(
    source: Context,
    target: Context,
    pairs: _Pairs,
    changed: Mapping[str, Sequence[ChangeRow[str]]],
) -> MergePlan:
    document, theirs = source.document, target.document
    theirs_changed: dict[int, dict[str, list[ChangeRow[str]]]] = {}
    bases: dict[str, int | None] = {}
    """Version of each block of the source that the target has seen; None of a new one."""
    ours: dict[str, int] = {}
    """Version of blocks of the target, whose changes since are known exactly."""
    merged: list[_Pair] = []
    offers: list[str] = []
    for block in sorted(changed, key=document.order.index):
        pair = pairs.get(block)
        rows = changed[block]
        if pair is not None:  # the first version is the copy that the fork began with
            rows = [row for row in rows if row.seq > pair.since and row.versions[block] > 1]
        if not rows or document.is_draft(block) or is_cut_out(document.header(block)):
            continue
        is_text = isinstance(document.schema(block), TextSchema)
        # What the target has cut out would be changed where nobody sees it.
        if pair is None or not is_text or is_cut_out(theirs.header(pair.block)):
            if _is_offered(source, block, target):
                offers.append(block)
                bases[block] = None
            continue
        bases[block] = rows[0].versions[block] - 1
        merged.append(pair)
        if pair.at is not None:
            if pair.at not in theirs_changed:
                theirs_changed[pair.at] = await target.journal.changes_since(pair.at)
            if later := theirs_changed[pair.at].get(pair.block):
                ours[pair.block] = later[0].versions[pair.block] - 1
    histories, known = dict[str, BlockHistory](), dict[str, BlockHistory]()
    while len(histories) < len(bases):
        known = {one.block: one for one in await target.histories.open([*ours])}
        inherited = {
            (source.blocks.number(one.original), 1): texts_of(
                known[one.block], theirs.schema(one.block), ours[one.block]
            )
            for one in merged
            if one.block in known and one.at == pairs.forked_at
        }
        opened = await source.histories.open([*bases], inherited)
        if target.histories.opened([*ours]) is not None:
            histories = {one.block: one for one in opened}
    changes: list[MergedBlock] = []
    for pair in sorted(merged, key=lambda one: theirs.order.index(one.block)):
        history, mine = histories[pair.original], known.get(pair.block)
        base, script = history.edits_since(None, bases[pair.original] or 0)
        before = theirs.text(pair.block)
        begun, own = mine.edits_since(None, ours[pair.block]) if mine is not None else ("", [])
        if mine is None or begun != base:
            own = as_script(plan_difference(base, before))
        merge = merge_edits(base, own, script)
        if merge.splices or merge.conflicts:
            runs = history.blame(None)
            changes.append(MergedBlock(pair.block, pair.original, before, merge, runs))
    authors = {
        block: {
            path: CopiedText(histories[block].blame(path))
            for path in text_paths(document.schema(block))
        }
        for block in offers
    }
    return MergePlan(source.seq, tuple(changes), tuple(offers), authors)


class _Pairs:
    """The blocks that a fork and the context that it was forked from have both."""

    def __init__(self, drifts: Drifts, source: Context, target: Context) -> None:
        origin = source.row.origin
        assert origin is not None
        self._source, self._target, self._copied = source, target, origin.blocks
        # A fork begins with one transaction for each block that it copies, behind the founding one.
        self._since: int = origin.blocks + 1
        self.forked_at = origin.seq
        """Version of the target that the fork began with."""
        self._at: int | None = origin.seq
        self._brought: dict[str, _Pair] = {}
        for row in drifts.in_force(source.row, target.row):
            if row.kind is DriftKind.MERGE:
                self._since, self._at = row.version, None
                self._brought = {
                    block: _Pair(one.block, block, row.version, None)
                    for block, one in self._brought.items()
                }
            for copy in target.block_tree.descendants(row.block, target.limits.parent_depth):
                header = target.document.header(copy)
                block, is_copy = header.source_block, header.metadata.get(DRIFT) == row.id
                if is_copy and block is not None and block in source.document:
                    self._brought[block] = _Pair(copy, block, row.version, row.seq)
        self.first = min([self._since, *(one.since for one in self._brought.values())])
        """Version of the source from which on changes count."""

    def get(self, block: str) -> _Pair | None:
        """Return the pair of a block of the source; None if the target does not have it."""
        there, theirs = moved_block(block, self._target.id), self._target.document
        is_copy = self._source.blocks.number(block) <= self._copied and there in theirs
        if is_copy and not theirs.is_draft(there):  # a draft is changed by its author only
            return _Pair(there, block, self._since, self._at)
        return self._brought.get(block)


def _is_offered(source: Context, block: str, target: Context) -> bool:
    """Return whether a block that the target does not have is offered to it."""
    header = source.document.header(block)
    came_from_there = is_drifted(header.metadata) and header.source_context == target.id
    is_said = header.role != Role.SYSTEM and header.metadata.get("type") != SUMMARY_TYPE
    is_said = is_said and header.drift_kind != DriftKind.MERGE
    is_done = header.status in (Status.DONE, Status.ERROR) and not header.excluded
    says = bool(source.document.peek_text(block)) or header.blob is not None
    has_form = not isinstance(source.document.schema(block), TextSchema)
    return is_said and is_done and not came_from_there and (says or has_form)


def runs_of_splices(splices: Iterable[MergeSplice], theirs: Sequence[Run], own: Stamp) -> list[Run]:
    """Return the authors of what splices insert, in order.

    Args:
        theirs: authors of the text that it comes from.
        own: whoever wrote what comes from nowhere.
    """
    found: list[Run] = []
    for splice in splices:
        left, at = len(splice.inserted), splice.source
        if at is None:
            found.append(Run(left, own))
            continue
        end = 0
        for run in theirs:
            start, end = end, end + run.length
            length = min(end, at + left) - max(start, at)
            if length > 0:
                found.append(Run(length, run.stamp))
    return [run for run in found if run.length]
