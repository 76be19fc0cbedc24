"""Tool calls over HTTP and WebSocket, and whole contexts over HTTP, as streams."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from typing import Any, Final

from starlette.concurrency import iterate_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from antiphon_kernel.access import AuthenticationError
from antiphon_kernel.client.connecting import CallNotMade
from antiphon_kernel.client.transfers import export_context
from antiphon_kernel.cluster import PATIENCE_SECONDS
from antiphon_kernel.kernel import Call, Kernel
from antiphon_kernel.messages import (
    MessageError,
    MessageProblem,
    dump_message,
    is_text_only,
    normalize_message,
)
from antiphon_kernel.server.authentication import AuthenticatedSession, Authenticator
from antiphon_kernel.server.connection_guard import LINES
from antiphon_kernel.server.connections import GUARD
from antiphon_kernel.server.forwarding import Forwarder, SessionCalls
from antiphon_kernel.server.limits import ServerLimits
from antiphon_kernel.server.peers import PeerAddress
from antiphon_kernel.server.sync.connection import short_reason
from antiphon_kernel.server.sync.send_queue import whole_message
from antiphon_kernel.subscriptions import Subscription, Subscriptions
from antiphon_kernel.tasks import BackgroundTasks
from antiphon_kernel.tools.context import (
    ContextExportParams,
    ContextImportParams,
    ExportFormat,
    exported,
    imported,
)
from antiphon_kernel.transfer import ErrorLine, as_line
from antiphon_kernel.types.errors import AntiphonError, ErrorCode, invalid_params
from antiphon_kernel.types.ids import SessionId
from antiphon_kernel.types.json_validation import parse_json, unique_names
from antiphon_kernel.types.quoting import quote, truncate
from antiphon_kernel.yjs.close_codes import SHUTTING_DOWN, CloseCode

FAREWELL_SECONDS: Final = 1.0
"""How long the calls of a kernel that ends may take."""

_SILENCE_SECONDS: Final = 30.0
"""How long another kernel may say nothing on the way of an export."""

_logger: Final = logging.getLogger("antiphon.calls")

HTTP_STATUS: Final[Mapping[str, int]] = {
    ErrorCode.PERMISSION_DENIED: 403,
    ErrorCode.READ_ONLY_FIELD: 403,
    ErrorCode.READ_ONLY_SECTION: 403,
    ErrorCode.BLOCK_NOT_FOUND: 404,
    ErrorCode.CONTEXT_NOT_FOUND: 404,
    ErrorCode.UNKNOWN_TOOL: 404,
    ErrorCode.STALE_VERSION: 409,
    ErrorCode.INVALID_TRANSITION: 409,
    ErrorCode.TOO_LARGE: 413,
    ErrorCode.CONTEXT_TOO_LONG: 413,
    ErrorCode.RATE_LIMITED: 429,
    ErrorCode.STORAGE_FAILED: 503,
}
"""The status that an error has as the answer to a POST; 400 if it is not here."""


_REFUSAL_STATUS: Final[Mapping[CloseCode, int]] = {
    CloseCode.TOO_MANY_WRONG_TOKENS: 429,
    CloseCode.TRY_AGAIN_LATER: 503,
}
"""The same for somebody who is not let in; 401 if it is not here."""

_MEDIA_TYPES: Final = {
    ExportFormat.JSONL: LINES,
    ExportFormat.MARKDOWN: "text/markdown; charset=utf-8",
    ExportFormat.MESSAGES: "application/json",
    ExportFormat.REPLAY: LINES,
}


@dataclass(frozen=True, slots=True)
class RequestEndpoint:
    """One kind of request as an application; a stream is answered before its session ends."""

    access: Authenticator
    forwarder: Forwarder
    answer: Callable[[Request, SessionCalls], Awaitable[Response]]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        started = False
        try:
            async with (
                self.access.session(scope) as visit,
                aclosing(SessionCalls(self.forwarder, visit)) as calls,
            ):
                await self.access.before_call(visit)
                response = await self.answer(request, calls)
                if isinstance(response, StreamingResponse):
                    started = True
                    async with aclosing(response.body_iterator):  # type: ignore[type-var]
                        await response(scope, receive, send)
                    return
        except AntiphonError as error:
            if started:
                return
            response = refusal(error)
        await response(scope, receive, send)


def refusal(error: AntiphonError) -> Response:
    """Return the answer to a request that is not carried out."""
    if isinstance(error, AuthenticationError):
        status = _REFUSAL_STATUS.get(error.close_code, 401)
    else:
        status = HTTP_STATUS.get(error.code, 400)
    return _json({"error": error.as_json()}, status)


@dataclass(eq=False, slots=True)
class RpcEndpoint:
    """The endpoints `/call` (a WebSocket), `/call/{tool}` (POST), `/messages`, and those of whole
    contexts, `/export` (GET) and `/import` (POST).

    These do what the tools context.export and context.import do, for contexts of any size, with
    the same parameters in the query and the same rights.
    """

    kernel: Kernel
    access: Authenticator
    forwarder: Forwarder
    limits: ServerLimits
    _conversations: set[_Conversation] = field(default_factory=set)
    _is_ending: bool = False

    async def stop(self) -> None:
        """Say goodbye on every connection, behind the answer that is being made."""
        self._is_ending = True
        ending = [one.end() for one in self._conversations]
        if ending:
            # What another kernel carries out may wait until that has taken the context.
            seconds = FAREWELL_SECONDS if self.kernel.cluster is None else PATIENCE_SECONDS
            await asyncio.wait(map(asyncio.ensure_future, ending), timeout=seconds)

    async def post(self, request: Request, calls: SessionCalls) -> Response:
        """Answer one call: the body is the parameters, the answer the result or `{"error": …}`.

        The answer to block.subscribe goes on with a line for each event.
        """
        params = _parse_params(await self._body(request))
        result = await calls.call(request.path_params["tool"], params)
        subscriptions = self.kernel.subscriptions.claim(calls.visit.actor.session)
        if subscriptions:
            return StreamingResponse(_lines(result, subscriptions[0]), media_type=LINES)
        return _json(result)

    async def message(self, request: Request, calls: SessionCalls) -> Response:
        """Answer one request to `/messages` as the tools of messages do; text only is written."""
        tool, params = _message_call(request, await self._body(request))
        return _json(await calls.call(tool, params))

    async def export(self, request: Request, calls: SessionCalls) -> Response:
        """Answer with a context as text.

        An answer that ends early has been broken off; lines of JSON end with the reason then.
        """
        call = self.kernel.start_call(calls.visit.actor, self.kernel.registry["context.export"])
        asked = {**_query(request), "redact": request.query_params.getlist("redact")}
        params = call.tool.parse(asked)
        assert isinstance(params, ContextExportParams)

        async def here() -> Response:
            context = await call.context(params.context)
            return _export(exported(call, context, params), params.format)

        async def there(owner: PeerAddress) -> Response:
            pieces = iterate_in_threadpool(export_context(owner, asked, _SILENCE_SECONDS))
            first = await anext(pieces)  # a refusal has to come before any answer
            return _export(_texts(first, pieces), params.format)

        return await self.forwarder.at_owner(calls.visit, here, there)

    async def import_(self, request: Request, calls: SessionCalls) -> Response:
        """Make a context of the lines of JSON in the body; answer as context.import does."""
        stream = request.stream()
        try:
            call = self.kernel.start_call(calls.visit.actor, self.kernel.registry["context.import"])
            params = call.tool.parse({"text": "", **_query(request)})
            assert isinstance(params, ContextImportParams)
            made = await imported(call, _import_body(call, stream), params.label)
        except AntiphonError:
            # A client that is still sending reads no answer before that.
            with suppress(ClientDisconnect, AntiphonError):
                async for _ in stream:
                    self.kernel.sessions.check(calls.visit.actor)
            raise
        return _json(made.model_dump(mode="json", exclude_none=True))

    async def socket(self, socket: WebSocket) -> None:
        """Frames `{"id", "tool", "params"}`, answered in order, for as long as one session.

        Between the answers come the events of what has been subscribed to.
        """
        try:
            async with self.access.session(socket.scope) as visit:
                await socket.accept()
                if visit.is_guest:
                    await self.access.queue_up(visit)
                close = await self._serve_calls(socket, visit)
                if close is not None:
                    await socket.close(*close)
        except AntiphonError as error:
            code, reason = CloseCode.TRY_AGAIN_LATER, f"{error.code}: {error.message}"
            if isinstance(error, AuthenticationError):
                code, reason = error.close_code, error.message
            # The handshake has no room for a code: only a close frame has.
            if socket.application_state is WebSocketState.CONNECTING:
                await socket.accept()
            await socket.close(code, short_reason(reason))
        except (WebSocketDisconnect, OSError):
            return

    async def _serve_calls(
        self, socket: WebSocket, visit: AuthenticatedSession
    ) -> tuple[CloseCode, str] | None:
        """With what to close the connection; None if it is closed."""
        if self._is_ending:
            return CloseCode.RESTART, SHUTTING_DOWN
        conversation = _Conversation(socket, self.kernel.subscriptions, visit.actor.session)
        calls = SessionCalls(self.forwarder, visit)
        self._conversations.add(conversation)
        try:
            while True:
                message = await socket.receive()
                if message["type"] == "websocket.disconnect":
                    return None
                text = message.get("text")
                if text is None:
                    return CloseCode.UNSUPPORTED_DATA, "Tool calls are text frames, not binary."
                if visit.is_guest:
                    await self.access.before_call(visit)
                async with conversation.answering:
                    if conversation.over:
                        continue
                    try:
                        answer = await self._answer(calls, text)
                    except CallNotMade:
                        await conversation.say_goodbye()  # letting go of other kernels takes time
                        continue
                    except Exception:
                        _logger.exception("a tool call failed in a way that no error describes")
                        return CloseCode.INTERNAL_ERROR, "The kernel failed at this call."
                    await conversation.answer(answer)
        finally:
            self._conversations.discard(conversation)
            await conversation.close()
            await calls.aclose()

    async def _answer(self, calls: SessionCalls, text: str) -> dict[str, Any]:
        number: object = None
        try:
            frame = _parse_json(text)
            if not isinstance(frame, dict):
                raise _not_a_call("a JSON object", frame)
            number = frame.get("id")
            tool, params = frame.get("tool"), frame.get("params")
            if not isinstance(tool, str):
                raise _not_a_call("`tool`, the name of a tool", frame)
            if params is None:
                params = {}
            if not isinstance(params, dict):
                raise _not_a_call("`params`, an object", frame)
            return {"id": number, "result": await calls.call(tool, params)}
        except CallNotMade:
            raise
        except AntiphonError as error:
            return {"id": number, "error": error.as_json()}

    async def _body(self, request: Request) -> bytes:
        body = bytearray()
        try:
            async for chunk in request.stream():
                body += chunk
                if len(body) > self.limits.request:
                    raise AntiphonError(
                        ErrorCode.TOO_LARGE,
                        f"A call may have {self.limits.request} bytes: send less at a time.",
                        limit=self.limits.request,
                        limit_name="request",
                    )
        except ClientDisconnect as error:
            raise AntiphonError(ErrorCode.INVALID_JSON, "The body ended early.") from error
        return bytes(body)


class _Conversation:
    """One WebSocket: what is sent over it, and its end.

    Events are passed on as fast as the other side reads; what it cannot take waits in the kernel.
    """

    def __init__(self, socket: WebSocket, subscriptions: Subscriptions, session: SessionId) -> None:
        self.answering = asyncio.Lock()
        """Held from a call to its answer."""
        self.over = False
        """Whether goodbye has been said: what comes is not carried out any more."""
        self._socket = socket
        self._subscriptions = subscriptions
        self._session = session
        self._pushing: dict[asyncio.Task[None], Subscription] = {}
        self._tasks = BackgroundTasks(_logger)
        self.close = self._tasks.close
        self._sending = asyncio.Lock()
        self._send_now: Callable[[bytes], bool] = socket.scope[GUARD].send_now

    async def answer(self, message: Mapping[str, Any]) -> None:
        """Send an answer behind all events of what has been unsubscribed, and before new ones."""
        for task in [task for task, one in self._pushing.items() if one.ended]:
            del self._pushing[task]
            await asyncio.wait({task})
        await self._send(message)
        for subscription in self._subscriptions.claim(self._session):
            name = f"events of subscription {subscription.id}"
            self._pushing[self._tasks.start(self._push(subscription), name)] = subscription

    async def end(self) -> None:
        """Say goodbye once the call that is being carried out has been answered."""
        async with self.answering:
            await self.say_goodbye()

    async def say_goodbye(self) -> None:
        """Carry out nothing more, and say so."""
        async with self._sending:
            self.over = True
            with suppress(WebSocketDisconnect, RuntimeError, OSError):  # it is gone already
                await self._socket.close(CloseCode.RESTART, SHUTTING_DOWN)

    async def _push(self, subscription: Subscription) -> None:
        try:
            async for message in _events(subscription):
                await self._send(message)
        except OSError:
            pass  # the client is gone
        finally:
            self._subscriptions.end(subscription)

    async def _send(self, message: Mapping[str, Any]) -> None:
        """Send one frame; raises ConnectionResetError if the client is gone."""
        async with self._sending:
            try:
                # ASCII, since an answer may quote half a surrogate pair of the call.
                text = json.dumps(message)
                if not self._send_now(whole_message(text)):
                    await self._socket.send_text(text)
            except (WebSocketDisconnect, RuntimeError) as error:
                raise ConnectionResetError("the client is gone") from error


def _export(texts: AsyncGenerator[str, None], form: ExportFormat) -> StreamingResponse:
    """Answer with an export; the connection ends without the end of the answer if it fails."""
    media_type = _MEDIA_TYPES[form]

    async def parts() -> AsyncGenerator[bytes, None]:
        async with aclosing(texts):
            try:
                async for text in texts:
                    # JSON escapes half a surrogate pair in the same way.
                    yield text.encode("utf-8", "backslashreplace")
            except AntiphonError as error:
                if media_type == LINES:
                    yield as_line(ErrorLine(error=error.as_json())).encode()
                raise

    return StreamingResponse(parts(), media_type=media_type)


async def _texts(first: bytes, pieces: AsyncIterator[bytes]) -> AsyncGenerator[str, None]:
    yield first.decode()
    async for piece in pieces:
        yield piece.decode()


async def _import_body(call: Call, stream: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The body of a request, for as long as the caller may import."""
    try:
        async for chunk in stream:
            call.check()
            yield chunk
    except ClientDisconnect as error:
        raise invalid_params("The body ended early. Nothing was imported.") from error


def _query(request: Request) -> dict[str, Any]:
    return {name: value for name, value in request.query_params.items() if name != "as"}


async def _events(subscription: Subscription) -> AsyncIterator[dict[str, Any]]:
    """`{"subscription", "event"}` for each event; `{"subscription", "error"}` if it is cut off."""
    try:
        async for event in subscription:
            yield {
                "subscription": subscription.id,
                "event": event.model_dump(mode="json", exclude_none=True),
            }
    except AntiphonError as error:
        yield {"subscription": subscription.id, "error": error.as_json()}


async def _lines(result: Mapping[str, Any], subscription: Subscription) -> AsyncIterator[str]:
    yield json.dumps(result) + "\n"
    async for message in _events(subscription):
        yield json.dumps(message) + "\n"


def _json(content: Mapping[str, Any], status: int = 200) -> Response:
    """Make an answer that can be encoded whatever is in it: ASCII, as over a WebSocket."""
    return Response(json.dumps(content), status, media_type="application/json")


MESSAGE_TOOLS: Final[Mapping[tuple[str, str], str]] = {
    ("GET", "/messages"): "message.path",
    ("GET", "/messages/{message:path}/path"): "message.path",
    ("GET", "/messages/{message:path}/children"): "message.children",
    ("GET", "/messages/{message:path}/siblings"): "message.siblings",
    ("POST", "/messages/{parent:path}/append"): "message.append",
    ("PUT", "/messages/{message:path}/content"): "message.edit",
}
"""Method and path of each request about messages, and the tool that answers it."""


_DIGITS: Final = 10
"""Fewer than these are a number in a query; more are refused as what they are, a text."""


def _message_call(request: Request, body: bytes) -> tuple[str, dict[str, Any]]:
    """The tool that a request about messages asks for, and the parameters.

    Its content is checked before anything is looked up: as JSON, then for its form, then for what
    it holds.
    """
    route = request.scope["route"].path
    tool = MESSAGE_TOOLS[request.method, route]
    params = dict(request.path_params)
    if request.method == "GET":
        for name, value in request.query_params.multi_items():
            if name in params:
                raise invalid_params(
                    f"A request names each parameter once, in its path or its query; {quote(name)}"
                    " is there twice: leave one out.",
                    field=name,
                )
            if name != "as":
                is_number = name == "limit" and value.isdecimal() and len(value) < _DIGITS
                params[name] = int(value) if is_number else value
        return tool, params
    fields = _parse_params(body)
    if set(fields) != {"content"}:
        raise _not_a_call("`content`, a string or a list of text blocks, and nothing else", fields)
    message = normalize_message({"role": "user", "content": fields["content"]})
    if not is_text_only(message.content):
        raise MessageError(
            MessageProblem.BLOCK_NOT_ALLOWED,
            "expected text, and found other content blocks: people write text only; the tool"
            f" {tool} takes the others",
            path="content",
        )
    if tool == "message.edit":
        return tool, params | {"content": dump_message(message)["content"]}
    return tool, params | {"messages": [dump_message(message)]}


def _parse_params(body: bytes) -> dict[str, Any]:
    if not body.strip():
        return {}
    params = _parse_json(body)
    if not isinstance(params, dict):
        raise _not_a_call("the parameters as a JSON object", params)
    return params


def _parse_json(data: str | bytes) -> Any:
    try:
        # The same bytes are read alike at every endpoint: as UTF-8, and nothing in front.
        text = data.decode("utf-8") if isinstance(data, bytes) else data
        if text.startswith(_BYTE_ORDER_MARK):
            raise ValueError("it begins with a byte order mark, leave that out")
        return parse_json(text, pairs=unique_names)
    except ValueError as error:
        raise AntiphonError(ErrorCode.INVALID_JSON, f"This is not JSON: {error}.") from error


_BYTE_ORDER_MARK: Final = "\ufeff"


def _not_a_call(expected: str, found: object) -> AntiphonError:
    sent = truncate(json.dumps(found))
    return invalid_params(f"A call needs {expected}, found {sent}.")
