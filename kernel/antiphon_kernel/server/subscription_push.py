"""Push messages: the events of the subscriptions of one connection."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Final

from antiphon_kernel.subscriptions import Subscription, Subscriptions
from antiphon_kernel.types.errors import AntiphonError
from antiphon_kernel.types.ids import SessionId

_logger: Final = logging.getLogger("antiphon.calls")

Send = Callable[[dict[str, Any]], Awaitable[None]]


async def pushed(subscription: Subscription) -> AsyncIterator[dict[str, Any]]:
    """`{"subscription", "event"}` for each event; `{"subscription", "error"}` if it is cut off."""
    try:
        async for event in subscription:
            yield {
                "subscription": subscription.id,
                "event": event.model_dump(mode="json", exclude_none=True),
            }
    except AntiphonError as error:
        yield {"subscription": subscription.id, "error": error.as_json()}


class SubscriptionPush:
    """Passes events on as fast as the other side reads; what it cannot take waits in the kernel."""

    def __init__(self, subscriptions: Subscriptions, session: SessionId, send: Send) -> None:
        self._subscriptions = subscriptions
        self._session = session
        self._send = send
        self._running: dict[asyncio.Task[None], Subscription] = {}

    def start(self) -> None:
        """Pass on the events of what has been subscribed to since the last time."""
        for subscription in self._subscriptions.claim(self._session):
            name = f"events of subscription {subscription.id}"
            task = asyncio.create_task(self._forward(subscription), name=name)
            self._running[task] = subscription
            task.add_done_callback(self._finished)

    async def catch_up(self) -> None:
        """Wait until everything of what has been unsubscribed is sent."""
        ended = [task for task, subscription in self._running.items() if subscription.ended]
        if ended:
            await asyncio.wait(ended)

    async def close(self) -> None:
        """Send nothing more."""
        running = list(self._running)
        for task in running:
            task.cancel()
        if running:
            await asyncio.wait(running)

    async def _forward(self, subscription: Subscription) -> None:
        async for message in pushed(subscription):
            await self._send(message)

    def _finished(self, task: asyncio.Task[None]) -> None:
        subscription = self._running.pop(task)
        if task.cancelled() or (error := task.exception()) is None:
            return
        self._subscriptions.end(subscription)
        if not isinstance(error, OSError):  # a connection that is gone is no failure
            _logger.error("%s failed", task.get_name(), exc_info=error)
