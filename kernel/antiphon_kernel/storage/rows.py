"""Rows written to and read from the journal."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

from antiphon_kernel.types.enums import ContextKind, DriftKind, DriftState
from antiphon_kernel.types.ids import ContextId
from antiphon_kernel.types.records import Actor, Run
from antiphon_kernel.yjs.restored_ids import RestoredRange


@dataclass(frozen=True, slots=True)
class ForkOrigin:
    """Source and extent of what a fork was copied from."""

    source: int
    """The number of the context."""
    seq: int
    """The version that was copied."""
    blocks: int
    """How many blocks were copied: in the fork those with the numbers from 1 to this."""


@dataclass(frozen=True, slots=True)
class ContextRow:
    """A context as the journal knows it. `number` stands for it in other rows."""

    number: int
    id: ContextId
    label: str
    epoch: str
    created: int
    archived: int | None = None
    """When it was put out of the way, in milliseconds; None if it is not."""
    origin: ForkOrigin | None = None
    """None if it is no fork, or one that states the authors of its texts itself."""
    creator: str | None = None
    """Id of the principal who wanted it; None if an older antiphon made it."""
    kind: ContextKind = ContextKind.CONVERSATION


@dataclass(frozen=True, slots=True)
class FileRow:
    """A file of the project that is a context: what its block and the disk last had in common."""

    context: int
    """The number of the context."""
    path: str
    """Relative to the project, with `/`."""
    format: str
    """In which way the file holds its text, as JSON."""
    digest: str
    """SHA-256 of the bytes that stood on disk; empty if none have."""
    version: int
    """Version of the block whose text they held; 0 if it is `base`."""
    base: bytes = b""
    """The text that they held, compressed, if no version of the block has it."""
    next_digest: str = ""
    """Digest of the bytes of a write that may have happened, or not."""
    next_version: int = 0
    """Version of the block that this write holds."""
    state: str = ""
    """Why the file is not written by itself; empty if it is."""
    theirs: bytes = b""
    """Of a conflict: the text on disk, compressed."""


@dataclass(frozen=True, slots=True)
class DriftRow:
    """Drift from one context to another, from being asked for to its end."""

    id: str
    kind: DriftKind
    source: int
    """The number of the context that it comes from."""
    version: int
    """The version of the source that is read."""
    target: int
    """The number of the context that it goes to."""
    principal: str
    """Id of whoever asked for it."""
    time: int
    """When, in milliseconds."""
    state: DriftState = DriftState.STAGED
    seq: int = 0
    """The version of the target that brought it; 0 if none has."""
    block: str = ""
    """Id of its block of kind drift; empty as long as there is none."""
    request: str = ""
    """The wishes of whoever asked, as JSON, until it is delivered."""
    outcome: str = ""
    """Why it was not delivered, or not yet."""


class SessionRow(NamedTuple):
    """Somebody's connection: its id, its principal's, how and when (milliseconds) it began."""

    id: str
    principal: str
    via: str
    opened: int


class BlockRow(NamedTuple):
    """The version counter of a block. `number` counts per context, in order of creation."""

    number: int
    id: str
    version: int


class UndoRow(NamedTuple):
    """One thing that can be undone or redone. What it did is in the transactions of its `unit`.

    `unit` is the `seq` of the first of them, which changed `block`; `place`, by which the highest
    row of a stack is undone or redone first, that of the transaction that put it there.
    """

    unit: int
    block: str
    principal: str
    kind: str
    stack: str
    place: int
    time: int


@dataclass(frozen=True, slots=True)
class InheritedText:
    """Authors of a text before it was copied."""

    block: int
    """The number of the copy."""
    section: str | None
    runs: tuple[Run, ...]
    """Of what was copied, in the order of the text."""
    version: int = 1
    """The version of the block that it came with."""


@dataclass(frozen=True, slots=True)
class Cut:
    """Point of a context's history up to which all that was written is left out of a state."""

    omitted: int
    """Number of the blocks that are left out: those with the numbers up to this."""
    clocks: Mapping[int, int]
    """The state vector up to which all is left out; empty if nothing is."""
    meta: Mapping[str, str]
    members: Mapping[str, str]
    """The root maps of these names, which may be left out."""
    blocks: int = 0
    """Number of all blocks, if the state is stored."""
    complete: int = 0
    """Number of the last blocks in document order that a stored state has for sure."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A context as it was after transaction `seq`."""

    seq: int
    state_vector: bytes
    state: tuple[bytes, ...]
    """The document as updates, in order: of a long one several."""
    item_index: bytes = b""
    """The index of its items, as far as there was one; earlier versions kept other things here."""
    cut: Cut | None = None
    """Point of the history that the state begins at; None if it is whole."""


@dataclass(frozen=True, slots=True)
class Blob:
    """Bytes that blocks refer to by their hash."""

    hash: str
    """SHA-256 in lower-case hexadecimal."""
    data: bytes

    @classmethod
    def of(cls, data: bytes) -> Blob:
        """Return the blob of these bytes."""
        return cls(hashlib.sha256(data).hexdigest(), data)


class Commit(NamedTuple):
    """One committed transaction of one context and everything that must be stored with it."""

    context: ContextRow
    seq: int
    time: int
    actor: Actor
    operation: str
    blocks: tuple[BlockRow, ...]
    """The blocks it touched, with their new versions."""
    update: bytes
    unit: int | None = None
    """The undo unit that it belongs to, or that it turns: the `seq` with which that began."""
    undo: tuple[UndoRow, ...] = ()
    """Undo rows that are new or changed with it."""
    dropped_undo: tuple[UndoRow, ...] = ()
    """UndoUnits that can be neither undone nor redone from now on."""
    revivals: tuple[RestoredRange, ...] = ()
    """The ranges of its ids that are characters that were there before."""
    clients: tuple[int, ...] = ()
    """CRDT client ids that this principal used for the first time."""
    restated: bool = False
    """Whether label or archiving of `context` are new."""
    inherited: tuple[InheritedText, ...] = ()
    """Authors of what it copies."""
    blobs: tuple[Blob, ...] = ()
    """Bytes that its blocks name; those that are there already are not written again."""
    file: FileRow | None = None
    """Facts about the file from now on, in a context that is one."""
    drift: DriftRow | None = None
    """The drift that it delivers, takes back or brings again."""
    snapshot: Snapshot | None = None
    """The context as this transaction leaves it."""
    generation: int = 0
    """As the context was loaded with: a failed commit begins another one."""

    def as_stored(self) -> StoredOp:
        """The transaction as it will come back."""
        return StoredOp(
            self.seq,
            self.time,
            self.actor.principal.id,
            self.operation,
            {block.number: block.version for block in self.blocks},
            self.update,
            self.unit,
            self.revivals,
            self.inherited,
        )


@dataclass(frozen=True, slots=True)
class StoredOp:
    """One committed transaction as it comes back: who made it, when, and its bytes."""

    seq: int
    time: int
    principal: str
    operation: str
    versions: Mapping[int, int]
    """Number of each touched block to its version then."""
    update: bytes
    unit: int | None = None
    revivals: tuple[RestoredRange, ...] = ()
    inherited: tuple[InheritedText, ...] = ()
    """Authors of what it copies, if it has just been committed; else they are read apart."""


B = TypeVar("B", int, str)


@dataclass(frozen=True, slots=True)
class ChangeRow(Generic[B]):
    """One committed transaction as histories show it."""

    seq: int
    versions: Mapping[B, int]
    """For the number or id of each block that it touched, the version of the block that it made."""
    time: int
    principal: str
    operation: str
    size: int
    """Bytes of its update."""


@dataclass(frozen=True, slots=True)
class StoredContext:
    """All that is needed to open a context again."""

    row: ContextRow
    seq: int
    updates: tuple[bytes, ...]
    """In order of `seq`; all, or those behind the `seq` that was asked for."""
    blocks: tuple[BlockRow, ...]
    undo: tuple[UndoRow, ...]
    clients: Mapping[int, str] = field(default_factory=dict)
    """CRDT client id to the principal that writes with it."""
    generation: int = 0
    """The generation of commits that are built on this."""
    item_index: bytes = b""
    """The index of the items of what was before `updates`; empty if none was kept."""
    cut: Cut | None = None
    """Point of the history that it begins at, if it is opened with its last blocks only."""
