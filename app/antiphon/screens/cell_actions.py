"""Actions on a whole cell: cut out, move, exclude, split, copy, restore, fork, edit outside."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Final

from textual import work

from antiphon.actions import Mode
from antiphon.clipboard import copy_text
from antiphon.locations import state_folder, under_home
from antiphon.render.cell_export import cell_markdown
from antiphon.render.view import OWN_NAME
from antiphon.screens.base_screen import (
    EARLIER_CELLS,
    Arrangement,
    BaseScreen,
    ToolCall,
    requires_write,
)
from antiphon.screens.picker import PickerEntry, PickerModal
from antiphon.screens.text_merge import merge_text
from antiphon.time_format import format_absolute
from antiphon_kernel.client.private_files import make_state_folder, write_private
from antiphon_kernel.types.enums import BlockKind, Status
from antiphon_kernel.types.errors import AntiphonError
from antiphon_kernel.types.quoting import quote

LISTED_VERSIONS: Final = 500

FOUND_BLOCKS: Final = 50

FOUND_IN_A_BLOCK: Final = 3

BEGINNING: Final = 60
"""Characters of a cell by which it is told from others."""


class CellActions(BaseScreen):
    """Methods behind keys and the palette, for one cell."""

    # Conditions

    def _chosen_cell(self, to_do: str, *, finished: bool = True) -> str | None:
        """Return the cell to do something with; say why not if that is not possible now."""
        block = self._focused_or_edited
        if block is None or block not in self._session.document:
            self.hint(f"There is no cell to {to_do}.")
        elif not self._session.is_live:
            self.hint(f"Offline: to {to_do} a cell needs the kernel; try again when it is back.")
        elif self.source.deliveries.label(block) == "sending":
            self.hint(f"This message is on its way: {to_do} it when it has arrived.")
        elif finished and self.source.header(block).status in (Status.RUNNING, Status.PENDING):
            name = self.source.view(block).author
            self.hint(f"{name} is not done with this cell: stop it with Ctrl+C, then {to_do} it.")
        else:
            return block
        return None

    @property
    def _focused_or_edited(self) -> str | None:
        editor = self.area.editor
        return editor.block if editor is not None else self.cells.focused_cell

    def _cell_name(self, block: str) -> str:
        """Return a cell's number as people are told it: ¶8."""
        return f"¶{self._number_of(block)}"

    def _place_name(self, block: str) -> str:
        """Return ` in ¶8`; nothing for a draft."""
        return "" if self.source.is_hidden(block) else f" in {self._cell_name(block)}"

    def _beginning(self, block: str) -> str:
        return " ".join(self.source.text(block)[: 4 * BEGINNING].split())[:BEGINNING]

    # Undo

    async def _arrange(self, arrangement: Arrangement) -> bool:
        async with self._arranging:
            is_done = await self._call_each(arrangement.calls)
            if is_done:
                self._arranged.append(arrangement)
                self._disarranged.clear()
        return is_done

    async def _call_each(self, calls: Sequence[ToolCall], failed: str = "") -> bool:
        """Call tools until one fails, which is said; whether none did."""
        for call in calls:
            if await self._kernel.call(call.tool, call.params, failed) is None:
                return False
        return True

    async def _undo_arrangement(self, block: str) -> bool:
        """Take the last change of whole cells back, if it was made here; whether it was."""
        if self.mode is not Mode.NAVIGATE:
            return False
        async with self._arranging:
            if not self._arranged or block not in self._arranged[-1].blocks:
                return False
            last = self._arranged.pop()
            if last.made is not None and self.source.text(last.made[0]) != last.made[1]:
                self.hint("The new cell has been written in since: it stays one of its own.")
                return True
            if not await self._call_each(last.back, "Not taken back"):
                return True
            self._disarranged.append(last)
        if self.cells.has_cell(last.focus):
            self.cells.focus_cell(last.focus)
        self.hint(f"{last.undone} · <key:redo> does it again")
        return True

    async def _redo_arrangement(self, block: str) -> bool:
        if self.mode is not Mode.NAVIGATE:
            return False
        async with self._arranging:
            if not self._disarranged or block not in self._disarranged[-1].blocks:
                return False
            last = self._disarranged.pop()
            changed = frozenset(call.params["block_id"] for call in last.calls)
            neighbour = self._beside(changed, block)
            if not await self._call_each(last.calls):
                return True
            self._arranged.append(last)
        if self.source.is_hidden(block):
            self.cells.focus_cell(neighbour)
        self.hint("Done again · <key:undo> takes it back")
        return True

    def _beside(self, blocks: frozenset[str], block: str) -> str | None:
        """Return the nearest cell that is none of these, below if there is one."""
        for direction in (1, -1):
            found: str | None = block
            while found in blocks:
                found = self.cells.order.neighbour(found, direction)
            if found is not None:
                return found
        return None

    # Cut out, exclude, move, split

    @requires_write
    @work(exit_on_error=False)
    async def action_cut_out(self) -> None:
        block = self._chosen_cell("cut")
        if block is None:
            return
        blocks = (block, *self._results_of(block))
        neighbour = self._beside(frozenset(blocks), block)
        name = self._cell_name(block)
        calls = tuple(_excluding(one, True, cut_out=True) for one in blocks)
        before = tuple(
            _excluding(one, self._session.document.header(one).excluded) for one in blocks
        )
        near = blocks if neighbour is None else (*blocks, neighbour)
        arrangement = Arrangement(calls, before, frozenset(near), block, f"Brought back {name}")
        if await self._arrange(arrangement):
            self.cells.focus_cell(neighbour)
            lines = "with its output " if len(blocks) > 1 else ""
            self.hint(
                f"Cut out {name} {lines}· <key:undo> brings it back now,"
                " the palette later: Bring back a cell"
            )

    def _results_of(self, call: str) -> list[str]:
        document = self._session.document
        if document.header(call).kind != BlockKind.TOOL_CALL:
            return []
        found: list[str] = []
        for block in self.source.ids()[self.source.ids().index(call) + 1 :]:
            header = document.header(block)
            if header.kind == BlockKind.TOOL_RESULT and header.parent == call:
                found.append(block)
            elif found:
                break
        return found

    @requires_write
    @work(exit_on_error=False)
    async def action_bring_back(self) -> None:
        if self._session.omitted and self._session.is_live:
            self._brings_back = True
            self.read_all()
            self.hint(EARLIER_CELLS)
            return
        cut = self.source.cut_out_blocks()
        if not cut:
            self.hint("No cell is cut out here.")
            return
        choices = [
            PickerEntry(one, self._beginning(one), f"{self._cell_name(one)} · {self._author(one)}")
            for one in reversed(cut)
        ]
        block = await self._choose("Bring back a cell that was cut out", choices)
        if block is None:
            return
        for one in (block, *self._results_of(block)):
            if await self._kernel.call("block.exclude", _excluding(one, False).params) is None:
                return
        await self._until_shown(block)
        self.cells.focus_cell(block)

    async def _until_shown(self, block: str) -> None:
        """Wait for the replica: the kernel answers a call and sends the change beside it."""
        for _ in range(50):
            if block in self._session.document and not self.source.is_hidden(block):
                return
            await asyncio.sleep(0.02)

    def _author(self, block: str) -> str:
        return self.source.shown_name(self._session.document.header(block).author)[0]

    @requires_write
    @work(exit_on_error=False)
    async def action_exclude(self) -> None:
        block = self._chosen_cell("exclude", finished=False)
        if block is None:
            return
        excluded = self._session.document.header(block).excluded
        name = self._cell_name(block)
        undone = f"Models do not read {name} again" if excluded else f"Models read {name} again"
        arrangement = Arrangement(
            (_excluding(block, not excluded),),
            (_excluding(block, excluded),),
            frozenset([block]),
            block,
            undone,
        )
        if await self._arrange(arrangement):
            now = "Models read it again" if excluded else "Models do not read it from now on"
            self.hint(f"{now} · e or u changes it back")

    @requires_write
    def action_move(self) -> None:
        block = self._chosen_cell("move")
        if block is None:
            return
        if (
            self.cells.order.neighbour(block, 1) is None
            and self.cells.order.neighbour(block, -1) is None
        ):
            self.hint("It is the only cell.")
            return
        self._moving = block
        self._show_moving()
        self._update()

    def _show_moving(self) -> None:
        block, target = self._moving, self.cells.focused_cell
        if block is None:
            return
        name = self._cell_name(block)
        if target is None or target == block:
            self.hint(f"Move {name}: ↑ ↓ to the cell it is to stand at · Esc leaves it here")
            return
        side = "below" if self._is_below(target, block) else "above"
        self.hint(f"Move {name} {side} {self._cell_name(target)}: <key:put> · Esc leaves it")

    def _is_below(self, one: str, other: str) -> bool:
        ids = self.source.ids()
        return ids.index(one) > ids.index(other)

    @requires_write
    @work(exit_on_error=False)
    async def action_put(self) -> None:
        block, self._moving = self._moving, None
        target = self.cells.focused_cell
        self._update()
        blocks = () if block is None else (block, *self._results_of(block))
        if block is None or target is None or target in blocks:
            self.hint("It stays where it is.")
            return
        if self.source.is_hidden(block):
            self.hint("It has been cut out meanwhile: it stays where it is.")
            return
        before = self.source.block_before(block)
        ids = self.source.ids()
        name, below = self._cell_name(block), self._is_below(target, block)
        if below:
            # What belongs to a call comes along, behind its new place.
            target = (target, *self._results_of(target))[-1]
        elif self.source.header(target).kind == BlockKind.TOOL_RESULT:
            target = self.source.header(target).parent or target
        home = {"after": before} if before is not None else {"before": ids[len(blocks)]}
        calls = _moves_below(blocks, target) if below else _moves(blocks, "before", target)
        back = _moves(blocks, *next(iter(home.items())))
        arrangement = Arrangement(calls, back, frozenset(blocks), block, f"{name} is back")
        self.cells.focus_cell(block)
        is_moved = await self._arrange(arrangement)
        if self.cells.focused_cell == block:
            self.cells.focus_cell(block)  # at its new place
        if is_moved:
            self.hint(f"Moved {name} · <key:undo> puts it back")

    def action_leave_move(self) -> None:
        block, self._moving = self._moving, None
        if block is not None and self.cells.has_cell(block):
            self.cells.focus_cell(block)
        self._update()
        self.hint("It stays where it is.")

    @requires_write
    @work(exit_on_error=False)
    async def action_split(self) -> None:
        editor = self.area.editor
        block = self._chosen_cell("split")
        if block is None:
            return
        if editor is None:
            self.hint("Enter the cell and put the cursor on the line that is to begin a new one.")
            return
        text = self.source.document.text(block)
        at = text.rfind("\n", 0, editor.cursor_offset) + 1
        if not text[:at].strip():
            self.hint("No text stands above this line: put the cursor on one below it.")
            return
        if not text[at:].strip():
            self.hint("No text stands from this line on: put the cursor on one above it.")
            return
        async with self._arranging:
            split = await self._kernel.call("message.split", {"message": block, "at": at})
            if split is None:
                return
            created = split["created"][0]
            edit = {"block_id": block, "edit": split["context_version"]}
            self._disarranged.clear()
            self._arranged.append(
                Arrangement(
                    (ToolCall("block.redo", edit), _excluding(created, False)),
                    (ToolCall("block.undo", edit), _excluding(created, True, cut_out=True)),
                    frozenset([block, created]),
                    block,
                    f"{self._cell_name(block)} is one cell again",
                    made=(created, text[at:]),
                )
            )
        self.area.leave()
        await self._until_shown(created)
        self.cells.focus_cell(created)
        self.hint("Split in two · <key:undo> makes it one cell again")

    async def _version(self, block: str) -> int | None:
        read = await self._kernel.call("block.get", {"block_id": block})
        return None if read is None else int(read["version"])

    # Copy

    def action_copy_markdown(self) -> None:
        block = self._focused_or_edited
        if block is None:
            self.hint("There is no cell to copy.")
        else:
            self.run_in_background(self._copy(cell_markdown(self.source.view(block))))

    @work(exit_on_error=False)
    async def action_copy_json(self) -> None:
        block = self._chosen_cell("copy", finished=False)
        if block is None:
            return
        read = await self._kernel.call("block.read", {"block_id": block})
        if read is not None:
            await self._copy(json.dumps(read, ensure_ascii=False, indent=2) + "\n")

    async def _copy(self, text: str) -> None:
        self.hint(await copy_text(text, osc_52=self.app.copy_to_clipboard, folder=state_folder()))

    # Versions

    @work(exit_on_error=False)
    async def action_time(self) -> None:
        block = self._chosen_cell("tell the time of", finished=False)
        versions = None if block is None else await self._versions(block, 1)
        if block is None or not versions:
            return
        header, last = self._session.document.header(block), versions[-1]
        name = self._cell_name(block)
        said = f"{name} · {self._author(block)} began it at {header.created}"
        if last["version"] > 1:
            said += (
                f" · version {last['version']:,} by {self._changer(last)} at {last['time']}"
                f" ({last['operation']})"
            )
        self.hint(said)

    def _changer(self, version: Mapping[str, Any]) -> str:
        """Return the name of whoever made a version, as the person here reads it."""
        return OWN_NAME if version["principal"] == self.source.me else str(version["username"])

    async def _versions(self, block: str, count: int) -> Sequence[Mapping[str, Any]]:
        """Return the last versions of a block; none if the kernel does not say, which is said."""
        version = await self._version(block)
        if version is None:
            return ()
        params = {"block_id": block, "after_version": max(0, version - count), "limit": count}
        history = await self._kernel.call("block.history", params)
        return () if history is None else history["versions"]

    @requires_write
    @work(exit_on_error=False)
    async def action_restore(self) -> None:
        block = self._chosen_cell("restore")
        if block is None:
            return
        reason = self.source.edit_denied_reason(block)
        if reason is not None:
            self.hint(reason)
            return
        versions = await self._versions(block, LISTED_VERSIONS)
        if len(versions) < 2:
            self.hint("There is no earlier version of this cell.")
            return
        choices = [
            PickerEntry(
                str(one["version"]),
                f"version {one['version']} · {format_absolute(one['time'])} · {self._changer(one)}",
                one["operation"],
            )
            for one in reversed(versions[:-1])
        ]
        version = await self._choose(f"Restore {self._cell_name(block)} as it was at", choices)
        if version is None:
            return
        params = {"block_id": block, "version": int(version)}
        if await self._kernel.call("block.restore", params) is not None:
            self.hint(f"Restored version {version} · <key:undo> takes that back")

    @requires_write
    @work(exit_on_error=False)
    async def action_fork_here(self) -> None:
        block = self._chosen_cell("fork from", finished=False)
        if block is None:
            return
        context = self._session.document.context
        last = (block, *self._results_of(block))[-1]
        fork = await self._kernel.call(
            "context.fork", {"context": context, "blocks": {"last": last}}
        )
        if fork is not None:
            self._switch_context(fork["context_id"], None)

    async def _choose(self, title: str, choices: Sequence[PickerEntry]) -> str | None:
        async def ask(typed: str) -> Sequence[PickerEntry]:
            wanted = typed.casefold()
            return [one for one in choices if wanted in f"{one.line} {one.detail}".casefold()]

        return await self.app.push_screen_wait(PickerModal(title, ask))

    # Search in all contexts

    @work(exit_on_error=False)
    async def action_search(self) -> None:
        if not self._session.is_live:
            self.hint("Offline: a search in all contexts needs the kernel; / finds in this one.")
            return
        typed = [""]

        async def ask(query: str) -> Sequence[PickerEntry]:
            typed[0] = query
            return await self._search(query) if query.strip() else ()

        empty = "Type what to look for: lower case finds both cases."
        modal = PickerModal("Search in all contexts", ask, empty=empty)
        block = await self.app.push_screen_wait(modal)
        if block is None:
            return
        context = block.partition(".")[0]
        is_here = context == self._session.document.context
        if not is_here or (self._session.omitted and block not in self._session.document):
            self._switch_context(context, block, query=typed[0])
        elif self.cells.has_cell(block):
            self.area.leave()
            self._find.find_from(block, typed[0])

    async def _search(self, query: str) -> Sequence[PickerEntry]:
        is_lower = query == query.lower()
        params = {
            "query": f"(?i){re.escape(query)}" if is_lower else query,
            "regex": is_lower,
            "kinds": [kind.value for kind in BlockKind],
            "context_lines": 0,
            "max_blocks": FOUND_BLOCKS,
            "max_matches_per_block": FOUND_IN_A_BLOCK,
        }
        found = await self._kernel.call("kernel.search", params)
        if found is None:
            return ()
        choices: list[PickerEntry] = []
        for one in found["results"]:
            lines = [_around(match) for match in one["matches"]]
            more = " …" if one.get("truncated") else ""
            label, _, rest = one["name"].partition(".")
            author = rest.partition(".")[0]
            detail = f"{label} · {author} · {one['kind']}"
            choices.append(PickerEntry(one["block_id"], " · ".join(lines) + more, detail))
        return choices

    # $EDITOR

    @requires_write
    @work(exit_on_error=False)
    async def action_edit_outside(self) -> None:
        block = self._chosen_cell("edit", finished=False)
        reason = None if block is None else self.source.edit_denied_reason(block)
        if block is None or reason is not None:
            if reason is not None:
                self.hint(reason)
            return
        if self._session.is_guest:
            self.hint(
                "Over SSH no editor can be started: Enter edits the cell here, and `antiphon join`"
                " on your own machine uses yours."
            )
            return
        command = os.environ.get("VISUAL") or os.environ.get("EDITOR")
        if not command:
            self.hint("No editor is set: give its command in the variable VISUAL or EDITOR.")
            return
        self.area.leave()
        read = await self._kernel.call("block.read", {"block_id": block})
        if read is not None:
            await self._edit_in(command, block, read["content"], read["version"])

    async def _edit_in(self, command: str, block: str, before: str, version: int) -> None:
        with tempfile.TemporaryDirectory(prefix="antiphon-") as folder:
            file = Path(folder) / "cell.md"
            write_private(file, before)
            failure = await self._run_editor(command, file)
            try:
                after = file.read_text("utf-8")
            except (OSError, UnicodeError) as error:
                self.hint(f"Nothing changed: the text cannot be read: {error}", weighty=True)
                return
        if failure is not None:
            kept = "" if after == before else f"; what you wrote is in {self._kept(after)}"
            self.hint(f"Nothing changed: {failure}{kept}", weighty=True)
            return
        if after == before:
            self.hint("Nothing changed.")
            return
        try:
            merged = await merge_text(self._session.call, block, before, after, version)
        except AntiphonError as error:
            self.hint(
                f"Not changed: {error.message} What you wrote is in {self._kept(after)}",
                weighty=True,
            )
            return
        if merged.conflicts:
            self.hint(
                f"{merged.made} of {merged.made + merged.conflicts} changes made: others changed"
                f" the lines of the rest. What you wrote is in {self._kept(after)}",
                weighty=True,
            )
        elif merged.made:
            count = "1 change" if merged.made == 1 else f"{merged.made} changes"
            self.hint(
                f"Merged {count} from {Path(shlex.split(command)[0]).name} · <key:undo> takes back"
            )
        self.cells.focus_cell(block)

    async def _run_editor(self, command: str, file: Path) -> str | None:
        """Give the terminal to an editor until it ends; return what went wrong."""
        try:
            arguments = [*shlex.split(command), str(file)]
            with nullcontext() if self.app.is_headless else self.app.suspend():
                process = await asyncio.create_subprocess_exec(*arguments)
                code = await process.wait()
        except (OSError, ValueError) as error:
            return f"the editor {quote(command)} cannot be run: {error}"
        return None if code == 0 else f"the editor ended with {code}"

    def _kept(self, text: str) -> str:
        """Keep a text that has no place in the document; return where."""
        folder = make_state_folder("edited")
        number = 1 + sum(1 for _ in folder.iterdir())
        file = folder / f"cell-{number}.md"
        write_private(file, text)
        return str(under_home(file))


def _excluding(block: str, excluded: bool, *, cut_out: bool = False) -> ToolCall:
    params = {"block_id": block, "excluded": excluded, "cut_out": cut_out}
    return ToolCall("block.exclude", params)


def _moves(blocks: Sequence[str], side: str, target: str) -> tuple[ToolCall, ...]:
    """Return the calls that put blocks that belong together beside another one."""
    first, *rest = blocks
    calls = [ToolCall("block.move", {"block_id": first, side: target})]
    for before, block in zip(blocks, rest, strict=False):
        calls.append(ToolCall("block.move", {"block_id": block, "after": before}))
    return tuple(calls)


def _moves_below(blocks: Sequence[str], target: str) -> tuple[ToolCall, ...]:
    """As `_moves`, the last one first: a result never stands before its call."""
    calls = [ToolCall("block.move", {"block_id": blocks[-1], "after": target})]
    for block, after in zip(reversed(blocks[:-1]), reversed(blocks[1:]), strict=True):
        calls.append(ToolCall("block.move", {"block_id": block, "before": after}))
    return tuple(calls)


def _around(match: Mapping[str, Any]) -> str:
    """Return the part of a line around a match."""
    content = str(match["content"])
    start = max(0, int(match["match_start"]) - BEGINNING // 3)
    return ("…" if start else "") + content[start : start + BEGINNING].strip()
