"""Pictures of cells, kept as long as they are likely to be looked at again."""

from __future__ import annotations

import logging
from collections import OrderedDict
from typing import Final, NamedTuple

from antiphon.render.cell_renderer import CellRenderer
from antiphon.render.cell_theme import CellTheme
from antiphon.render.lines import RenderedCell
from antiphon.widgets.block_list.cell_model import CellModel

_MAX_LINES: Final = 20_000
"""Cells of so many lines together are kept, and always the last one asked for."""

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

    @property
    def width(self) -> int:
        return self._width

    def set_style(self, width: int, theme: CellTheme) -> None:
        """From now on at this width and in this theme."""
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
        try:
            picture = stream.update(self._source.view(block))
        except Exception as error:
            if block not in self._source.document:
                raise
            _log.exception("block %s cannot be drawn", block)
            stream = CellRenderer(self._width, self._theme)
            picture = stream.failed(error)
        self.drawn += 1
        self._lines += picture.line_count - (kept.picture.line_count if kept else 0)
        self._kept[block] = _CachedRendering(version, stream, picture)
        self._kept.move_to_end(block)
        self._drop_oldest()
        return picture

    def _drop_oldest(self) -> None:
        while self._lines > _MAX_LINES and len(self._kept) > 1:
            block, kept = self._kept.popitem(last=False)
            self._lines -= kept.picture.line_count
            self._source.forget(block)
