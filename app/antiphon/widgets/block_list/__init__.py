"""The document on screen: one scrolling widget that draws blocks as cells."""

from antiphon.widgets.block_list.block_list import BlockList
from antiphon.widgets.block_list.cell_model import (
    CellChange,
    CellModel,
    Draft,
    MessageLocation,
    Siblings,
)
from antiphon.widgets.block_list.cell_painter import AuthorRange
from antiphon.widgets.block_list.document_view import DocumentView
from antiphon.widgets.block_list.gutter import Columns, GutterWidth, LineMark, author_labels
from antiphon.widgets.block_list.remote_cursors import Writer
from antiphon.widgets.block_list.text_finder import Hit, HitPlace, TextFinder
from antiphon.widgets.block_list.viewport import Anchor
