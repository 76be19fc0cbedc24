"""Work that goes to other contexts and back, and the way to where it came from."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partialmethod
from typing import Any, Final

from antiphon.actions import Mode
from antiphon.render.display import displayable_in_a_row
from antiphon.render.markdown_source import first_line
from antiphon.screens.action_scope import ActionScope, Controller
from antiphon.screens.cell_arranger import CellArranger
from antiphon.screens.drift_pages import CellsModal, DifferenceModal, MergeModal
from antiphon.screens.known_contexts import KnownContexts
from antiphon.screens.modals import LineModal
from antiphon.screens.picker import PickerEntry, choose
from antiphon_kernel.types.drift import drift_origin, is_drifted
from antiphon_kernel.types.enums import BlockKind, Status
from antiphon_kernel.types.quoting import count_of

_COMMIT: Final = {
    "path": "File for a text that is no diff, as in docs/a.md or a.md:10-20",
    "message": "Message of a git commit; without one there is none",
}
_LONGEST: Final = 1_000


class DriftView(Controller):
    """Lets the person bring work to another context or back, and shows where it came from."""

    def __init__(self, scope: ActionScope, contexts: KnownContexts, arranger: CellArranger) -> None:
        super().__init__(scope)
        self._contexts = contexts
        self._arranger = arranger

    @property
    def _here(self) -> str:
        return self._session.document.context or ""

    async def action_open_source(self) -> None:
        """Open the context that the chosen cell came from, at the cell as it was then."""
        block = self._scope.cell_to("open the source of", finished=False)
        if block is None:
            return
        one = header = self._source.header(block)
        while is_drifted(one.metadata) and one.parent in self._source.document:
            one = self._source.header(one.parent or "")
        origin = drift_origin(one.metadata)
        version = None if origin is None else origin.version
        if header.source_context is None:
            self._hint("This cell was written here.")
        else:
            self._scope.open_context(header.source_context, header.source_block, version=version)

    async def _move(self, way: str, whence: str) -> None:
        """Let the person tick cells, at first the chosen one, and move them."""
        if (other := await self._other(f"{way.capitalize()} {whence} which context?")) is None:
            return
        about, source, chosen = {"source": other, "context": self._here}, other, None
        if way == "push":
            about, source = {"to": other}, self._here
            chosen = self._cells.focused_cell if self._scope.mode is Mode.NAVIGATE else None
        place = {"context": source} | ({"around": chosen} if chosen is not None else {})
        if (page := await self._scope.call("context.page", place, "Not listed")) is None:
            return
        cells = dict[str, str]()
        for one in page["blocks"]:
            goes_along = one["kind"] in (BlockKind.TOOL_RESULT, BlockKind.FILE)
            goes_along = goes_along and one.get("parent_id") in cells
            is_done = not one["excluded"] and one["status"] in (Status.DONE, Status.ERROR)
            if is_done and not goes_along:
                words = first_line(one["content"]) or one.get("tool_name") or one["kind"]
                cells[one["block_id"]] = f"{one['username']:<8} {words}"
        does = f"{way} {whence} {self._label(other)}"
        told = await self._cells.app.push_screen_wait(CellsModal(does, cells, chosen))
        if told is not None:
            await self._send(way, {**about, **told})

    action_push = partialmethod(_move, "push", "to")
    action_pull = partialmethod(_move, "pull", "from")

    async def action_merge(self) -> None:
        """Merge a fork of this context into it, or this one into what it is a fork of."""
        await self._contexts.refresh()
        here = self._here
        entries = [
            PickerEntry(one.id, f"{one.label} into {self._label(one.source)}", one.drifted)
            for one in self._contexts.all
            if one.source is not None and here in (one.id, one.source)
        ]
        if not entries:
            self._hint("This context is no fork, and has none: <key:fork_here> forks it at a cell.")
            return
        source = await choose(self._cells.app, "Merge which?", entries)
        about = {"source": source}
        if source is None or (preview := await self._call("preview", about)) is None:
            return
        if not preview["changes"] and not preview["offers"]:
            self._hint(f"{preview['source_label']} has nothing new for {preview['target_label']}.")
            return
        told = await self._cells.app.push_screen_wait(MergeModal(preview))
        merged = None if told is None else await self._send("merge", {**about, **told})
        if merged is not None and merged["target_context"] != here:
            self._scope.open_context(merged["target_context"], merged["block_id"])

    async def action_distill(self) -> None:
        """Have a summary written of a context into this one."""
        source = await self._other("Distill which context?", PickerEntry(self._here, "this one"))
        models = [PickerEntry(one, one) for one in self._scope.models.here.names]
        models.append(PickerEntry("", "no model: beginnings are quoted"))
        model = source and await choose(self._cells.app, "Who writes it?", models)
        if model is not None:
            by = {"model": model} if model else {}
            await self._send("distill", {"source": source, "context": self._here, **by})

    async def action_commit(self) -> None:
        """Write the chosen cell into files, after a look at the difference."""
        block = self._scope.cell_to("commit")
        if block is None:
            return
        asked: dict[str, Any] = {"blocks": [block]}
        for name, question in _COMMIT.items():
            modal = LineModal(question, _as_it_is, enter="go on", longest=_LONGEST)
            if (line := await self._cells.app.push_screen_wait(modal)) is None:
                return
            asked |= {name: line} if line else {}
        if (shown := await self._call("commit", asked)) is None:
            return
        patch = "".join(one["diff"] for one in shown["files"])
        does = "write and commit" if "message" in asked else "write"
        if await self._cells.app.push_screen_wait(DifferenceModal(patch, does)):
            done = await self._call("commit", {**asked, "difference": shown["difference"]})
            if done is not None:
                self._hint(f"{done.get('outcome') or 'Done'}: the last cell says what has changed.")

    def _label(self, context: str | None) -> str:
        return self._contexts.label_of(context or "") or "its source"

    async def _other(self, title: str, *more: PickerEntry) -> str | None:
        """Let the person choose another context."""
        await self._contexts.refresh()
        others = [PickerEntry(one.id, one.label, one.drifted) for one in self._contexts.others]
        return await choose(self._cells.app, title, [*more, *others])

    async def _call(self, way: str, params: Mapping[str, Any]) -> Mapping[str, Any] | None:
        return await self._scope.call(f"drift.{way}", params, "Not done")

    async def _send(self, way: str, params: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Have something brought over, and say what has become of it; None if refused."""
        result = await self._call(way, params)
        if result is None:
            return None
        counts = ((len(result["changed"]), "changed"), (len(result["blocks"]), "added"))
        words = [f"{count_of(count, 'cell')} {done}" for count, done in counts if count]
        came = result.get("outcome") or ", ".join(words) or "a summary"
        told = f"In {displayable_in_a_row(result['target_label'])}: {came}"
        if result["target_context"] == self._here and way != "distill":
            await self._arranger.until_shown(result["block_id"])
            self._cells.focus()
            self._cells.focus_cell(result["block_id"])
            told += " · <key:undo> takes it back"
        self._hint(told)
        return result


async def _as_it_is(line: str) -> str:
    return line
