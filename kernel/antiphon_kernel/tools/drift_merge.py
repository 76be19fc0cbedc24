"""Merges of forks into the contexts that they came from: `drift.preview`, and what is chosen."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Any, Final, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from antiphon_kernel.contexts import Context
from antiphon_kernel.contexts.history.replay import with_block
from antiphon_kernel.contexts.lineage.drifting import Changes
from antiphon_kernel.contexts.lineage.merging import (
    MergedBlock,
    MergePlan,
    check_mergeable,
    plan_merge,
    runs_of_splices,
)
from antiphon_kernel.document.rendering import render
from antiphon_kernel.kernel import Call, Kernel
from antiphon_kernel.messages import estimate_text
from antiphon_kernel.registry import REFERENCES, Params, Result, tool
from antiphon_kernel.storage import ContextRow
from antiphon_kernel.text.merge_edits import (
    MergeSplice,
    Resolution,
    check_conflicts,
    resolved,
)
from antiphon_kernel.tools._common import ConflictTexts
from antiphon_kernel.types.errors import AntiphonError, ErrorCode, invalid_params
from antiphon_kernel.types.quoting import count_of, quote
from antiphon_kernel.types.records import Actor, Run, Stamp
from antiphon_kernel.types.roles import Permission
from antiphon_kernel.validation import reject_long_text

MOST_BLOCKS: Final = 1_000
"""Blocks of one drift."""


class PreviewParams(Params):
    """A fork, and the context that it is merged into."""

    source: str
    """The fork: label or id."""
    target: str | None = None
    """The context that it was forked from; that one if absent."""


class ShownConflict(ConflictTexts):
    """A place that both contexts have changed, each in its own way."""

    number: int
    """Number of the conflict in the whole merge, from 0."""
    start: int
    """Code point of `after` where ours begins."""
    end: int
    """Code point behind its last one."""


class ShownChange(Result):
    """A block that a merge changes."""

    block_id: str
    """The block of the target."""
    name: str
    source_block: str
    """The block of the fork."""
    before: str
    """Its text now."""
    after: str
    """Its text then; as it is now where there is a conflict."""
    conflicts: list[ShownConflict]
    """In the order of the text."""


class OfferedBlock(Result):
    """A block of the fork that the target does not have."""

    source_block: str
    """The block of the fork."""
    source_block_name: str
    """The same block by the names of its parts."""
    kind: str
    """Kind of block."""
    username: str
    """Name of its author."""
    text: str
    """All that it says."""
    tokens: int
    """Estimate of what it takes."""


class WayResult(Result):
    """Way from one context to another."""

    source_context: str
    """Id of the context that it comes from."""
    source_label: str
    """Name of that context."""
    source_version: int
    """The version of the source that was read."""
    target_context: str
    """Id of the context that it goes to."""
    target_label: str
    """Name of that context."""

    @classmethod
    def between(cls, source: ContextRow, target: ContextRow, version: int, **fields: Any) -> Self:
        """Return what is told of a way from this version of the source, and further `fields`."""
        return cls(
            source_context=source.id,
            source_label=source.label,
            source_version=version,
            target_context=target.id,
            target_label=target.label,
            **fields,
        )


class PreviewResult(WayResult):
    """Outcome that a merge would have."""

    target_version: int
    """The version of that context that was looked at."""
    plan: str
    """Names what was shown, for drift.merge."""
    changes: list[ShownChange]
    """In the order of the target."""
    offers: list[OfferedBlock]
    """In the order of the fork."""
    conflicts: int
    """How many in all."""
    tokens: int
    """Estimate of what models would read more."""


class ConflictChoice(BaseModel):
    """Choice for a conflict: one side, both, or a text."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    side: Resolution | None = None
    """The target's text (`ours`), the fork's (`theirs`), or one behind the other (`both`)."""
    text: str | None = None
    """Another text."""

    @model_validator(mode="after")
    def _check_one(self) -> ConflictChoice:
        if (self.side is None) == (self.text is None):
            raise ValueError("give either side or text")
        return self

    @property
    def resolution(self) -> Resolution | str:
        return self.side if self.side is not None else self.text or ""


class MergeParams(PreviewParams):
    """A fork, and what is merged of it."""

    blocks: list[str] | None = Field(default=None, max_length=MOST_BLOCKS)
    """New blocks of the fork that are taken; all that drift.preview offers if absent."""
    resolve: dict[int, ConflictChoice] = Field(default_factory=dict)
    """Choice for each conflict, by its number: `{"side": "theirs"}` or `{"text": "..."}`."""
    prefer: Resolution | None = None
    """The side that the other conflicts go to."""
    plan: str | None = None
    """The `plan` of a preview: nothing is merged if it would be something else by now."""
    summary: bool = False
    """Whether a summary of what is new and changed there comes instead, as by drift.distill."""
    model: str | None = None
    """The model that writes it."""
    conclude: bool = False
    """Archive the fork then."""
    wake: bool = False
    """Whether the models of the target answer it."""


async def planned(kernel: Kernel, source: Context, target: Context) -> MergePlan:
    """Return what it is to merge a fork now; it holds until the next await."""
    check_mergeable(source, target)
    source.appends.flush_all()
    target.appends.flush_all()
    return await plan_merge(kernel.drifts, source, target)


@tool("drift.preview", needs=Permission.READ, errors=REFERENCES[1:])
async def preview(call: Call, params: PreviewParams) -> PreviewResult:
    """Show what drift.merge would do: texts, conflicts, and new blocks that may be taken."""
    source = await call.context(params.source)
    target = await merge_target(call, source, params.target)
    plan = await planned(call.kernel, source, target)
    numbers = count()
    changes = [
        ShownChange(
            block_id=one.block,
            name=target.block_name(one.block),
            source_block=one.original,
            before=one.before,
            after=one.merge.text,
            conflicts=[
                ShownConflict.of(
                    conflict,
                    number=next(numbers),
                    start=conflict.merged.start,
                    end=conflict.merged.end,
                )
                for conflict in one.merge.conflicts
            ],
        )
        for one in plan.changes
    ]
    offers = [
        OfferedBlock(
            source_block=header.id,
            source_block_name=source.block_name(header.id),
            kind=str(header.kind),
            username=source.username(header.author),
            text=(text := render(source.document, header.id)),
            tokens=estimate_text(text),
        )
        for header in source.document.headers(plan.offers)
    ]
    grown = sum(estimate_text(one.after) - estimate_text(one.before) for one in changes)
    return PreviewResult.between(
        source.row,
        target.row,
        plan.version,
        target_version=target.seq,
        plan=plan.digest,
        changes=changes,
        offers=offers,
        conflicts=plan.conflicts,
        tokens=grown + sum(one.tokens for one in offers),
    )


async def merge_target(call: Call, source: Context, reference: str | None) -> Context:
    """Return the context that a fork is merged into."""
    origin = source.row.origin
    if reference is None and origin is not None:
        reference = call.kernel.contexts.of_number(origin.source).id
    if reference is None:
        raise invalid_params(
            f"Context {source.label} is no fork: name the fork that is merged.", field="source"
        )
    return await call.context(reference)


def merge_changes(
    source: Context,
    target: Context,
    plan: MergePlan,
    choices: MergeParams,
    actor: Actor,
    time: int,
) -> tuple[tuple[str, ...], Changes]:
    """Return the blocks that are taken, and the changes of those that both have.

    Raises:
        AntiphonError: merge_conflict, if one is not resolved; stale_version, if another plan was
            shown; invalid_params; too_large.
    """
    if choices.plan not in (None, plan.digest):
        raise AntiphonError(
            ErrorCode.STALE_VERSION,
            "What there is to merge is not what was shown, so nothing was merged: look at the"
            " preview again.",
        )
    offers, taken = plan.offers, choices.blocks if choices.blocks is not None else plan.offers
    for block in taken:
        if block not in offers:
            raise invalid_params(
                f"Block {quote(block)} is not offered: drift.preview names those that are.",
                field="blocks",
            )
    check_conflicts(choices.resolve, plan.conflicts)
    missing = plan.conflicts - len(choices.resolve)
    if missing and choices.prefer is None:
        raise AntiphonError(
            ErrorCode.MERGE_CONFLICT,
            f"{source.label} and {target.label} have changed the same places, so nothing was"
            f" merged: say in resolve what becomes of {missing} conflicts that drift.preview"
            " shows, or give prefer.",
            conflicts=missing,
        )
    number = 0
    splices: dict[str, tuple[MergeSplice, ...]] = {}
    for one in plan.changes:
        numbers = range(number, number + len(one.merge.conflicts))
        number = numbers.stop
        chosen = {
            index: choices.resolve[at].resolution if at in choices.resolve else choices.prefer
            for index, at in enumerate(numbers)
        }
        made = resolved(one.merge, {at: side for at, side in chosen.items() if side is not None})
        grown = sum(len(splice.inserted) - splice.deleted for splice in made)
        reject_long_text(target.limits, len(one.before) + grown)
        if made:
            splices[one.block] = made
    if not plan.changes and not taken:
        raise invalid_params(
            f"There is nothing to merge: {target.label} has all that was taken of {source.label}."
        )

    def apply() -> None:
        for block, script in splices.items():
            for one in reversed(script):
                target.document.splice(block, one.offset, one.deleted, one.inserted)

    counts = (len(splices), "changed"), (len(taken), "added")
    said = [f"{count_of(count, 'block')} {what}" for count, what in counts if count]
    merged = {one.block: one for one in plan.changes}
    return tuple(block for block in offers if block in set(taken)), Changes(
        text=", ".join(said) or "nothing changed",
        blocks=tuple(splices),
        apply=apply,
        inherited={
            block: {None: _inherited(target, merged[block], script, actor, time)}
            for block, script in splices.items()
        },
    )


def _inherited(
    target: Context, merged: MergedBlock, script: Sequence[MergeSplice], actor: Actor, time: int
) -> list[Run]:
    version = target.blocks.version(merged.block) + 1
    own = Stamp(actor.principal.id, version, time, merged.block)
    return with_block(runs_of_splices(script, merged.runs, own), merged.original)
