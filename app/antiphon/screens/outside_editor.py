"""A cell edited in the program that VISUAL or EDITOR names, merged with what others wrote."""

from __future__ import annotations

import asyncio
import os
import shlex
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from antiphon.locations import under_home
from antiphon.screens.action_scope import Controller
from antiphon_kernel.client.ownership import make_state_folder, write_private
from antiphon_kernel.text.lines import split_lines
from antiphon_kernel.text.sequence_diff import changed_ranges
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.quoting import count_of, quote

_CONFLICTS = (ErrorCode.STALE_VERSION, ErrorCode.CONTENT_MISMATCH)


class OutsideEditor(Controller):
    """Gives the chosen cell to an editor, and merges what comes back."""

    async def action_edit_outside(self) -> None:
        block = self._scope.cell_to("edit", finished=False)
        reason = None if block is None else self._source.edit_denied_reason(block)
        if block is None or reason is not None:
            if reason is not None:
                self._hint(reason)
            return
        if self._session.options.is_guest:
            self._hint(
                "For guests no editor can be started: Enter edits the cell here, and"
                " `antiphon join` on your own machine uses yours."
            )
            return
        command = os.environ.get("VISUAL") or os.environ.get("EDITOR")
        if not command:
            self._hint("No editor is set: give its command in the variable VISUAL or EDITOR.")
            return
        self._scope.area.leave()
        read = await self._scope.call("block.read", {"block_id": block})
        if read is not None:
            await self._edit_in(command, block, read["content"], read["version"])

    async def _edit_in(self, command: str, block: str, before: str, version: int) -> None:
        hint = self._scope.hint
        with tempfile.TemporaryDirectory(prefix="antiphon-") as folder:
            file = Path(folder) / "cell.md"
            write_private(file, before)
            failure = await self._run(command, file)
            try:
                after = file.read_text("utf-8")
            except (OSError, UnicodeError) as error:
                hint(f"Nothing changed: the text cannot be read: {error}", weighty=True)
                return
        if failure is not None:
            kept = "" if after == before else f"; what you wrote is in {_kept(after)}"
            hint(f"Nothing changed: {failure}{kept}", weighty=True)
            return
        if after == before:
            hint("Nothing changed.")
            return
        try:
            made, conflicts = await self._merge(block, before, after, version)
        except AntiphonError as error:
            hint(
                f"Not changed: {error.message} What you wrote is in {_kept(after)}",
                weighty=True,
            )
            return
        if conflicts:
            hint(
                f"{made} of {made + conflicts} changes made: others changed"
                f" the lines of the rest. What you wrote is in {_kept(after)}",
                weighty=True,
            )
        elif made:
            editor = Path(shlex.split(command)[0]).name
            hint(f"Merged {count_of(made, 'change')} from {editor} · <key:undo> takes back")
        self._cells.focus_cell(block)

    async def _merge(self, block: str, before: str, after: str, version: int) -> tuple[int, int]:
        """Make the changes from `before`, which was the text at `version`, to `after` in a block.

        Returns the number of changes that were made, and of those that were not, since others have
        changed the same lines.

        Raises:
            AntiphonError: if the block cannot be written at all.
        """
        operations = line_operations(before, after)
        if not operations:
            return 0, 0
        if await self._make(block, operations, version):
            return len(operations), 0
        made = 0
        for one in operations:
            made += await self._make(block, [one], version)
        return made, len(operations) - made

    async def _make(
        self, block: str, operations: Sequence[Mapping[str, Any]], version: int
    ) -> bool:
        params = {"block_id": block, "operations": operations, "base_version": version}
        try:
            await self._session.call("block.edit", params)
        except AntiphonError as error:
            if error.code in _CONFLICTS:
                return False
            raise
        return True

    async def _run(self, command: str, file: Path) -> str | None:
        """Give the terminal to an editor until it ends; return what went wrong."""
        app = self._scope.area.app
        try:
            arguments = [*shlex.split(command), str(file)]
            with nullcontext() if app.is_headless else app.suspend():
                process = await asyncio.create_subprocess_exec(*arguments)
                code = await process.wait()
        except (OSError, ValueError) as error:
            return f"the editor {quote(command)} cannot be run: {error}"
        return None if code == 0 else f"the editor ended with {code}"


def line_operations(before: str, after: str) -> list[dict[str, Any]]:
    """Return the operations of `block.edit` that make `before` into `after`.

    The text keeps, or goes on to lack, the newline at its end.
    """
    if after and before.endswith("\n") != after.endswith("\n"):
        after = after + "\n" if before.endswith("\n") else after[:-1]
    old, new = split_lines(before), split_lines(after)
    return [
        {
            "op": "replace",
            "start_line": one.start,
            "end_line": one.end,
            "content": "".join(f"{line}\n" for line in new[one.new_start : one.new_end]),
        }
        for one in changed_ranges(old, new)
    ]


def _kept(text: str) -> str:
    """Keep a text that has no place in the document; return where."""
    folder = make_state_folder("edited")
    number = 1 + sum(1 for _ in folder.iterdir())
    file = folder / f"cell-{number}.md"
    write_private(file, text)
    return str(under_home(file))
