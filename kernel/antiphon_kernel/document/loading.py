"""A document as it was stored: read without anybody watching, then opened."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from pycrdt import Doc

from antiphon_kernel.document.document import Document
from antiphon_kernel.types.records import BlockHeader
from antiphon_kernel.yjs.merge import merge


class DocumentLoader:
    """Takes updates in, piece by piece; much quicker than a document that is watched."""

    def __init__(self, client_id: int) -> None:
        self._doc: Doc[Any] = Doc(client_id=client_id, skip_gc=True)

    def apply(self, updates: Sequence[bytes]) -> None:
        """Merge some updates (`FAN_IN` at most take the least time).

        Raises:
            ValueError: if they are none; the loader is then of no use any more.
        """
        try:
            self._doc.apply_update(merge(updates))
        except (ValueError, RuntimeError) as error:
            raise ValueError(f"not a document update: {error}") from error

    def state_vector(self) -> bytes:
        """Return the state vector of what has been read, as Yjs encodes it."""
        return self._doc.get_state()

    def finish(self, headers: Iterable[BlockHeader] = ()) -> Document:
        """The document.

        Args:
            headers: those of its blocks that are known: reading them out of the CRDT takes
                longer than everything else.
        """
        return Document.loaded(self._doc, headers)
