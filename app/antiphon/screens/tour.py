"""The demo: what to try next, as far as one has come.

It follows what people and models do, never the time.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from antiphon.render.differences import arguments_of
from antiphon.render.display import displayable_in_a_row
from antiphon.screens.action_scope import ActionScope, Controller
from antiphon.widgets.block_list import CellChange
from antiphon_kernel.types.enums import ANSWERING_KINDS, BlockKind, PrincipalKind, Role, Status

TYPO: Final = "two chirs"
"""The demo's model writes it near the beginning; it should be `two choirs`."""

MEND_AT: Final = TYPO.index("irs")
"""The place in it where an `o` belongs: typing it is one step to undo."""

ENOUGH_TYPED: Final = 10
"""Characters after which both have visibly written."""

ENOUGH_WRITTEN: Final = 160
"""Characters after which a model's text without the typo is one to walk into."""


class TourStep(Enum):
    """Step of the tour."""

    WAITING = None
    WALK_IN = "↑ then <key:edit>: write inside what {model} is writing"
    MEND = "↑ then <key:edit>: chirs should be choirs, mend it while {model} writes"
    TYPE = "Type. {model} goes on below."
    TYPE_TYPO = "Type o: choirs. {model} goes on below."
    UNDO = "Both stay. Esc, then <key:undo> undoes only yours, <key:blame> shows who wrote what."
    JOIN = "Second terminal: `make join`"
    JOINED = "{guest} is here: write in the same cell"
    ASK = "Ask something, or !ls"
    OPEN_FILE = "<key:files>, {file}: type in the file that {model} works on"
    IN_FILE = "<key:edit>, then type in another line: yours and a model's both stay"
    SAVE = "<key:save> saves, and so does waiting. Esc, then <key:blame> shows who wrote what."
    OVER = ""


_AFTER_TYPING: Final = {
    TourStep.TYPE: TourStep.UNDO,
    TourStep.TYPE_TYPO: TourStep.UNDO,
    TourStep.IN_FILE: TourStep.SAVE,
}


class Tour:
    """Told what happens; `hint_text` is what the TRY line says."""

    def __init__(self, *, in_file: bool = False) -> None:
        self.step = TourStep.IN_FILE if in_file else TourStep.WAITING
        self._typed = 0
        self._models_here = False
        self._model = "The model"
        self._guest = "guest"
        self._file = ""
        self.typo_block: str | None = None
        """The block with the typo, until it is mended."""

    @property
    def hint_text(self) -> str | None:
        """None: nothing to try now."""
        template: str | None = self.step.value or None
        return template and template.format(model=self._model, guest=self._guest, file=self._file)

    @property
    def awaits_text(self) -> bool:
        """The text of models says when the next step is due."""
        return self.step is TourStep.WAITING or self.typo_block is not None

    def model_wrote(self, block: str, name: str, text: str) -> int | None:
        """Take notice of a model's text; returns where it has the typo when that is first seen."""
        if block == self.typo_block:
            if TYPO not in text:
                self.typo_block = None
                if self.step in (TourStep.MEND, TourStep.TYPE_TYPO):
                    self.step = TourStep.UNDO
            return None
        typo = text.find(TYPO)
        if self.step is not TourStep.WAITING or (typo < 0 and len(text) < ENOUGH_WRITTEN):
            return None
        self._model = name
        if typo < 0:
            self.step = TourStep.WALK_IN
            return None
        self.typo_block = block
        self.step = TourStep.MEND
        return typo

    def editing(self) -> None:
        if self.step in (TourStep.WAITING, TourStep.WALK_IN, TourStep.MEND):
            self.step = TourStep.TYPE if self.typo_block is None else TourStep.TYPE_TYPO

    def typed(self, characters: int) -> None:
        self._typed += characters
        if self._typed >= ENOUGH_TYPED and self.step in _AFTER_TYPING:
            self.step = _AFTER_TYPING[self.step]

    def undone(self) -> None:
        if self.step in (TourStep.TYPE, TourStep.TYPE_TYPO, TourStep.UNDO):
            self.step = TourStep.JOIN

    def joined(self, name: str) -> None:
        if self.step in (TourStep.UNDO, TourStep.JOIN):
            self._guest = name
            self.step = TourStep.JOINED

    def sent(self) -> None:
        if self.step is TourStep.ASK:
            self.step = TourStep.OVER

    def works_on(self, file: str) -> None:
        """Take notice of a file that a model which is at work names in a call."""
        if self._models_here:
            self.step, self._file = TourStep.OPEN_FILE, file

    def models_here(self, name: str | None) -> None:
        """Name a model that is at work, if any is; the last one to leave may be asked."""
        if self._models_here and name is None:
            self.step = TourStep.ASK
        self._models_here = name is not None
        if name is not None:
            self._model = name


class TourView(Controller):
    """Tells the tour of people and models, also where it is not shown."""

    def __init__(self, scope: ActionScope) -> None:
        super().__init__(scope)
        self.is_shown = scope.session.options.demo
        self.tour = Tour(in_file=scope.file is not None)

    def presence_changed(self) -> None:
        others = self._session.presence().values()
        if self._session.is_live and self._scope.file is None:
            models = (one.username for one in others if one.kind in ANSWERING_KINDS)
            self.tour.models_here(next(models, None))
        for one in others:
            if one.kind == PrincipalKind.HUMAN and one.principal != self._source.me:
                self.tour.joined(one.username)

    def cells_changed(self, change: CellChange) -> bool:
        """Wait for a model in the middle of a text, or a call of it that names a file.

        Returns whether the tour may have gone on.
        """
        if not self.is_shown:
            return False
        source = self._source
        for block in change.changed:
            header = source.header(block)
            path = (arguments_of(header.input) or {}).get("path")
            if header.status == Status.RUNNING and isinstance(path, str):
                self.tour.works_on(displayable_in_a_row(path))
                return True
        if not (self.tour.awaits_text and change.texts):
            return False
        for text in change.texts:
            header = source.header(text.block)
            if header.kind == BlockKind.TEXT and header.role == Role.MODEL:
                view = source.view(text.block)
                typo = self.tour.model_wrote(text.block, view.author, view.text)
                if typo is not None:
                    self._cells.anchoring.hold(text.block, typo)
        return True
