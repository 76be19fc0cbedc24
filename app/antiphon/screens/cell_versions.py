"""Versions of cells: when they were written, by whom, and the way back to one."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partialmethod
from typing import Any

from antiphon.input_queue import InputQueue
from antiphon.render.view import OWN_NAME
from antiphon.screens.action_scope import ActionScope, Controller
from antiphon.screens.cell_list import results_of
from antiphon.screens.history import HistoryModal, HistorySource
from antiphon.screens.known_contexts import fork_context


class CellVersions(Controller):
    """Asks the kernel for versions of cells, shows them, and brings one back."""

    def __init__(self, scope: ActionScope, keys: InputQueue) -> None:
        super().__init__(scope)
        self._keys = keys

    async def action_time(self) -> None:
        """Say when the chosen cell was begun, and who changed it last."""
        block = self._scope.cell_to("tell the time of", finished=False)
        read = block and await self._scope.call("block.get", {"block_id": block})
        if not block or not read:
            return
        params = {"block_id": block, "after_version": read["version"] - 1}
        history = await self._scope.call("block.history", params)
        if not history or not history["versions"]:
            return
        last = history["versions"][-1]
        header = self._session.document.header(block)
        author = self._scope.author(block)
        said = f"{self._scope.name(block)} · {author} began it at {header.created}"
        if last["version"] > 1:
            said += (
                f" · version {last['version']:,} by {self._changer(last)} at {last['time']}"
                f" ({last['operation']})"
            )
        self._hint(said)

    def _changer(self, version: Mapping[str, Any]) -> str:
        """Return the name of whoever made a version, as the person here reads it."""
        return OWN_NAME if version["principal"] == self._source.me else str(version["username"])

    async def show_history(self, block: str | None, version: int | None = None) -> None:
        """Go through the versions of a cell or the page, from one on; do what is chosen there."""
        asked, user = HistorySource(self._scope), self._source.user
        choice = await self._cells.app.push_screen_wait(HistoryModal(asked, block, version))
        if choice is None:
            return
        version, block = choice
        if user.refusal is not None:
            self._hint(user.refusal)
        elif block is None:
            await self._fork(at=version)
        else:
            params = {"block_id": block, "version": version}
            if await self._scope.call("block.restore", params, "Not restored") is not None:
                name = asked.name(block)
                self._hint(f"{name} is as in its version {version}; u takes that back.")

    action_page_history = partialmethod(show_history, None)

    async def action_history(self) -> None:
        await self.show_history(self._cells.focused_cell)

    async def action_fork_here(self) -> None:
        """Copy the context up to the chosen cell into a new one, and go there."""
        block = self._scope.cell_to("fork from", finished=False)
        if block is None:
            return
        last = (block, *results_of(self._source, block))[-1]
        release_keys = self._keys.hold()  # what is typed next is for the copy
        await self._fork(blocks={"last": last})
        release_keys()

    async def _fork(self, **part: Any) -> None:
        """Copy a part of the context into a new one, and go there."""
        made = await fork_context(self._scope, self._session.document.context or "", **part)
        if made is not None:
            self._scope.open_context(made)
