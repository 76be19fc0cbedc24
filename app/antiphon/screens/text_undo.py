"""Undo and redo of the text of a cell, which the kernel does by author."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from antiphon.screens.kernel_calls import KernelCalls
from antiphon.time_format import format_time_since
from antiphon_kernel.types.errors import AntiphonError, ErrorCode

_NOTHING_LEFT: Mapping[str, str] = {
    ErrorCode.NOTHING_TO_UNDO: "You have nothing to undo in this cell.",
    ErrorCode.NOTHING_TO_REDO: "You have nothing to redo in this cell.",
}


@dataclass(frozen=True, slots=True)
class UndoneText:
    """Text that an undo or a redo removes and restores."""

    removed: str
    """How much, in words: `88 lines`; empty if nothing."""
    restored: str
    age: str
    """How long ago it was written: `10 s ago`."""

    @classmethod
    def of(cls, result: Mapping[str, Any]) -> UndoneText:
        """Read the result of `block.undo` or `block.redo`."""
        age = format_time_since(result["time"])
        return cls(_amount(result["removed"]), _amount(result["restored"]), age)

    @property
    def amount(self) -> str:
        return self.removed or self.restored or "an edit"

    def report(self, name: str | None, place: str = "") -> str:
        """Say what an undo did; `name` is the author if it was somebody else's edit."""
        whose = (f" of {name}" if name is not None else "") + place
        them = "it" if self.amount.startswith(("1 ", "an ")) else "them"
        if self.restored and not self.removed:
            return f"Brought back {self.amount}{whose} · <key:redo> removes {them} again"
        return f"Took back {self.amount}{whose} · <key:redo> brings {them} back"

    def report_again(self, place: str) -> str:
        if self.removed and not self.restored:
            return f"Removed {self.removed}{place} again"
        return f"Brought back {self.restored or self.amount}{place}"


def _amount(size: Mapping[str, int]) -> str:
    """Return the size of a text in the largest unit of which it has several."""
    for unit in ("lines", "words"):
        if size[unit] > 1:
            return f"{size[unit]:,} {unit}"
    if size["words"]:
        return "1 word"
    characters = size["characters"]
    return f"{characters} character{'s' * (characters > 1)}" if characters else ""


class TextUndo:
    """Takes back what was written in a cell, and says so."""

    def __init__(self, kernel: KernelCalls) -> None:
        self._kernel = kernel

    async def undo(
        self, block: str, place: str = "", *, principal: str | None = None, name: str | None = None
    ) -> bool:
        """Take back the last edit of a block, and say so; whether anything changed.

        It is that of a principal with this name, else the person's own; `place` is the cell.
        """
        undone = await self.apply("block.undo", block, principal, name)
        if undone is not None:
            self._kernel.hint(undone.report(name, place))
        return undone is not None

    async def redo(
        self, block: str, place: str = "", *, principal: str | None = None, name: str | None = None
    ) -> None:
        """Do again what was undone last, and say so; arguments as of `undo`."""
        redone = await self.apply("block.redo", block, principal, name)
        if redone is not None and name is not None:
            self._kernel.hint(f"{redone.restored or redone.amount} of {name} came back.")
        elif redone is not None:
            self._kernel.hint(redone.report_again(place))

    async def apply(
        self,
        tool: str,
        block: str,
        principal: str | None = None,
        name: str | None = None,
        *,
        preview: bool = False,
    ) -> UndoneText | None:
        """Return what a tool takes back, or would with `preview`; None, with a hint, if nothing."""
        what = tool.removeprefix("block.")
        params: dict[str, Any] = {"block_id": block, "preview": preview}
        if principal is not None:
            params["principal"] = principal
        try:
            return UndoneText.of(await self._kernel.session.call(tool, params))
        except AntiphonError as error:
            if error.code is ErrorCode.NO_KERNEL:
                self._kernel.hint(f"Offline: {what} needs the kernel; try again when it is back.")
            elif error.code in _NOTHING_LEFT and name is not None:
                self._kernel.hint(f"There is nothing of {name} to {what} in this cell.")
            else:
                self._kernel.hint(_NOTHING_LEFT.get(error.code, error.message))
            return None
