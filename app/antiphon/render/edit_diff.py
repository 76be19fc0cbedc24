"""The change that a call of an editing tool asks for, as lines of a difference."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import islice
from typing import Any, Final

from antiphon_kernel.text.lines import split_lines
from antiphon_kernel.text.unified_diff import MalformedPatch, parse_patch

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


@dataclass(frozen=True, slots=True)
class EditDiff:
    """Change of one block."""

    target: str
    """The block as the call names it."""
    lines: tuple[DiffLine, ...]
    unshown: int
    """Further lines."""
    removed: int
    """Lines that are removed, shown or not."""
    added: int


def edit_diff(tool: str | None, arguments: Mapping[str, Any] | None) -> EditDiff | None:
    """Return the change that a call asks for; None if it is no edit, or none that can be read."""
    if arguments is None or not isinstance(target := arguments.get("block_id"), str):
        return None
    match (tool or "").replace(".", "_"):
        case "block_edit":
            lines = _edit_lines(arguments.get("operations"))
        case "block_apply_patch":
            lines = _patch_lines(arguments.get("patch"))
        case _:
            return None
    if lines is None:
        return None
    shown = tuple(islice(lines, SHOWN_LINES))
    marks = Counter(line.mark for line in shown)
    marks.update(line.mark for line in lines)
    return EditDiff(target, shown, marks.total() - len(shown), marks["-"], marks["+"])


def _edit_lines(operations: object) -> Iterator[DiffLine] | None:
    if not isinstance(operations, list) or not all(map(_is_operation, operations)):
        return None
    return (line for one in operations for line in _operation_lines(one))


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
    yield from _compared(old, new)


def _lines(text: str | None) -> Sequence[str]:
    lines = split_lines(text or "")
    return lines[:-1] if lines and not lines[-1] else lines


def _compared(old: Sequence[str], new: Sequence[str]) -> Iterator[DiffLine]:
    if max(len(old), len(new)) > _COMPARED:
        yield from (DiffLine("-", line) for line in old)
        yield from (DiffLine("+", line) for line in new)
        return
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    for tag, start, end, new_start, new_end in matcher.get_opcodes():
        if tag == "equal":
            yield from (DiffLine(" ", line) for line in old[start:end])
        else:
            yield from (DiffLine("-", line) for line in old[start:end])
            yield from (DiffLine("+", line) for line in new[new_start:new_end])


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
