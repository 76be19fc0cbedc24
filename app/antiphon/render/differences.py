"""The change that a tool call makes: read from the call, and drawn in the colours of the file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import groupby
from typing import Any, Final, NamedTuple

from rich.cells import cell_len
from rich.style import Style

from antiphon.render.cell_theme import CellTheme
from antiphon.render.code_source import coloured
from antiphon.render.display import displayable_in_a_row, sanitize_for_display
from antiphon.render.text_lines import CODE_TAB, language_of
from antiphon.render.view import CellView
from antiphon.render.wrap import DECORATION, WrapPiece, expand_tabs, wrap
from antiphon_kernel.text.lines import split_lines
from antiphon_kernel.text.patch import read_patch, split_patch
from antiphon_kernel.text.sequence_diff import changed_ranges
from antiphon_kernel.types.errors import AntiphonError
from antiphon_kernel.types.json_validation import read_json
from antiphon_kernel.types.records import BlockHeader

_FILE: Final = "file:"

_OF_FILES: Final = frozenset({"file_edit", "file_create", "apply_patch"})
"""Tools in the block of which the kernel writes what a call would change, or has changed."""

_EDITS: Final = _OF_FILES | {"block_edit", "block_apply_patch"}


class DiffLine(NamedTuple):
    """One line of a difference."""

    mark: str
    """`+`, `-`, a space for a line that stays, `@` for the place of what follows."""
    text: str
    path: str = ""
    """Path of the file that the line is of, or the id of the block."""
    number: int | None = None
    """Place of the line as it is afterwards, or was if it goes, from 0; None if not known."""


def arguments_of(stored: str | None) -> dict[str, Any] | None:
    """Return the arguments in a call's stored input; None if that is no JSON object."""
    try:
        arguments = read_json(stored) if stored else None
    except ValueError:
        return None
    return arguments if isinstance(arguments, dict) else None


def difference_of(view: CellView) -> Sequence[DiffLine]:
    """Return the change that a call asks for; nothing if it is no edit that can be read."""
    if not is_edit(view.header):
        return ()
    tool = (view.header.tool_name or "").replace(".", "_")
    return _difference(tool, view.header.input or "", view.text)


def is_edit(header: BlockHeader) -> bool:
    """Return whether a block is the call of a tool that changes a text."""
    return (header.tool_name or "").replace(".", "_") in _EDITS


@lru_cache(maxsize=32)
def _difference(tool: str, stored: str, text: str) -> Sequence[DiffLine]:
    arguments = arguments_of(stored) or {}
    target = arguments.get("block_id") or arguments.get("path")
    # What the kernel has found out says more than what the model has asked for.
    found = patch_lines(text) if tool in _OF_FILES and text else ()
    if found or tool == "apply_patch":
        return found or patch_lines(arguments.get("patch"))
    if not isinstance(target, str):
        return ()
    target = target.removeprefix(_FILE)
    operations: object = None
    match tool:
        case "block_edit":
            operations = arguments.get("operations")
        case "block_apply_patch":
            return patch_lines(arguments.get("patch"), target)
        case "file_edit" | "file_create":
            start = arguments.get("start_line")
            one = {
                "start_line": 0 if start is None else start,
                "end_line": arguments.get("end_line", 0),
                "expected_text": arguments.get("old_text"),
                "content": arguments.get("new_text", arguments.get("content")),
            }
            lines = list(_operation_lines(one, target)) if _is_operation(one) else []
            return lines[start is None :]
    if isinstance(operations, list) and all(map(_is_operation, operations)):
        return [line for one in operations for line in _operation_lines(one, target)]
    return ()


def changed_place(view: CellView) -> tuple[str, int | None] | None:
    """Return the first file that a call changes, and the line, from 0, if it is known."""
    target = (arguments_of(view.header.input) or {}).get("block_id")
    lines = difference_of(view)
    if not lines or (isinstance(target, str) and not target.startswith(_FILE)):
        return None
    first = next((one for one in lines if one.mark in ("+", "-")), lines[0])
    return first.path, first.number


def _is_operation(one: object) -> bool:
    if not isinstance(one, dict):
        return False
    texts = (one.get("content"), one.get("expected_text"))
    start = one.get("line", one.get("start_line"))
    return isinstance(start, int) and all(isinstance(text, str | None) for text in texts)


def _operation_lines(one: Mapping[str, Any], path: str) -> Iterator[DiffLine]:
    old, new = _lines(one.get("expected_text")), _lines(one.get("content"))
    start = one.get("line", one.get("start_line"))
    end = one.get("end_line", start)
    if old or start == end:
        yield DiffLine("@", f"line {start}", path, start)
    else:
        yield DiffLine("@", f"lines {start} to {end}, the last one excluded", path, start)
    at = 0
    for change in changed_ranges(old, new):
        yield from (DiffLine(" ", line, path) for line in old[at : change.start])
        yield from (DiffLine("-", line, path) for line in old[change.start : change.end])
        yield from (DiffLine("+", line, path) for line in new[change.new_start : change.new_end])
        at = change.end
    yield from (DiffLine(" ", line, path) for line in old[at:])


def _lines(text: str | None) -> Sequence[str]:
    lines = split_lines(text or "")
    return lines[:-1] if lines and not lines[-1] else lines


def patch_lines(patch: object, path: str | None = None) -> Sequence[DiffLine]:
    """Return the lines of a patch of a block or else of files; nothing of one that is damaged."""
    if not isinstance(patch, str):
        return ()
    found: list[DiffLine] = []
    try:
        for part in [read_patch(patch)] if path else split_patch(patch):
            name, shift = path or part.path, 0
            for hunk in part.hunks:
                found.append(DiffLine("@", f"line {hunk.start}", name, hunk.start))
                before = hunk.start
                for line in hunk.lines:
                    number = before + (0 if line.mark == "-" else shift)
                    text = line.text.removesuffix("\n")
                    found.append(DiffLine(line.mark, text, name, number))
                    before += line.mark != "+"
                    shift += (line.mark == "+") - (line.mark == "-")
    except AntiphonError:
        return ()
    return found


def difference_rows(
    lines: Sequence[DiffLine], room: int, theme: CellTheme
) -> Iterator[list[WrapPiece]]:
    """Yield the rows of a difference: the name of each of several files, and its lines."""
    several = len({line.path for line in lines}) > 1
    numbers = (one.number for one in lines if one.mark != "@" and one.number is not None)
    digits = max((len(str(number + 1)) for number in numbers), default=0)
    for path, of_file in groupby(lines, key=lambda line: line.path):
        if several:
            yield [WrapPiece(displayable_in_a_row(path), theme.tool_command)]
        hunks = [list(group) for _, group in groupby(of_file, key=lambda line: line.mark == "@")]
        for number, hunk in enumerate(hunks):
            if hunk[0].mark != "@":
                yield from _hunk_rows(hunk, language_of(path, None), digits, room, theme)
            elif not digits:
                yield from ([WrapPiece(f"@ {one.text}", theme.dim)] for one in hunk)
            elif number:
                yield [WrapPiece("…".rjust(digits), theme.dim)]


def _hunk_rows(
    hunk: Sequence[DiffLine], language: str, digits: int, room: int, theme: CellTheme
) -> Iterator[list[WrapPiece]]:
    looks = {
        "+": (theme.status_done, theme.edit_surface),
        "-": (theme.status_failed, theme.removed_surface),
    }
    # Each side by itself is code that can be read.
    sides = {}
    for mark, others in (("-", "+"), ("+", "-")):
        side = [one for one in hunk if one.mark != others]
        shown = coloured([sanitize_for_display(one.text) for one in side], language, theme)
        sides[mark] = dict(zip(map(id, side), shown, strict=False))
    for line in hunk:
        sign, ground = looks.get(line.mark, (theme.dim, Style()))
        number = "" if line.number is None else str(line.number + 1)
        lead = [WrapPiece(number.rjust(digits) + " " * bool(digits), theme.dim + ground)]
        lead += [WrapPiece(f"{line.mark} ", sign + ground)]
        width = room - digits - bool(digits) - 2
        parts = sides["-" if line.mark == "-" else "+"].get(id(line), [])
        pieces, column = list[WrapPiece](), 0
        for text, style in parts:
            pieces += expand_tabs(text, style + ground, DECORATION, CODE_TAB, column)
            column += cell_len(text)
        pieces = [one._replace(offset=DECORATION, length=0) for one in pieces]
        for row in wrap(pieces, width, words=False):
            used = sum(cell_len(piece.text) for piece in row)
            fill = [WrapPiece(" " * (width - used), ground)] if line.mark in looks else []
            yield [*lead, *row, *fill]
            lead = [WrapPiece(" " * (room - width), ground)]
