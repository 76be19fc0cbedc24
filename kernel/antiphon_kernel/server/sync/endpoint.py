"""The sync endpoint: from an ASGI connection to the room of a context."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from functools import partial
from typing import Final

from pycrdt.websocket import WebsocketServer
from starlette.types import Receive, Scope, Send

from antiphon_kernel.access import AuthenticationError
from antiphon_kernel.client.connecting import open_socket
from antiphon_kernel.contexts import Context
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.server.authentication import Authenticator
from antiphon_kernel.server.forwarding import Forwarder
from antiphon_kernel.server.limits import ServerLimits
from antiphon_kernel.server.peers import PeerAddress
from antiphon_kernel.server.sync.connection import CloseFrame, SyncConnection, hang_up
from antiphon_kernel.server.sync.pipe import pipe
from antiphon_kernel.server.sync.room import Room
from antiphon_kernel.storage import CorruptContextError
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.yjs.close_codes import SHUTTING_DOWN, CloseCode

FAREWELL_SECONDS: Final = 1.0

_ABOUT_CLIENT: Final = {"as", "kind", "token", "once"}


class SyncEndpoint(WebsocketServer):
    """The ASGI application behind `/sync/{context}`.

    It has a room for each context that somebody follows; rooms go when the last client has left.
    """

    rooms: dict[str, Room]  # type: ignore[assignment]

    def __init__(
        self, kernel: Kernel, access: Authenticator, forwarder: Forwarder, limits: ServerLimits
    ) -> None:
        super().__init__(log=logging.getLogger("antiphon.sync"))
        self._kernel = kernel
        self._access = access
        self._forwarder = forwarder
        self._limits = limits
        self._passing = {ErrorCode.RATE_LIMITED, ErrorCode.NOT_OWNER}
        """Codes of errors that may be over when a client comes again."""
        if kernel.cluster is not None:  # this kernel with a database again, or another one
            self._passing.add(ErrorCode.STORAGE_FAILED)
        kernel.journal.files_lost.listen(self._dismiss_all)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a client in, or tell it in a close frame why not."""
        message = await receive()
        if message["type"] != "websocket.connect":
            return
        accepted = False
        try:
            async with self._access.session(scope) as visit:
                await send({"type": "websocket.accept"})
                accepted = True
                if not visit.is_peer:
                    await self._access.queue_up(visit)
                lost = self._kernel.journal.lost
                if lost is not None:
                    goodbye = CloseFrame.with_whole_reason(CloseCode.STORAGE_LOST, lost.message)
                    await hang_up(send, goodbye)
                    return
                reference = scope["path_params"]["context"]

                async def there(owner: PeerAddress) -> None:
                    # A header states who comes.
                    query = {name: visit.query[name] for name in visit.query.keys() - _ABOUT_CLIENT}
                    upstream = await open_socket(owner, ("sync", reference), as_name=None, **query)
                    with self._forwarder.watched(owner, upstream.transport.abort):
                        await pipe(upstream, scope, receive, send)

                here = partial(self._kernel.context, reference, is_partial=True)
                context = await self._forwarder.at_owner(visit, here, there)
                if context is None:
                    return
                wants_acks = visit.query.get("ack") == "1"
                connection = SyncConnection(
                    scope, visit.actor, receive, send, self._limits, wants_acks=wants_acks
                )
                await self._serve(connection, context)
        except AntiphonError as error:
            # The handshake has no room for a code: only a close frame has.
            if not accepted:
                await send({"type": "websocket.accept"})
            code, reason = CloseCode.NOT_FOUND, f"{error.code}: {error.message}"
            if isinstance(error, AuthenticationError):
                code, reason = error.close_code, error.message
            elif error.code is ErrorCode.NO_KERNEL:
                code, reason = CloseCode.RESTART, SHUTTING_DOWN
            elif error.code in self._passing and not isinstance(error, CorruptContextError):
                code = CloseCode.TRY_AGAIN_LATER
            await hang_up(send, CloseFrame(code, reason))

    async def _serve(self, connection: SyncConnection, context: Context) -> None:
        """Bring a client to the room of a context, and stay until it leaves."""
        room = self.rooms.get(context.id)
        if room is None or room.context is not context:
            room = self.rooms[context.id] = Room(context, self._limits, self.log)
        try:
            await room.serve(connection)
        finally:
            if not room.clients:
                if self.rooms.get(context.id) is room:
                    del self.rooms[context.id]
                await room.stop()

    def _dismiss_all(self, error: AntiphonError) -> None:
        for room in self.rooms.values():
            room.dismiss(CloseFrame.with_whole_reason(CloseCode.STORAGE_LOST, error.message))

    async def stop(self) -> None:
        """Say goodbye to everyone, and give them a moment to hear it."""
        rooms = tuple(self.rooms.values())
        for room in rooms:
            room.dismiss(CloseFrame(CloseCode.RESTART, SHUTTING_DOWN))
        with suppress(TimeoutError):
            async with asyncio.timeout(FAREWELL_SECONDS):
                for room in rooms:
                    await room.empty.wait()
