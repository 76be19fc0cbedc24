"""`antiphon call`: one tool call, or a stream of them, each answered in its turn."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from typing import Any, BinaryIO

from antiphon_kernel.client.tool_client import ToolClient
from antiphon_kernel.text.sanitize import escape_json
from antiphon_kernel.types.errors import AntiphonError, ErrorCode, invalid_params
from antiphon_kernel.types.json_validation import parse_json as read_value
from antiphon_kernel.types.quoting import truncate


def parse_json(text: str | bytes) -> Any:
    """Strict JSON: no NaN, no infinity, no endless nesting.

    Raises:
        AntiphonError: invalid_json, saying where it breaks.
    """
    try:
        return read_value(text if isinstance(text, str) else text.decode("utf-8"))
    except ValueError as error:
        raise AntiphonError(
            ErrorCode.INVALID_JSON, f"This is not JSON: {error}. Correct it and send it again."
        ) from error


def parse_params(text: str | bytes) -> dict[str, Any]:
    """The parameters of a call: a JSON object, nothing being an empty one.

    Raises:
        AntiphonError: invalid_json or invalid_params.
    """
    params = parse_json(text) if text.strip() else {}
    if not isinstance(params, dict):
        raise invalid_params(
            'Parameters are a JSON object such as {"label": "notes"}, not'
            f" {truncate(json.dumps(params))}."
        )
    return params


def dump_json_line(value: Mapping[str, Any], *, indent: int | None = None) -> str:
    """JSON that means the same and cannot drive a terminal."""
    return escape_json(json.dumps(value, ensure_ascii=False, indent=indent))


class JsonlCaller:
    """Calls tools, filling in the context that was named on the command line."""

    def __init__(self, calls: ToolClient, context: str | None) -> None:
        self.calls = calls
        self._context = context
        self._takes_context: frozenset[str] | None = None

    async def call(self, tool: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """The result of one call.

        Raises:
            AntiphonError: what the call failed with.
        """
        if self._context is not None and "context" not in params:
            if self._takes_context is None:
                catalogue = await self.calls.call("kernel.tools", {})
                self._takes_context = frozenset(
                    one["name"]
                    for one in catalogue["tools"]
                    if "context" in one["parameters"].get("properties", {})
                )
            if tool in self._takes_context:
                params = {**params, "context": self._context}
        return await self.calls.call(tool, params)

    async def answer(self, line: bytes) -> dict[str, Any]:
        """The answer to one line `{"id", "tool", "params"}`; every failure is an answer too."""
        number: object = None
        try:
            request = parse_json(line)
            if not isinstance(request, dict):
                raise _malformed("a JSON object", request)
            number = request.get("id")
            tool, params = request.get("tool"), request.get("params", {})
            if not isinstance(tool, str):
                raise _malformed("`tool`, the name of a tool", tool)
            if not isinstance(params, dict):
                raise _malformed("`params`, a JSON object", params)
            return {"id": number, "result": await self.call(tool, params)}
        except AntiphonError as error:
            return {"id": number, "error": error.as_json()}


class _JsonlOutput:
    """Lines for whoever called: answers in order, and events of what it follows in between."""

    def __init__(self, sink: BinaryIO) -> None:
        self._sink = sink
        self._early: dict[str, list[Mapping[str, Any]]] = {}
        self.following: set[str] = set()
        """Subscriptions that have been answered and not ended."""

    def answer(self, message: Mapping[str, Any]) -> None:
        self._write(message)
        subscription = message.get("result", {}).get("subscription")
        if subscription in self.following:
            self.following.remove(subscription)
        elif isinstance(subscription, str):
            self.following.add(subscription)
            for pushed in self._early.pop(subscription, ()):
                self.push(pushed)

    def push(self, message: Mapping[str, Any]) -> None:
        """An event, or the end of a subscription; never before the answer that names it."""
        subscription = message["subscription"]
        if subscription not in self.following:
            self._early.setdefault(subscription, []).append(message)
            return
        self._write(message)
        if "error" in message:
            self.following.remove(subscription)

    def _write(self, message: Mapping[str, Any]) -> None:
        self._sink.write(dump_json_line(message).encode("utf-8") + b"\n")
        self._sink.flush()


async def call_lines(caller: JsonlCaller, lines: AsyncIterator[bytes], sink: BinaryIO) -> None:
    """Answer lines until there are no more: one line each, in order, as soon as known.

    Events of subscriptions come as lines `{"subscription", "event"}`. At the end, those that
    belong to what was answered are written, and that is all.
    """
    output = _JsonlOutput(sink)
    caller.calls.on_push = output.push
    async for line in lines:
        if line.strip():
            output.answer(await caller.answer(line))
    for subscription in tuple(output.following):
        with suppress(AntiphonError):  # it may be gone by itself
            await caller.call("block.unsubscribe", {"subscription": subscription})


def _malformed(expected: str, found: object) -> AntiphonError:
    return invalid_params(
        f'A call is {{"id": ..., "tool": ..., "params": {{...}}}}: expected {expected},'
        f" found {truncate(json.dumps(found))}."
    )
