"""The live strip: what somebody writes out of sight, kept up to date."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from antiphon.widgets.block_list import BlockList, CellChange, CellModel, Writer
from antiphon.widgets.block_list.frame_scheduler import FrameScheduler
from antiphon.widgets.status import HintBar, LiveStrip, LiveText, surroundings
from antiphon_kernel.types.clock import Clock
from antiphon_kernel.types.enums import BlockKind
from antiphon_kernel.types.presence import TextPlace
from antiphon_kernel.types.signal import Signal

FRAME: Final = 1 / 15
"""Seconds between two updates of the strip."""

LINGER: Final = 1.5
"""Seconds for which the strip stays when nobody writes out of sight any more."""


class LiveWriters:
    """Finds who writes out of sight, and shows the end of what they write."""

    def __init__(
        self,
        source: CellModel,
        cells: BlockList,
        strip: LiveStrip,
        notice: HintBar,
        clock: Clock,
    ) -> None:
        self._source = source
        self._cells = cells
        self._strip = strip
        self._notice = notice
        self._clock = clock
        self._frames = FrameScheduler(self.update, cells.call_next, cells.set_timer)
        self._last: Writer | None = None
        self._seen_at = 0.0
        """When somebody has last written out of sight."""
        self.changed = Signal[()]()
        """Somebody else is shown now, or nobody."""

    def start(self) -> tuple[Callable[[], None], ...]:
        """Keep the strip up to date, once the cells are mounted; returns the ways to stop."""
        return (
            self._source.changed.listen(self._changed),
            self._cells.drawn.listen(self._request),
        )

    @property
    def shown(self) -> Writer | None:
        """The writer whose text the strip shows."""
        return self._last if self._strip.live is not None else None

    @property
    def shown_name(self) -> str | None:
        shown = self.shown
        return None if shown is None else shown.cursor.username

    def go(self) -> None:
        """Show the place where the writer of the strip is, if there is a strip."""
        if (writer := self.shown) is not None:
            offset = writer.cursor.offset
            self._cells.go_to(TextPlace(writer.block, offset, offset))

    def _changed(self, change: CellChange) -> None:
        if self._strip.live is not None or any(
            one.block in change.changed for one in self._source.writers()
        ):
            self._request()

    def _request(self) -> None:
        if self._strip.live is not None or self._source.writers():
            self._frames.request_throttled(FRAME)
        else:
            self._notice.unread = self._cells.unread_lines

    def update(self) -> None:
        self._frames.drawn()
        away = [
            one
            for one in self._source.writers()
            if not self._cells.shown.is_shown(one.block, one.cursor.offset)
            and self._source.text(one.block).strip()
        ]
        if away:
            self._last, self._seen_at = away[0], self._clock.monotonic()
        live = None
        last = self._last
        if last is not None and (away or self._lingers(last)):
            cursor, others = last.cursor, max(0, len(away) - 1)
            text, unread = self._source.text(last.block), self._cells.unread_lines
            is_markdown = self._source.header(last.block).kind == BlockKind.TEXT
            around = surroundings(text, cursor.offset, is_markdown=is_markdown)
            live = LiveText(cursor.username, cursor.colour, *around, others, unread, is_markdown)
        before = self.shown_name
        self._strip.show(live)
        if self.shown_name != before:
            self.changed.notify()
        self._notice.unread = 0 if live is not None else self._cells.unread_lines

    def _lingers(self, last: Writer) -> bool:
        """Return whether to leave the strip where it is for a moment: it may be needed again."""
        left = self._seen_at + LINGER - self._clock.monotonic()
        if (
            self._strip.live is None
            or left <= 0
            or self._source.in_replay  # it would depend on what was shown before
            or last.block not in self._source.document
            or self._cells.shown.is_shown(last.block, last.cursor.offset)
        ):
            return False
        self._frames.request(left)
        return True
