"""The editor's place over the cell that it edits."""

from __future__ import annotations

from collections.abc import Callable

from textual.geometry import Region

from antiphon.widgets.block_list.anchor import HEADER_LINE
from antiphon.widgets.block_list.cell_presenter import CellPresenter
from antiphon.widgets.block_list.viewport import Viewport
from antiphon.widgets.editor import CellEditor


class EditorOverlay:
    """Clips the editor to the rows of its cell that are seen."""

    def __init__(self, looks: CellPresenter, viewport: Viewport) -> None:
        self._looks = looks
        self._viewport = viewport
        self._place_editor: Callable[[Region], None] | None = None

    def attach(self, editor: CellEditor | None, place: Callable[[Region], None] | None) -> None:
        """Give an editor the place of its cell; `place` is told it with every frame."""
        self._looks.editor = editor
        self._place_editor = place
        if editor is not None:
            editor.set_text_width(self._looks.gutters.columns.text)

    def place(self, height: int) -> None:
        """Put the editor where its cell is in a view of so many rows."""
        editor = self._looks.editor
        if editor is None or self._place_editor is None:
            return
        places = self._viewport.places
        rows = [
            row
            for row in self._viewport.seen_rows(editor.block)
            if (place := places[row]) is not None and place.line != HEADER_LINE
        ]
        columns = self._looks.gutters.columns
        top = rows[0] if rows else height
        first = places[top] if rows else None
        room = len(rows)
        if rows and all(place is None for place in places[rows[-1] + 1 :]):
            # Room to grow below the last cell: a new row is then not a new layout.
            room = height - top
        self._place_editor(Region(columns.gutter, top, columns.text + 1, max(1, room)))
        editor.show_rows(
            first.line if first is not None else 0,
            len(rows),
            names_beside_from=self._looks.first_free_gutter(editor.block),
        )
