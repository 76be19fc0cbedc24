"""Editing one cell in place while others write into it."""

from antiphon.widgets.editor.cell_document import FOLDED
from antiphon.widgets.editor.cell_editor import ORIGIN, CellEditor, is_text_input
from antiphon.widgets.editor.overlays import (
    CursorLabel,
    InkRange,
    LabelledLine,
    RemoteCursor,
    flagged,
    ink_style,
    labelled,
    styled,
    written_over,
)
