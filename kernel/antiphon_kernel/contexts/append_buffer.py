"""Streamed appends, gathered into few commits.

A model's tokens come one by one; each flush is one CRDT update and one journal row. It is
flushed on a newline, above a size, after a silence by a real timer, and before anything else
touches the block.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NoReturn

from antiphon_kernel.contexts.commit_types import CommitHandle
from antiphon_kernel.limits import Limits
from antiphon_kernel.types.errors import AntiphonError
from antiphon_kernel.types.records import Actor

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Buffer:
    actor: Actor
    section: str | None
    timer: asyncio.TimerHandle | None = None
    pieces: list[str] = field(default_factory=list)
    size: int = 0


class AppendBuffers:
    """The unflushed appends of one context, by block. Writing raises storage_failed."""

    def __init__(
        self,
        append: Callable[[Actor, str, str, str | None], CommitHandle],
        check: Callable[[Actor, Sequence[str]], None],
        limits: Limits,
    ) -> None:
        """`append` writes what has been gathered at the end of a text: who, in which block, what,
        in which section. `check` raises if somebody may not write in one of the blocks.
        """
        self._append = append
        self._check = check
        self._limits = limits
        self._buffers: dict[str, _Buffer] = {}

    def add(self, actor: Actor, block: str, text: str, section: str | None = None) -> int:
        """Buffer an append unless it is somebody else's draft (permission_denied).

        Returns how many code points are not flushed yet.
        """
        self._check(actor, (block,))
        if not text:
            return self.unflushed(block, section)
        limits = self._limits
        buffer = self._buffers.get(block)
        if buffer is not None and (buffer.actor != actor or buffer.section != section):
            self.flush(block)
            buffer = None
        if buffer is None:
            buffer = self._buffers[block] = _Buffer(actor, section)
        buffer.pieces.append(text)
        buffer.size += len(text)
        if "\n" in text or buffer.size > limits.append_batch_code_points:
            self.flush(block)
            return 0
        if buffer.timer is not None:
            buffer.timer.cancel()
        loop = asyncio.get_running_loop()
        silence = limits.append_silence_seconds
        buffer.timer = loop.call_later(silence, self._flush_after_silence, block)
        return buffer.size

    @property
    def is_empty(self) -> bool:
        """Return whether nothing is buffered."""
        return not self._buffers

    def unflushed(self, block: str, section: str | None = None) -> int:
        """Code points that are buffered for one text of a block."""
        buffer = self._buffers.get(block)
        return buffer.size if buffer is not None and buffer.section == section else 0

    def flush(self, block: str) -> CommitHandle | None:
        """Write what is buffered for one block; None if nothing is."""
        buffer = self._buffers.pop(block, None)
        if buffer is None:
            return None
        if buffer.timer is not None:
            buffer.timer.cancel()
        return self._append(buffer.actor, block, "".join(buffer.pieces), buffer.section)

    def flush_all(self) -> None:
        """Write everything that is buffered."""
        for block in tuple(self._buffers):
            self.flush(block)

    def close(self, refuse: Callable[..., NoReturn]) -> None:
        """Call `refuse` instead of writing from now on; nothing may be buffered."""
        self._append = self._check = refuse

    def _flush_after_silence(self, block: str) -> None:
        try:
            self.flush(block)
        except AntiphonError as error:
            _log.error("appended text of block %s was lost: %s", block, error)
