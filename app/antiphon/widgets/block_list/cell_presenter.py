"""Current appearance of each cell, its height in rows, and the rows that are on the screen now."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

from rich.segment import Segment
from rich.style import Style
from textual.geometry import Region
from textual.selection import Selection
from textual.strip import Strip

from antiphon.render.cell_renderer import CellRenderer, call_sign, command_of
from antiphon.render.cell_theme import CellTheme
from antiphon.render.display import displayable_in_a_row
from antiphon.render.lines import RenderedCell
from antiphon.render.markdown_source import first_line
from antiphon.render.view import drift_label, end_note
from antiphon.widgets.block_list.cell_model import CellModel
from antiphon.widgets.block_list.cell_painter import AuthorRange, CellPainter, CellStyle
from antiphon.widgets.block_list.gutter import (
    LEAST_DIGITS,
    Columns,
    FileGutter,
    GutterPainter,
    GutterStyle,
    LineIndex,
    LineMark,
)
from antiphon.widgets.block_list.height_index import CellOrder
from antiphon.widgets.block_list.text_finder import HitPlace, TextFinder
from antiphon.widgets.block_list.viewport import HEADER_LINE, LineRef, Measured, Viewport
from antiphon.widgets.editor import CellEditor, CursorLabel, flagged
from antiphon_kernel.types.block_metadata import DRIFT
from antiphon_kernel.types.drift import is_drifted
from antiphon_kernel.types.enums import BlockKind, Role

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

    def set_style(self, width: int, theme: CellTheme) -> None:
        if width != self._width or theme is not self._theme:
            self._width = width
            self._theme = theme
            self._kept.clear()
            self._lines = 0

    def rendering(self, block: str) -> RenderedCell:
        """The picture of the cell as it is now. Raises KeyError if there is no such block.

        A cell that cannot be drawn is drawn as one that says so: no content ends the app.
        """
        kept = self._kept.get(block)
        version = self._source.versions[block]
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
        picture, line = settle(before)
        if picture is not before:
            self._keep(block, self._kept[block]._replace(picture=picture))
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
            self._source.views.pop(block, None)


_HIDDEN = Measured(0, 0)
_NO_GROUND = Style()
_SUBJECT = 400
_WITHOUT_GAP = frozenset({BlockKind.THINKING, BlockKind.TOOL_CALL, BlockKind.ERROR})


class CellPresenter:
    """Puts together what source, pictures and the state of the list say about a cell.

    One of them may have an editor over it.
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
        self.line_marks: Mapping[int, LineMark] = {}
        """Marks beside the lines of a file."""
        self.last_places: Mapping[str, tuple[int, int | None]] = {}
        """Cursors that the person has left in cells."""
        self._lines = LineIndex("")
        self._region: Region | None = None
        """The place of the editor."""

    def set_page(self, width: int, theme: CellTheme) -> None:
        self.theme = theme
        if self._source.is_file:
            self.columns = Columns.of_file(width, self._digits)
        else:
            self.columns = Columns.of(width, self._source.gutter)
        self.gutters = GutterPainter(self.columns, theme)
        self.pictures.set_style(self.columns.text, theme)
        if self.editor is not None:
            self.editor.set_text_width(self.editor_width(self.editor))

    @property
    def _digits(self) -> int:
        """Digits of the number of the last line of a file."""
        block = self._order.first()
        if block is None:
            return LEAST_DIGITS
        editor = self.editor_over(block)
        count = self._index(block).count if editor is None else editor.document.line_count
        return max(LEAST_DIGITS, len(str(count)))

    def fit_numbers(self) -> None:
        """Give the numbers of a file's lines the columns that they need now."""
        if self._source.is_file and self.columns != Columns.of_file(
            self.columns.width, self._digits
        ):
            self.set_page(self.columns.width, self.theme)

    def _index(self, block: str) -> LineIndex:
        text = self._source.view(block).text
        if text is not self._lines.text:
            self._lines = LineIndex(text)
        return self._lines

    def attach(self, editor: CellEditor | None) -> None:
        """Lay an editor over its cell, with every frame from now on; None ends it."""
        self.editor = editor
        self._region = None
        if editor is not None:
            editor.set_text_width(self.editor_width(editor))
            self.mark_hits()

    def mark_hits(self) -> None:
        """Mark in the editor the hits of the search that the list shows."""
        editor, finder = self.editor, self.finder
        if editor is not None:
            editor.hits = tuple if finder is None else partial(finder.of, editor.block)

    def place_editor(self, viewport: Viewport) -> None:
        """Put the editor, if there is one, over the rows of its cell that are seen in a view."""
        editor, height, places = self.editor, viewport.height, viewport.places
        if editor is None:
            return
        rows = [
            row
            for row in viewport.seen_rows(editor.block)
            if (place := places[row]) is not None and 0 <= place.line < editor.row_count
        ]
        columns = self.columns
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
        elif editor.size != region.size:
            # What it is told while it is being mounted, Textual may not hear.
            editor.refresh(layout=True)
        editor.ink = self._source.ink.of(editor.block)
        top_line = first.line if first is not None else 0
        editor.show_rows(top_line, len(rows), width=region.width, has_row_above=bool(top))

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
        header = source.header(block)
        named = self._is_named(block)
        name, colour = source.shown_name(header.author)
        unread, hit, finder = self.unread, self.hit, self.finder
        return CellStyle(
            picture=None if editor is not None else self.pictures.rendering(block),
            author=GutterStyle(
                name=name if named else "",
                colour=colour,
                is_focused=block == self.focused,
                is_inline=named and self._is_inline(block),
                is_drift=DRIFT in header.metadata,
            ),
            gutters=self.gutters,
            unread_line=unread.line if unread is not None and unread.block == block else None,
            cursors=source.cursors.of(block),
            tints=self.tints.get(block, ()),
            hits=finder.of(block) if finder is not None else (),
            hit=finder.hit_at(hit) if finder and hit and hit.block == block else None,
            ground=self._ground(block),
            is_panel=self._is_panel(block),
            names_above=self._names_above(block),
            note=source.deliveries.label(block),
            end=(editor.row_count, self._end_note(editor)) if editor is not None else None,
            ink=source.ink.of(block) if self.theme.ink else (),
            numbers=self._numbers(block, editor) if source.is_file else None,
        )

    def _numbers(self, block: str, editor: CellEditor | None) -> FileGutter:
        if editor is not None:
            return FileGutter(None, self.line_marks, editor, editor.cursor_location[0])
        index, place = self._index(block), self.last_places.get(block)
        current = None if place is None else index.number(place[0])
        return FileGutter(index, self.line_marks, None, current)

    def is_head_away(self, top: LineRef) -> bool:
        """Return whether the first row of the view is to say whose cell goes on below it."""
        if self._source.is_file or self.editor_over(top.block) is not None:
            return False
        if top.line < 0:
            return not self._is_named(top.block)
        return top.line > 0 or self._names_above(top.block)

    def running_head(self, block: str) -> Strip:
        """Draw a row that names the author of a cell, and what the cell answers."""
        header, words = self._source.header(block), ""
        # The command of a result, the prompt of an answer, the start of a message.
        subject = block if header.role == Role.USER else header.parent
        if subject is not None and subject in self._source.document:
            view = self._source.view(subject)
            if view.header.kind == BlockKind.TOOL_CALL:
                command = command_of(view)[:_SUBJECT]
                words = displayable_in_a_row(call_sign(view) + command)
            elif view.header.kind == BlockKind.DRIFT:
                words = drift_label(view)
            else:
                words = first_line(view.text[:_SUBJECT])
        return self.gutters.running_head(*self._source.shown_name(header.author), words)

    def _ground(self, block: str) -> Style:
        header = self._source.header(block)
        if self._source.is_file:
            return _NO_GROUND
        if self.editor_over(block) is not None:
            return self.theme.edit_surface
        if self._has_focus(block):
            return self.theme.focus_surface
        if self._is_panel(block):
            return self.theme.panel
        is_said = header.role == Role.USER and header.kind == BlockKind.TEXT
        return self.theme.user_band if is_said or DRIFT in header.metadata else _NO_GROUND

    def _has_focus(self, block: str) -> bool:
        return self.shows_focus and block == self.focused

    def _is_panel(self, block: str) -> bool:
        is_output = self._source.header(block).kind == BlockKind.TOOL_RESULT
        return is_output and self.editor_over(block) is None and not self._has_focus(block)

    def _header(self, block: str) -> int:
        """Rows above the first line: a blank one, and the name of the author.

        Thinking and calls of one author stand together.
        """
        header, has_gap = self._source.header(block), False
        kind, above = header.kind, self._order.neighbour(block, -1)
        if self._source.is_file:
            return 0
        is_first_copy = is_drifted(header.metadata) and above == header.parent
        if kind != BlockKind.TOOL_RESULT and above is not None and not is_first_copy:
            has_gap = kind not in _WITHOUT_GAP or self._is_named(block)
        return has_gap + self._names_above(block)

    def _names_above(self, block: str) -> bool:
        return not self.columns.is_wide and self._is_named(block) and not self._is_inline(block)

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
                is_next_answer |= is_drifted(other.metadata) and not is_drifted(header.metadata)
                return other.author != header.author or is_next_answer
            above = self._order.neighbour(above, -1)
        return True


class FrameBuffer:
    """Draws the rows of a frame, taking over those of the last one that look the same."""

    def __init__(self) -> None:
        self.cells: dict[str, CellPainter] = {}
        """Of the last frame."""
        self._strips: list[Strip] = []
        self.has_head = False
        """Whether the first row is a running head."""

    def strip(self, y: int) -> Strip | None:
        return self._strips[y] if 0 <= y < len(self._strips) else None

    def compose_frame(
        self, places: Sequence[LineRef | None], looks: CellPresenter, head_rows: int
    ) -> list[range]:
        """Draw what is at these places; return the runs of rows that look different now."""
        cells: dict[str, CellPainter] = {}
        strips: list[Strip] = []
        blank = Strip.blank(looks.gutters.columns.width, looks.theme.background)
        for place in places:
            if place is None:
                strips.append(blank)
                continue
            cell = cells.get(place.block)
            if cell is None:
                look, cell = looks.style_for(place.block), self.cells.get(place.block)
                if cell is None or cell.look != look:
                    cell = CellPainter(look)
                cells[place.block] = cell
            strips.append(cell.strip(place.line))
        top = places[0] if head_rows else None
        # It covers a row, which must not be all that is seen of its cell.
        self.has_head = (
            top is not None
            and any(place and place.block == top.block for place in places[1:2])
            and looks.is_head_away(top)
        )
        if top is not None and self.has_head:
            strips[0] = looks.running_head(top.block)
        self._add_flags(strips, places, cells, looks)
        changed = _changed(strips, self._strips)
        self.cells, self._strips = cells, strips
        return changed

    def _add_flags(
        self,
        strips: list[Strip],
        places: Sequence[LineRef | None],
        cells: Mapping[str, CellPainter],
        looks: CellPresenter,
    ) -> None:
        """Write the names that have no room in their row over the one above, or the one below."""
        editor = looks.editor
        edited = editor.block if editor is not None else None
        rows: dict[int, tuple[CursorLabel, ...]] = {}
        is_editor_above = False
        for y, place in enumerate(places):
            is_editor = place is not None and place.block == edited and place.line >= 0
            if is_editor and editor is not None:
                flags = () if is_editor_above else editor.row_cache.flags_above
            else:
                flags = cells[place.block].flags.get(place.line, ()) if place is not None else ()
            if flags:
                target = y - 1 if y and not is_editor_above else y + 1
                rows[target] = (*rows.get(target, ()), *flags)
            is_editor_above = is_editor
        columns = looks.columns
        for y, flags in rows.items():
            if y < len(strips):
                place = places[y]
                names_author = place is not None and (
                    place.line == HEADER_LINE or (y == 0 and self.has_head)
                )
                strips[y] = flagged(
                    strips[y], flags, columns.width, left=columns.gutter, keep_text=names_author
                )

    def selected_text(self, selection: Selection, gutter: int) -> str:
        """Return the text of the selected rows, without their gutters."""
        rows = []
        for y, strip in enumerate(self._strips):
            span = selection.get_span(y)
            if span is not None:
                start, end = _within(span, strip)
                rows.append(strip.crop(max(start, gutter), max(end, gutter)).text.rstrip())
        return "\n".join(rows)


def with_selection(strip: Strip, span: tuple[int, int], gutter: int, style: Style) -> Strip:
    """The row with columns `span` (end -1: to the last) as selected, without its gutter."""
    start, end = (max(one, gutter) for one in _within(span, strip))
    selected = Strip(Segment.apply_style(strip.crop(start, end), post_style=style))
    return Strip.join([strip.crop(0, start), selected, strip.crop(end)])


def _within(span: tuple[int, int], strip: Strip) -> tuple[int, int]:
    start, end = span
    return start, strip.cell_length if end == -1 else end


def _changed(rows: Sequence[Strip], before: Sequence[Strip]) -> list[range]:
    """Runs of rows that are other strips than before."""
    changed: list[range] = []
    for y, strip in enumerate(rows):
        if y < len(before) and (before[y] is strip or before[y] == strip):
            continue
        if changed and changed[-1].stop == y:
            changed[-1] = range(changed[-1].start, y + 1)
        else:
            changed.append(range(y, y + 1))
    return changed
