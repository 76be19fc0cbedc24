"""The demo's first minute: what to try next, as far as one has come.

It follows what people and models do, never the time.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

ENOUGH_TYPED: Final = 10
"""Characters after which both have visibly written."""

ENOUGH_WRITTEN: Final = 160
"""Characters after which a model's text is one to walk into."""


class TourStep(Enum):
    """Step of the first-minute tour."""

    WAITING = None
    WALK_IN = "↑ then Enter: fix the typo above while {model} writes"
    TYPE = "Type. {model} goes on below."
    UNDO = "Both stay. Esc, then u undoes only yours, b shows who wrote what."
    JOIN = "Second terminal: `make join`"
    JOINED = "{guest} is here"
    ASK = "Ask something, or !ls"


class Tour:
    """Told what happens; `hint_text` is what the TRY line says."""

    def __init__(self) -> None:
        self.step = TourStep.WAITING
        self._typed = 0
        self._models_here = False
        self._model = "The model"
        self._guest = "guest"
        self.hidden = False

    @property
    def hint_text(self) -> str | None:
        """None: nothing to try now."""
        template: str | None = self.step.value
        if self.hidden or template is None:
            return None
        return template.format(model=self._model, guest=self._guest)

    def hide(self) -> None:
        """F1: no more of it."""
        self.hidden = True

    @property
    def awaits_model(self) -> bool:
        """Nothing to walk into has been seen yet."""
        return self.step is TourStep.WAITING

    def model_wrote(self, name: str, length: int) -> None:
        """A model's text has so many characters now."""
        if self.step is TourStep.WAITING and length >= ENOUGH_WRITTEN:
            self._model = name
            self.step = TourStep.WALK_IN

    def editing(self) -> None:
        """The editor is open on a cell."""
        if self.step in (TourStep.WAITING, TourStep.WALK_IN):
            self.step = TourStep.TYPE

    def typed(self, characters: int) -> None:
        """So many characters were typed into a cell."""
        self._typed += characters
        if self.step is TourStep.TYPE and self._typed >= ENOUGH_TYPED:
            self.step = TourStep.UNDO

    def undone(self) -> None:
        """Something was undone."""
        if self.step in (TourStep.TYPE, TourStep.UNDO):
            self.step = TourStep.JOIN

    def joined(self, name: str) -> None:
        """Somebody else is here."""
        if self.step in (TourStep.UNDO, TourStep.JOIN):
            self._guest = name
            self.step = TourStep.JOINED

    def sent(self) -> None:
        """A message was sent."""
        if self.step is TourStep.ASK:
            self.hide()

    def models_here(self, present: bool) -> None:
        """Set whether any model is at work; the last one to leave ends the first minute."""
        if self._models_here and not present:
            self.step = TourStep.ASK
        self._models_here = present
