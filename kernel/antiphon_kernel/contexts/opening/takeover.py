"""Taking of what kernels leave behind that die: what was running there ends as interrupted."""

from __future__ import annotations

import asyncio
import logging
import random
from dataclasses import dataclass, field
from functools import partial

from antiphon_kernel.cluster import Ownership, forwarding
from antiphon_kernel.contexts.context_users import UseScope
from antiphon_kernel.contexts.opening.context_registry import ContextRegistry
from antiphon_kernel.contexts.opening.open_contexts import OpenContexts
from antiphon_kernel.storage import ContextRow
from antiphon_kernel.tasks import BackgroundTasks
from antiphon_kernel.types.errors import AntiphonError, ErrorCode

_log = logging.getLogger(__name__)


@dataclass(eq=False)
class Takeover:
    """Looks for trees of forks whose kernel has died, and opens what was open there."""

    ownership: Ownership
    contexts: ContextRegistry
    open_contexts: OpenContexts
    look_seconds: float
    tasks: BackgroundTasks = field(default_factory=partial(BackgroundTasks, _log))

    def start(self) -> None:
        """Begin to look."""
        self.tasks.start(self._look_forever(), "look for dead kernels")

    async def close(self) -> None:
        """Look no more."""
        await self.tasks.close()

    async def _look_forever(self) -> None:
        while True:
            await asyncio.sleep(self.look_seconds)
            try:
                roots = await self.ownership.left()
            except AntiphonError as error:
                _log.warning("nobody looks after what dead kernels have left: %s", error)
                continue
            random.shuffle(roots)  # other kernels take some of them at the same time
            for root in roots:
                with UseScope():
                    await self._take(root)

    async def _take(self, root: int) -> None:
        contexts = self.contexts
        try:
            if not contexts.has_number(root):
                await contexts.load()
            with forwarding():
                await self.open_contexts.own(contexts.of_number(root))
            for row in contexts.rows():
                if contexts.root(row.number) == root:
                    await self._open_changed(row)
        except AntiphonError as error:
            if error.code is not ErrorCode.NOT_OWNER:  # another kernel was quicker
                _log.warning("a tree that a dead kernel has left was not taken: %s", error)

    async def _open_changed(self, row: ContextRow) -> None:
        """Open a context unless a state of it is stored, as one that was closed in order has."""
        try:
            if not await self.contexts.journal.has_last_state(row):
                with forwarding():
                    await self.open_contexts.open(row.id)
        except AntiphonError as error:
            if error.code is ErrorCode.NOT_OWNER:
                raise
            _log.warning("what was running in context %s is not marked: %s", row.label, error)
