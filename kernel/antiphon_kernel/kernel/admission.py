"""What a connected client's raw update may do; decided before it reaches the document.

A client edits text and creates its own drafts. Everything else (header fields, other people's
block ids, ``meta``, ``members``) goes through tools. An update is accepted or refused whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from antiphon_kernel.document.document import Document
from antiphon_kernel.document.header import CONTENT, FIELDS
from antiphon_kernel.kernel.limits import Limits
from antiphon_kernel.kernel.structure import Structure, is_structure
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.ids import DRAFT_SEQ_LIMIT, DRAFT_SEQ_MIN, BlockId
from antiphon_kernel.types.records import Actor
from antiphon_kernel.wire.state_vector import decode_state_vector
from antiphon_kernel.wire.update import (
    ContentKind,
    DecodedUpdate,
    ItemId,
    SharedType,
    Struct,
    decode_update,
)


@dataclass(frozen=True, slots=True)
class Admitted:
    """An update that may be applied: the blocks it creates and the client ids it writes with."""

    drafts: tuple[str, ...]
    clients: tuple[int, ...]


def admit(
    document: Document,
    actor: Actor,
    update: bytes,
    owners: Mapping[int, str],
    structure: Structure,
    limits: Limits,
) -> Admitted:
    """Check one raw update.

    Args:
        owners: CRDT client id to the principal that writes with it.
        structure: what in the document is not text.

    Raises:
        AntiphonError: too_large, invalid_params (not an update), gap, permission_denied.
    """
    if len(update) > limits.update_bytes:
        raise AntiphonError(
            ErrorCode.TOO_LARGE,
            f"An update has {len(update)} bytes, {limits.update_bytes} are allowed:"
            " send it in smaller pieces.",
            limit=limits.update_bytes,
        )
    try:
        decoded = decode_update(update)
    except ValueError as error:
        raise AntiphonError(
            ErrorCode.INVALID_PARAMS, f"The bytes are not a Yjs update (version 1): {error}."
        ) from error
    known = decode_state_vector(document.state_vector())
    new = [one for one in decoded.structs if one.clock + one.length > known.get(one.client, 0)]
    if len(new) > limits.update_structs:
        raise AntiphonError(
            ErrorCode.TOO_LARGE,
            f"An update brings {len(new)} items, {limits.update_structs} are allowed:"
            " send it in smaller pieces.",
            limit=limits.update_structs,
        )
    _refuse_gaps(decoded, new, known)
    if structure.hurt_by(decoded.deletions) is not None:
        raise _tools_only()
    clients = _writing_clients(document, actor, new, owners)
    return Admitted(_drafts(document, actor, new, structure), clients)


def _refuse_gaps(decoded: DecodedUpdate, new: list[Struct], known: Mapping[int, int]) -> None:
    """Everything an update builds on must be here already or come with it."""
    reached = dict(known)
    for one in sorted(new, key=lambda one: one.clock):
        if one.kind is ContentKind.SKIP or one.clock > reached.get(one.client, 0):
            raise _gap(one.client, one.clock)
        reached[one.client] = one.clock + one.length
    for one in new:
        for origin in (one.origin, one.right_origin, one.parent):
            if isinstance(origin, ItemId) and origin.clock >= reached.get(origin.client, 0):
                raise _gap(origin.client, origin.clock)
    for item in decoded.deletions:
        if item.end > reached.get(item.client, 0):
            raise _gap(item.client, item.start)


def _gap(client: int, clock: int) -> AntiphonError:
    return AntiphonError(
        ErrorCode.GAP,
        f"An update builds on item {clock} of client {client}, which has not arrived:"
        " send everything since the state vector that follows.",
        client=str(client),
        clock=clock,
    )


def _writing_clients(
    document: Document, actor: Actor, new: list[Struct], owners: Mapping[int, str]
) -> tuple[int, ...]:
    clients = {one.client for one in new}
    for client in clients:
        owner = owners.get(client)
        if client in (document.client_id, document.genesis_client) or (
            owner is not None and owner != actor.principal.id
        ):
            raise _denied(
                f"The CRDT client id {client} belongs to somebody else: use a fresh one.",
            )
    return tuple(client for client in clients if client not in owners)


def _drafts(
    document: Document, actor: Actor, new: list[Struct], structure: Structure
) -> tuple[str, ...]:
    """The blocks that the update creates; raises if it writes anything but text besides."""
    created: dict[ItemId, str] = {}
    for one in new:
        if one.parent == "blocks" and one.key is not None:
            _check_draft_id(document, actor, one.key)
            if one.kind is not ContentKind.TYPE or one.content is not SharedType.MAP:
                raise _denied(f"Block {one.key} is not a map: see the document layout.")
            created[ItemId(one.client, one.clock)] = one.key
    for one in new:
        if one.parent == "blocks" and one.key is not None:
            continue
        of_new_block = isinstance(one.parent, ItemId) and one.parent in created
        if of_new_block and (one.key in FIELDS or one.key == CONTENT):
            continue
        beside = (one.origin, one.right_origin)
        if is_structure(one) or any(item in structure for item in beside if item is not None):
            raise _tools_only()
    return tuple(created.values())


def _check_draft_id(document: Document, actor: Actor, key: str) -> None:
    try:
        block = BlockId.parse(key)
    except ValueError as error:
        raise _denied(
            f"A block is created under {key!r}, which is no block id: {error}."
        ) from error
    if block.context != document.context or block.principal != actor.principal.id:
        raise _denied(f"Block {key} would not be your own: use your principal and this context.")
    if not DRAFT_SEQ_MIN <= block.seq < DRAFT_SEQ_LIMIT:
        raise _denied(
            f"The number {block.seq} of a draft is not drawn from 2^32 up to 2^53: draw it anew."
        )
    if key in document:
        raise _denied(f"There is already a block {key}: draw another number for a new draft.")


def _tools_only() -> AntiphonError:
    return _denied(
        "A connected client edits text and creates its own drafts; header fields are"
        " written by tools: call block.status, block.collapse or the like."
    )


def _denied(message: str) -> AntiphonError:
    return AntiphonError(ErrorCode.PERMISSION_DENIED, message)
