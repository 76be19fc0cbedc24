"""A change of a context at each step of its way: made, applied, on its way to disk, told."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from antiphon_kernel.contexts.undo_stack import Keystroke, StackChange, UndoKind
from antiphon_kernel.document.changes import DocumentChange, Transaction
from antiphon_kernel.storage import Blob, DriftRow, FileRow
from antiphon_kernel.types.records import Actor, Run
from antiphon_kernel.yjs.restored_ids import RestoredRange

Inherited = Mapping[str, Mapping[str | None, Sequence[Run]]]
"""Authors of what was copied into blocks, by the path of the text."""


class PendingCommit(NamedTuple):
    """Change applied to the document, its actor, and its effects on undo and on clients."""

    actor: Actor
    operation: str
    transaction: Transaction
    """The change to the document."""
    update: bytes | None
    """All that has to be stored of it; None if nothing changed."""
    undo: UndoKind | None = None
    """How it counts for the actor's undo; None if not at all."""
    keystroke: Keystroke | None = None
    """Keystroke that the change is; None if it is more."""
    stacks: StackChange | None = None
    """The change to the undo stacks, if it turns a unit."""
    revivals: tuple[RestoredRange, ...] = ()
    """The ranges of its ids that are others come back."""
    restated: bool = False
    """Whether the journal's row of the context changes with it."""
    blobs: tuple[Blob, ...] = ()
    """Bytes that its blocks name."""
    file: FileRow | None = None
    """Facts about the file from now on, in a context that is one."""
    drift: DriftRow | None = None
    """The drift that it delivers, takes back or brings again; with `seq` 0 it is delivered."""
    inherited: Inherited = MappingProxyType({})
    """Authors of what it copies."""
    source: object = None
    """The client's connection that handed it in: its own update does not go back to it."""
    clients: tuple[int, ...] = ()
    """CRDT client ids that the actor has used for the first time."""
    added: bytes | None = None
    """The update that the kernel added to a client's."""
    submitted: tuple[str, ...] = ()
    """Drafts that a client has finished with it."""


class Broadcast(NamedTuple):
    """A committed change, as subscribers get it. `source` is who handed it in as raw update."""

    seq: int
    update: bytes
    source: object


class Applied(NamedTuple):
    """A change that the document has taken in; it is on disk when `seq` has been broadcast."""

    seq: int
    time: int
    actor: Actor
    operation: str
    changes: tuple[DocumentChange, ...]
    """Its changes in order, with those that the kernel added."""
    versions: Mapping[str, int]
    """New version of each block it touched."""


class CommitHandle(NamedTuple):
    """A change that has been applied and is on its way to disk."""

    seq: int
    versions: Mapping[str, int]
    """New version of each block it touched."""
    on_disk: asyncio.Future[None]

    async def saved(self) -> None:
        """Wait until it is on disk; raises AntiphonError storage_failed."""
        await asyncio.shield(self.on_disk)  # a caller that gives up must not fail the others
