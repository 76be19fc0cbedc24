"""Summaries: blocks that stand for everything before them in what models read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Protocol

from antiphon_kernel.types.enums import Role, Status

SUMMARY_TYPE: Final = "conv.range.summary"
"""Value of `metadata.type` of a summary."""


class SummaryFields(Protocol):
    """Fields of a block by which a summary is known."""

    @property
    def role(self) -> Role | str: ...
    @property
    def status(self) -> Status | str: ...
    @property
    def excluded(self) -> bool: ...
    @property
    def metadata(self) -> Mapping[str, Any]: ...


def stands_for_earlier(block: SummaryFields, text: str) -> bool:
    """Return whether models may read from a block with this text on: it is a finished summary."""
    return (
        block.role == Role.SYSTEM
        and block.metadata.get("type") == SUMMARY_TYPE
        and block.status in (Status.DONE, Status.ERROR)
        and not block.excluded
        and bool(text.strip())
    )
