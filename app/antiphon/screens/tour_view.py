"""The demo's tour told of what happens in the document and who is here."""

from __future__ import annotations

from antiphon.screens.action_scope import ActionScope, Controller
from antiphon.tour import Tour
from antiphon.widgets.block_list import CellChange
from antiphon_kernel.types.enums import BlockKind, PrincipalKind, Role


class TourView(Controller):
    """Tells the tour of people and models; without one, of a tour that is not shown."""

    def __init__(self, tour: Tour | None, scope: ActionScope) -> None:
        self.is_shown = tour is not None
        self.tour = tour or Tour()
        super().__init__(scope)

    @property
    def hint(self) -> str | None:
        return self.tour.hint_text if self.is_shown else None

    def presence_changed(self) -> None:
        others = self._session.presence().values()
        if self._session.is_live:
            models = (one.username for one in others if one.kind == PrincipalKind.MODEL)
            self.tour.models_here(next(models, None))
        for one in others:
            if one.kind == PrincipalKind.HUMAN and one.principal != self._source.me:
                self.tour.joined(one.username)

    def cells_changed(self, change: CellChange) -> bool:
        """Wait for a model in the middle of a text, with a typo to mend if it has one.

        Returns whether the tour may have gone on.
        """
        if not (self.is_shown and self.tour.awaits_text and change.texts):
            return False
        source = self._scope.source
        for text in change.texts:
            header = source.header(text.block)
            if header.kind == BlockKind.TEXT and header.role == Role.MODEL:
                view = source.view(text.block)
                typo = self.tour.model_wrote(text.block, view.author, view.text)
                if typo is not None:
                    self._cells.anchoring.hold(text.block, typo)
        return True
