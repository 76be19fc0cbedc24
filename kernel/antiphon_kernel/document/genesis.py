"""The first transaction of a document, and the one that gives it another epoch."""

from __future__ import annotations

from typing import Any

from pycrdt import Doc, Map

from antiphon_kernel.types.ids import ContextId

FORMAT = "1"
"""The version of the document layout, in ``meta``."""


def genesis_client(epoch: str) -> int:
    """The CRDT client id under which the first transaction of an epoch wrote ``meta``.

    A replica that has seen anything of this epoch knows this client; one that has seen something
    else does not, and must not be merged.
    """
    return int(epoch, 16) & (2**53 - 1) or 1


def genesis_update(context: ContextId, epoch: str, label: str) -> bytes:
    """The first transaction of a document: names the context and the epoch, nothing else."""
    genesis: Doc[Any] = Doc(client_id=genesis_client(epoch))
    meta: Map[Any] = genesis.get("meta", type=Map)
    with genesis.transaction():
        meta["format"] = FORMAT
        meta["context"] = context
        meta["epoch"] = epoch
        meta["label"] = label
    return genesis.get_update()


def new_epoch_update(state: bytes, epoch: str) -> bytes:
    """The update that gives a document another epoch.

    It is written under the genesis client of that epoch, so that whoever has not seen it is known
    to hold the document as it was before.

    Args:
        state: the whole document as one update.
    """
    doc: Doc[Any] = Doc(client_id=genesis_client(epoch), skip_gc=True)
    doc.apply_update(state)
    before = doc.get_state()
    meta: Map[Any] = doc.get("meta", type=Map)
    with doc.transaction():
        meta["epoch"] = epoch
    return doc.get_update(before)
