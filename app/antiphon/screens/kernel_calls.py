"""Calls that the person makes to the kernel, and the display of the answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from antiphon.render.display import displayable_in_a_row
from antiphon.running_blocks import InterruptTarget
from antiphon.screens.blame_view import BlameRange, merge_runs
from antiphon.session import Session
from antiphon.widgets.sidebar import ContextName
from antiphon_kernel.types.errors import AntiphonError, ErrorCode

_NOTHING_LEFT: Mapping[str, str] = {
    ErrorCode.NOTHING_TO_UNDO: "You have nothing to undo in this cell.",
    ErrorCode.NOTHING_TO_REDO: "You have nothing to redo in this cell.",
}


class KernelActions:
    """Calls whose failure is a hint, never an exception."""

    def __init__(self, session: Session, hint: Callable[[str], None]) -> None:
        self._session = session
        self._hint = hint

    async def undo(self, block: str, principal: str | None = None) -> bool:
        """Take back my last edit of a block, or somebody else's; whether anything changed."""
        return await self._apply_undo("block.undo", block, principal)

    async def redo(self, block: str) -> bool:
        """Do again what I undid last; whether anything changed."""
        return await self._apply_undo("block.redo", block)

    async def _apply_undo(self, tool: str, block: str, principal: str | None = None) -> bool:
        params = {"block_id": block}
        if principal is not None:
            params["principal"] = principal
        try:
            await self._session.call(tool, params)
        except AntiphonError as error:
            if error.code is ErrorCode.NO_KERNEL:
                what = tool.removeprefix("block.")
                self._hint(f"Offline: {what} needs the kernel; try again when it is back.")
            else:
                mine = _NOTHING_LEFT.get(error.code, error.message)
                self._hint(error.message if principal is not None else mine)
            return False
        return True

    async def authors(self, block: str) -> list[BlameRange] | None:
        """Return the authors of a block's text by range; None if the kernel does not say."""
        try:
            result = await self._session.call("block.blame", {"block_id": block})
        except AntiphonError as error:
            self._hint(f"Who wrote what cannot be shown: {error.message}")
            return None
        return merge_runs(result["runs"])

    async def interrupt(self, target: InterruptTarget) -> None:
        """Stop a model, a command or all of them."""
        params: dict[str, Any] = {"context": self._session.document.context}
        if target.principal is not None:
            params["principal"] = target.principal
        try:
            result = await self._session.call("turn.interrupt", params)
        except AntiphonError as error:
            self._hint(f"Not stopped: {error.message}")
            return
        if not result.get("stopped"):
            self._hint("Nothing was running any more.")

    async def contexts(self) -> list[ContextName]:
        """The kernel's contexts, oldest first; none if it does not say."""
        try:
            result = await self._session.call("context.list", {})
        except AntiphonError as error:
            self._hint(f"The contexts cannot be listed: {error.message}")
            return []
        return [
            ContextName(one["context_id"], displayable_in_a_row(one["label"]))
            for one in result["contexts"]
        ]
