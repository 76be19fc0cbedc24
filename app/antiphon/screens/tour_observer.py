"""Tells the tour what has happened around the person."""

from __future__ import annotations

from antiphon.session import Session
from antiphon.tour import Tour
from antiphon.widgets.block_list import CellChange, CellModel
from antiphon_kernel.types.enums import BlockKind, PrincipalKind, Role


class TourObserver:
    """Sees who comes and what models write."""

    def __init__(self, tour: Tour, session: Session, source: CellModel) -> None:
        self._tour = tour
        self._session = session
        self._source = source

    def presence_changed(self) -> None:
        """Somebody came, moved or went."""
        others = self._session.presence().values()
        if self._session.is_live:
            self._tour.models_here(any(one.kind == PrincipalKind.MODEL for one in others))
        for one in others:
            if one.kind == PrincipalKind.HUMAN and one.principal != self._source.me:
                self._tour.joined(one.username)

    def cells_changed(self, change: CellChange) -> bool:
        """Look for a model in the middle of a text: somebody to write with.

        Whether the tour may have something else to say.
        """
        if not self._tour.awaits_model:
            return False
        for text in change.texts:
            header = self._session.document.header(text.block)
            if header.kind == BlockKind.TEXT and header.role == Role.MODEL:
                view = self._source.view(text.block)
                self._tour.model_wrote(view.author, len(view.text))
        return bool(change.texts)
