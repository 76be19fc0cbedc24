"""Pictures of cells, kept as long as they are likely to be looked at again."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable
from typing import Final, NamedTuple

from antiphon.render.cell_renderer import CellRenderer
from antiphon.render.cell_theme import CellTheme
from antiphon.render.lines import RenderedCell
from antiphon.widgets.block_list.cell_model import CellModel

_MAX_LINES: Final = 5_000
"""Cells of so many lines together are kept, and always the last one asked for.

A line takes 3 KB, and 70 us to draw anew.
"""

_log: Final = logging.getLogger(__name__)


class _CachedRendering(NamedTuple):
    version: int
    stream: CellRenderer
    picture: RenderedCell


class RenderCache:
    """The picture of each cell at one width and theme; the least recently used go first."""

    _theme: CellTheme

    def __init__(self, source: CellModel) -> None:
        """Cells are rendered from the first `set_style` on."""
        self._source = source
        self._width = -1
        self._kept: OrderedDict[str, _CachedRendering] = OrderedDict()
        self._lines = 0
        self.drawn = 0
        """How often a cell was drawn; for measuring."""
        self.lines_drawn = 0
        """Lines of text that were drawn; for measuring."""

    def set_style(self, width: int, theme: CellTheme) -> None:
        if width != self._width or theme is not self._theme:
            self._width = width
            self._theme = theme
            self.clear()

    def clear(self) -> None:
        self._kept.clear()
        self._lines = 0

    def rendering(self, block: str) -> RenderedCell:
        """The picture of the cell as it is now. Raises KeyError if there is no such block.

        A cell that cannot be drawn is drawn as one that says so: no content ends the app.
        """
        kept = self._kept.get(block)
        version = self._source.version(block)
        if kept is not None and kept.version == version:
            self._kept.move_to_end(block)
            return kept.picture
        stream = CellRenderer(self._width, self._theme) if kept is None else kept.stream
        before = stream.lines_drawn
        try:
            picture = stream.update(self._source.view(block))
        except Exception as error:
            if block not in self._source.document:
                raise
            _log.exception("block %s cannot be drawn", block)
            stream = CellRenderer(self._width, self._theme)
            picture = stream.failed(error)
        self.drawn += 1
        self.lines_drawn += max(0, stream.lines_drawn - before)
        self._keep(block, _CachedRendering(version, stream, picture))
        return picture

    def settle(self, block: str, line: int, rows: int) -> int:
        """Draw the lines of a long cell within `rows` of a line; return its number from now on."""
        return self._settled(block, lambda cell: cell.settled(line, rows))

    def line_at(self, block: str, offset: int, rows: int) -> int:
        """Return the line that shows a code point, and draw those of a long cell around it."""
        return self._settled(block, lambda cell: cell.settled_at(offset, rows))

    def _settled(
        self, block: str, settle: Callable[[RenderedCell], tuple[RenderedCell, int]]
    ) -> int:
        before = self.rendering(block)
        kept = self._kept[block]
        drawn = kept.stream.lines_drawn
        picture, line = settle(before)
        if picture is not before:
            self.lines_drawn += kept.stream.lines_drawn - drawn
            self._keep(block, kept._replace(picture=picture))
        return line

    def _keep(self, block: str, rendering: _CachedRendering) -> None:
        before = self._kept.get(block)
        self._lines += rendering.picture.drawn_count
        self._lines -= before.picture.drawn_count if before else 0
        self._kept[block] = rendering
        self._kept.move_to_end(block)
        while self._lines > _MAX_LINES and len(self._kept) > 1:
            block, kept = self._kept.popitem(last=False)
            self._lines -= kept.picture.drawn_count
            self._source.forget(block)
