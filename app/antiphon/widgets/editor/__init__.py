"""Editing one cell in place while others write into it."""

from antiphon.widgets.editor.cell_editor import ORIGIN, CellEditor
from antiphon.widgets.editor.overlays import (
    CursorLabel,
    RemoteCursor,
    StyleSpan,
    first_overflowing,
    styled,
    tagged,
)
from antiphon.widgets.editor.typed_text import is_text_input

__all__ = [
    "ORIGIN",
    "CellEditor",
    "CursorLabel",
    "RemoteCursor",
    "StyleSpan",
    "first_overflowing",
    "is_text_input",
    "styled",
    "tagged",
]
