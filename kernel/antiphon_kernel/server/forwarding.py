"""Calls that need a context of another kernel: carried out there, in the name of the client here.

A client speaks with one kernel, whichever has the contexts that it asks for. Its session here stays
for as long as its connection: it is counted, slowed down and dismissed here. The other kernel has
one of its own for it, with which it checks everything again.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping
from contextlib import ExitStack, aclosing, contextmanager, suppress
from typing import Any, Final, TypeVar
from urllib.parse import urlencode, urlsplit

import h11
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.types import Send
from websockets.asyncio.client import ClientConnection

from antiphon_kernel.client.connecting import open_socket
from antiphon_kernel.client.tool_client import CallNotMade, ToolClient, read_error
from antiphon_kernel.cluster import Cluster, Ownership, forwarding, is_forwarding, is_unchanged
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.server.authentication import AuthenticatedSession
from antiphon_kernel.server.peers import CONNECT_SECONDS, HAND_OVER_PATH, PeerAddress
from antiphon_kernel.types.errors import AntiphonError, ErrorCode, NotOwnerError

PATIENCE_SECONDS: Final = 10.0
"""How long another kernel may be unreachable: when it has died, its lease ends before that."""

_PAUSE_SECONDS: Final = 0.2
_LOOK_SECONDS: Final = 1.0
"""Pause between two looks whether the kernels live that something waits for."""

_ASK_AGAIN_SECONDS: Final = 1.2
"""Pause before an owner that does not answer is asked once more."""

_HAND_OVER_SECONDS: Final = 10.0
_CHUNK: Final = 2**16
_ABOUT_CLIENT: Final = ("as", "kind", "token", "once")
"""Parameters of an address that say who comes, which is stated in a header instead."""

_NO_ANSWER: Final = "The kernel at {}, which has the context, does not answer: try again soon."

Here = TypeVar("Here")
There = TypeVar("There")
Push = Callable[[dict[str, Any]], Awaitable[None]]


class Forwarder:
    """The way to the other kernels. Belongs to one event loop."""

    def __init__(self, cluster: Cluster | None) -> None:
        """`cluster`: None for a kernel that is alone."""
        self.secret = ""
        """The secret of the cluster."""
        self._ownership = cluster.ownership if cluster is not None else None
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

    async def connect(
        self, context: str, query: Mapping[str, str], owner: PeerAddress
    ) -> ClientConnection:
        """Connect to a context of another kernel.

        Raises:
            CallNotMade: if nothing answers.
        """
        kept = {name: value for name, value in query.items() if name not in _ABOUT_CLIENT}
        try:
            return await open_socket(owner, ("sync", context), as_name=None, **kept)
        except AntiphonError as error:
            raise CallNotMade(error.message) from error

    async def relay(self, request: Request, body: bytes, owner: PeerAddress) -> StreamingResponse:
        """Return the answer of another kernel to a request.

        Raises:
            AntiphonError: no_kernel if it went away; CallNotMade if nothing answers there.
        """
        query = [one for one in request.query_params.multi_items() if one[0] not in _ABOUT_CLIENT]
        target = f"{request.scope['raw_path'].decode('ascii')}?{urlencode(query)}"
        answer = self._exchange(owner, request.method, target, body)
        try:
            head = await anext(answer)
        except (OSError, h11.RemoteProtocolError) as error:
            raise AntiphonError(
                ErrorCode.NO_KERNEL,
                "The kernel that has the context went away before it answered; the call may have"
                " taken effect. Look, then call again.",
            ) from error
        return _RelayedAnswer(head, answer)

    async def ask_owner(self, address: str, root: int) -> None:
        """Ask the kernel at an address to hand a tree of forks over.

        One that does not answer may have died: this returns after a pause, so that the caller looks
        whether it still has the tree.

        Raises:
            AntiphonError: what it refuses with.
        """
        owner, body = PeerAddress.of(address, self.secret), json.dumps({"root": root}).encode()
        try:
            async with asyncio.timeout(_HAND_OVER_SECONDS):
                async with aclosing(self._exchange(owner, "POST", HAND_OVER_PATH, body)) as answer:
                    head, *parts = [part async for part in answer]
        except (CallNotMade, OSError, h11.RemoteProtocolError):
            await asyncio.sleep(_ASK_AGAIN_SECONDS)
            return
        if head.status_code != 200:
            raise read_error(json.loads(b"".join(parts))["error"])

    async def _exchange(
        self, owner: PeerAddress, method: str, target: str, body: bytes
    ) -> AsyncGenerator[Any, None]:
        """Send a request; yield the head of the answer, an `h11.Response`, then its bytes.

        Raises:
            CallNotMade: if nothing answers.
            OSError, h11.RemoteProtocolError: if the answer breaks off.
        """
        parts = urlsplit(owner.http)
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
        except OSError as error:
            raise CallNotMade(f"No kernel answers at {owner.http} ({error}).") from error
        connection = h11.Connection(h11.CLIENT)
        headers = {"Host": parts.netloc, "Content-Length": str(len(body)), "Connection": "close"}
        stated = list((headers | owner.headers).items())
        asked = h11.Request(method=method, target=target, headers=stated)
        try:
            with self.watched(owner, writer.transport.abort):
                for sent in (asked, h11.Data(data=body), h11.EndOfMessage()):
                    writer.write(connection.send(sent) or b"")
                while not isinstance(event := connection.next_event(), h11.EndOfMessage):
                    if event is h11.NEED_DATA:
                        connection.receive_data(await reader.read(_CHUNK))
                    elif isinstance(event, h11.Response):
                        yield event
                    elif isinstance(event, h11.Data):
                        yield bytes(event.data)
        finally:
            writer.close()


class _RelayedAnswer(StreamingResponse):
    """An answer of another kernel on its way; one that breaks off has no end here either."""

    def __init__(self, head: h11.Response, parts: AsyncGenerator[Any, None]) -> None:
        kind = dict(head.headers)[b"content-type"].decode("latin-1")
        super().__init__(parts, head.status_code, headers={"content-type": kind})
        self._parts = parts

    async def stream_response(self, send: Send) -> None:
        """Send all of it, or end the connection without the end of the answer."""
        start = {"type": "http.response.start", "status": self.status_code}
        async with aclosing(self._parts):
            await send({**start, "headers": self.raw_headers})
            try:
                async for part in self._parts:
                    await send({"type": "http.response.body", "body": part, "more_body": True})
            except (OSError, h11.RemoteProtocolError):
                return
            await send({"type": "http.response.body", "body": b""})


class SessionCalls:
    """The calls of one session, each carried out by the kernel that has its context.

    There is one connection to each of those, so that what belongs to a session there (leases,
    subscriptions) is there until this is closed.
    """

    def __init__(
        self, kernel: Kernel, forwarder: Forwarder, visit: AuthenticatedSession, push: Push
    ) -> None:
        """`push` gets the events of subscriptions at other kernels, and how they ended."""
        self._kernel = kernel
        self._forwarder = forwarder
        self._visit = visit
        self._push: Push | None = push
        self._calls = dict[str, ToolClient]()
        """By the address of the kernel."""
        self._followed = dict[str, ToolClient]()
        """By the id of each subscription."""
        self._watches = ExitStack()

    async def call(self, tool: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Return the result of a call.

        Raises:
            AntiphonError: what it failed with.
        """
        subscription = params.get("subscription")
        if tool == "block.unsubscribe" and isinstance(subscription, str):
            if (calls := self._followed.pop(subscription, None)) is not None:
                return await calls.call(tool, params)

        async def here() -> dict[str, Any]:
            return await self._kernel.call(self._visit.actor, tool, params)

        async def there(owner: PeerAddress) -> dict[str, Any]:
            calls = self._calls.get(owner.http)
            if calls is None:
                calls = self._calls[owner.http] = ToolClient(lambda: owner)
                calls.on_push = self._pushed
                self._watches.enter_context(self._forwarder.watched(owner, calls.cut))
            result = await calls.call(tool, params)
            if tool == "block.subscribe":
                self._followed[result["subscription"]] = calls
            return result

        return await self._forwarder.at_owner(self._visit, here, there)

    def is_elsewhere(self, subscription: str) -> bool:
        """Return whether another kernel tells of the changes of a subscription."""
        return subscription in self._followed

    async def close(self) -> None:
        """Let go of the other kernels, which end what belongs to the session."""
        self._push = None
        self._watches.close()
        await asyncio.gather(*(one.close() for one in self._calls.values()))

    async def _pushed(self, message: dict[str, Any]) -> None:
        if "error" in message:
            self._followed.pop(message["subscription"], None)
        if self._push is not None:
            await self._push(message)
