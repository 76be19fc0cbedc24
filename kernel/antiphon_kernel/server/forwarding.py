"""Calls that need a context of another kernel: carried out there, in the name of the client here.

A client speaks with one kernel, whichever has the contexts that it asks for. Its session here stays
for as long as its connection: it is counted, slowed down and dismissed here. The other kernel has
one of its own for it, with which it checks everything again.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from typing import Any, Final, TypeVar

from websockets.exceptions import ConnectionClosed

from antiphon_kernel.client.connecting import CallNotMade, open_socket
from antiphon_kernel.client.tool_client import ToolClient, read_error
from antiphon_kernel.cluster import (
    PATIENCE_SECONDS,
    Ownership,
    forwarding,
    is_forwarding,
    is_unchanged,
)
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.server.authentication import AuthenticatedSession
from antiphon_kernel.server.peers import HAND_OVER_PATH, PeerAddress
from antiphon_kernel.subscriptions import BlockEvent, ForwardedSubscription
from antiphon_kernel.types.errors import AntiphonError, ErrorCode, NotOwnerError

_PAUSE_SECONDS: Final = 0.05
_LOOK_SECONDS: Final = 1.0
"""Pause between two looks whether the kernels live that something waits for."""

_HAND_OVER_SECONDS: Final = 10.0
_NO_ANSWER: Final = "The kernel at {}, which has the context, does not answer: try again soon."

Here = TypeVar("Here")
There = TypeVar("There")


class Forwarder:
    """The way to the other kernels. Belongs to one event loop."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.secret = ""
        self._ownership = kernel.cluster.ownership if kernel.cluster is not None else None
        self._cuts = dict[object, tuple[str, Callable[[], None]]]()
        """For each connection to another kernel the address of that, and what drops it."""
        self._watching: asyncio.Task[None] | None = None

    async def at_owner(
        self,
        visit: AuthenticatedSession,
        here: Callable[[], Awaitable[Here]],
        there: Callable[[PeerAddress], Awaitable[There]],
    ) -> Here | There:
        """Do something here or, if another kernel has the context, there.

        What has been forwarded already is done here: this kernel fetches the context.

        Raises:
            AntiphonError: not_owner, if the kernel that has the context cannot be reached for long;
                CallNotMade if this one ends, and others may do it.
        """
        ends = asyncio.get_running_loop().time() + PATIENCE_SECONDS
        while True:
            with forwarding(fetches=visit.is_peer):
                try:
                    return await here()
                except NotOwnerError as error:
                    # Whatever has changed something already must not be done once more.
                    if not is_forwarding():
                        raise
                    missing, address = error, error.address
                except AntiphonError as error:
                    is_ending = error.code is ErrorCode.NO_KERNEL and self._ownership is not None
                    if is_ending and is_unchanged():
                        raise CallNotMade(error.message) from error
                    raise
            if address is not None:
                try:
                    return await there(PeerAddress.of(address, self.secret, visit.actor))
                except CallNotMade:
                    missing = NotOwnerError(_NO_ANSWER.format(address))
            if asyncio.get_running_loop().time() >= ends:
                raise missing
            await asyncio.sleep(_PAUSE_SECONDS)

    @contextmanager
    def watched(self, owner: PeerAddress, cut: Callable[[], None]) -> Iterator[None]:
        """Call `cut` when the kernel's lease runs out: whoever waits for it may wait in vain."""
        key = object()
        self._cuts[key] = owner.http, cut
        if self._watching is None and self._ownership is not None:
            watching = self._watch(self._ownership)
            self._watching = asyncio.create_task(watching, name="watch over other kernels")
        try:
            yield
        finally:
            del self._cuts[key]

    async def _watch(self, ownership: Ownership) -> None:
        try:
            while self._cuts:
                await asyncio.sleep(_LOOK_SECONDS)
                with suppress(AntiphonError):  # without its database this kernel knows nothing
                    live = await ownership.live()
                    for address, cut in list(self._cuts.values()):
                        if address not in live:
                            cut()
        finally:
            self._watching = None

    async def ask_owner(self, address: str, root: int) -> None:
        """Ask the kernel at an address to hand a tree of forks over.

        Raises:
            AntiphonError: what it refuses with.
        """
        owner = PeerAddress.of(address, self.secret)
        with suppress(CallNotMade, OSError, ConnectionClosed):
            async with (
                asyncio.timeout(_HAND_OVER_SECONDS),
                await open_socket(owner, (*HAND_OVER_PATH, str(root)), as_name=None) as socket,
            ):
                with self.watched(owner, socket.transport.abort):
                    answer = json.loads(await socket.recv())
                if "error" in answer:
                    raise read_error(answer["error"])


class SessionCalls:
    """The calls of one session, each carried out by the kernel that has its context.

    There is one connection to each of those, so that what belongs to a session there (leases,
    subscriptions) is there until this is closed.
    """

    def __init__(self, forwarder: Forwarder, visit: AuthenticatedSession) -> None:
        self.visit = visit
        self.forwarder = forwarder
        self._kernel = forwarder.kernel
        self._calls = dict[str, ToolClient]()
        """By the address of the kernel."""
        self._followed = dict[str, tuple[ToolClient, ForwardedSubscription]]()
        """By the id of each subscription."""
        self._watches = ExitStack()
        self._is_closed = False

    async def call(self, tool: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Return the result of a call.

        Raises:
            AntiphonError: what it failed with.
        """
        named = str(params.get("subscription"))
        if tool == "block.unsubscribe" and named in self._followed:
            await self._followed[named][0].call(tool, params)
            self._followed.pop(named, None)

        async def here() -> dict[str, Any]:
            return await self._kernel.call(self.visit.actor, tool, params)

        async def there(owner: PeerAddress) -> dict[str, Any]:
            calls = self._calls.get(owner.http)
            if calls is None:
                calls = self._calls[owner.http] = ToolClient(lambda: owner, comes_again=False)
                calls.on_push = partial(self._pushed, calls)
                self._watches.enter_context(self.forwarder.watched(owner, calls.cut))
            result = await calls.call(tool, params)
            if tool == "block.subscribe":
                self._follow(calls, result["subscription"])
            return result

        return await self.forwarder.at_owner(self.visit, here, there)

    async def aclose(self) -> None:
        """Let go of the other kernels, which end what belongs to the session."""
        self._is_closed = True
        await asyncio.gather(*(one.close() for one in self._calls.values()))
        self._watches.close()

    def _follow(self, calls: ToolClient, subscription: str) -> ForwardedSubscription:
        if subscription not in self._followed:
            made = self._kernel.subscriptions.forwarded(self.visit.actor, subscription)
            self._followed[subscription] = calls, made
        return self._followed[subscription][1]

    async def _pushed(self, calls: ToolClient, message: dict[str, Any]) -> None:
        """Take what another kernel says of a subscription, perhaps before its answer."""
        if self._is_closed:
            return
        followed = self._follow(calls, message["subscription"])
        if "error" in message:
            self._kernel.subscriptions.end(followed, read_error(message["error"]))
            del self._followed[followed.id]
        else:
            await followed.pass_on(BlockEvent.model_validate(message["event"]))
