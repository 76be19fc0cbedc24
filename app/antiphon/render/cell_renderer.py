"""A cell drawn again and again: each kind by its renderer, growing text at the cost of its end.

Tool calls are in the style of a shell, edits as differences; thinking is dimmed. A folded cell is a
few lines of output, or the first line of a text, and a count. A cell is also written as Markdown,
to be pasted elsewhere.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from antiphon.render.cell_theme import CellTheme
from antiphon.render.code_source import CodeCutter, coloured, page_of_code
from antiphon.render.differences import (
    DiffLine,
    arguments_of,
    difference_of,
    difference_rows,
)
from antiphon.render.display import (
    SourceLines,
    displayable_in_a_row,
    sanitize_for_display,
)
from antiphon.render.lines import Cutter, RenderedCell, RenderedLine, SegmentedText, SourceRun
from antiphon.render.markdown import TEXT_WIDTH, WIDE_WIDTH, MarkdownCutter
from antiphon.render.markdown_blocks import FENCE_LINE
from antiphon.render.terminal_output import TAB, SgrStyles, TerminalDecoder, state_near
from antiphon.render.text_lines import (
    PlainCutter,
    PlainLook,
    code_pieces,
    file_cell,
    language_of,
)
from antiphon.render.view import CellView, drift_label, end_label, end_note, status_label
from antiphon.render.wrap import DECORATION, WrapPiece, clipped, compose, expand_tabs, wrap
from antiphon_kernel.text.lines import line_count
from antiphon_kernel.types.block_metadata import FILE_REFERENCE, agent_call
from antiphon_kernel.types.enums import BlockKind, Role, Status, ToolKind
from antiphon_kernel.types.quoting import count_of

SHOWN_LINES: Final = 200
"""Lines of one difference that are drawn; the call's input has all of it."""

_GAP: Final = 2
_INDENT: Final = "  "
_NARROWEST_COMMAND: Final = 16
"""Columns that a command needs beside the status; with fewer the status goes below it."""


def command_of(view: CellView) -> str:
    """Return the call's text or, without one, the command or arguments in its input.

    While people decide about it, that is always its input: nobody can change that. What an agent
    calls its call stands before it, or in its place. Of no arguments nothing is said.
    """
    title = agent_call(view.header).get("title") or ""
    text = "" if view.text.strip() == "{}" else view.text
    if title and not text:
        said = view.header.input if view.question else None
        return f"{title}\n{said}" if said else str(title)
    if not view.header.input or (text and not view.question):
        return text
    arguments = arguments_of(view.header.input)
    if arguments is None:
        return view.header.input
    command = arguments.get("command")
    if isinstance(command, str):
        return text if command == text else command
    return " ".join(
        f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in arguments.items()
    )


def call_sign(view: CellView) -> str:
    """Return what stands in front of a call: a shell's prompt, or which tool it is."""
    name = view.header.tool_name
    if not name or view.header.tool_kind == ToolKind.SHELL:
        return "$ "
    return f"▪ {sanitize_for_display(str(agent_call(view.header).get('kind') or name))} "


def render_tool_call(view: CellView, width: int, theme: CellTheme) -> RenderedCell:
    """Draw the call; folded, its first line only. A long name has a row of its own."""
    prompt = WrapPiece(call_sign(view), theme.tool_prompt)
    sign, indent = [prompt], cell_len(prompt.text)
    if is_long := indent > width // 2:
        indent = cell_len(_INDENT)
    label = [WrapPiece(*part) for part in status_label(view, theme) if part[0]]
    label_width = sum(cell_len(piece.text) for piece in label)
    room = width - indent
    beside = room - label_width - _GAP
    is_beside = beside >= _NARROWEST_COMMAND
    first_room = beside if is_beside else room
    if diff := difference_of(view):
        indent = cell_len(_INDENT)
        rows = _diff_rows(diff, view, width - indent, room if is_long else first_room, theme)
    else:
        rows = _command_rows(view, room, room if is_long else first_room, theme)
    if is_long:
        sign = clipped(sign, indent + first_room, theme.dim)
        if any(piece.text for row in rows for piece in row):
            rows.insert(0, [])
    lines: list[RenderedLine] = []
    for number, row in enumerate(rows):
        pieces = [*([WrapPiece(" " * indent, prompt.style)] if number else sign), *row]
        if number == 0 and is_beside:
            used = sum(cell_len(piece.text) for piece in pieces)
            pieces.append(WrapPiece(" " * (width - used - label_width), theme.dim))
            pieces += label
        lines.append(compose(pieces))
    if not is_beside:
        below = clipped(label, width, theme.dim)
        used = sum(cell_len(piece.text) for piece in below)
        lines.append(compose([WrapPiece(" " * (width - used), theme.dim), *below]))
    for piece in wrap([WrapPiece(view.question, theme.unread)], room) if view.question else []:
        lines.append(compose([WrapPiece(" " * indent, prompt.style), *piece]))
    return RenderedCell.of_lines(lines)


def _command_rows(
    view: CellView, room: int, first_room: int, theme: CellTheme
) -> list[list[WrapPiece]]:
    command = command_of(view)
    source = SourceLines(command)
    rows: list[list[WrapPiece]] = []
    for number, (line, start) in enumerate(zip(source.lines, source.starts, strict=True)):
        if number and number == len(source) - 1 and not line:
            break
        pieces = expand_tabs(line, theme.tool_command, start, TAB)
        if command is not view.text:
            pieces = [piece._replace(offset=DECORATION, length=0) for piece in pieces]
        if view.collapsed and not view.question:
            if len(source) > 1 and source.lines[1]:
                pieces.append(WrapPiece(" …", theme.dim))
            rows.append(clipped(pieces, first_room, theme.dim))
            break
        rows.extend(wrap(pieces, room, first_width=room if number else first_room))
    if command is not view.text:
        rows[0].insert(0, WrapPiece("", theme.tool_command, 0, 0))
    return rows


def _diff_rows(
    lines: Sequence[DiffLine], view: CellView, room: int, first_room: int, theme: CellTheme
) -> list[list[WrapPiece]]:
    """Return the rows of an edit: what it changes, then the lines unless it is folded."""
    paths = dict.fromkeys(line.path for line in lines)
    target = displayable_in_a_row(lines[0].path) if len(paths) == 1 else f"{len(paths)} files"
    marks = Counter(line.mark for line in lines)
    counted = f" · −{marks['-']} +{marks['+']}"
    head = [
        WrapPiece(target, theme.tool_command),
        WrapPiece(counted + (" …" if view.collapsed else ""), theme.dim),
    ]
    rows = [
        clipped(
            [WrapPiece("", theme.tool_command, 0, len(view.text)), *head], first_room, theme.dim
        )
    ]
    if view.collapsed and not view.question:
        return rows
    rows += difference_rows(lines[:SHOWN_LINES], room, theme)
    if (unshown := len(lines) - SHOWN_LINES) > 0:
        rows.append([WrapPiece(f"… {count_of(unshown, 'more line')}", theme.dim)])
    return rows


def _output_row(text: str, start: int, end: int, styles: SgrStyles) -> list[WrapPiece]:
    """Return the pieces of the line from `start` to `end`, of which one row is made."""
    end -= text[end - 1 : end] == "\r"
    if end - start > SEEN:
        written_last = text.find("\r", end - SEEN, end) + 1
        start, end = (written_last, end) if written_last else (start, start + SEEN)
    raw = text[start:end]
    shown = sanitize_for_display(raw)
    return TerminalDecoder(styles).pieces(raw, shown, start, state_near(text, start))[0]


def _first_lines(text: str, count: int) -> Iterator[tuple[int, int]]:
    """Start and end of each of the first lines."""
    start = 0
    for _ in range(count):
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        yield start, end
        start = end + 1


def _last_lines(text: str, count: int) -> Iterator[tuple[int, int]]:
    end = len(text) - text.endswith("\n")
    found = []
    for _ in range(count):
        start = text.rfind("\n", 0, end) + 1
        found.append((start, end))
        end = start - 1
    return reversed(found)


SEEN: Final = 2_000
"""Code points from the start of a text in which its first line is looked for."""

_MARK: Final = "▸ "
_SHORTEST: Final = 8
"""Columns of text below which nothing is said behind it."""


def summary(
    opened: RenderedCell, length: int, words: Iterable[str], width: int, theme: CellTheme
) -> RenderedCell:
    """One line for a text of `length` code points, of which `opened` shows the start.

    `words` stand behind it, where there is room for them.
    """
    drawn = (one for one in opened.lines if one.text.strip())
    line = next(drawn, RenderedLine(Strip([])))
    behind = "".join(f" · {word}" for word in words)
    room = width - len(_MARK) - cell_len(behind)
    if room < _SHORTEST:
        behind, room = "", max(width - len(_MARK), 0)
    end = cell_len(line.text.rstrip())
    ellipsis = ""
    if end > room or (not behind and next(drawn, None) is not None):
        end, ellipsis = max(min(end, room - 1), 0), "…"
    segments = [Segment(_MARK, theme.dim), *line.strip.crop(0, end)]
    segments += [Segment(ellipsis, theme.dim), Segment(behind, theme.dim)]
    strip = Strip([one for one in segments if one.text])
    runs = [
        run._replace(column=run.column + len(_MARK))
        for run in line.runs
        if run.column + run.width <= end
    ]
    hidden = max((run.offset + run.length for run in runs), default=0)
    if hidden < length or not runs:
        runs.append(SourceRun(len(_MARK) + end, 0, hidden, length - hidden, True))
    return RenderedCell.of_lines([RenderedLine(strip, tuple(runs))])


FOLDED_RESULT_LINES: Final = 4
"""Lines of a tool result that a fold leaves to be seen."""

EXCLUDED: Final = "✂ models do not read this"

EDITED: Final = "✎ edited after the tool had ended"


class CellRenderer:
    """Draws one block whenever it has changed; the picture is that of a new stream."""

    def __init__(self, width: int, theme: CellTheme) -> None:
        self._width = max(1, width)
        self._text_width = min(self._width, TEXT_WIDTH)
        self._wide = min(self._width, WIDE_WIDTH)
        """Width of code, tables and output."""
        self._theme = theme
        self._sgr = SgrStyles(theme, theme.dim)
        self._style: tuple[object, ...] = ()
        self._text: SegmentedText | None = None

    def update(self, view: CellView) -> RenderedCell:
        cell = self._cell(view)
        width = self._text_width
        rule = f"── models read from here {'─' * width}"[:width]
        head = [self._note(rule)] if view.is_read_from else []
        # At the right, on a line of its own: it never covers text.
        foot = [self._note(view.siblings.rjust(width))] if view.siblings else []
        if view.header.excluded:
            head.append(self._note(EXCLUDED))
        if view.header.edited_after_done and view.header.kind == BlockKind.TOOL_RESULT:
            foot.append(self._note(EDITED))
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
            case BlockKind.DRIFT:
                return self._drift(view)
            case _ if view.collapsed:
                return self._folded(view)
            case BlockKind.TEXT:
                return self._markdown(view).framed(foot=self._end(view))
            case BlockKind.ERROR:
                lead = WrapPiece("✗ ", self._theme.error)
                return self._plain(view.text, self._theme.error, lead)
            case BlockKind.FILE:
                return self._file(view)
            case _:
                cell = self._plain(view.text, self._theme.text)
                note = f"? block of kind {sanitize_for_display(str(view.header.kind))}"
                return cell.framed([self._note(note)], self._end(view))

    def failed(self, error: Exception) -> RenderedCell:
        """The picture of a block that `update` could not draw: a line that says so."""
        text = f"✗ This cell cannot be drawn ({type(error).__name__}): block.read shows its text."
        pieces = clipped([WrapPiece(text, self._theme.error)], self._text_width, self._theme.error)
        return RenderedCell.of_lines([compose(pieces)])

    def _markdown(self, view: CellView) -> RenderedCell:
        newlines = view.header.role == Role.USER
        cutter = MarkdownCutter(self._wide, self._theme, newlines=newlines)
        return self._drawn(("markdown", newlines), cutter, view.text)

    def _plain(
        self, text: str, style: Style, lead: WrapPiece | None = None, *, is_output: bool = False
    ) -> RenderedCell:
        """Text as it is; output is read as a terminal does."""
        width, styles = (self._wide, self._sgr) if is_output else (self._text_width, None)
        cutter = PlainCutter(PlainLook(width, style, lead, styles))
        return self._drawn(("plain", style, lead, is_output), cutter, text)

    def _drawn(self, key: tuple[object, ...], cutter: Cutter, text: str) -> RenderedCell:
        """The text by the same renderer as before, if it was of this kind then."""
        if self._style != key or self._text is None:
            self._text, self._style = SegmentedText(cutter), key
        return self._text.update(text)

    def _thinking(self, view: CellView) -> RenderedCell:
        """A line that says that there is thinking; folded, it has the place of all the text."""
        style, fold = self._theme.thinking, self._theme.dim
        parts = ["thinking…" if view.header.status == Status.RUNNING else "thinking"]
        if view.text:
            parts.append(count_of(line_count(view.text), "line"))
        if view.header.status == Status.ERROR:
            parts.append(end_label(view))
        mark = WrapPiece(("▸ " if view.collapsed else "▾ ") + " · ".join(parts), fold)
        pieces = clipped([mark], self._text_width, self._theme.dim)
        if view.collapsed:
            pieces.append(WrapPiece("", fold, 0, len(view.text)))
            return RenderedCell.of_lines([compose(pieces)])
        cell = self._plain(view.text, style, WrapPiece("  ", style))
        is_long = cell.line_count > FOLDED_RESULT_LINES + 1
        return cell.framed([compose(pieces)], [self._fold_end()] if is_long else [])

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
            if view.header.blob is not None:
                words = f"▤ {displayable_in_a_row(view.header.path or 'file')}"
            pieces = [lead, WrapPiece("", style, 0), WrapPiece(words, style)]
            row = compose(clipped(pieces, self._text_width, style))
            return RenderedCell.of_lines([row]).framed(foot=foot)
        if view.collapsed:
            cell = self._folded_output(view, lead)
        else:
            cell = self._plain(view.text, style, lead, is_output=True)
            if line_count(view.text) > FOLDED_RESULT_LINES + 1:
                foot.insert(0, self._fold_end())
        return cell.framed(foot=foot)

    def _folded_output(self, view: CellView, lead: WrapPiece) -> RenderedCell:
        """The first lines and the last or, of what has not gone well, the last ones.

        All if only one would be hidden.
        """
        text, header, theme, keep = view.text, view.header, self._theme, FOLDED_RESULT_LINES
        total, hidden = line_count(text), "more line"
        if view.is_told_above:
            first, last = 1, 0
        elif total <= keep + 1:
            first, last = total, 0
        elif header.status == Status.DONE and not header.is_error and not header.exit_code:
            first, last = keep - 1, 1
        else:
            first, last, hidden = 0, keep, "earlier line"
        spans, tail = list(_first_lines(text, first)), list(_last_lines(text, last))
        rows = [_output_row(text, *line, self._sgr) for line in spans]
        if first + last < total:
            start, end = spans[-1][1] + 1 if spans else 0, tail[0][0] if tail else len(text)
            mark = WrapPiece(f"▸ {count_of(total - first - last, hidden)}", theme.dim)
            rows.append([mark, WrapPiece("", theme.dim, start, end - start)])
        rows += [_output_row(text, *line, self._sgr) for line in tail]
        indent = len(lead.text)
        before = [lead, *[WrapPiece(" " * indent, theme.dim)] * len(rows)]
        return RenderedCell.of_lines(
            [
                compose([first_piece, *clipped(pieces, self._wide - indent, theme.dim)])
                for first_piece, pieces in zip(before, rows, strict=False)
            ]
        )

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

    def _drift(self, view: CellView) -> RenderedCell:
        """Draw where it came from, above what is said about it if there is something."""
        head = [self._note(drift_label(view), self._theme.focus)]
        if not view.text:
            return RenderedCell.of_lines(head).framed(foot=self._end(view))
        if view.collapsed:
            return self._folded(view).framed(head)
        return self._markdown(view).framed(head, self._end(view))

    def _file(self, view: CellView) -> RenderedCell:
        path = (view.referred.path if view.referred is not None else view.header.path) or ""
        language = language_of(path, view.header.language)
        if view.is_page:
            page = CodeCutter(self._width, self._theme, language, page_of_code)
            return self._drawn(("page", language), page, view.text)
        name = sanitize_for_display(path or "file").replace("\n", " ").replace("\t", " ")
        if (reference := view.header.metadata.get(FILE_REFERENCE)) is not None and not view.text:
            return self._reference(view, name, language, reference)
        cutter = CodeCutter(self._wide, self._theme, language, file_cell)
        cell = self._drawn(("file", language), cutter, view.text)
        return cell.framed([self._note(f"▤ {name}")], self._end(view))

    def _reference(
        self, view: CellView, name: str, language: str, reference: Mapping[str, Any]
    ) -> RenderedCell:
        """Draw what a cell refers to: the file, what there is to say of it, its first lines."""
        theme, lines = self._theme, view.referred
        if lines is None:
            cell = self._plain("Enter opens it, and models read it.", theme.dim)
            return cell.framed([self._note(f"▤ {name}{_lines_of(reference)}")])
        if "start" in reference:
            name += _lines_of({"start": lines.place.start, "end": lines.place.stop})
        rows = [self._note(" · ".join(filter(None, (f"▤ {name}", language, *lines.notes))))]
        numbers = lines.place.start + 1
        indent = len(str(numbers + line_count(lines.text)))
        for number, parts in enumerate(coloured(lines.text.split("\n"), language, theme), numbers):
            code = code_pieces(parts, DECORATION, theme.text)
            pieces = [WrapPiece(f"{number:>{indent}}  ", theme.dim), *code]
            pieces = [piece._replace(offset=DECORATION, length=0) for piece in pieces]
            rows.append(compose(clipped(pieces, self._wide, theme.dim)))
        return RenderedCell.of_lines(rows)

    def _end(self, view: CellView) -> list[RenderedLine]:
        note = end_note(view)
        return [self._note(note)] if note else []

    def _fold_end(self) -> RenderedLine:
        """Return the line below an open text that a click on folds."""
        return self._note("  ▾ fold", self._theme.dim)

    def _note(self, text: str, style: Style | None = None) -> RenderedLine:
        dim = self._theme.dim
        return compose(clipped([WrapPiece(text, style or dim)], self._text_width, dim))


def _lines_of(reference: Mapping[str, Any]) -> str:
    """Return the lines of a file that a cell refers to, as people count them: `:10-20`."""
    match reference:
        case {"start": int(start), "end": int(end)}:
            return f":{start + 1}" + (f"-{end}" if end > start + 1 else "")
    return ""


def cell_markdown(view: CellView) -> str:
    """Return the cell under its author's name; calls, output and files in fences."""
    text = view.text
    match view.header.kind:
        case BlockKind.TOOL_CALL:
            text = fenced(f"$ {command_of(view)}", "console")
        case BlockKind.TOOL_RESULT:
            text = fenced(text, "")
        case BlockKind.FILE:
            text = f"`{view.header.path}`\n\n{fenced(text, view.header.language or '')}"
        case BlockKind.THINKING:
            text = "".join(f"> {line}".rstrip() + "\n" for line in text.splitlines())
    return f"**{view.author}**\n\n{text.rstrip()}\n"


def fenced(text: str, language: str) -> str:
    """Return a text as a code block, in a fence that it does not contain."""
    found = (marks for marks, _ in FENCE_LINE.findall(text) if marks[0] == "`")
    longest = max(map(len, found), default=2)
    fence = "`" * (longest + 1)
    end = "" if text.endswith("\n") or not text else "\n"
    return f"{fence}{language}\n{text}{end}{fence}\n"
