"""Blocks of a document as cells: which are shown, folded, changed, and whose cursor is where."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from antiphon.editor.marks import RemoteCursor
from antiphon.render.view import CellView
from antiphon_kernel.document.document import Document
from antiphon_kernel.types.presence import PresenceState


@dataclass(frozen=True, slots=True)
class Draft:
    """What somebody else is writing and has not submitted."""

    block: str
    username: str
    colour: int
    text: str


@dataclass(frozen=True, slots=True)
class CellChange:
    """What one transaction, one presence change or one fold did to the cells."""

    changed: frozenset[str] = frozenset()
    """Cells that look different, new ones included."""
    drafts: bool = False
    """`CellSource.drafts` says something else now."""
    streamed: bool = True
    """Only a model's or a tool's appending: may wait for the next frame."""


class CellSource:
    """A document as the person at this screen sees it."""

    def __init__(
        self,
        document: Document,
        *,
        me: str | None = None,
        presence: Callable[[], Mapping[int, PresenceState]] = dict,
    ) -> None:
        """`me` is the principal id of the person here; `presence` is everybody else's."""
        raise NotImplementedError

    document: Document
    me: str | None

    def view(self, block: str) -> CellView:
        raise NotImplementedError

    def is_folded(self, block: str) -> bool:
        raise NotImplementedError

    def set_folded(self, block: str, folded: bool) -> None:
        raise NotImplementedError

    def cursors(self, block: str) -> Sequence[RemoteCursor]:
        raise NotImplementedError

    def drafts(self) -> Sequence[Draft]:
        """Of others, in document order."""
        raise NotImplementedError

    def presence_changed(self) -> None:
        """Read the presence again: call it from `Replica.watch_presence`."""
        raise NotImplementedError

    def why_not_editable(self, block: str) -> str | None:
        """A sentence for the person, or None if the cell can be edited in place."""
        raise NotImplementedError

    def watch(self, listener: Callable[[CellChange], None]) -> Callable[[], None]:
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError
