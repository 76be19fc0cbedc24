"""Steps that go back to an earlier version of a block, and where its edits belong now.

The rules of `base_version`, character by character.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from antiphon_kernel.text.edits import LineEdit, plan_edit
from antiphon_kernel.text.lines import split_lines
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from tests.kernel.invariants.oracle import Char, Violation
from tests.kernel.invariants.tool_steps import ToolSteps
from tests.kernel.invariants.world import NAMES
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

    def _carry(self, operation: Mapping[str, Any]) -> LineEdit:
        if operation["op"] == "insert":
            above = self._above(operation["line"])
            return LineEdit(above, above, operation["content"])
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
            return LineEdit(first, last, None, expected)
        return LineEdit(first, last, operation["content"], expected)

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


class EarlierSteps(ToolSteps):
    """Edits that mean an earlier version, and looks at one."""

    def version(self, block: str) -> int:
        now = self.world.context.blocks.version(block)
        return self.rng.choice((max(now - 1, 1), self.rng.randint(1, now)))

    def carrying(self, block: str, version: int) -> Carrying:
        oracle = self.world.oracle
        return Carrying(oracle.versions[block][version], oracle.visible(block))

    async def edit_earlier(self) -> None:
        """An edit of an earlier version hits the right lines, or says that they have changed."""
        if self.world.buffered():
            await self.flush()
        name = self.rng.choice(NAMES)
        block = self.block(name)
        version = self.version(block)
        carrying = self.carrying(block, version)
        operations = self.operations(name, carrying.line_count)
        params = {"block_id": block, "operations": operations, "base_version": version}
        with contextlib.suppress(Stale):
            due = carrying.edited(operations)
            await self.tried((), name, "block.edit", **params)
            self.world.compare(due, block, "an edit of an earlier version should be what")
            return
        await self.stale(name, "block.edit", params)

    async def splice_earlier(self) -> None:
        if self.world.buffered():
            await self.flush()
        name = self.rng.choice(NAMES)
        block = self.block(name)
        version = self.version(block)
        carrying = self.carrying(block, version)
        length = len(carrying.base)
        offset = self.rng.randint(0, length)
        count = self.rng.choice((0, 0, self.rng.randint(0, min(4, length - offset))))
        inserted = self.word(name)
        params = {
            "block_id": block,
            "offset": offset,
            "delete_count": count,
            "insert": inserted,
            "base_version": version,
        }
        with contextlib.suppress(Stale):
            due = carrying.spliced(offset, count, inserted)
            await self.tried((), name, "block.splice", **params)
            self.world.compare(due, block, "a splice of an earlier version should be what")
            return
        await self.stale(name, "block.splice", params)

    async def stale(self, name: str, tool: str, params: dict[str, Any]) -> None:
        """The call must fail, and say what is there now."""
        self.done[-1] += f" {name} {tool} {params}"
        try:
            await self.world.call(name, tool, **params)
        except AntiphonError as error:
            if error.code is not ErrorCode.STALE_VERSION:
                raise Violation(f"{tool} {params} failed: {error.code} {error}") from error
            block = params["block_id"]
            told = error.details
            lines = split_lines(self.text(block))[told["start_line"] : told["end_line"]]
            if told["lines"] != lines or told["version"] != self.world.context.blocks.version(
                block
            ):
                raise Violation(f"{told} is not what {block} is now: {lines}") from error
            return
        raise Violation(f"{tool} {params} has changed text that is not what it meant")

    async def look_back(self) -> None:
        """Every version of a block is what it was."""
        block = self.block()
        if self.world.buffered():
            await self.flush()
        oracle, version = self.world.oracle, self.version(block)
        read = await self.tried((), "bo", "block.read", block_id=block, version=version)
        due = "".join(char.value for char in oracle.versions[block][version])
        if read is not None and read["content"] != due:
            raise Violation(f"version {version} was {due!r} and is {read['content']!r}")
        told = await self.tried((), "bo", "block.history", block_id=block)
        found = [(one["version"], one["operation"]) for one in (told or {})["versions"]]
        if found != [(op.versions[block], op.operation) for op in oracle.changes[block]]:
            raise Violation(f"the history of {block} is {found}")
        line = await self.tried((), "bo", "block.timeline", block_id=block)
        shown = "".join(
            one["text"]
            for one in (line or {})["texts"]
            if one["since"] <= version < one.get("until", version + 1)
        )
        if shown != due:
            raise Violation(f"the timeline shows {shown!r} as version {version}: {due!r}")

    async def restore(self) -> None:
        name = self.rng.choice(NAMES)
        block = self.block(name)
        if self.world.buffered():
            await self.flush()
        version = self.version(block)
        due = "".join(char.value for char in self.world.oracle.versions[block][version])
        await self.tried((), name, "block.restore", block_id=block, version=version)
        self.world.compare(due, block, f"version {version} restored should be what")
