"""Turns of models in this context: which are played, and how one is stopped."""

from __future__ import annotations

from typing import Any

from antiphon.running_blocks import InterruptTarget, RunningBlocks
from antiphon.screens.input_focus import InputFocus
from antiphon.screens.kernel_calls import KernelCalls
from antiphon_kernel.types.enums import Activity, PrincipalKind
from antiphon_kernel.types.presence import PresenceState


class ModelTurns:
    """Knows the models at work, and stops them."""

    def __init__(self, kernel: KernelCalls, focus: InputFocus) -> None:
        self._kernel = kernel
        self._session = kernel.session
        self._focus = focus
        self.running = RunningBlocks(self._session.document)
        self.at_work: frozenset[str] = frozenset()
        """Usernames of the models whose turns were played when `ended` was asked last."""

    def current(self) -> list[PresenceState]:
        """Return the models whose turns are being played."""
        present = self._session.presence().values()
        models = (one for one in present if one.kind == PrincipalKind.MODEL)
        return [one for one in models if one.activity == Activity.STREAMING]

    def is_streaming(self, principal: str) -> bool:
        return any(one.principal == principal for one in self.current())

    def ended(self) -> frozenset[str]:
        """Return the usernames of models that have ended their turn since this was asked last."""
        now = frozenset(one.username for one in self.current())
        ended, self.at_work = self.at_work - now, now
        return ended

    def target(self) -> InterruptTarget | None:
        """Return what Ctrl+C stops; None if nothing runs."""
        me = self._session.me
        principal = me.principal if me is not None else None
        return self.running.target(self._focus.block, principal, self.current())

    async def interrupt(self) -> None:
        """Stop what the person means by Ctrl+C, or say why that is not possible."""
        # A turn that has just been asked for is not seen yet.
        target = self.target() or InterruptTarget(None, "all")
        if not self._session.is_live:
            self._kernel.hint(
                "Offline: what runs can be stopped when the kernel is back. Ctrl+Q quits."
            )
        elif self._session.user.refusal is not None:
            self._kernel.hint(self._session.user.refusal)
        else:
            await self.stop(target)

    async def stop(self, target: InterruptTarget) -> None:
        params: dict[str, Any] = {"context": self._session.document.context}
        if target.principal is not None:
            params["principal"] = target.principal
        result = await self._kernel.call("turn.interrupt", params, "Not stopped")
        if result is not None and not result.get("stopped"):
            self._kernel.hint("Nothing is running. <key:quit> quits.")
