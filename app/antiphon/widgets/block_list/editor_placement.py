"""Placement of the editor over the rows of its cell."""

from __future__ import annotations

from functools import partial

from textual.geometry import Region

from antiphon.widgets.block_list.cell_presenter import CellPresenter
from antiphon.widgets.block_list.ink import Ink
from antiphon.widgets.block_list.viewport import Viewport
from antiphon.widgets.editor import CellEditor


class EditorPlacement:
    """Keeps the editor, if there is one, over what the view shows of its cell."""

    def __init__(self, ink: Ink, looks: CellPresenter, viewport: Viewport) -> None:
        self._ink = ink
        self._looks = looks
        self._viewport = viewport
        self._region: Region | None = None

    def attach(self, editor: CellEditor | None) -> None:
        """Lay an editor over its cell, with every frame from now on; None ends it."""
        self._looks.editor = editor
        self._region = None
        if editor is not None:
            editor.set_text_width(self._looks.editor_width(editor))
            self.mark_hits()

    def mark_hits(self) -> None:
        """Mark in the editor the hits of the search that the list shows."""
        editor, finder = self._looks.editor, self._looks.finder
        if editor is not None:
            editor.hits = tuple if finder is None else partial(finder.of, editor.block)

    def place(self, height: int) -> None:
        """Put the editor over the rows of its cell that are seen in a view of so many rows."""
        editor = self._looks.editor
        if editor is None:
            return
        places = self._viewport.places
        rows = [
            row
            for row in self._viewport.seen_rows(editor.block)
            if (place := places[row]) is not None and 0 <= place.line < editor.row_count
        ]
        columns = self._looks.columns
        top = rows[0] if rows else height
        first = places[top] if rows else None
        room = len(rows)
        if rows and all(place is None for place in places[rows[-1] + 1 :]):
            # Room to grow below the last cell: a new row is then not a new layout.
            room = height - top
        region = Region(columns.gutter, top, columns.width - columns.gutter, max(1, room))
        if region != self._region:
            self._region, styles = region, editor.styles
            styles.offset = (region.x, region.y)
            styles.width, styles.height = region.width, region.height
        editor.ink = self._ink.of(editor.block)
        editor.show_rows(
            first.line if first is not None else 0,
            len(rows),
            width=region.width,
            has_row_above=bool(top),
        )
