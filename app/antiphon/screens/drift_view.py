"""Work that goes to other contexts and comes from them, and the way to where it came from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from antiphon.actions import Mode
from antiphon.keymap import ACTION_NAMED
from antiphon.render.display import displayable_in_a_row
from antiphon.render.markdown_source import first_line
from antiphon.render.view import DRIFT_SIGN, drift_label
from antiphon.screens.action_scope import ActionScope, Controller
from antiphon.screens.drift_pages import CellsModal, DifferenceModal, ListedCell
from antiphon.screens.known_contexts import KnownContexts
from antiphon.screens.merge_page import MergeModal
from antiphon.screens.modals import LineModal
from antiphon.screens.picker import PickerEntry, choose
from antiphon.widgets.block_list import CellChange
from antiphon_kernel.messages import estimate_text
from antiphon_kernel.types.drift import drift_origin, is_drifted
from antiphon_kernel.types.enums import BlockKind, Role, Status
from antiphon_kernel.types.errors import AntiphonError
from antiphon_kernel.types.quoting import count_of

_WAYS: Final = ("push", "pull", "merge", "distill", "commit")

_NO_MODEL: Final = "-"

_PATH: Final = "File for cells that are no diff, as in docs/a.md or a.md:10-20"
_MESSAGE: Final = "Message of a git commit; without one there is none"
_LONGEST: Final = 1_000

_COMING_ALONG: Final = (BlockKind.TOOL_RESULT, BlockKind.FILE)
"""Kinds of blocks that go where their parent goes."""


class DriftView(Controller):
    """Lets the person bring work to another context or back, and tells of what has come."""

    def __init__(self, scope: ActionScope, contexts: KnownContexts) -> None:
        super().__init__(scope)
        self._contexts = contexts
        self._versions: Mapping[str, int] = {}
        self._known: set[str] | None = None
        """Drifts that the person was told of, or that were there before."""

    @property
    def _here(self) -> str:
        return self._session.document.context or ""

    async def choose_way(self) -> None:
        """Let the person choose what to do of all that brings work to another context."""
        ways = [ACTION_NAMED[name] for name in _WAYS]
        entries = [PickerEntry(one.name, one.title, one.help) for one in ways]
        chosen = await choose(self._cells.app, "Bring work to another context or back", entries)
        if chosen is not None:
            self._scope.host.call_action(chosen)

    async def open_source(self) -> None:
        """Open the context that the chosen cell came from, at the cell as it was then."""
        block = self._scope.cell_to("open the source of", finished=False)
        if block is None:
            return
        one = header = self._source.header(block)
        while is_drifted(one.metadata) and one.parent in self._source.document:
            one = self._source.header(one.parent or "")
        origin = drift_origin(one.metadata)
        version = None if origin is None else origin.version
        if header.source_context is None or header.source_block is None:
            self._hint("This cell was written here.")
        else:
            self._scope.open_context(header.source_context, header.source_block, version=version)

    # What goes

    async def push(self) -> None:
        target = await self._other("Push to which context?")
        if target is not None:
            does = f"push to {self._contexts.label_of(target)}"
            cells = await self._cells_of(self._here, does)
            if cells is not None:
                await self._send("push", {"to": target, **cells})

    async def pull(self) -> None:
        source = await self._other("Pull from which context?")
        if source is not None:
            does = f"pull from {self._contexts.label_of(source)}"
            cells = await self._cells_of(source, does)
            if cells is not None:
                await self._send("pull", {"source": source, "context": self._here, **cells})

    async def merge(self) -> None:
        """Merge a fork of this context into it, or this one into what it is a fork of."""
        await self._contexts.refresh()
        here, named = self._here, {one.id: one for one in self._contexts.all}
        forks = [one for one in named.values() if one.source == here]
        entries = [PickerEntry(one.id, f"{one.label} into this", one.drifted) for one in forks]
        if (own := named.get(here)) is not None and own.source is not None:
            parent = self._contexts.label_of(own.source) or "its source"
            entries.insert(0, PickerEntry(here, f"this into {parent}", own.drifted))
        if not entries:
            self._hint("This context is no fork, and has none: <key:fork_here> forks it at a cell.")
            return
        source: str | None = entries[0].id
        if len(entries) > 1:
            source = await choose(self._cells.app, "Merge which fork?", entries)
        about = {"source": source}
        if source is None or (preview := await self._call("preview", about)) is None:
            return
        texts = {}
        for block in (one["source_block"] for one in preview["changes"] if one["conflicts"]):
            read = await self._scope.call("block.read", {"block_id": block}, "Not merged")
            texts[block] = "" if read is None else read["content"]
        if not preview["changes"] and not preview["offers"]:
            self._hint(f"{preview['source_label']} has nothing new for {preview['target_label']}.")
            return
        told = await self._cells.app.push_screen_wait(MergeModal(preview, texts))
        merged = None if told is None else await self._send("merge", {**about, **told})
        if merged is not None and merged["target_context"] != here:
            self._scope.open_context(merged["target_context"], merged.get("block_id"))

    async def distill(self) -> None:
        """Have a summary written of a context into this one."""
        source = await self._other("Distill which context?", PickerEntry(self._here, "this one"))
        models = [PickerEntry(one, one) for one in self._scope.models.here.names]
        models.append(PickerEntry(_NO_MODEL, "no model: headings and beginnings"))
        if source is None:
            return
        model = await choose(self._cells.app, "Who writes it?", models)
        if model is not None:
            self._hint("The summary is being written.")
            by = {} if model == _NO_MODEL else {"model": model}
            await self._send("distill", {"source": source, "context": self._here, **by})

    async def commit(self) -> None:
        """Write cells into files, after a look at the difference."""
        cells = await self._cells_of(self._here, "commit", wakes=False)
        path = None if cells is None else await self._line(_PATH, "go on")
        if cells is None or path is None:
            return
        message = await self._line(_MESSAGE, "show the difference")
        asked = {name: one for name, one in (("path", path), ("message", message)) if one}
        asked |= cells
        shown = None if message is None else await self._call("commit", asked)
        if shown is None:
            return
        patch = "".join(one["diff"] for one in shown["files"])
        does = f"write {count_of(len(shown['files']), 'file')}" + " and commit" * bool(message)
        if await self._cells.app.push_screen_wait(DifferenceModal(patch, does)):
            done = await self._call("commit", {**asked, "difference": shown["difference"]})
            if done is not None:
                made = f"Commit {done['commit']}" if done.get("commit") else "The files are changed"
                self._hint(f"{done.get('outcome') or made}: the last cell says what was done.")

    async def _line(self, question: str, enter: str) -> str | None:
        async def answer(line: str) -> str:
            return line

        modal = LineModal(question, answer, enter=enter, longest=_LONGEST)
        return await self._cells.app.push_screen_wait(modal)

    async def _other(self, title: str, *more: PickerEntry) -> str | None:
        """Let the person choose another context: its source and its forks come first."""
        await self._contexts.refresh()
        source = next((one.source for one in self._contexts.all if one.id == self._here), None)
        others = sorted(
            self._contexts.others, key=lambda one: one.id != source and one.source != self._here
        )
        entries = [PickerEntry(one.id, one.label, one.drifted) for one in others]
        return await choose(self._cells.app, title, [*more, *entries])

    async def _cells_of(
        self, context: str, does: str, *, wakes: bool = True
    ) -> dict[str, Any] | None:
        """Let the person tick cells, at first the chosen one or the last answer."""
        page = await self._scope.call("context.page", {"context": context}, "Not listed")
        if page is None:
            return None
        cells, answer = dict[str, ListedCell](), list[str]()
        for one in page["blocks"]:
            block, tokens = one["block_id"], estimate_text(one["content"])
            if one["excluded"] or one["status"] not in (Status.DONE, Status.ERROR):
                continue
            if one["kind"] in _COMING_ALONG and (parent := one.get("parent_id")) in cells:
                cells[parent] = cells[parent]._replace(tokens=cells[parent].tokens + tokens)
                continue
            words = DRIFT_SIGN if one["kind"] == BlockKind.DRIFT else ""
            words += first_line(one["content"]) or one.get("tool_name", "")
            cells[block] = ListedCell(f"{one['username']:<8} {words}", tokens)
            answer = [] if one["role"] == Role.USER else [block]
        chosen = self._cells.focused_cell if self._scope.mode is Mode.NAVIGATE else None
        ticked = [chosen] if context == self._here and chosen in cells else answer
        if not cells:
            self._hint("There is no cell to take.")
            return None
        modal = CellsModal(does, cells, ticked, wakes=wakes)
        return await self._cells.app.push_screen_wait(modal)

    async def _call(self, way: str, params: Mapping[str, Any]) -> Mapping[str, Any] | None:
        return await self._scope.call(f"drift.{way}", params, f"No {way}")

    async def _send(self, way: str, params: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Have something brought over, and say what has become of it; None if refused."""
        result = await self._call(way, params)
        if result is None:
            return None
        target = displayable_in_a_row(result["target_label"])
        if result["state"] != "delivered":
            self._hint(f"Not in {target} yet: {result.get('outcome') or result['state']}")
            return result
        counts = ((len(result.get("changed", ())), "changed"), (len(result["blocks"]), "added"))
        words = [f"{count_of(count, 'cell')} {done}" for count, done in counts if count]
        back = " · <key:undo> at its ⇢ takes it back" * (result["target_context"] == self._here)
        came = result.get("outcome") or ", ".join(words) or "a summary"
        self._hint(f"In {target}: {came}{back}")
        return result

    # What comes

    def cells_changed(self, change: CellChange) -> None:
        """Say from where something has come to this context."""
        for block in change.added:
            header = self._source.header(block)
            if header.kind == BlockKind.DRIFT and header.author != self._source.me:
                self._hint(
                    f"{drift_label(self._source.view(block))} · in {self._scope.name(block)}"
                )

    def contexts_changed(self) -> None:
        """Look for what has come to other contexts, if they have changed."""
        versions = {one.id: one.version for one in self._contexts.others}
        if versions != self._versions and self._scope.file is None:
            self._versions = versions
            self._scope.host.run_one_of("drifts", self._tell_of_others)

    async def _tell_of_others(self) -> None:
        try:
            found = (await self._session.call("drift.list", {}))["drifts"]
        except AntiphonError:  # which is told where the person asks for something
            return
        known, self._known = self._known, {one["drift_id"] for one in found}
        me = self._session.me
        for one in found:
            is_mine = me is not None and one["username"] == me.username
            is_new = known is not None and one["drift_id"] not in known and not is_mine
            if is_new and one["target_context"] != self._here and one["state"] == "delivered":
                words = f"{one['kind']} from {one['source_label']} by {one['username']}"
                self._hint(displayable_in_a_row(f"⇢ {one['target_label']}: {words}"))
