"""A cell drawn again and again: each kind by its renderer, growing text at the cost of its end."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from rich.style import Style

from antiphon.render.cell_theme import CellTheme
from antiphon.render.code_lines import LONGEST_COLOURED, CodeCutter, file_cell, language_of_path
from antiphon.render.collapsed import SEEN, folded_output, summary
from antiphon.render.display import sanitize_for_display
from antiphon.render.lines import RenderedCell, RenderedLine
from antiphon.render.markdown import TEXT_WIDTH, WIDE_WIDTH
from antiphon.render.markdown_segments import MarkdownCutter
from antiphon.render.plain import PlainCutter
from antiphon.render.segments import Cutter, SegmentedText
from antiphon.render.status_label import end_label, end_note
from antiphon.render.terminal_output import SgrStyles
from antiphon.render.tool_call import folded_thinking, render_tool_call, thinking_head
from antiphon.render.view import CellView
from antiphon.render.wrap import WrapPiece, clipped, compose
from antiphon_kernel.text.lines import line_count
from antiphon_kernel.types.enums import BlockKind, Role, Status
from antiphon_kernel.types.quoting import count_of

FOLDED_RESULT_LINES: Final = 4
"""Lines of a tool result that a fold leaves to be seen."""

EXCLUDED: Final = "✂ models do not read this"

EDITED: Final = "✎ edited after the tool had ended"


class CellRenderer:
    """Draws one block whenever it has changed; the picture is that of a new stream."""

    def __init__(self, width: int, theme: CellTheme) -> None:
        self._width = max(1, width)
        self._theme = theme
        self._sgr = SgrStyles(theme, theme.dim)
        self._style: tuple[object, ...] = ()
        self._text: SegmentedText | None = None

    def update(self, view: CellView) -> RenderedCell:
        cell = self._cell(view)
        head = [self._read_from_here()] if view.is_read_from else []
        foot = [self._siblings(view.siblings)] if view.siblings else []
        if view.header.excluded:
            head.append(self._note(EXCLUDED))
        if view.header.edited_after_done and view.header.kind == BlockKind.TOOL_RESULT:
            by = f" by {view.edited_by}" if view.edited_by else ""
            foot.append(self._note(f"{EDITED}{by}"))
        return cell.framed(head, foot) if head or foot else cell

    def _cell(self, view: CellView) -> RenderedCell:
        match view.header.kind:
            case BlockKind.THINKING:
                return self._thinking(view)
            case BlockKind.TOOL_CALL:
                return render_tool_call(view, self._wide, self._theme)
            case BlockKind.TOOL_RESULT:
                return self._tool_result(view)
            case _ if view.is_sending:
                return self._plain(view.text, self._theme.dim)
            case _ if view.collapsed:
                return self._folded(view)
            case BlockKind.TEXT:
                return self._markdown(view).framed(foot=self._end(view))
            case BlockKind.ERROR:
                lead = WrapPiece("✗ ", self._theme.error)
                return self._plain(view.text, self._theme.error, lead)
            case BlockKind.DRIFT:
                return self._markdown(view).framed([self._note(_drift_note(view))], self._end(view))
            case BlockKind.FILE:
                return self._file(view)
            case _:
                cell = self._plain(view.text, self._theme.text)
                note = self._note(f"? block of kind {sanitize_for_display(str(view.header.kind))}")
                return cell.framed([note], self._end(view))

    def failed(self, error: Exception) -> RenderedCell:
        """The picture of a block that `update` could not draw: a line that says so."""
        text = f"✗ This cell cannot be drawn ({type(error).__name__}): block.read shows its text."
        pieces = clipped([WrapPiece(text, self._theme.error)], self._text_width, self._theme.error)
        return RenderedCell.of_lines([compose(pieces)])

    @property
    def _text_width(self) -> int:
        return min(self._width, TEXT_WIDTH)

    @property
    def _wide(self) -> int:
        """Width of code, tables and output."""
        return min(self._width, WIDE_WIDTH)

    def _markdown(self, view: CellView) -> RenderedCell:
        newlines = view.header.role == Role.USER
        cutter = MarkdownCutter(self._wide, self._theme, newlines=newlines)
        return self._drawn(("markdown", newlines), cutter, view.text)

    def _plain(
        self, text: str, style: Style, lead: WrapPiece | None = None, *, is_output: bool = False
    ) -> RenderedCell:
        """Text as it is; output is read as a terminal does."""
        styles = self._sgr if is_output else None
        width = self._wide if is_output else self._text_width
        cutter = PlainCutter(width, style, lead=lead, styles=styles)
        return self._drawn(("plain", style, lead, is_output), cutter, text)

    def _drawn(self, key: tuple[object, ...], cutter: Cutter, text: str) -> RenderedCell:
        """The text by the same renderer as before, if it was of this kind then."""
        if self._style != key or self._text is None:
            self._text, self._style = SegmentedText(cutter), key
        return self._text.update(text)

    @property
    def lines_drawn(self) -> int:
        return 0 if self._text is None else self._text.lines_drawn

    def _thinking(self, view: CellView) -> RenderedCell:
        if view.collapsed:
            return folded_thinking(view, self._text_width, self._theme)
        head = [thinking_head(view, self._text_width, self._theme)]
        style = self._theme.thinking
        cell = self._plain(view.text, style, WrapPiece("  ", style))
        is_long = cell.line_count > FOLDED_RESULT_LINES + 1
        return cell.framed(head, [self._fold_end()] if is_long else [])

    def _tool_result(self, view: CellView) -> RenderedCell:
        style = self._theme.dim
        lead = WrapPiece("  ", style)
        if view.header.is_error:
            lead = WrapPiece("✗ ", self._theme.status_failed)
        foot: list[RenderedLine] = []
        if view.header.truncated:
            is_over = view.header.status in (Status.DONE, Status.ERROR)
            words = "output was cut off" if is_over else "more follows when the command ends"
            foot.append(self._note(f"  ({words})"))
        if not view.text:
            words = "(no output)" if view.header.status in (Status.DONE, Status.ERROR) else "…"
            pieces = [lead, WrapPiece("", style, 0), WrapPiece(words, style)]
            row = compose(clipped(pieces, self._text_width, style))
            return RenderedCell.of_lines([row]).framed(foot=foot)
        if view.collapsed:
            cell = folded_output(
                view.text,
                FOLDED_RESULT_LINES,
                self._wide,
                self._theme,
                lead,
                self._sgr,
                from_end=not _went_well(view),
            )
        else:
            cell = self._plain(view.text, style, lead, is_output=True)
            if line_count(view.text) > FOLDED_RESULT_LINES + 1:
                foot.insert(0, self._fold_end())
        return cell.framed(foot=foot)

    def _folded(self, view: CellView) -> RenderedCell:
        """A line: how the text begins when it is open, and how much of it there is."""
        width, words = self._text_width, []
        header = view.header._replace(status=Status.DONE)
        start = replace(view, header=header, text=view.text[:SEEN], collapsed=False)
        # By a renderer of its own: what this one has drawn of the open text stays.
        renderer = CellRenderer(self._width, self._theme)
        is_drift = header.kind == BlockKind.DRIFT
        opened = renderer._markdown(start) if is_drift else renderer._cell(start)
        if (count := line_count(view.text)) > 1 or view.header.kind == BlockKind.FILE:
            words.append(count_of(count, "line"))
        if view.header.status == Status.ERROR and view.header.kind != BlockKind.ERROR:
            words.append(end_label(view))
        return summary(opened, len(view.text), words, width, self._theme)

    def _file(self, view: CellView) -> RenderedCell:
        path = view.header.path or ""
        language = view.header.language or (path and language_of_path(path))
        name = sanitize_for_display(path or "file").replace("\n", " ").replace("\t", " ")
        if len(view.text) > LONGEST_COLOURED:
            cutter = CodeCutter(self._wide, self._theme)
            cell = self._drawn(("file",), cutter, view.text)
        else:
            cell = file_cell(view.text, language, self._wide, self._theme)
        return cell.framed([self._note(f"▤ {name}")], self._end(view))

    def _end(self, view: CellView) -> list[RenderedLine]:
        note = end_note(view)
        return [self._note(note)] if note else []

    def _read_from_here(self) -> RenderedLine:
        width = self._text_width
        return self._note(f"── models read from here {'─' * width}"[:width])

    def _siblings(self, label: str) -> RenderedLine:
        """At the right, on a line of its own: it never covers text."""
        return self._note(label.rjust(self._text_width))

    def _fold_end(self) -> RenderedLine:
        """Return the line below an open text that a click on folds."""
        pieces = [WrapPiece("  ▾ fold", self._theme.fold)]
        return compose(clipped(pieces, self._text_width, self._theme.dim))

    def _note(self, text: str) -> RenderedLine:
        pieces = clipped([WrapPiece(text, self._theme.dim)], self._text_width, self._theme.dim)
        return compose(pieces)


def _went_well(view: CellView) -> bool:
    """Output of which the end is no more telling than the beginning."""
    header = view.header
    return header.status == Status.DONE and not header.is_error and not header.exit_code


def _drift_note(view: CellView) -> str:
    source = sanitize_for_display(view.source_context or "another context")
    kind = view.header.drift_kind
    return f"⇢ from {source} · {kind}" if kind else f"⇢ from {source}"
