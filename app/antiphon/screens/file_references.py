"""Cells that refer to a file of the project: its lines there, and how the file stands."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final

from antiphon.project_files import KernelFile
from antiphon.render.view import ReferredLines
from antiphon.screens.action_scope import ActionScope, Controller
from antiphon_kernel.text.patch import Hunk, read_patch
from antiphon_kernel.types.block_metadata import FILE_REFERENCE
from antiphon_kernel.types.errors import AntiphonError
from antiphon_kernel.types.quoting import count_of
from antiphon_kernel.types.records import BlockHeader

LOOK_SECONDS: Final = 1.0
"""How often the kernel is asked about the files that cells on the screen refer to."""

_MOST: Final = 6
"""Lines that a cell shows."""


class FileReferences(Controller):
    """Follows the files that cells on the screen refer to."""

    def __init__(self, scope: ActionScope) -> None:
        super().__init__(scope)
        self._read: dict[str, tuple[int, ReferredLines]] = {}
        """Of each cell: the version of the file that was read last, and its lines."""

    def start(self) -> None:
        """Look again and again, once the widgets are mounted."""
        self._scope.frame.set_interval(LOOK_SECONDS, self._look)

    def _look(self) -> None:
        blocks = dict.fromkeys(one.block for one in self._cells.viewport.places if one is not None)
        found = [self._source.header(one) for one in blocks if one in self._source.document]
        found = [one for one in found if FILE_REFERENCE in one.metadata]
        if found and self._session.is_live:
            self._scope.host.run_one_of("references", partial(self._show, found))

    async def _show(self, cells: Sequence[BlockHeader]) -> None:
        """Show how files stand; a cell of which the kernel does not tell stays as it was."""
        for cell in cells:
            reference = cell.metadata[FILE_REFERENCE]
            with suppress(AntiphonError):
                told = await self._session.call("file.open", {"path": reference["context"]})
                known = self._read.get(cell.id)
                if known is None or known[0] != told["version"]:
                    known = told["version"], await self._lines(told, reference)
                    self._read[cell.id] = known
                notes = (*known[1].notes, *KernelFile.of(told).notes)
                self._source.show_lines(cell.id, known[1]._replace(notes=notes))

    async def _lines(self, told: Mapping[str, Any], reference: Mapping[str, Any]) -> ReferredLines:
        about, notes, diff = {"path": told["path"]}, [count_of(told["line_count"], "line")], ""
        if told["version"] != reference["version"]:
            then = {**about, "version": reference["version"]}
            diff = (await self._session.call("file.diff", then))["diff"]
        hunks = read_patch(diff).hunks if diff else ()
        if hunks:
            marks = Counter(line.mark for hunk in hunks for line in hunk.lines)
            notes.append(f"+{marks['+']} −{marks['-']}")
        place = range(told["line_count"])
        if "start" in reference:
            last = place_now(hunks, reference["end"] - 1)
            place = range(place_now(hunks, reference["start"]), last + 1)
        part = {"start_line": place.start, "end_line": place[:_MOST].stop}
        read = await self._session.call("file.read", {**about, **part})
        return ReferredLines(told["path"], place, read["content"], tuple(notes))


def place_now(hunks: Sequence[Hunk], line: int) -> int:
    """Return where a line of a text is after a change of it; both count from 0."""
    now = line
    for hunk in hunks:
        at = hunk.start
        for one in hunk.lines:
            if one.mark == "+":
                now += at <= line
            else:
                now -= one.mark == "-" and at < line
                at += 1
    return now
