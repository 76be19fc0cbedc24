"""Calls to the kernel on behalf of the person, whose failure is told."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from antiphon.session import Session
from antiphon_kernel.types.errors import AntiphonError


class Hint(Protocol):
    """Says one sentence to the person; no hint takes the place of a weighty one."""

    def __call__(self, text: str, *, weighty: bool = False) -> None: ...


class KernelCalls:
    """Calls whose failure is a hint, never an exception."""

    def __init__(self, session: Session, hint: Hint) -> None:
        self.session = session
        self.hint = hint

    async def call(
        self, tool: str, params: Mapping[str, Any], failed: str = ""
    ) -> Mapping[str, Any] | None:
        """Return the answer of a tool; None, with a hint that begins with `failed`, if it fails."""
        try:
            return await self.session.call(tool, params)
        except AntiphonError as error:
            self.hint(f"{failed}: {error.message}" if failed else error.message)
            return None
