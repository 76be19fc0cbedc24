"""What a change of a context is at each step of its way: applied, on its way to disk, told."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from antiphon_kernel.document.changes import DocumentChange
from antiphon_kernel.types.records import Actor


@dataclass(frozen=True, slots=True)
class Broadcast:
    """A committed change, as subscribers get it. `source` is who handed it in as raw update."""

    seq: int
    update: bytes
    source: object


@dataclass(frozen=True, slots=True)
class Applied:
    """A change that the document has taken in; it is on disk when `seq` has been broadcast."""

    seq: int
    time: int
    actor: Actor
    operation: str
    changes: tuple[DocumentChange, ...]
    """What it did, in order, with what the kernel added to it."""
    versions: Mapping[str, int]
    """New version of each block it touched."""


@dataclass(frozen=True, slots=True)
class Written:
    """A change that has been applied and is on its way to disk."""

    seq: int
    versions: Mapping[str, int]
    """New version of each block it touched."""
    on_disk: asyncio.Future[None]

    async def saved(self) -> None:
        """Wait until it is on disk.

        Raises:
            AntiphonError: storage_failed.
        """
        await asyncio.shield(self.on_disk)  # a caller that gives up must not fail the others

    def seq_on_disk(self) -> asyncio.Future[int]:
        """`seq`, once it is on disk."""
        result: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        def saved(on_disk: asyncio.Future[None]) -> None:
            if result.done():
                return
            if on_disk.cancelled():
                result.cancel()
            elif (error := on_disk.exception()) is not None:
                result.set_exception(error)
            else:
                result.set_result(self.seq)

        self.on_disk.add_done_callback(saved)
        return result
