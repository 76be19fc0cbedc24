"""Calls to the kernel on behalf of the person, whose failure is told."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from antiphon.session import Session
from antiphon_kernel.types.errors import AntiphonError


class KernelCalls:
    """Calls whose failure is a hint, never an exception."""

    def __init__(self, session: Session, hint: Callable[[str], None]) -> None:
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
