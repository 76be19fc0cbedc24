"""Block events for subscribers: one for each block that a commit has changed."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Any

from pydantic import Field

from antiphon_kernel.contexts import Applied, BlockInfo, Context, header_values
from antiphon_kernel.document.content import read_value
from antiphon_kernel.document.schema import is_text
from antiphon_kernel.registry import Result
from antiphon_kernel.text.splice_diff import plan_difference
from antiphon_kernel.types.clock import iso_time
from antiphon_kernel.types.enums import PrincipalKind
from antiphon_kernel.types.records import TextSplice


def attribution(principal: str, kind: PrincipalKind | str, operation: str) -> str:
    """`agent:{id}:{operation}`, `source:{id}:update` or `system:{operation}`.

    People, models and the shell are agents. What a source does is always an update.

    Args:
        principal: id of whoever made the change.
        kind: its kind; one that is unknown to this version counts as an agent.
        operation: as the journal names it.
    """
    if kind == PrincipalKind.SYSTEM:
        return f"system:{operation}"
    if kind == PrincipalKind.SOURCE:
        return f"source:{principal}:update"
    return f"agent:{principal}:{operation}"


class BlockEventKind(StrEnum):
    """Kind of block event."""

    CREATED = "created"
    """It is new: header and content are all of it."""
    EDITED = "edited"
    """Its content changed, and what else `header` says."""
    HEADER = "header"
    """Only its header changed."""
    RESYNC = "resync"
    """Events were left out: header and content are all of it as it is now."""


class Origin(StrEnum):
    """Origin of a change, as seen by the session that subscribed."""

    OWN = "own"
    OTHER = "other"


class SplicePatch(Result):
    """At code point `offset`, `delete_count` code points went and `insert` came.

    Splices are to be carried out in order: each counts in the text as the earlier ones left it.
    """

    offset: int
    """Code points from the start of the text."""
    delete_count: int
    """Code points that went."""
    insert: str
    """Text that came."""
    section: str | None = None
    """The path of the section; absent for a content that is one text."""


class PartValue(Result):
    """A part of a content as it is after the change."""

    path: str | None = None
    """The path of the part; absent if it is the whole content."""
    value: Any = None
    """Its JSON."""


class BlockEvent(Result):
    """One change of one block."""

    context_id: str
    context_version: int
    block_id: str
    name: str
    version: int
    from_version: int | None = None
    """The version that the patch starts from; absent if the event says all there is."""
    kind: BlockEventKind
    """Kind of the event."""
    splices: list[SplicePatch] = Field(default_factory=list)
    """How its texts changed."""
    parts: list[PartValue] = Field(default_factory=list)
    """Further changes of its content."""
    header: BlockInfo | None = None
    """The whole header, if something in it changed."""
    content: Any = None
    """The whole content, or of the part that is followed, if `kind` is created or resync: the text,
    or JSON of another schema."""
    operation: str | None = None
    """Operation; absent if the event stands for several changes."""
    attribution: str | None = None
    """`agent:{id}:{operation}`, `source:{id}:update` or `system:{operation}`."""
    principal: str | None = None
    username: str | None = None
    time: str | None = None
    origin: Origin = Origin.OTHER
    """`own` if the session that subscribed did it."""

    def subject(self, section: str) -> BlockEvent | None:
        """Return the event for one part of the content; None if nothing is left."""

        def within(path: str | None) -> bool:
            return path is None or path == section or path.startswith(section + "/")

        splices = [one for one in self.splices if within(one.section)]
        parts = [one for one in self.parts if within(one.path)]
        if not splices and not parts:
            return None
        return self.model_copy(update={"splices": splices, "parts": parts})

    @property
    def size(self) -> int:
        """Roughly, in code points."""
        parts = sum(len(str(one.value)) for one in self.parts)
        inserted = sum(len(one.insert) for one in self.splices)
        return inserted + parts + len(self.content if isinstance(self.content, str) else "")


def events_of(context: Context, applied: Applied) -> Iterator[BlockEvent]:
    """The events of one change; to be called before anything else is applied."""
    principal = applied.actor.principal
    for block, version in applied.versions.items():
        made = any(block in change.added for change in applied.changes)
        splices, parts = ([], []) if made else _patch(context, block, applied)
        fields = {one.block for change in applied.changes for one in change.headers}
        kind = BlockEventKind.EDITED if splices or parts else BlockEventKind.HEADER
        yield BlockEvent(
            context_id=context.id,
            context_version=applied.seq,
            block_id=block,
            name=context.block_name(block),
            version=version,
            from_version=None if made else version - 1,
            kind=BlockEventKind.CREATED if made else kind,
            splices=splices,
            parts=parts,
            header=BlockInfo(**header_values(context, block)) if made or block in fields else None,
            content=read_value(context.document, block) if made else None,
            operation=applied.operation,
            attribution=attribution(principal.id, principal.kind, applied.operation),
            principal=principal.id,
            username=principal.username,
            time=iso_time(applied.time),
        )


def _patch(
    context: Context, block: str, applied: Applied
) -> tuple[list[SplicePatch], list[PartValue]]:
    splices: list[SplicePatch] = []
    paths: dict[str | None, None] = {}
    for change in applied.changes:
        for text in change.texts:
            if text.block == block and text.splices:
                splices += _splices(text.splices, text.section)
            elif text.block == block:
                paths[text.section] = None  # nobody has read it yet, so nobody knows the offsets
        paths.update((one.path, None) for one in change.contents if one.block == block)
    document = context.document
    parts = [PartValue(path=path, value=read_value(document, block, path)) for path in paths]
    return [one for one in splices if one.section not in paths], parts


def _splices(splices: tuple[TextSplice, ...], section: str | None) -> Iterator[SplicePatch]:
    for one in splices:
        yield SplicePatch(
            offset=one.offset, delete_count=one.deleted, insert=one.inserted, section=section
        )


def _event_now(context: Context, block: str, kind: BlockEventKind, **fields: Any) -> BlockEvent:
    """Return an event that tells a block as it is now, header included."""
    return BlockEvent(
        context_id=context.id,
        context_version=context.seq,
        block_id=block,
        name=context.block_name(block),
        version=context.blocks.version(block),
        kind=kind,
        header=BlockInfo(**header_values(context, block)),
        **fields,
    )


async def whole_block(
    context: Context, block: str, kind: BlockEventKind, section: str | None = None
) -> BlockEvent:
    """A block as it is; what it says is on disk.

    Args:
        section: the part of its content that is told; None for all of it.
    """
    content = read_value(context.document, block, section)
    event = _event_now(context, block, kind, content=content)
    await context.wait_persisted()
    return event


async def block_since(context: Context, block: str, version: int) -> BlockEvent | None:
    """Return the change of a block since one of its versions; None if there is none.

    Text is told as splices; a block of another schema, or a version that never was, as a resync.
    """
    if version == context.blocks.version(block):
        await context.wait_persisted()
        return None
    known = 1 <= version < context.blocks.version(block)
    if not known or not is_text(context.document.schema(block)):
        return await whole_block(context, block, BlockEventKind.RESYNC)
    before = (await context.history(block)).text(None, version)
    difference = tuple(plan_difference(before, context.document.text(block)))
    kind = BlockEventKind.EDITED if difference else BlockEventKind.HEADER
    splices = list(_splices(difference, None))
    event = _event_now(context, block, kind, from_version=version, splices=splices)
    await context.wait_persisted()
    return event
