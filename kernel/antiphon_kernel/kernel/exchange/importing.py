"""An exported context becomes a new one: same blocks, same order, same authors."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from antiphon_kernel.document.conformity import Rule
from antiphon_kernel.document.content_writes import check_defaults, plan_set
from antiphon_kernel.document.document import Document
from antiphon_kernel.document.header import ENUMS, known_value
from antiphon_kernel.document.schema import decode_schema, each_part, is_text, path_of
from antiphon_kernel.journal.rows import (
    BlockRow,
    Commit,
    ContextRow,
    InheritedRun,
    InheritedText,
    SessionRow,
)
from antiphon_kernel.kernel.context.context import Context
from antiphon_kernel.kernel.exchange.records import BlockLine, Export, RunLine
from antiphon_kernel.kernel.hosting.directory import Beginning
from antiphon_kernel.kernel.kernel import Kernel
from antiphon_kernel.types.clock import moment_of
from antiphon_kernel.types.enums import PrincipalKind
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.ids import BlockId, ContextId, PrincipalId
from antiphon_kernel.types.quoting import shortened, shown
from antiphon_kernel.types.records import COLOUR_SLOTS, Actor, BlockHeader, Member, Principal


async def import_context(kernel: Kernel, actor: Actor, export: Export, label: str) -> Context:
    """Make a new context of an export. It is there whole or not at all.

    Principals are those of this kernel with the same usernames, made where there are none. Blocks
    keep their numbers, their order and their fields.

    Raises:
        AntiphonError: invalid_params if something in it cannot be; storage_failed.
    """
    principals: dict[str, Principal] = {}
    for line in export.principals:
        known = await kernel.principal(line.username, _kind(line.kind))
        principals[line.id] = known

    async def first(row: ContextRow) -> Beginning:
        return Beginning([_commit(kernel, actor, export, row, principals)])

    return await kernel.create_context(label, first)


def _commit(
    kernel: Kernel,
    actor: Actor,
    export: Export,
    row: ContextRow,
    principals: Mapping[str, Principal],
) -> Commit:
    _check_parents(export, kernel.limits.parent_depth)
    ids = {block.id: _moved(block.id, row.id, principals) for block in export.blocks}
    document = Document.found(
        kernel.ids.client_id(), context=row.id, epoch=row.epoch, label=row.label
    )
    with document.transaction("import") as transaction:
        # An empty context names nobody; then whoever imports it is its first member.
        members = {one.id: one for one in (principals or {"": actor.principal}).values()}
        for slot, principal in enumerate(members.values()):
            name, kind = principal.username, principal.kind
            document.set_member(Member(principal.id, name, kind, slot % COLOUR_SLOTS))
        for block in export.blocks:
            try:
                _create(document, block, _header(block, ids, principals))
            except (ValueError, TypeError) as error:
                raise _refusal(block.id, str(error)) from error
        inherited = tuple(
            text
            for number, one in enumerate(export.blocks, 1)
            for text in _inherited(document, number, one, ids[one.id], principals)
        )
    document.close()
    rows = tuple(BlockRow(number, ids[one.id], 1) for number, one in enumerate(export.blocks, 1))
    update = transaction.update
    assert update is not None, "there is at least one member"
    return Commit(
        context=row,
        seq=2,
        time=kernel.clock.now_ms(),
        principal=actor.principal,
        session=SessionRow.of(actor),
        operation="import",
        blocks=rows,
        update=update,
        inherited=inherited,
    )


def _check_parents(export: Export, limit: int) -> None:
    """Refuse parents that run in a circle, and chains of them that no tool would let grow so long.

    Blocks that should answer something and do not are as they were where they come from.
    """
    parents = {block.id: block.header.get("parent") for block in export.blocks}
    above: dict[str, int] = {}
    for block in parents:
        chain: list[str] = []
        at: object = block
        while isinstance(at, str) and at in parents and at not in above:
            above[at] = limit  # whoever comes by again has run in a circle
            chain.append(at)
            at = parents[at]
        count = above.get(at, -1) if isinstance(at, str) else -1
        for one in reversed(chain):
            count += 1
            above[one] = count
        if count >= limit:
            raise _refusal(
                block, f"the parents above it run in a circle, or are more than {limit - 1}"
            )


def _moved(block: str, context: ContextId, principals: Mapping[str, Principal]) -> str:
    try:
        found = BlockId.parse(block)
    except ValueError as error:
        raise _refusal(block, str(error)) from error
    return str(BlockId(context, PrincipalId(_principal(found.principal, principals)), found.seq))


def _header(
    block: BlockLine, ids: Mapping[str, str], principals: Mapping[str, Principal]
) -> BlockHeader:
    fields = dict(block.header)
    for name in ENUMS:
        fields[name] = known_value(name, fields.get(name))
    fields["author"] = _principal(fields.get("author"), principals)
    if "parent" in fields:
        parent = fields["parent"]
        if not isinstance(parent, str) or parent not in ids:
            raise _refusal(block.id, f"its parent {shown(parent)} is not in the export")
        fields["parent"] = ids[parent]
    return BlockHeader(id=ids[block.id], **fields)


def _create(document: Document, block: BlockLine, header: BlockHeader) -> None:
    if block.block_schema is None:
        document.create_block(header, block.text)
        return
    schema = decode_schema(json.dumps(block.block_schema))
    if schema is None:
        raise ValueError("its schema is none that this antiphon knows")
    check_defaults(schema)
    document.create_block(header, schema=schema)
    # What merging had broken where it comes from stays as it is.
    broken = (Rule.MAX_ITEMS, Rule.REQUIRED)
    for write in plan_set(document, header.id, None, block.content, allow=broken):
        write.apply()


def _inherited(
    document: Document,
    number: int,
    block: BlockLine,
    moved: str,
    principals: Mapping[str, Principal],
) -> Iterator[InheritedText]:
    """Who wrote each text of a new block."""
    for names, part in each_part(document.schema(moved)):
        if is_text(part):
            section = path_of(names)
            runs = _runs(block, section, len(document.text(moved, section)), principals)
            yield InheritedText(number, section, tuple(runs))


def _runs(
    block: BlockLine, section: str | None, length: int, principals: Mapping[str, Principal]
) -> list[InheritedRun]:
    end = 0
    runs = []
    for run in block.authors:
        if run.section != section:
            continue
        if run.start != end or run.end <= run.start:
            raise _refusal(block.id, f"its authors do not follow one another at {run.start}")
        end = run.end
        principal = _principal(run.principal, principals)
        runs.append(InheritedRun(run.start, run.end, principal, run.version, _time(block, run)))
    if end != length:
        raise _refusal(block.id, f"its authors end at {end}, its text at {length}")
    return runs


def _time(block: BlockLine, run: RunLine) -> int:
    try:
        return moment_of(run.time)
    except ValueError as error:
        raise _refusal(block.id, str(error)) from error


def _principal(stated: object, principals: Mapping[str, Principal]) -> str:
    found = principals.get(stated) if isinstance(stated, str) else None
    if found is None:
        raise AntiphonError(
            ErrorCode.INVALID_PARAMS,
            f"The export names the principal {shown(stated)} without a line about it."
            " Nothing was imported.",
        )
    return found.id


def _kind(stated: str) -> PrincipalKind:
    try:
        return PrincipalKind(stated)
    except ValueError as error:
        raise AntiphonError(
            ErrorCode.INVALID_PARAMS,
            f"{shown(stated)} is no kind of principal: use {', '.join(PrincipalKind)}.",
            allowed=list(PrincipalKind),
        ) from error


def _refusal(block: str, what: str) -> AntiphonError:
    return AntiphonError(
        ErrorCode.INVALID_PARAMS,
        f"Block {shortened(block)} cannot be imported: {what}. Nothing was imported.",
        block=shortened(block),
    )
