"""A server of models for programs of others: answers chat completions as a test has scripted."""

from __future__ import annotations

import itertools
import json
import threading
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Final, Self

WAITING_SECONDS: Final = 30.0
"""How long an answer waits for a test at most."""

ASIDE: Final = "A title"
"""Answer to every request that offers no tools: programs ask for titles and summaries like that."""

NO_MORE: Final = "There is no further answer in the script."


@dataclass(frozen=True, slots=True)
class ToolUse:
    """A tool call that the model makes."""

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


Answer = Sequence[str | ToolUse | threading.Event]
"""The answer to one request, piece by piece: text, tool calls, and events that are waited
for before the next piece.
"""


class ModelServer:
    """An OpenAI-compatible server on a free port of this machine, in threads of its own.

    The answers of the script go to the requests that offer tools, in order. What was asked is kept.
    """

    def __init__(self, script: Iterable[Answer] = ()) -> None:
        self.script: deque[Answer] = deque(script)
        """Answers that have not been given yet: more may be added at any time."""
        self.requests: list[dict[str, Any]] = []
        """The bodies of the requests that were answered from the script."""
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        handler = type("Handler", (_Handler,), {"model": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))

    @property
    def url(self) -> str:
        """Return the `baseURL` of a configuration."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def results(self) -> list[str]:
        """Return the results of tools that the last request brought, as text."""
        messages = self.requests[-1]["messages"] if self.requests else []
        return [_text(one["content"]) for one in messages if one["role"] == "tool"]

    def answer(self, request: dict[str, Any]) -> Answer:
        """Return the next answer of the script, or what a request without tools is told."""
        with self._lock:
            if not request.get("tools"):
                return (ASIDE,)
            self.requests.append(request)
            return self.script.popleft() if self.script else (NO_MORE,)

    def number(self) -> int:
        """Return a number that no other tool call has."""
        return next(self._numbers)


class _Handler(BaseHTTPRequestHandler):
    """One connection of a program that asks."""

    protocol_version = "HTTP/1.1"
    model: ModelServer

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        """List the one model."""
        self._answer_json({"object": "list", "data": [{"id": "scripted", "object": "model"}]})

    def do_POST(self) -> None:
        """Answer a chat completion, streamed if asked for."""
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        answer = self.model.answer(body)
        try:
            if body.get("stream"):
                self._stream(answer)
            else:
                self._answer_json(_completion(answer))
        except OSError:
            pass  # the program has gone, or has broken the answer off

    def _stream(self, answer: Answer) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True
        self._send({"role": "assistant", "content": ""})
        calls = 0
        for piece in answer:
            if isinstance(piece, threading.Event):
                piece.wait(WAITING_SECONDS)
            elif isinstance(piece, ToolUse):
                call = {
                    "index": calls,
                    "id": f"call_{self.model.number()}",
                    "type": "function",
                    "function": {"name": piece.name, "arguments": json.dumps(piece.arguments)},
                }
                self._send({"tool_calls": [call]})
                calls += 1
            else:
                self._send({"content": piece})
        self._send({}, "tool_calls" if calls else "stop")
        self.wfile.write(b"data: [DONE]\n\n")

    def _send(self, delta: Mapping[str, Any], reason: str | None = None) -> None:
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        chunk: dict[str, Any] = {
            "id": "answer",
            "object": "chat.completion.chunk",
            "created": 0,
            "model": "scripted",
            "choices": [choice],
        }
        if reason is not None:
            chunk["usage"] = _USAGE
        self.wfile.write(f"data: {json.dumps(chunk)}\n\n".encode())
        self.wfile.flush()

    def _answer_json(self, value: Mapping[str, Any]) -> None:
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


_USAGE: Final = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}


def _completion(answer: Answer) -> dict[str, Any]:
    text = "".join(one for one in answer if isinstance(one, str))
    message = {"role": "assistant", "content": text}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return {
        "id": "answer",
        "object": "chat.completion",
        "created": 0,
        "model": "scripted",
        "choices": [choice],
        "usage": _USAGE,
    }


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    assert isinstance(content, list)
    return "".join(one.get("text", "") for one in content)
