"""Blocks as they change: `block.subscribe`, `block.unsubscribe` and `block.sync`."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from antiphon_kernel.document.content import part_of
from antiphon_kernel.kernel import Call
from antiphon_kernel.registry import REFERENCES, Params, Result, tool
from antiphon_kernel.subscriptions import BlockEvent, BlockEventKind, block_since, whole_block
from antiphon_kernel.types.errors import ErrorCode, block_not_found, invalid_params
from antiphon_kernel.types.roles import Permission

Version = Annotated[int, Field(ge=0)]
Versions = list[tuple[str, Version]] | dict[str, Version]
"""Block ids and the version one has of each: a list of pairs or an object."""


class SubscribeParams(Params):
    """Blocks to follow, and versions that the caller has."""

    context: str | None = None
    """Label or id; if no blocks are named, all blocks of it, also those that come later."""
    block_ids: list[str] | None = None
    """Only these blocks; all of the context if absent or empty."""
    section: str | None = None
    """Only what concerns this part of the content of the blocks that are named: path of a section
    or of a field."""
    from_versions: Versions | None = None
    """The versions that the caller has: what has changed since comes first, as a patch where there
    can be one; so do the blocks that it does not have. Nothing comes first if absent."""


class SubscribeResult(Result):
    """The events come from now on."""

    subscription: str
    """Name of the subscription: events carry it, and block.unsubscribe takes it."""
    context_version: int


class UnsubscribeParams(Params):
    """Subscription to end."""

    subscription: str
    """As block.subscribe returned it."""


class UnsubscribeResult(Result):
    """It is over; every event came before this answer."""

    subscription: str
    """The one that was ended."""


class SyncParams(Params):
    """Versions of the caller."""

    context: str | None = None
    """Label or id; the context of the first block that is named, or the default one, if absent."""
    versions: Versions = Field(default_factory=list)
    """Block ids and the version one has of each."""
    limit: int = Field(default=100, ge=1, le=1_000)
    """How many blocks to answer with; call again with what came until `truncated` is false."""


class SyncResult(Result):
    """Blocks that the caller lacks."""

    patches: list[BlockEvent]
    """Of the blocks that it has in an earlier version."""
    new_blocks: list[BlockEvent]
    """The blocks that it does not have, in document order."""
    truncated: bool
    context_version: int


@tool(
    "block.subscribe",
    needs=Permission.READ,
    errors=(*REFERENCES, ErrorCode.SCHEMA_VIOLATION, ErrorCode.TOO_LARGE),
)
async def subscribe(call: Call, params: SubscribeParams) -> SubscribeResult:
    """Follow blocks: every committed change of one becomes an event.

    Over a WebSocket, and in `antiphon call --jsonl`, events come as `{"subscription", "event"}`
    beside the answers; a POST answers with lines of them for as long as it is read. An event has
    the new version, the patch in code points, who did it and whether that was this session. A
    reader that is too slow gets a `resync` of the blocks that it has missed something of.
    """
    named = [await call.block(reference) for reference in params.block_ids or ()]
    known = await _known(call, params.from_versions or [])
    if named:
        contexts = list(dict.fromkeys(context for context, _ in named))
        blocks = frozenset(block for _, block in named)
        if params.context is not None and contexts != [await call.context(params.context)]:
            raise block_not_found(
                f"Not all of these blocks are in context {params.context}: leave out `context`.",
                params.context,
            )
    else:
        contexts, blocks = [await call.context(params.context)], None
    if params.section is not None:
        if not named:
            raise invalid_params(
                "section is a part of the blocks that are named: give block_ids with it.",
                field="section",
            )
        for context, block in named:
            part_of(context.document, block, params.section)
    made = await call.kernel.subscriptions.open(call.actor, contexts, blocks, params.section)
    if params.from_versions is not None:
        for context in contexts:
            for block in context.document.block_ids():
                version = known.get(block)
                if made.follows(block) and version != context.blocks.version(block):
                    made.resume(block, version)
    return SubscribeResult(subscription=made.id, context_version=contexts[0].seq)


@tool("block.unsubscribe", needs=Permission.READ)
async def unsubscribe(call: Call, params: UnsubscribeParams) -> UnsubscribeResult:
    """End a subscription of this session."""
    subscriptions = call.kernel.subscriptions
    subscriptions.end(subscriptions.find(call.actor, params.subscription))
    return UnsubscribeResult(subscription=params.subscription)


@tool("block.sync", needs=Permission.READ, errors=REFERENCES)
async def sync(call: Call, params: SyncParams) -> SyncResult:
    """Say what has changed since the versions that the caller has, and what is new."""
    known = await _known(call, params.versions)
    first = next(iter(known), None)
    if params.context is not None or first is None:
        context = await call.context(params.context)
    else:
        context = await call.context(first.split(".", 1)[0])
    for block in known:
        if block not in context.document:
            raise block_not_found(
                f"There is no block {block} in context {context.label}: sync one context a time.",
                block,
            )
    context.appends.flush_all()
    patches: list[BlockEvent] = []
    new_blocks: list[BlockEvent] = []
    seq, truncated = context.seq, False
    for block in list(context.document.block_ids()):
        version = known.get(block)
        if version == context.blocks.version(block):
            continue
        if len(patches) + len(new_blocks) == params.limit:
            truncated = True
            break
        if version is None:
            new_blocks.append(await whole_block(context, block, BlockEventKind.CREATED))
        elif (patch := await block_since(context, block, version)) is not None:
            patches.append(patch)
    await context.wait_persisted()
    return SyncResult(
        patches=patches, new_blocks=new_blocks, truncated=truncated, context_version=seq
    )


async def _known(call: Call, versions: Versions) -> dict[str, int]:
    pairs = versions.items() if isinstance(versions, dict) else versions
    return {(await call.block(reference))[1]: version for reference, version in pairs}
