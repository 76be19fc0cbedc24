"""View state kept from one run to the next: the context, and the place in each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import Final

from pydantic import BaseModel, Field, ValidationError

from antiphon.options import AppOptions, kernel_name
from antiphon.widgets.block_list import Anchor, BlockList
from antiphon_kernel.client.ownership import write_private

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
    version: int = Field(default=0, ge=0)
    """The context's version that was seen last."""
    label: str = ""
    """The context's name when it was seen last."""


class ViewStates(BaseModel):
    """All that is remembered of one kernel."""

    context: str | None = None
    """Id of the context that was open last."""
    places: dict[str, ViewState] = Field(default_factory=dict)
    """By context id."""


class ViewStateStore:
    """A file of the user's for each kernel; a failure is told once and changes nothing else."""

    def __init__(
        self, folder: Path | None, options: AppOptions, tell: Callable[[str], None]
    ) -> None:
        """`folder` is None where nothing is remembered: of a demo, gone with its last app."""
        name = sha256(kernel_name(options).encode()).hexdigest()[:32]
        self._file = folder and folder / "places" / f"{name}.json"
        self._tell = tell
        self._failed = False
        self._written: tuple[str, ViewState] | None = None
        self._seen: dict[str, int] | None = None

    def _read(self) -> ViewStates:
        """Return what is remembered: nothing if there is no file, or if it is none of ours."""
        try:
            if self._file is not None:
                return ViewStates.model_validate_json(self._file.read_bytes())
        except FileNotFoundError:
            pass
        except (OSError, ValidationError):
            self._fail(
                f"{self._file} should say where you were, and cannot be read: it is written anew."
            )
        return ViewStates()

    def write(
        self, context: str, place: ViewState, *, is_left: bool = False, is_file: bool = False
    ) -> None:
        """Remember a place, and that this context was open last unless it is a file.

        A place that this window has written last is written again only if the context `is_left`:
        another window may have been used since.
        """
        if self._file is None or (not is_left and (context, place) == self._written):
            return
        kept = self._read()
        kept.context = kept.context if is_file else context
        kept.places.pop(context, None)
        kept.places[context] = place
        for oldest in list(kept.places)[:-_LIMIT]:
            del kept.places[oldest]
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            write_private(self._file, kept.model_dump_json())
        except OSError as error:
            self._fail(error)
        else:
            self._written = context, place

    def seen(self) -> dict[str, int]:
        """Return the version of each context that was seen last, by id."""
        if self._seen is None:
            places = self._read().places
            self._seen = {context: place.version for context, place in places.items()}
        return self._seen

    def saw(self, context: str, version: int) -> None:
        """The person has a context of this version on the screen."""
        self.seen()[context] = version

    def last_context(self) -> str | None:
        """Return the id of the context that was open last on this kernel."""
        return self._read().context

    def place(self, context: str | None) -> ViewState:
        """Return what is remembered of a context: its defaults if that is nothing."""
        return self._read().places.get(context or "", ViewState())

    def go_back(self, context: str, cells: BlockList) -> None:
        """Show what was on screen when this context was left."""
        kept = self.place(context)
        if kept.focused is not None and cells.has_cell(kept.focused):
            cells.focus_cell(kept.focused, reveal=False)
        if kept.block is not None:
            cells.restore_view(Anchor(kept.block, kept.line, kept.row, kept.offset))

    def keep(self, context: str, label: str, cells: BlockList, *, is_left: bool) -> None:
        version = self.seen().get(context, 0)
        anchor, known = cells.view_state(), {"version": version, "label": label}
        view = {} if anchor is None else asdict(anchor)
        place = ViewState(focused=cells.focused_cell, **known, **view)
        self.write(context, place, is_left=is_left, is_file=cells.source.is_file)

    def _fail(self, error: object) -> None:
        if not self._failed:
            self._failed = True
            self._tell(f"Where you are cannot be remembered: {error}")
