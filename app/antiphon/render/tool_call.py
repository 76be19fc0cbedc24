"""Tool calls in the style of a shell, how it went at the right; thinking, dimmed or as one line."""

from __future__ import annotations

import json
from typing import Any, Final

from rich.cells import cell_len

from antiphon.render.cell_theme import CellTheme
from antiphon.render.display import (
    SourceLines,
    displayable_in_a_row,
    sanitize_for_display,
)
from antiphon.render.edit_diff import EditDiff, edit_diff
from antiphon.render.lines import RenderedCell, RenderedLine
from antiphon.render.status_label import end_label, status_label
from antiphon.render.terminal_line import TAB
from antiphon.render.view import CellView
from antiphon.render.wrap import DECORATION, WrapPiece, clipped, compose, expand_tabs, wrap
from antiphon_kernel.text.lines import line_count
from antiphon_kernel.types.enums import Status, ToolKind
from antiphon_kernel.types.json_validation import read_json
from antiphon_kernel.types.quoting import count_of

_GAP: Final = 2
_DIFF_INDENT: Final = "  "
_NARROWEST_COMMAND: Final = 16
"""Columns that a command needs beside the status; with fewer the status goes below it."""


def command_of(view: CellView) -> str:
    """Return the call's text or, without one, the command or arguments in its input.

    While people decide about it, that is always its input: nobody can change that.
    """
    if not view.header.input or (view.text and not view.question):
        return view.text
    arguments = arguments_of(view.header.input)
    if arguments is None:
        return view.header.input
    command = arguments.get("command")
    if isinstance(command, str):
        return view.text if command == view.text else command
    return " ".join(
        f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in arguments.items()
    )


def arguments_of(stored: str | None) -> dict[str, Any] | None:
    """Return the arguments in a call's stored input; None if that is no JSON object."""
    try:
        arguments = read_json(stored) if stored else None
    except ValueError:
        return None
    return arguments if isinstance(arguments, dict) else None


def render_tool_call(view: CellView, width: int, theme: CellTheme) -> RenderedCell:
    """Draw the call; folded, its first line only."""
    prompt = _prompt(view, theme)
    indent = cell_len(prompt.text)
    label = [WrapPiece(*part) for part in status_label(view, theme) if part[0]]
    label_width = sum(cell_len(piece.text) for piece in label)
    room = width - indent
    beside = room - label_width - _GAP
    is_beside = beside >= _NARROWEST_COMMAND
    first_room = beside if is_beside else room
    diff = edit_diff(view.header.tool_name, arguments_of(view.header.input))
    if diff is None:
        rows = _command_rows(view, room, first_room, theme)
    else:
        indent = cell_len(_DIFF_INDENT)
        rows = _diff_rows(diff, view, width - indent, first_room, theme)
    lines: list[RenderedLine] = []
    for number, row in enumerate(rows):
        pieces = [WrapPiece(" " * indent, prompt.style) if number else prompt, *row]
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


def _prompt(view: CellView, theme: CellTheme) -> WrapPiece:
    if view.header.tool_kind == ToolKind.SHELL or not view.header.tool_name:
        return WrapPiece("$ ", theme.tool_prompt)
    return WrapPiece(f"▪ {sanitize_for_display(view.header.tool_name)} ", theme.tool_prompt)


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
    diff: EditDiff, view: CellView, room: int, first_room: int, theme: CellTheme
) -> list[list[WrapPiece]]:
    """Return the rows of an edit: what it changes, then its lines unless it is folded."""
    counted = f" · −{diff.removed} +{diff.added}"
    head = [
        WrapPiece(displayable_in_a_row(diff.target), theme.tool_command),
        WrapPiece(counted + (" …" if view.collapsed and diff.lines else ""), theme.dim),
    ]
    rows = [
        clipped(
            [WrapPiece("", theme.tool_command, 0, len(view.text)), *head], first_room, theme.dim
        )
    ]
    if view.collapsed and not view.question:
        return rows
    styles = {"+": theme.status_done, "-": theme.error, "@": theme.dim}
    for line in diff.lines:
        style = styles.get(line.mark, theme.dim)
        text = f"{line.mark} {sanitize_for_display(line.text)}"
        pieces = expand_tabs(text, style, DECORATION, TAB)
        rows.extend(wrap([piece._replace(offset=DECORATION, length=0) for piece in pieces], room))
    if diff.unshown:
        rows.append([WrapPiece(f"… {count_of(diff.unshown, 'more line')}", theme.dim)])
    return rows


def thinking_head(view: CellView, width: int, theme: CellTheme) -> RenderedLine:
    """The line that says that there is thinking; folded, it has the place of all the text."""
    parts = ["thinking…" if view.header.status == Status.RUNNING else "thinking"]
    if view.text:
        parts.append(count_of(line_count(view.text), "line"))
    if view.header.status == Status.ERROR:
        parts.append(end_label(view))
    mark = "▸ " if view.collapsed else "▾ "
    pieces = clipped([WrapPiece(mark + " · ".join(parts), theme.fold)], width, theme.dim)
    if view.collapsed:
        pieces.append(WrapPiece("", theme.fold, 0, len(view.text)))
    return compose(pieces)


def folded_thinking(view: CellView, width: int, theme: CellTheme) -> RenderedCell:
    return RenderedCell.of_lines([thinking_head(view, width, theme)])
