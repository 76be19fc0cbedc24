"""Effects of cell changes on the layout, and the scheduling of their drawing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from antiphon.widgets.block_list.cell_model import BULK, CellChange, CellModel
from antiphon.widgets.block_list.cell_presenter import CellPresenter
from antiphon.widgets.block_list.frame_buffer import FrameBuffer
from antiphon.widgets.block_list.frame_scheduler import FrameScheduler
from antiphon.widgets.block_list.height_estimator import HeightEstimator
from antiphon.widgets.block_list.height_index import HeightIndex
from antiphon.widgets.block_list.scroll_anchor import ScrollAnchor
from antiphon.widgets.block_list.unread import Unread
from antiphon.widgets.block_list.viewport import Viewport

STREAM_FRAME: Final = 1 / 30
"""Seconds between frames while one author writes; then of several, then of what is not seen."""
_CROWD_FRAME: Final = 1 / 15
_UNSEEN_FRAME: Final = 1 / 4

_READ_AHEAD: Final = 1 / 50
"""Seconds between two bits of a long document that is searched for drafts."""


class Layout(NamedTuple):
    """Objects that know the positions of cells."""

    heights: HeightIndex
    looks: CellPresenter
    viewport: Viewport
    anchoring: ScrollAnchor
    unread: Unread


class ModelChanges:
    """Follows a source from the start; asks for frames between `start` and `close`."""

    def __init__(
        self,
        source: CellModel,
        layout: Layout,
        rows: FrameBuffer,
        clock: FrameScheduler,
        later: Callable[[float, Callable[[], None]], object],
    ) -> None:
        """`rows` says what is on the screen; `later` calls back after so many seconds."""
        self._source = source
        self._layout = layout
        self._arrivals = HeightEstimator(source, layout.heights)
        self._rows = rows
        self._clock = clock
        self._later = later
        self._streams: set[str] = set()
        """Cells that were written to since the last frame."""
        self._is_shown = False
        self._is_reading_ahead = False
        self._stop_watching = source.watch(self._changed)

    def start(self) -> None:
        """There is a screen to draw on now."""
        self._is_shown = True
        self._start_preloading()

    def close(self) -> None:
        """Follow the source no longer."""
        self._is_shown = False
        self._stop_watching()

    def drawn(self) -> None:
        """A frame shows everything that came so far."""
        self._streams.clear()

    def _changed(self, change: CellChange) -> None:
        layout = self._layout
        self._arrivals.place((*change.added, *change.moved))
        for text in change.texts:
            if not self._rows.is_shown(text.block) and not self._source.is_folded(text.block):
                self._arrivals.grow(text, layout.looks.gutters.columns.text)
        layout.anchoring.follow_texts(change.texts)
        if len(change.added) <= BULK:
            self._mark_unread(change)
        if change.drafts or len(change.added) > BULK:
            self._start_preloading()
        self._draw_for(change)

    def _mark_unread(self, change: CellChange) -> None:
        heights, unread = self._layout.heights, self._layout.unread
        for block in change.changed:
            if self._rows.is_shown(block) or block not in heights:
                continue
            if self._source.is_hidden(block):
                heights.set(block, 0)
            elif change.texts or change.added:
                unread.blocks[block] = None

    def _draw_for(self, change: CellChange) -> None:
        """What a person did is drawn at once, a stream at its rate, what is not seen rarely."""
        if not self._is_shown:
            return
        if not change.streamed:
            self._clock.request()
        elif self._layout.viewport.following or any(map(self._rows.is_shown, change.changed)):
            self._streams.update(change.changed)
            crowd = len(self._streams) > 1
            self._clock.request_throttled(_CROWD_FRAME if crowd else STREAM_FRAME)
        else:
            self._clock.request_throttled(_UNSEEN_FRAME)

    def _start_preloading(self) -> None:
        """Find the drafts of a long document bit by bit."""
        if self._is_shown and not self._is_reading_ahead:
            self._is_reading_ahead = True
            self._preload()

    def _preload(self) -> None:
        self._is_reading_ahead = self._source.preload()
        if self._is_reading_ahead:
            self._later(_READ_AHEAD, self._preload)
