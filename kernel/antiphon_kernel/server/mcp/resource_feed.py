"""Changes of blocks, for programs that have subscribed to them as resources."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Final

from antiphon_kernel.kernel import Kernel
from antiphon_kernel.subscriptions import Subscription
from antiphon_kernel.types.errors import AntiphonError
from antiphon_kernel.types.records import Actor

PAUSE_SECONDS: Final = 0.2
"""A block that is being written is told of no more often than this."""


class ResourceFeed:
    """Changes of the blocks that one session follows; each is named by its URI."""

    def __init__(self, kernel: Kernel, actor: Actor) -> None:
        self._kernel = kernel
        self._actor = actor
        self._changed: dict[str, None] = {}
        self._news = asyncio.Event()
        self._readers: set[asyncio.Task[None]] = set()
        self._followed: list[Subscription] = []

    async def follow(self, uri: str, reference: str) -> None:
        """Follow a block from now on.

        Raises:
            AntiphonError: if there is none, if the session may not read it, or follows too many.
        """
        subscribe = {"block_ids": [reference]}
        await self._kernel.call(self._actor, "block.subscribe", subscribe)
        for subscription in self._kernel.subscriptions.claim(self._actor.session):
            self._followed.append(subscription)
            reader = asyncio.create_task(self._read(uri, subscription), name=f"changes of {uri}")
            self._readers.add(reader)
            reader.add_done_callback(self._has_read)

    def close(self) -> None:
        """Follow nothing any more."""
        for subscription in self._followed:
            self._kernel.subscriptions.end(subscription)

    async def changes(self) -> AsyncIterator[str]:
        """Yield the URI of each block that has changed, until nothing is followed any more."""
        while self._readers or self._changed:
            await self._news.wait()
            self._news.clear()
            changed, self._changed = self._changed, {}
            for uri in changed:
                yield uri
            if changed:
                await asyncio.sleep(PAUSE_SECONDS)

    async def _read(self, uri: str, subscription: Subscription) -> None:
        with suppress(AntiphonError):  # whoever reads the block again is told why
            async for _ in subscription:
                self._changed[uri] = None
                self._news.set()

    def _has_read(self, reader: asyncio.Task[None]) -> None:
        self._readers.discard(reader)
        self._news.set()
