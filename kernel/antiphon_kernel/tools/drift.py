"""Drift between contexts: `drift.push`, `.pull`, `.list`, `.cancel`, and delivering what is staged.

A drift is stored before it is delivered, and delivered in one transaction of its target that also
says so: once, however often it is tried.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any, Final, Self

from pydantic import BaseModel, ConfigDict, Field

from antiphon_kernel.access import VIA_TURN, AuthenticationError
from antiphon_kernel.cluster import forwarding
from antiphon_kernel.contexts import Context, Submission
from antiphon_kernel.contexts.lineage.drifting import (
    Changes,
    TakenBlocks,
    WrittenDrift,
    capture,
    write_drift,
)
from antiphon_kernel.contexts.lineage.forking import read_version
from antiphon_kernel.contexts.lineage.merging import check_mergeable
from antiphon_kernel.document.rendering import render
from antiphon_kernel.kernel import Call, Kernel
from antiphon_kernel.registry import REFERENCES, Params, Result, tool
from antiphon_kernel.storage import ContextRow, Dismissal, DriftRow
from antiphon_kernel.tasks import run_uninterrupted
from antiphon_kernel.tools._common import attached_files, block_in
from antiphon_kernel.tools.drift_merge import (
    MOST_BLOCKS,
    MergeParams,
    WayResult,
    merge_changes,
    merge_target,
    planned,
)
from antiphon_kernel.types.clock import iso_time
from antiphon_kernel.types.drift import DriftOrigin, drift_origin, is_drifted
from antiphon_kernel.types.enums import (
    BlockKind,
    ContextKind,
    DriftKind,
    DriftState,
    PrincipalKind,
    Role,
    Status,
)
from antiphon_kernel.types.errors import (
    AntiphonError,
    ErrorCode,
    invalid_params,
    permission_denied,
    storage_failed,
)
from antiphon_kernel.types.ids import SessionId
from antiphon_kernel.types.quoting import quote
from antiphon_kernel.types.records import Actor
from antiphon_kernel.types.roles import Permission

_REPEATED: Final = (ErrorCode.STORAGE_FAILED, ErrorCode.NO_KERNEL, ErrorCode.NOT_OWNER)
"""Errors after which a drift stays staged, and is delivered later."""

_log = logging.getLogger(__name__)


class DriftResult(WayResult):
    """A drift, and what has come of it."""

    drift_id: str
    kind: DriftKind
    """Way in which it goes."""
    state: DriftState
    """How far it has come."""
    outcome: str | None = None
    """Why it was not delivered, or not yet, or what it lacks."""
    block_id: str | None = None
    """Its block of kind drift at the target."""
    name: str | None = None
    context_version: int | None = None
    """The version of the target that brought it."""

    @classmethod
    def of(cls, kernel: Kernel, row: DriftRow, **fields: Any) -> Self:
        """Return what is told of a drift."""
        source, target = map(kernel.contexts.of_number, (row.source, row.target))
        return cls.between(
            source,
            target,
            row.version,
            drift_id=row.id,
            kind=row.kind,
            state=row.state,
            outcome=row.outcome or None,
            block_id=row.block or None,
            name=kernel.block_name(row.block) if row.block else None,
            context_version=row.seq or None,
            **fields,
        )


class DeliveredResult(DriftResult):
    """A drift that has arrived."""

    blocks: list[str] = Field(default_factory=list)
    """The copies at the target, in order."""
    blocks_names: list[str] = Field(default_factory=list)
    changed: list[str] = Field(default_factory=list)
    """Blocks of the target that a merge has changed."""
    changed_names: list[str] = Field(default_factory=list)


class CopiedBlocksParams(Params):
    """Blocks that go from one context to another."""

    blocks: list[str] | None = Field(default=None, min_length=1, max_length=MOST_BLOCKS)
    """Attachments go with their message, results with their call; the last answer if absent."""
    reply_to: str | None = None
    """A block of the target that they answer."""
    wake: bool | None = None
    """Whether the models of the target answer it; true of people, false of models if absent."""


class PushParams(CopiedBlocksParams):
    """Blocks of a context, and the context that they go to."""

    to: str
    """Label or id."""
    context: str | None = None
    """The context whose last answer is meant, if no blocks are named."""


class PullParams(CopiedBlocksParams):
    """Blocks of another context, and the context that they come into."""

    source: str
    """Label or id."""
    context: str | None = None
    """The context that they come into."""


class DriftListParams(Params):
    """Filter for drifts."""

    context: str | None = None
    """Only those from or to this context."""


class ListedDrift(DriftResult):
    """A drift, and who asked for it."""

    username: str
    """Name of whoever asked for it."""
    time: str
    """When they did."""


class DriftListResult(Result):
    """The drifts of a kernel, oldest first."""

    drifts: list[ListedDrift]
    """One entry a drift."""


class DriftCancelParams(Params):
    """A drift that is not delivered yet."""

    drift_id: str


ERRORS: Final = (*REFERENCES, ErrorCode.TOO_LARGE, ErrorCode.INVALID_TRANSITION)


@tool("drift.push", needs=Permission.WRITE, errors=ERRORS)
async def push(call: Call, params: PushParams) -> DeliveredResult:
    """Copy blocks into another context, as one message that says where they are from.

    Each copy keeps its kind, its author and who wrote what; the originals stay as they are. One
    undo at the target takes all of it back.
    """
    if params.blocks:
        source, _ = await call.block(params.blocks[0])
    else:
        source = await call.context(params.context)
    target = await call.context(params.to)
    return await _move(call, DriftKind.PUSH, source, target, params)


@tool("drift.pull", needs=Permission.WRITE, errors=ERRORS)
async def pull(call: Call, params: PullParams) -> DeliveredResult:
    """Copy blocks of another context into this one, as drift.push does."""
    source, target = await call.context(params.source), await call.context(params.context)
    return await _move(call, DriftKind.PULL, source, target, params)


async def _move(
    call: Call,
    kind: DriftKind,
    source: Context,
    target: Context,
    params: CopiedBlocksParams,
) -> DeliveredResult:
    if source is target:
        raise invalid_params(
            f"Context {source.label} is where it comes from and where it goes: name another one.",
            field="to",
        )
    answered = await block_in(call, target, params.reply_to) if params.reply_to else None
    source.appends.flush_all()
    named = [await block_in(call, source, one) for one in params.blocks or ()]
    blocks = _together(source, named or _last_answer(source))
    request = DriftRequest(
        blocks=tuple(blocks),
        lineage=lineage_of(source, blocks),
        reply_to=answered,
        wakes=wakes(call, params.wake),
    )
    return await _bring(call, kind, source, target, request)


async def _bring(
    call: Call, kind: DriftKind, source: Context, target: Context, request: DriftRequest
) -> DeliveredResult:
    """Store a drift and deliver it, also if the call is broken off meanwhile.

    It is of the version of the source in the moment of the call. Once it is stored, it survives the
    end of the process.
    """
    kernel, actor = call.kernel, call.actor
    about = {"credential": actor.credential, "of_turn": actor.via == VIA_TURN}
    row = DriftRow(
        kernel.ids.uuid7(),
        kind,
        source.row.number,
        source.seq,
        target.row.number,
        actor.principal.id,
        kernel.clock.now_ms(),
        request=request.model_copy(update=about).model_dump_json(),
    )

    async def bring() -> DeliveredResult:
        await source.wait_persisted()
        await kernel.drifts.store(row)
        return await deliver(kernel, row.id, actor)

    return await run_uninterrupted(bring())


def lineage_of(source: Context, blocks: Sequence[str]) -> tuple[str, ...]:
    """Return the contexts that blocks came through before they were in this one."""
    found: dict[str, None] = {}
    for header in source.document.headers(blocks):
        while is_drifted(header.metadata) and header.parent is not None:
            header = source.document.header(header.parent)
        if (origin := drift_origin(header.metadata)) is not None:
            found |= dict.fromkeys((*origin.lineage, origin.context))
    return tuple(found)


@tool(
    "drift.merge",
    needs=Permission.WRITE,
    errors=(*ERRORS, ErrorCode.MERGE_CONFLICT, ErrorCode.STALE_VERSION),
)
async def merge(call: Call, params: MergeParams) -> DeliveredResult:
    """Bring what a fork has written since it was made, or merged last, to where it came from.

    Blocks that both have are changed by a three-way merge: what each side wrote is kept, and keeps
    its authors. New blocks come behind them, as drift.push brings them. Where both sides have
    changed one place, nothing is merged until resolve or prefer say what becomes of it. All of it
    is one step of undo.
    """
    source = await call.context(params.source)
    target = await merge_target(call, source, params.target)
    if params.conclude and not call.role.may(Permission.ARRANGE):
        raise permission_denied(
            f"You are {call.role.described()}, and archive no context: leave conclude out."
        )
    blocks = None
    if params.blocks is not None:
        blocks = [await block_in(call, source, one) for one in params.blocks]
    check_mergeable(source, target)
    if params.summary:
        plan = await planned(call.kernel, source, target)
        new = plan.offers if blocks is None else blocks
        said = {"source": source.id, "context": target.id, "model": params.model}
        read = [*(one.original for one in plan.changes), *new]
        if len(read) > MOST_BLOCKS:
            raise invalid_params(
                f"A summary is of at most {MOST_BLOCKS:,} blocks, and here are {len(read):,}: name"
                " fewer `blocks`, or leave summary out.",
                field="summary",
            )
        about = {**said, "blocks": read, "wake": params.wake}
        summed_up = await call.kernel.call(call.actor, "drift.distill", about)
        merged = DeliveredResult.model_validate(summed_up)
    else:
        request = DriftRequest(
            wakes=params.wake, merge=params.model_copy(update={"blocks": blocks})
        )
        merged = await _bring(call, DriftKind.MERGE, source, target, request)
    is_whole = target.document.header(merged.block_id or "").status == Status.DONE
    if params.conclude and is_whole:
        await call.kernel.contexts.archive(call.actor, source, True)
    return merged


def check_open(target: ContextRow) -> None:
    """Raise if nothing drifts into a context.

    Raises:
        AntiphonError: invalid_params, if it is a file; invalid_transition, if it is archived.
    """
    if target.kind is not ContextKind.CONVERSATION:
        raise invalid_params(
            f"{target.label} is a file: drift.commit writes into files.", field="to"
        )
    if target.archived is not None:
        raise AntiphonError(
            ErrorCode.INVALID_TRANSITION,
            f"Context {target.label} has been archived, so nothing was brought there: bring it"
            " back with context.archive, or name another one.",
        )


def wakes(call: Call, asked: bool | None) -> bool:
    """Return whether a drift wakes models: people's do, unless they say otherwise."""
    return asked if asked is not None else call.actor.principal.kind is PrincipalKind.HUMAN


def _last_answer(source: Context) -> list[str]:
    """Return the last text that a model has finished."""
    document = source.document
    for block in reversed(document.block_ids()):
        header = document.header(block)
        if (
            header.kind == BlockKind.TEXT
            and header.role == Role.MODEL
            and header.status == Status.DONE
            and not header.excluded
            and not is_drifted(header.metadata)
        ):
            return [block]
    raise invalid_params(
        f"There is no answer of a model in context {source.label}: name the blocks that are meant.",
        field="blocks",
    )


def _together(source: Context, blocks: Sequence[str]) -> list[str]:
    """Return blocks in document order, with what is attached to them and the results of calls."""
    document = source.document
    found = set(blocks)
    for block in blocks:
        header = document.header(block)
        if document.is_draft(block):
            raise invalid_params(
                f"Block {quote(block)} is a draft: it drifts when it has been sent.", field="blocks"
            )
        found.update(one.id for one in attached_files(source, block) if not one.excluded)
        if header.kind == BlockKind.TOOL_CALL:
            below = map(document.header, source.block_tree.descendants(block, 1))
            found.update(one.id for one in below if one.kind == BlockKind.TOOL_RESULT)
    return sorted(found, key=document.order.index)


class DriftRequest(BaseModel):
    """Wishes of whoever asks for a drift, as they are stored until it is delivered."""

    model_config = ConfigDict(frozen=True)

    blocks: tuple[str, ...] = ()
    lineage: tuple[str, ...] = ()
    reply_to: str | None = None
    wakes: bool = False
    merge: MergeParams | None = None
    credential: int | None = None
    """Number of that which let in whoever asked."""
    of_turn: bool = False
    """Whether a model asked in a turn."""


async def deliver(kernel: Kernel, drift: str, actor: Actor) -> DeliveredResult:
    """Deliver a staged drift.

    Raises:
        AntiphonError: why it is not delivered; invalid_transition if it is not staged any more.
    """
    drifts = kernel.drifts
    await kernel.open_contexts.own(kernel.contexts.of_number(drifts[drift].target))
    async with drifts.lock(drift):
        row = drifts[drift]
        if row.state is not DriftState.STAGED:
            raise _not_staged(row)
        try:
            context, written = await _write(kernel, row, actor)
            drifts.know(written.row)
            await written.handle.saved()
        except AntiphonError as error:
            state = DriftState.STAGED if error.code in _REPEATED else DriftState.REFUSED
            drifts.know(replace(row, state=state, outcome=error.message))
            await drifts.store(drifts[drift])
            if error.code is not ErrorCode.STORAGE_FAILED:
                raise
            raise storage_failed(
                f"{error.message} It is kept as the drift {drift} and delivered when the kernel"
                " starts again.",
                **error.details,
            ) from error
    block, copies = written.row.block, written.copies
    header = context.document.header(block)
    if (origin := drift_origin(header.metadata)) is not None and origin.wakes:
        text = "\n".join(render(context.document, one) for one in (block, *copies))
        kernel.submissions.notify(Submission(context, block, text, actor))
    changed = [one for one in written.handle.versions if one not in (block, *copies)]
    return DeliveredResult.of(
        kernel,
        written.row,
        blocks=list(copies),
        blocks_names=[context.block_name(one) for one in copies],
        changed=changed,
        changed_names=[context.block_name(one) for one in changed],
    )


async def _write(kernel: Kernel, row: DriftRow, actor: Actor) -> tuple[Context, WrittenDrift]:
    source, target = map(kernel.contexts.of_number, (row.source, row.target))
    request = DriftRequest.model_validate_json(row.request)
    kernel.sessions.check(actor)
    kernel.files.check_shown(actor.principal, kernel.files.path_of(source.id))
    check_open(target)
    context, client = await kernel.context(target.id), kernel.ids.client_id()
    time, changes = kernel.clock.now_ms(), Changes(parent=request.reply_to)
    if request.merge is not None:
        fork = await kernel.context(source.id)
        plan = await planned(kernel, fork, context)
        blocks, changes = merge_changes(fork, context, plan, request.merge, actor, time)
        taken = TakenBlocks(capture(fork.document, blocks, client), blocks, plan.authors)
        row = replace(row, version=plan.version)
    else:
        blocks, version, now = request.blocks, row.version, kernel.open_contexts.get(source.id)
        if now is not None and now.seq == version and not now.is_partial:
            document = capture(now.document, blocks, client)
        else:
            document = await read_version(kernel.journal, source, version, client)
        taken = await TakenBlocks.read(kernel.journal, source, document, blocks, version)
    with closing(taken.document):
        origin = DriftOrigin(
            row.id,
            source.id,
            source.label,
            row.version,
            actor.principal.username,
            blocks,
            request.lineage,
            request.wakes,
        )
        find = kernel.members.find
        return context, write_drift(context, actor, row, origin, find, time, changes, taken)


async def resume_all_drifts(kernel: Kernel) -> None:
    """Deliver what was staged when the kernel ended, and when others die for as long as it runs."""
    roots = asyncio.Queue[int]()
    kernel.open_contexts.inherited.listen(roots.put_nowait)
    await resume_drifts(kernel)
    while True:
        await resume_drifts(kernel, await roots.get())


async def resume_drifts(kernel: Kernel, root: int | None = None) -> None:
    """Deliver what was staged by a kernel that has ended; from contexts of one tree, or of all."""
    for row in kernel.drifts.rows():
        if row.state is not DriftState.STAGED or root not in (
            None,
            kernel.contexts.root(row.source),
        ):
            continue
        try:
            request = DriftRequest.model_validate_json(row.request)
            with forwarding():  # what another kernel has is for that one to deliver
                await kernel.open_contexts.own(kernel.contexts.of_number(row.source))
            actor = _returned(kernel, row, request)
            try:
                await deliver(kernel, row.id, actor)
            finally:
                await kernel.close_session(actor)
        except AntiphonError as error:
            _log.warning("the drift %s was not delivered: %s", row.id, error)
        except Exception:  # noqa: BLE001  whatever one fails with, the others are delivered
            _log.exception("the drift %s was not delivered", row.id)


def _returned(kernel: Kernel, row: DriftRow, request: DriftRequest) -> Actor:
    """Return a session of whoever asked for a drift, with the rights that they have now.

    It is dismissed if they could not come again as before.
    """
    principal = kernel.members.find(row.principal)
    role, now = kernel.members.role_of(principal), kernel.clock.now_ms()
    session = SessionId(kernel.ids.uuid7())
    before = Actor(principal, session, role, VIA_TURN, now, request.credential)
    actor = kernel.open_work_session(before, Permission.WRITE)
    try:
        if request.of_turn:
            raise AuthenticationError("The turn that asked for it has ended with the kernel.")
        kernel.access.check_return(principal, request.credential)
    except AuthenticationError as error:
        dismissal = Dismissal(error.close_code, str(error))
        kernel.sessions.dismiss(dismissal, lambda one: one is actor)
    return actor


def _not_staged(row: DriftRow) -> AntiphonError:
    said = f"It was {row.state}" + (f": {row.outcome}" if row.outcome else "")
    return AntiphonError(
        ErrorCode.INVALID_TRANSITION,
        f"The drift {row.id} is not staged any more. {said.rstrip('.')}.",
    )


@tool("drift.list", needs=Permission.READ, errors=REFERENCES[1:])
async def list_drifts(call: Call, params: DriftListParams) -> DriftListResult:
    """List what has gone from one context to another, what waits to go, and what was refused."""
    kernel, number = call.kernel, None
    if params.context is not None:
        number = kernel.contexts[await kernel.contexts.look_up(params.context)].number
    found: list[ListedDrift] = []
    for row in kernel.drifts.rows():
        if number in (None, row.source, row.target):
            username = kernel.members.find(row.principal).username
            time = iso_time(row.time)
            found.append(ListedDrift.of(kernel, row, username=username, time=time))
    return DriftListResult(drifts=found)


@tool("drift.cancel", needs=Permission.WRITE, errors=(ErrorCode.INVALID_TRANSITION,))
async def cancel(call: Call, params: DriftCancelParams) -> DriftResult:
    """Take back a drift that is staged and not delivered; one that has arrived can be undone.

    Only whoever asked for it may do this, and the owner of the kernel.
    """
    kernel, drifts = call.kernel, call.kernel.drifts
    known = {row.id: row for row in drifts.rows()}
    if params.drift_id not in known:
        raise invalid_params(
            f"There is no drift {quote(params.drift_id)}: drift.list names those that there are.",
            field="drift_id",
        )
    await kernel.open_contexts.own(kernel.contexts.of_number(known[params.drift_id].target))
    async with drifts.lock(params.drift_id):
        row = drifts[params.drift_id]
        if row.principal != call.actor.principal.id and not call.role.may(Permission.OWN):
            raise permission_denied(
                f"{kernel.members.find(row.principal).username} asked for this drift: they may"
                " cancel it, and the owner."
            )
        if row.state is not DriftState.STAGED:
            raise _not_staged(row)
        await drifts.store(replace(row, state=DriftState.CANCELLED, request=""))
    return DriftResult.of(kernel, drifts[row.id])
