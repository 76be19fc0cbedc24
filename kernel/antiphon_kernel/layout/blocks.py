"""Blocks as plain values: all that a layout needs to know of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from antiphon_kernel.types.enums import BlockKind, PrincipalKind, Role, Status
from antiphon_kernel.types.frozen_json import JsonObject
from antiphon_kernel.types.summaries import SUMMARY_TYPE, stands_for_earlier

_TERMINAL: Final = (Status.DONE, Status.ERROR)


@dataclass(frozen=True, slots=True)
class BlockAuthor:
    """Author of a block: who created it."""

    id: str
    name: str
    kind: PrincipalKind | str = PrincipalKind.HUMAN


class LayoutBlock(NamedTuple):
    """One block, with its text as it reads now. Drafts are not among them."""

    id: str
    author: BlockAuthor
    created: int
    """Milliseconds since the epoch."""
    text: str
    parameters: JsonObject
    """Input of a tool call."""
    role: Role | str
    kind: BlockKind | str
    status: Status | str = Status.DONE
    parent: str | None = None
    """Id of the block it answers."""
    excluded: bool = False
    tool_name: str | None = None
    exit_code: int | None = None
    is_error: bool = False
    truncated: bool = False
    stop_reason: str | None = None
    file: str | None = None
    """Path of the file it is about."""
    media_type: str | None = None
    """Type of the file that was attached with it."""
    blob: str | None = None
    """SHA-256 of the bytes of that file."""
    blob_bytes: int | None = None
    metadata: Mapping[str, Any] = {}

    @property
    def is_finished(self) -> bool:
        """Return whether nobody is expected to go on with it."""
        return self.status in _TERMINAL

    @property
    def is_call(self) -> bool:
        return self.kind == BlockKind.TOOL_CALL

    @property
    def is_result(self) -> bool:
        return self.kind == BlockKind.TOOL_RESULT

    @property
    def is_summary(self) -> bool:
        """Return whether models read from here on: a finished summary that says something."""
        return stands_for_earlier(self, self.text)

    @property
    def begins_turn(self) -> bool:
        """Return whether it is a submission, or a prompt of the kernel's own."""
        return (
            (
                self.role == Role.USER
                or (self.role == Role.SYSTEM and self.author.kind == PrincipalKind.SYSTEM)
            )
            and self.kind == BlockKind.TEXT
            and self.is_finished
            and self.metadata.get("type") != SUMMARY_TYPE
        )
