"""Tool calls in the style of a shell, edits as differences; thinking, dimmed or as one line."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import islice
from typing import Any, Final

from rich.cells import cell_len

from antiphon.render.cell_theme import CellTheme
from antiphon.render.display import (
    SourceLines,
    displayable_in_a_row,
    sanitize_for_display,
)
from antiphon.render.lines import RenderedCell, RenderedLine
from antiphon.render.terminal_output import TAB
from antiphon.render.view import CellView, end_label, status_label
from antiphon.render.wrap import DECORATION, WrapPiece, clipped, compose, expand_tabs, wrap
from antiphon_kernel.text.lines import line_count, split_lines
from antiphon_kernel.text.patch import MalformedPatch, parse_patch
from antiphon_kernel.types.enums import Status, ToolKind
from antiphon_kernel.types.json_validation import read_json
from antiphon_kernel.types.quoting import count_of

SHOWN_LINES: Final = 200
"""Lines of one difference that are drawn; the call's input has all of it."""

_COMPARED: Final = 400
"""Lines of one replacement that are compared, so as to show what stays as unchanged."""


@dataclass(frozen=True, slots=True)
class DiffLine:
    """One line of a difference."""

    mark: str
    """`+`, `-`, a space for a line that stays, `@` for the place of what follows."""
    text: str


def _diff_of(tool: str | None, arguments: Mapping[str, Any]) -> Iterator[DiffLine] | None:
    """Return the change that a call asks for; None if it is no edit, or none that can be read."""
    match (tool or "").replace(".", "_"):
        case "block_edit":
            operations = arguments.get("operations")
            if isinstance(operations, list) and all(map(_is_operation, operations)):
                return (line for one in operations for line in _operation_lines(one))
        case "block_apply_patch":
            return _patch_lines(arguments.get("patch"))
    return None


def _is_operation(one: object) -> bool:
    if not isinstance(one, dict):
        return False
    texts = (one.get("content"), one.get("expected_text"))
    start = one.get("line", one.get("start_line"))
    return isinstance(start, int) and all(isinstance(text, str | None) for text in texts)


def _operation_lines(one: Mapping[str, Any]) -> Iterator[DiffLine]:
    old, new = _lines(one.get("expected_text")), _lines(one.get("content"))
    start = one.get("line", one.get("start_line"))
    end = one.get("end_line", start)
    if old or start == end:
        yield DiffLine("@", f"line {start}")
    else:
        yield DiffLine("@", f"lines {start} to {end}, the last one excluded")
    codes: Sequence[tuple[str, int, int, int, int]] = [("replace", 0, len(old), 0, len(new))]
    if max(len(old), len(new)) <= _COMPARED:
        codes = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    for tag, first, last, new_first, new_last in codes:
        if tag == "equal":
            yield from (DiffLine(" ", line) for line in old[first:last])
        else:
            yield from (DiffLine("-", line) for line in old[first:last])
            yield from (DiffLine("+", line) for line in new[new_first:new_last])


def _lines(text: str | None) -> Sequence[str]:
    lines = split_lines(text or "")
    return lines[:-1] if lines and not lines[-1] else lines


def _patch_lines(patch: object) -> Iterator[DiffLine] | None:
    if not isinstance(patch, str):
        return None
    try:
        hunks = parse_patch(patch).hunks
    except MalformedPatch:
        return None

    def lines() -> Iterator[DiffLine]:
        for hunk in hunks:
            yield DiffLine("@", f"line {hunk.start}")
            yield from (DiffLine(line.mark, line.text.removesuffix("\n")) for line in hunk.lines)

    return lines()


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
    name, sign = view.header.tool_name, "$ "
    if name and view.header.tool_kind != ToolKind.SHELL:
        sign = f"▪ {sanitize_for_display(name)} "
    prompt = WrapPiece(sign, theme.tool_prompt)
    indent = cell_len(prompt.text)
    label = [WrapPiece(*part) for part in status_label(view, theme) if part[0]]
    label_width = sum(cell_len(piece.text) for piece in label)
    room = width - indent
    beside = room - label_width - _GAP
    is_beside = beside >= _NARROWEST_COMMAND
    first_room = beside if is_beside else room
    arguments = arguments_of(view.header.input) or {}
    target, diff = arguments.get("block_id"), _diff_of(name, arguments)
    if diff is None or not isinstance(target, str):
        rows = _command_rows(view, room, first_room, theme)
    else:
        indent = cell_len(_DIFF_INDENT)
        rows = _diff_rows(target, diff, view, width - indent, first_room, theme)
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
    target: str,
    lines: Iterator[DiffLine],
    view: CellView,
    room: int,
    first_room: int,
    theme: CellTheme,
) -> list[list[WrapPiece]]:
    """Return the rows of an edit: the block that it changes, then its lines unless it is folded."""
    shown = tuple(islice(lines, SHOWN_LINES))
    marks = Counter(line.mark for line in shown)
    marks.update(line.mark for line in lines)
    counted = f" · −{marks['-']} +{marks['+']}"
    head = [
        WrapPiece(displayable_in_a_row(target), theme.tool_command),
        WrapPiece(counted + (" …" if view.collapsed and shown else ""), theme.dim),
    ]
    rows = [
        clipped(
            [WrapPiece("", theme.tool_command, 0, len(view.text)), *head], first_room, theme.dim
        )
    ]
    if view.collapsed and not view.question:
        return rows
    styles = {"+": theme.status_done, "-": theme.error, "@": theme.dim}
    for line in shown:
        style = styles.get(line.mark, theme.dim)
        text = f"{line.mark} {sanitize_for_display(line.text)}"
        pieces = expand_tabs(text, style, DECORATION, TAB)
        rows.extend(wrap([piece._replace(offset=DECORATION, length=0) for piece in pieces], room))
    if unshown := marks.total() - len(shown):
        rows.append([WrapPiece(f"… {count_of(unshown, 'more line')}", theme.dim)])
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
