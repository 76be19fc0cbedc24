"""Place of an edit of an earlier version now: the rules of `base_version`, character by
character."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from antiphon_kernel.text.edits import (
    Delete,
    EditOperation,
    Insert,
    Replace,
    plan_edit,
)
from tests.kernel.invariants.oracle import Char
from tests.kernel.splicing import apply_splices


class Stale(Exception):
    """Error of an edit whose place is not there any more."""


class Carrying:
    """The characters of a text at an earlier version, and those of now."""

    def __init__(self, base: Sequence[Char], now: Sequence[Char]) -> None:
        self.base = base
        self.text = "".join(char.value for char in now)
        self._now = now
        self._at = {char: at for at, char in enumerate(now)}
        self._lines = _lines(base)

    @property
    def line_count(self) -> int:
        return len(self._lines)

    def edited(self, operations: Sequence[Mapping[str, Any]]) -> str:
        """The text after a `block.edit` of the earlier version.

        Raises:
            Stale: if one of the lines that it touches has not survived.
        """
        carried = [self._carry(one) for one in operations]
        return apply_splices(self.text, plan_edit(self.text, carried))

    def _carry(self, operation: Mapping[str, Any]) -> EditOperation:
        if operation["op"] == "insert":
            return Insert(self._above(operation["line"]), operation["content"])
        start, end = operation["start_line"], operation["end_line"]
        if start == end:
            first = last = self._above(start)
        else:
            found = [self._line(number) for number in range(start, end)]
            if any(other != one + 1 for one, other in pairwise(found)):
                raise Stale
            first, last = found[0], found[-1] + 1
        expected = operation.get("expected_text")
        if operation["op"] == "delete":
            return Delete(first, last, expected)
        return Replace(first, last, operation["content"], expected)

    def _above(self, number: int) -> int:
        if number == self.line_count:
            return len(_lines(self._now))
        return self._line(number)

    def _line(self, number: int) -> int:
        """The number now of a line that has survived."""
        chars = self._lines[number]
        empty = len(chars) == 1 and chars[0].value == "\n"
        wanted = chars if empty else [char for char in chars if char.value != "\n"]
        places = [self._place(char) for char in wanted]
        if any(other != one + 1 for one, other in pairwise(places)):
            raise Stale
        first, after = places[0], places[-1] + 1
        if first > 0 and self._now[first - 1].value != "\n":
            raise Stale
        if not empty and after < len(self._now) and self._now[after].value != "\n":
            raise Stale
        return sum(char.value == "\n" for char in self._now[:first])

    def _place(self, char: Char) -> int:
        at = self._at.get(char)
        if at is None:
            raise Stale
        return at

    def spliced(self, offset: int, deleted: int, inserted: str) -> str:
        """The text after a `block.splice` of the earlier version.

        Raises:
            Stale: if what it deletes has been touched.
        """
        touched = [self._place(char) for char in self.base[offset : offset + deleted]]
        if any(other != one + 1 for one, other in pairwise(touched)):
            raise Stale
        at = touched[0] if touched else self._before(offset)
        return self.text[:at] + inserted + self.text[at + deleted :]

    def _before(self, offset: int) -> int:
        """Return where the character at an offset is now, or was before it went."""
        if offset == len(self.base):
            return len(self._now)
        item = self.base[offset].item
        assert item.text is not None
        before = 0
        for one in item.text.items():
            if one is item:
                break
            before += bool(one.value) and not one.deleted
        return before


def _lines(chars: Sequence[Char]) -> list[list[Char]]:
    """Each line with its newline, if it has one."""
    lines: list[list[Char]] = []
    begins = True
    for char in chars:
        if begins:
            lines.append([])
        lines[-1].append(char)
        begins = char.value == "\n"
    return lines
