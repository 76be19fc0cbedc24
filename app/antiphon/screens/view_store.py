"""View state kept from one run to the next: the context, and the place in each."""

from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path
from typing import Final

from pydantic import BaseModel, Field, ValidationError

from antiphon.options import AppOptions

_LIMIT: Final = 200
"""Contexts whose places are kept for one kernel; the oldest go first."""


class ViewState(BaseModel):
    """View state of one context."""

    block: str | None = None
    """The cell at the view's anchor; None: the view was at the tail."""
    line: int = 0
    row: int = 0
    """Line of the cell, and the screen row that it was on."""
    offset: int | None = None
    """A code point that the line showed."""
    focused: str | None = None
    """The cell that had the focus."""


class ViewStates(BaseModel):
    """All that is remembered of one kernel."""

    context: str | None = None
    """Id of the context that was open last."""
    places: dict[str, ViewState] = Field(default_factory=dict)
    """By context id."""


class ViewStateStore:
    """A file of the user's for each kernel."""

    def __init__(self, folder: Path, options: AppOptions) -> None:
        kernel = options.address.http if options.address is not None else str(options.data)
        self._file = folder / "places" / f"{sha256(kernel.encode()).hexdigest()[:32]}.json"
        self._written: ViewStates | None = None

    def read(self) -> ViewStates:
        """Nothing if there is no such file.

        Raises:
            ValueError: if the file cannot be read or is none of ours; it says which file.
        """
        try:
            return ViewStates.model_validate_json(self._file.read_bytes())
        except FileNotFoundError:
            return ViewStates()
        except (OSError, ValidationError) as error:
            raise ValueError(
                f"{self._file} should say where you were, and cannot be read: it is written anew."
            ) from error

    def write(self, context: str, place: ViewState) -> None:
        """Remember a place, and that this context was open last.

        Raises:
            OSError: if the file cannot be written.
        """
        try:
            kept = self.read()
        except ValueError:
            kept = ViewStates()
        kept.context = context
        kept.places.pop(context, None)
        kept.places[context] = place
        for oldest in list(kept.places)[:-_LIMIT]:
            del kept.places[oldest]
        if kept == self._written:
            return
        self._file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        beside = self._file.with_suffix(f".{os.getpid()}")
        beside.write_text(kept.model_dump_json(), "utf-8")
        beside.replace(self._file)
        self._written = kept
