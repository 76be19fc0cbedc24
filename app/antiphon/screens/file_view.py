"""The file on the screen: its state, saving it, its conflicts, and the way to other files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

from antiphon.project_files import CONFLICT, DELETED, ONLY_OPEN, KernelFile, mentions
from antiphon.render.cell_renderer import command_of
from antiphon.render.differences import DiffLine, changed_place, patch_lines
from antiphon.render.display import displayable_in_a_row
from antiphon.screens.action_scope import ActionScope, Controller
from antiphon.screens.conflicts import FileConflictsModal
from antiphon.screens.modals import NO_CELL, ConfirmModal
from antiphon.screens.picker import NOTHING_FOUND, PickerEntry, PickerModal, choose
from antiphon.widgets.block_list import LineMark
from antiphon_kernel.text.findings import finding_text
from antiphon_kernel.types.block_metadata import FILE_REFERENCE, FINDINGS
from antiphon_kernel.types.enums import BlockKind
from antiphon_kernel.types.errors import AntiphonError
from antiphon_kernel.types.quoting import quote

LOOK_SECONDS: Final = 1.0
"""How often the kernel is asked how the file stands to the disk."""

_LOOKS_AT_GIT: Final = 5
"""Looks after which a text that has not changed is compared with the last commit again."""

_MOST_FOUND: Final = 200
"""Lines that a search in files shows."""

_LONG: Final = 200_000
"""Code points of a cell of which only what is on the screen is searched for paths."""

_STATES: Final[Mapping[str, str]] = {
    CONFLICT: "It was changed here and on disk in the same place: <key:save> shows both.",
    DELETED: "It was deleted on disk; what is here stays. <key:save> makes it again.",
}


class FileView(Controller):
    """Saves the file, follows how it stands to the disk and to git, and leads to others."""

    def __init__(self, scope: ActionScope) -> None:
        super().__init__(scope)
        self.files = scope.files
        self._seen = self._compared = -1
        """The version of the text at the last look, and when it was compared with git."""
        self._looks = 0
        self._of_git: Mapping[int, LineMark] = {}
        self._findings: Sequence[Mapping[str, Any]] = ()

    # Its state

    def start(self) -> None:
        """Follow the state of the file, once the widgets are mounted."""
        file = self._scope.file
        if file is not None:
            self._scope.frame.set_interval(LOOK_SECONDS, self.look)
            if file.state in _STATES:
                self._hint(_STATES[file.state])

    def look(self) -> None:
        if self._session.is_live:
            self._scope.host.run_one_of("file", self.refresh)

    def edited(self) -> None:
        """The person has changed the text."""
        if self._scope.file is not None and not self._scope.file.is_dirty:
            self._show(replace(self._scope.file, is_dirty=True))

    def _show(self, file: KernelFile) -> None:
        before, self._scope.file = self._scope.file, file
        if before is None or file == before:
            return
        self._scope.host.update()
        if file.path != before.path:
            self._hint(f"Its name is {displayable_in_a_row(file.path)} now.")
        elif file.state != before.state and file.state in _STATES:
            self._hint(_STATES[file.state])

    async def refresh(self) -> None:
        """Ask how the file stands to the disk and, when it is left alone, to the last commit."""
        file = self._scope.file
        if file is None or not self._session.is_live:
            return
        try:
            told = await self._session.call("file.open", {"path": file.context})
            self._show(KernelFile.of(told))
            self._show_findings(file.block)
            version, seen = self._source.versions[file.block], self._seen
            self._seen = version
            self._looks += 1
            is_due = self._looks >= _LOOKS_AT_GIT or version != self._compared
            if version == seen and is_due:
                self._looks, self._compared = 0, version
                params = {"path": file.context, "against": "head"}
                diff = (await self._session.call("file.diff", params))["diff"]
                if version == self._source.versions[file.block]:
                    self._of_git = line_marks(patch_lines(diff, file.path))
                    self._mark_lines()
        except AntiphonError:
            return  # what the person asks for tells of it

    def _show_findings(self, block: str) -> None:
        """Show what checks have found in the file, if that is something else than before."""
        found = self._source.header(block).metadata.get(FINDINGS, {}).get("rows", ())
        if found != self._findings:
            self._findings = found
            self._mark_lines()
            if found:
                more = f" · {len(found) - 1} more: <key:findings>" if len(found) > 1 else ""
                self._hint(f"{displayable_in_a_row(finding_text(found[0], 1))}{more}")

    def _mark_lines(self) -> None:
        found = {int(one["line"]): LineMark.FOUND for one in self._findings}
        self._cells.mark_lines({**self._of_git, **found})

    async def action_findings(self) -> None:
        """Let the person choose one of the places in which checks have found something."""
        file, rows = self._scope.file, self._findings
        if file is None or not rows:
            self._hint("Nothing is found here: `checks` or `language_servers` in config.toml look.")
            return
        places = {finding_text(one, 1): int(one["line"]) for one in rows}
        entries = [PickerEntry(one, one) for one in places]
        chosen = await choose(self._cells.app, "Found in the file", entries)
        if chosen is not None:
            self._scope.area.go_to_line(file.block, places[chosen])

    # What is done with it

    async def action_save(self) -> None:
        """Write it to disk; ask about conflicts, and about a file that was deleted there."""
        await self.refresh()
        file = self._scope.file
        if file is None:
            self._hint("What is written here is kept as you type: there is no file to save.")
            return
        if file.state == CONFLICT:
            await self._decide(file)
            return
        params: dict[str, Any] = {"path": file.path}
        if file.state == DELETED:
            question = ConfirmModal(f"{file.path} was deleted on disk. Make it again?")
            if not await self._cells.app.push_screen_wait(question):
                return
            params["anew"] = True
        told = await self._scope.call("file.save", params, "Not saved")
        if told is not None:
            self._show(KernelFile.of(told))
            self._hint("Saved." if told["written"] else "Saved already: the disk has this text.")

    async def _decide(self, file: KernelFile) -> None:
        told = await self._scope.call("file.diff", {"path": file.path})
        if told is None or not told["conflicts"]:
            return
        modal = FileConflictsModal(self._scope, file.path, told["conflicts"])
        line = await self._cells.app.push_screen_wait(modal)
        await self.refresh()
        if line is not None:
            self._scope.area.go_to_line(file.block, line)
            self._scope.area.edit(file.block)
        elif self._scope.file is not None and self._scope.file.state != CONFLICT:
            self._hint("No conflict is left: <key:undo> takes back what you decided last.")

    def action_leave_file(self) -> None:
        self.files.pages.go_back()

    def action_other_page(self) -> None:
        self.files.pages.come()

    # Other files

    async def action_files(self) -> None:
        """Let the person choose a file by its name."""
        self._scope.host.run_one_of("paths", partial(self.files.fetch, self._scope))

        async def ask(typed: str) -> Sequence[PickerEntry]:
            await self.files.has_paths.wait()
            found = await self.files.matching(typed.partition(":")[0])
            return [PickerEntry(one, one) for one in found]

        title, nothing = "Open a file: name, or name:line", NOTHING_FOUND
        if not self._session.user.works_on_host:
            title = "Files that are open (the owner opens others): name, or name:line"
            nothing = f"No open file is found: {ONLY_OPEN}"
        picker = PickerModal(title, ask, nothing=nothing, pause=0)
        chosen = await self._cells.app.push_screen_wait(picker)
        if chosen is not None:
            line = picker.typed.rpartition(":")[2] if ":" in picker.typed else ""
            self.files.open(chosen, max(int(line) - 1, 0) if line.isdecimal() else None)

    async def action_search_files(self) -> None:
        """Let the person choose a line that has a text."""
        may_ask = self._session.user.works_on_host
        denial = "Only the owner of the kernel searches its files."
        empty, nothing = ("", NOTHING_FOUND) if may_ask else (denial, denial)
        hits: list[Mapping[str, Any]] = []

        async def ask(typed: str) -> Sequence[PickerEntry]:
            params = {"query": typed, "limit": _MOST_FOUND}
            told = None
            if typed.strip() and may_ask:
                told = await self._scope.call("file.search", params, "Not searched")
            hits[:] = [] if told is None else told["hits"]
            return [
                PickerEntry(str(at), one["text"].strip(), f"{one['path']}:{one['line'] + 1}")
                for at, one in enumerate(hits)
            ]

        picker = PickerModal("Find in the files of the project", ask, empty=empty, nothing=nothing)
        chosen = await self._cells.app.push_screen_wait(picker)
        if chosen is not None:
            self.files.open(hits[int(chosen)]["path"], hits[int(chosen)]["line"])

    def place_of(self, block: str) -> tuple[str, int | None] | None:
        """Return the file, and the line of it, that a cell refers to or changes."""
        header = self._source.header(block)
        if header.kind == BlockKind.TOOL_CALL:
            return changed_place(self._source.view(block))
        reference = header.metadata.get(FILE_REFERENCE)
        if reference is None:
            return None
        line, lines = reference.get("start"), self._source.view(block).referred
        if line is not None and lines is not None:
            line = lines.place.start
        return reference["context"], line

    async def action_go_to_path(self) -> None:
        """Open the file that is named at the cursor, or one of those in the chosen cell."""
        self._cells.undo_first()
        block = None if self._scope.editor is not None else self._cells.focused_cell
        if block is not None and (place := self.place_of(block)) is not None:
            self.files.open(*place)
            return
        text = self._text_with_paths()
        if text is None:
            self._hint(NO_CELL)
            return
        await self.files.fetch(self._scope)
        named = self.files.named_in(text)
        if not named:
            unknown = next((one for one in mentions(text) if "/" in one.path), None)
            words = unknown and f"There is no file {quote(unknown.path)} in the project."
            if not self._session.user.works_on_host:
                words = f"No open file is named here: {ONLY_OPEN}"
            self._hint(words or "No file of the project is named here.")
            return
        places = {
            path if line is None else f"{path}:{line + 1}": (path, line) for path, line in named
        }
        chosen: str | None = next(iter(places))
        if len(places) > 1:
            entries = [PickerEntry(one, one) for one in places]
            chosen = await choose(self._cells.app, "Open which file?", entries)
        if chosen is not None:
            self.files.open(*places[chosen])

    action_path_after_g = action_go_to_path

    def _text_with_paths(self) -> str | None:
        """Return the line, or the path in it, that the cursor is at; else the text of the cell."""
        editor = self._scope.editor
        if editor is not None:
            line, column = editor.cursor_location
            text = editor.document[line]
            at = (one for one in mentions(text) if one.start <= column <= one.end)
            mention = next(at, None)
            return text if mention is None else text[mention.start : mention.end]
        block = self._cells.focused_cell
        if block is None or not self._cells.has_cell(block):
            return None
        if self._source.header(block).kind == BlockKind.TOOL_CALL:
            return command_of(self._source.view(block))
        text = self._source.text(block)
        if self._scope.file is None and len(text) <= _LONG:
            return text
        shown = self._cells.shown
        places = [one for line in shown.lines(block) if (one := shown.text_of(line)) is not None]
        return text[places[0].start : places[-1].end] if places else ""


def line_marks(lines: Sequence[DiffLine]) -> Mapping[int, LineMark]:
    """Return the lines of a text that a difference has added, changed or taken away at.

    Empty if it has added all of them: that a whole file is new needs no marks.
    """
    marks: dict[int, LineMark] = {}
    if all(one.mark in "@+" for one in lines):
        return marks
    gone, last = 0, 0
    for line in (*lines, DiffLine("@", "")):
        number = line.number or 0
        if line.mark == "-":
            gone += 1
        elif line.mark == "+":
            marks[number] = LineMark.CHANGED if gone else LineMark.ADDED
            gone = max(0, gone - 1)
        elif gone:
            marks[last if line.mark == "@" else number] = LineMark.DELETED
            gone = 0
        last = number if line.mark in "+ " else last
    return marks
