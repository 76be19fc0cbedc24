"""Current appearance of each cell, and its height in rows."""

from __future__ import annotations

from collections.abc import Mapping

from rich.style import Style
from textual.strip import Strip

from antiphon.render.cell_theme import CellTheme
from antiphon.render.display import displayable_in_a_row
from antiphon.render.headings import first_line
from antiphon.render.status_label import end_note
from antiphon.render.tool_call import command_of
from antiphon.widgets.block_list.cell_model import CellModel
from antiphon.widgets.block_list.cell_painter import AuthorRange, CellStyle
from antiphon.widgets.block_list.gutter import Columns, GutterPainter, GutterStyle
from antiphon.widgets.block_list.height_index import CellOrder
from antiphon.widgets.block_list.render_cache import RenderCache
from antiphon.widgets.block_list.text_finder import HitPlace, TextFinder
from antiphon.widgets.block_list.viewport import LineRef, Measured
from antiphon.widgets.editor import CellEditor
from antiphon_kernel.types.enums import BlockKind, Role

_HIDDEN = Measured(0, 0)
_NO_GROUND = Style()
_SUBJECT = 400
_WITHOUT_GAP = frozenset({BlockKind.THINKING, BlockKind.TOOL_CALL, BlockKind.ERROR})


class CellPresenter:
    """Puts together what source, pictures and the state of the list say about a cell.

    Nothing can be drawn before `set_page` has been called.
    """

    theme: CellTheme
    gutters: GutterPainter

    def __init__(self, source: CellModel, order: CellOrder) -> None:
        self._source = source
        self._order = order
        self.columns = Columns.of(80)
        self.pictures = RenderCache(source)
        self.editor: CellEditor | None = None
        """Lies over its block's cell, which has its height."""
        self.focused: str | None = None
        self.shows_focus = False
        """The focused cell is what keys go to now."""
        self.unread: LineRef | None = None
        """The first line that was not seen yet."""
        self.tints: Mapping[str, tuple[AuthorRange, ...]] = {}
        self.finder: TextFinder | None = None
        """Its hits are marked."""
        self.hit: HitPlace | None = None
        """The hit that the person has gone to."""

    def set_page(self, width: int, theme: CellTheme) -> None:
        self.columns, self.theme = Columns.of(width, self._source.gutter), theme
        self.gutters = GutterPainter(self.columns, theme)
        self.pictures.set_style(self.columns.text, theme)
        if self.editor is not None:
            self.editor.set_text_width(self.editor_width(self.editor))

    def editor_over(self, block: str) -> CellEditor | None:
        """Return the editor that lies over a cell, if one does."""
        return self.editor if self.editor is not None and self.editor.block == block else None

    def editor_width(self, editor: CellEditor) -> int:
        """Return the columns for the text in an editor: as many as the text has without it."""
        return self.columns.prose if editor.is_markdown else self.columns.text

    def measure(self, block: str) -> Measured:
        """Rows of a cell as it would be drawn now."""
        if self._source.is_hidden(block):
            return _HIDDEN
        if (editor := self.editor_over(block)) is not None:
            end = bool(self._end_note(editor))
            return Measured(self._header(block), editor.row_count + end)
        return Measured(self._header(block), self.pictures.rendering(block).line_count)

    def _end_note(self, editor: CellEditor) -> str:
        """Return the row below an editor, which is there without it, too."""
        return end_note(self._source.view(editor.block)) if editor.is_markdown else ""

    def settle(self, block: str, line: int, rows: int) -> int:
        """Make the lines of a cell within `rows` of a line exact; return its number from now on."""
        is_edited = self.editor_over(block) is not None
        return line if is_edited else self.pictures.settle(block, line, rows)

    def style_for(self, block: str) -> CellStyle:
        """Everything that the rows of a cell depend on."""
        source = self._source
        editor = self.editor_over(block)
        author = source.header(block).author
        named = self._is_named(block)
        name, colour = source.shown_name(author)
        unread, hit = self.unread, self.hit
        finder = self.finder
        return CellStyle(
            picture=None if editor is not None else self.pictures.rendering(block),
            author=GutterStyle(
                name=name if named else "",
                colour=colour,
                is_focused=block == self.focused,
                is_inline=named and self._is_inline(block),
            ),
            gutters=self.gutters,
            unread_line=unread.line if unread is not None and unread.block == block else None,
            cursors=tuple(source.cursors(block)),
            tints=self.tints.get(block, ()),
            hits=finder.of(block) if finder is not None else (),
            hit=(
                finder.hit_at(hit)
                if finder is not None and hit is not None and hit.block == block
                else None
            ),
            ground=self._ground(block),
            is_panel=self._is_panel(block),
            names_above=self._names_above(block),
            note=source.deliveries.label(block),
            end=(editor.row_count, self._end_note(editor)) if editor is not None else None,
            ink=source.ink.of(block) if self.theme.ink else (),
        )

    def is_head_away(self, top: LineRef) -> bool:
        """Return whether the first row of the view is to say whose cell goes on below it."""
        if self.editor_over(top.block) is not None:
            return False
        if top.line < 0:
            return not self._is_named(top.block)
        return top.line > 0 or self._names_above(top.block)

    def running_head_key(self, block: str) -> tuple[object, ...]:
        parent = self._source.header(block).parent
        asked = None if parent is None else self._source.version(parent)
        return block, self._source.version(block), asked, self.gutters

    def running_head(self, block: str) -> Strip:
        """Draw a row that names the author of a cell, and what the cell answers."""
        header = self._source.header(block)
        name, colour = self._source.shown_name(header.author)
        return self.gutters.running_head(name, colour, self._subject(block))

    def _subject(self, block: str) -> str:
        """Return the command of a result, the prompt of an answer, the start of a message."""
        header = self._source.header(block)
        subject = block if header.role == Role.USER else header.parent
        if subject is None or subject not in self._source.document:
            return ""
        view = self._source.view(subject)
        if view.header.kind == BlockKind.TOOL_CALL:
            return f"$ {displayable_in_a_row(command_of(view)[:_SUBJECT])}"
        return first_line(view.text[:_SUBJECT])

    def _ground(self, block: str) -> Style:
        header = self._source.header(block)
        if self.editor_over(block) is not None:
            return self.theme.edit_surface
        if self._has_focus(block):
            return self.theme.focus_surface
        if self._is_panel(block):
            return self.theme.panel
        is_said = header.role == Role.USER and header.kind == BlockKind.TEXT
        return self.theme.user_band if is_said else _NO_GROUND

    def _has_focus(self, block: str) -> bool:
        return self.shows_focus and block == self.focused

    def _is_panel(self, block: str) -> bool:
        is_output = self._source.header(block).kind == BlockKind.TOOL_RESULT
        return is_output and self.editor_over(block) is None and not self._has_focus(block)

    def _header(self, block: str) -> int:
        return int(self._has_gap(block)) + int(self._names_above(block))

    def _names_above(self, block: str) -> bool:
        return not self.columns.is_wide and self._is_named(block) and not self._is_inline(block)

    def _has_gap(self, block: str) -> bool:
        """There is a blank row above: thinking and calls of one author stand together."""
        if self._order.neighbour(block, -1) is None:
            return False
        kind = self._source.header(block).kind
        if kind == BlockKind.TOOL_RESULT:
            return False
        return kind not in _WITHOUT_GAP or self._is_named(block)

    def _is_inline(self, block: str) -> bool:
        """Folded thinking has its author's name in the same row, where names have rows."""
        return (
            not self.columns.is_wide
            and self.editor_over(block) is None
            and self._source.header(block).kind == BlockKind.THINKING
            and self._source.is_folded(block)
        )

    def _is_named(self, block: str) -> bool:
        """The author, or the message it answers, is another than that of the cell above.

        A result belongs to its call.
        """
        header = self._source.header(block)
        if header.kind == BlockKind.TOOL_RESULT:
            return False
        above = self._order.neighbour(block, -1)
        while above is not None:
            other = self._source.header(above)
            if other.kind != BlockKind.TOOL_RESULT:
                is_next_answer = header.role == Role.MODEL and other.parent != header.parent
                return other.author != header.author or is_next_answer
            above = self._order.neighbour(above, -1)
        return True
