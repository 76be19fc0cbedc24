"""Taking back a past change, whoever has written into its text since.

The change is given as the CRDT ids it made and removed, which is all that has to be stored for it;
so an undo is the same work live and after a restart. Deleted text can only come back in a document
that keeps it (``skip_gc``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pycrdt import Doc, StackItem, Text, UndoManager
from pycrdt import IdSet as CrdtIdSet

from antiphon_kernel.wire.id_set import IdSet, encode_id_set


def take_back(doc: Doc[Any], texts: Sequence[Text], inserted: IdSet, deleted: IdSet) -> None:
    """Delete the ids `inserted`, re-create the ids `deleted`, in `texts` only.

    The clocks before and after must be burnt by the caller, so that nothing merges with them.
    """
    document: Any = doc  # the stubs name the inner class here; the outer one is what works
    item: StackItem[Any] = StackItem(
        document,
        CrdtIdSet.decode(encode_id_set(deleted)),
        CrdtIdSet.decode(encode_id_set(inserted)),
    )
    manager = UndoManager(scopes=list(texts), capture_timeout_millis=0, undo_stack=[item])
    manager.undo()
