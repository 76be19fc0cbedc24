"""Whole answers in each wire format, made of what the model is to think, say and call."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from antiphon_kernel.providers import ModelKind
from tests.wire.server import WireAnswer

PIECE = 12
"""Characters in one delta."""


@dataclass(frozen=True)
class Thought:
    """Reasoning, with the provider's signature over it."""

    text: str
    signature: str = "c2lnbmF0dXJl"


@dataclass(frozen=True)
class Said:
    """Text of the answer."""

    text: str


@dataclass(frozen=True)
class Called:
    """A call of a tool."""

    id: str
    name: str
    arguments: str = "{}"
    """JSON text."""


@dataclass(frozen=True)
class Counted:
    """Tokens as providers count them; `input` is all of the request."""

    input: int = 100
    output: int = 20
    cached: int = 0
    written: int = 0
    reasoning: int = 0


AnswerPart: TypeAlias = Thought | Said | Called


def answer(
    kind: ModelKind, *parts: AnswerPart, counted: Counted | None = None, full: bool = False
) -> WireAnswer:
    """Return a whole answer of these parts in a wire format.

    Args:
        full: the answer stopped because it reached the most tokens that it may have.
    """
    make = {
        ModelKind.ANTHROPIC: _anthropic,
        ModelKind.OPENAI: _responses,
        ModelKind.OPENAI_CHAT: _chat,
        ModelKind.GOOGLE: _google,
    }[kind]
    lines: list[str] = []
    for event in make(parts, counted or Counted(), full):
        if kind in {ModelKind.ANTHROPIC, ModelKind.OPENAI}:
            lines.append(f"event: {event['type']}\n")
        lines.append(f"data: {json.dumps(event, ensure_ascii=False)}\n\n")
    if kind is ModelKind.OPENAI_CHAT:
        lines.append("data: [DONE]\n\n")
    return WireAnswer("".join(lines).encode())


def _pieces(text: str) -> list[str]:
    return [text[at : at + PIECE] for at in range(0, len(text), PIECE)]


def _calls(parts: Sequence[AnswerPart]) -> bool:
    return any(isinstance(part, Called) for part in parts)


def _anthropic(
    parts: Sequence[AnswerPart], counted: Counted, full: bool
) -> Iterator[dict[str, Any]]:
    usage = {
        "input_tokens": counted.input - counted.cached - counted.written,
        "cache_creation_input_tokens": counted.written,
        "cache_read_input_tokens": counted.cached,
        "output_tokens": 1,
    }
    yield {
        "type": "message_start",
        "message": {
            "id": "msg_01",
            "type": "message",
            "role": "assistant",
            "model": "claude",
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": usage,
        },
    }
    for index, part in enumerate(parts):
        block: dict[str, Any]
        deltas: list[dict[str, Any]]
        match part:
            case Thought(text, signature):
                block = {"type": "thinking", "thinking": "", "signature": ""}
                deltas = [{"type": "thinking_delta", "thinking": one} for one in _pieces(text)]
                deltas.append({"type": "signature_delta", "signature": signature})
            case Said(text):
                block = {"type": "text", "text": ""}
                deltas = [{"type": "text_delta", "text": one} for one in _pieces(text)]
            case Called(call_id, name, arguments):
                block = {"type": "tool_use", "id": call_id, "name": name, "input": {}}
                pieces = ["", *_pieces("" if arguments == "{}" else arguments)]
                deltas = [{"type": "input_json_delta", "partial_json": one} for one in pieces]
            case _:
                raise AssertionError(part)
        yield {"type": "content_block_start", "index": index, "content_block": block}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        if not (full and part is parts[-1]):
            yield {"type": "content_block_stop", "index": index}
    reason = "max_tokens" if full else "tool_use" if _calls(parts) else "end_turn"
    yield {
        "type": "message_delta",
        "delta": {"stop_reason": reason, "stop_sequence": None},
        "usage": {**usage, "output_tokens": counted.output},
    }
    yield {"type": "message_stop"}


def _chat(parts: Sequence[AnswerPart], counted: Counted, full: bool) -> Iterator[dict[str, Any]]:
    def chunk(delta: dict[str, Any], reason: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        return {**frame, "choices": [choice]}

    frame = {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1790000000,
        "model": "gpt",
    }
    yield chunk({"role": "assistant", "content": ""})
    index = 0
    for part in parts:
        match part:
            case Thought(text):
                for one in _pieces(text):
                    yield chunk({"reasoning_content": one})
            case Said(text):
                for one in _pieces(text):
                    yield chunk({"content": one})
            case Called(call_id, name, arguments):
                first = {"name": name, "arguments": ""}
                call = {"index": index, "id": call_id, "type": "function", "function": first}
                yield chunk({"tool_calls": [call]})
                for one in _pieces(arguments):
                    more = {"index": index, "function": {"arguments": one}}
                    yield chunk({"tool_calls": [more]})
                index += 1
    yield chunk({}, "length" if full else "tool_calls" if index else "stop")
    usage = {
        "prompt_tokens": counted.input,
        "completion_tokens": counted.output,
        "total_tokens": counted.input + counted.output,
        "prompt_tokens_details": {"cached_tokens": counted.cached},
        "completion_tokens_details": {"reasoning_tokens": counted.reasoning},
    }
    yield {**frame, "choices": [], "usage": usage}


def _responses(
    parts: Sequence[AnswerPart], counted: Counted, full: bool
) -> Iterator[dict[str, Any]]:
    for number, event in enumerate(_response_events(parts, counted, full)):
        yield {**event, "sequence_number": number}


def _response_events(
    parts: Sequence[AnswerPart], counted: Counted, full: bool
) -> Iterator[dict[str, Any]]:
    response: dict[str, Any] = {
        "id": "resp_01",
        "object": "response",
        "created_at": 1790000000,
        "status": "in_progress",
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "model": "gpt",
        "output": [],
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
    }
    yield {"type": "response.created", "response": response}
    yield {"type": "response.in_progress", "response": response}
    output: list[dict[str, Any]] = []
    for index, part in enumerate(parts):
        item = _item(index, part)
        place = {"output_index": index}
        of = {**place, "item_id": item.begun["id"], **item.of}
        begun = {**item.begun, "status": "in_progress"}
        done = {**item.done, "status": "completed"}
        yield {"type": "response.output_item.added", **place, "item": begun}
        if item.part:
            yield {"type": f"{item.part}.added", **of, "part": {**item.part_of, "text": ""}}
        for one in _pieces(item.text):
            yield {"type": f"{item.name}.delta", **of, "delta": one, "logprobs": []}
        if full and part is parts[-1]:
            break
        yield {"type": f"{item.name}.done", **of, item.key: item.text, "logprobs": []}
        if item.part:
            yield {"type": f"{item.part}.done", **of, "part": {**item.part_of, "text": item.text}}
        yield {"type": "response.output_item.done", **place, "item": done}
        output.append(done)
    usage = {
        "input_tokens": counted.input,
        "input_tokens_details": {"cached_tokens": counted.cached},
        "output_tokens": counted.output,
        "output_tokens_details": {"reasoning_tokens": counted.reasoning},
        "total_tokens": counted.input + counted.output,
    }
    status = "incomplete" if full else "completed"
    cause = {"reason": "max_output_tokens"} if full else None
    whole = {"status": status, "incomplete_details": cause, "output": output, "usage": usage}
    yield {"type": f"response.{status}", "response": {**response, **whole}}


@dataclass(frozen=True)
class _Item:
    """Output item of a response, and the events that it is streamed in."""

    name: str
    text: str
    begun: dict[str, Any]
    done: dict[str, Any]
    key: str = "text"
    of: dict[str, Any] = field(default_factory=dict)
    part: str = ""
    part_of: dict[str, Any] = field(default_factory=dict)


def _item(index: int, part: AnswerPart) -> _Item:
    base: dict[str, Any]
    kind: dict[str, Any]
    match part:
        case Thought(text, signature):
            base = {"type": "reasoning", "id": f"rs_{index}"}
            kind = {"type": "summary_text"}
            return _Item(
                "response.reasoning_summary_text",
                text,
                {**base, "summary": [], "encrypted_content": signature[:4]},
                {**base, "summary": [{**kind, "text": text}], "encrypted_content": signature},
                of={"summary_index": 0},
                part="response.reasoning_summary_part",
                part_of=kind,
            )
        case Said(text):
            base = {"type": "message", "id": f"msg_{index}", "role": "assistant"}
            kind = {"type": "output_text", "annotations": []}
            return _Item(
                "response.output_text",
                text,
                {**base, "content": []},
                {**base, "content": [{**kind, "text": text}]},
                of={"content_index": 0},
                part="response.content_part",
                part_of=kind,
            )
        case Called(call_id, name, text):
            base = {"type": "function_call", "id": f"fc_{index}", "call_id": call_id, "name": name}
            return _Item(
                "response.function_call_arguments",
                text,
                {**base, "arguments": ""},
                {**base, "arguments": text},
                key="arguments",
            )


def _google(parts: Sequence[AnswerPart], counted: Counted, full: bool) -> Iterator[dict[str, Any]]:
    def chunk(part: dict[str, Any], reason: str | None = None) -> dict[str, Any]:
        candidate: dict[str, Any] = {"content": {"parts": [part], "role": "model"}, "index": 0}
        if reason is not None:
            candidate["finishReason"] = reason
        usage = {
            "promptTokenCount": counted.input,
            "candidatesTokenCount": counted.output - counted.reasoning,
            "totalTokenCount": counted.input + counted.output,
        }
        if counted.cached:
            usage["cachedContentTokenCount"] = counted.cached
        if counted.reasoning:
            usage["thoughtsTokenCount"] = counted.reasoning
        rest = {"usageMetadata": usage, "modelVersion": "gemini", "responseId": "r1"}
        return {"candidates": [candidate], **rest}

    signature: str | None = None
    for part in parts:
        match part:
            case Thought(text, signature):
                for one in _pieces(text):
                    yield chunk({"text": one, "thought": True})
            case Said(text):
                for one in _pieces(text):
                    yield chunk({"text": one})
            case Called(call_id, name, arguments):
                call = {
                    "functionCall": {"id": call_id, "name": name, "args": json.loads(arguments)}
                }
                yield chunk({**call, **({"thoughtSignature": signature} if signature else {})})
                signature = None
    yield chunk({"text": ""}, "MAX_TOKENS" if full else "STOP")
