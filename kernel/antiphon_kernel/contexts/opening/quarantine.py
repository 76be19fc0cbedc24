"""Damaged contexts: found, named, and left alone, so that the others are not concerned."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from typing import Final

from antiphon_kernel.storage import ContextRow, CorruptContextError, Journal
from antiphon_kernel.types.errors import AntiphonError
from antiphon_kernel.types.ids import ContextId

_PAUSE_SECONDS: Final = 0.01
"""Between two contexts: whoever waits for the database comes first."""

_log = logging.getLogger(__name__)


class Quarantine:
    """The contexts that cannot be opened, and why."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self.damaged: dict[ContextId, CorruptContextError] = {}
        self._survey: asyncio.Task[None] | None = None

    def raise_if_quarantined(self, context: ContextId) -> None:
        """Raises CorruptContextError if it is known to be damaged."""
        if context in self.damaged:
            raise self.damaged[context]

    def add(self, context: ContextId, error: CorruptContextError) -> None:
        """From now on the context is not opened any more."""
        if context not in self.damaged:
            _log.error("quarantined: %s", error)
        self.damaged[context] = error

    def scan(self, rows: Iterable[ContextRow]) -> None:
        """Begin to look, in the background, whether the records of these contexts are complete."""
        self._survey = asyncio.create_task(self._inspect(tuple(rows)), name="survey of contexts")

    async def scanned(self) -> None:
        """Wait until the survey is over."""
        if self._survey is not None:
            await asyncio.wait({self._survey})

    async def close(self) -> None:
        """Stop looking."""
        if self._survey is not None:
            self._survey.cancel()
        await self.scanned()

    async def _inspect(self, rows: Iterable[ContextRow]) -> None:
        for row in rows:
            try:
                await self._journal.check_sequence(row)
            except CorruptContextError as error:
                self.add(row.id, error)
            except AntiphonError as error:
                _log.warning("context %s could not be looked at: %s", row.label, error)
            await asyncio.sleep(_PAUSE_SECONDS)
