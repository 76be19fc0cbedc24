"""A new epoch for a document that goes on as it is: replicas of the old one are refused."""

from __future__ import annotations

from typing import Any

from pycrdt import Doc, Map

from antiphon_kernel.document.genesis import genesis_client


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
