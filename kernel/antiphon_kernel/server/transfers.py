"""Whole contexts over HTTP, as streams: an export in the answer, an import in the request."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import Any, Final

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from antiphon_kernel.kernel import Call, Kernel
from antiphon_kernel.server.authentication import Authenticator
from antiphon_kernel.server.connection_guard import LINES
from antiphon_kernel.server.rpc import error_response
from antiphon_kernel.tools.context import (
    ContextExportParams,
    ContextImportParams,
    ExportFormat,
    exported,
    imported,
)
from antiphon_kernel.transfer import ErrorLine, as_line
from antiphon_kernel.types.errors import AntiphonError, invalid_params
from antiphon_kernel.types.records import Actor

_MEDIA_TYPES: Final = {
    ExportFormat.JSONL: LINES,
    ExportFormat.MARKDOWN: "text/markdown; charset=utf-8",
    ExportFormat.MESSAGES: "application/json",
}


@dataclass(frozen=True, slots=True)
class Transfers:
    """The endpoints `/export` (GET) and `/import` (POST).

    They do what the tools context.export and context.import do, for contexts of any size, with the
    same parameters in the query and the same rights.
    """

    kernel: Kernel
    access: Authenticator

    async def export(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer with a context as text.

        An answer that ends early has been broken off; lines of JSON end with the reason then.
        """
        started = False
        try:
            async with self.access.session(scope) as visit:
                await self.access.before_call(visit)
                call = self._call(visit.actor, "context.export")
                params = call.tool.parse(_query(Request(scope)))
                assert isinstance(params, ContextExportParams)
                context = await call.context(params.context)
                answer = _Export(exported(call, context, params), params.format)
                started = True
                await answer(scope, receive, send)
        except AntiphonError as error:
            if started:
                raise
            await error_response(error)(scope, receive, send)

    async def import_(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Make a context of the lines of JSON in the body; answer as context.import does."""
        request = Request(scope, receive)
        response: Response
        try:
            async with self.access.session(scope) as visit:
                stream = request.stream()
                try:
                    await self.access.before_call(visit)
                    call = self._call(visit.actor, "context.import")
                    params = call.tool.parse({"text": "", **_query(request)})
                    assert isinstance(params, ContextImportParams)
                    made = await imported(call, _body(call, stream), params.label)
                except AntiphonError:
                    await self._read_out(visit.actor, stream)
                    raise
            response = JSONResponse(made.model_dump(mode="json", exclude_none=True))
        except AntiphonError as error:
            response = error_response(error)
        await response(scope, receive, send)

    async def _read_out(self, actor: Actor, stream: AsyncIterator[bytes]) -> None:
        """Read what a client is still sending: before that it reads no answer."""
        with suppress(ClientDisconnect, AntiphonError):
            async for _ in stream:
                self.kernel.sessions.check(actor)

    def _call(self, actor: Actor, tool: str) -> Call:
        call = Call(self.kernel, actor, self.kernel.registry[tool])
        call.check()
        return call


class _Export(StreamingResponse):
    """An export on its way."""

    def __init__(self, text: AsyncGenerator[str, None], form: ExportFormat) -> None:
        super().__init__(text, media_type=_MEDIA_TYPES[form])
        self._text = text
        self._form = form

    async def stream_response(self, send: Send) -> None:
        """Send all of it, or end the connection without the end of the answer."""

        async def part(text: str, *, more: bool) -> None:
            # JSON escapes half a surrogate pair in the same way.
            body = text.encode("utf-8", "backslashreplace")
            await send({"type": "http.response.body", "body": body, "more_body": more})

        start = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
        async with aclosing(self._text):
            await send(start)
            try:
                async for text in self._text:
                    await part(text, more=True)
            except AntiphonError as error:
                if self._form is ExportFormat.JSONL:
                    await part(as_line(ErrorLine(error=error.as_json())), more=True)
                return
            await part("", more=False)


async def _body(call: Call, stream: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The body of a request, for as long as the caller may import."""
    try:
        async for chunk in stream:
            call.check()
            yield chunk
    except ClientDisconnect as error:
        raise invalid_params("The body ended early. Nothing was imported.") from error


def _query(request: Request) -> dict[str, Any]:
    return {name: value for name, value in request.query_params.items() if name != "as"}
