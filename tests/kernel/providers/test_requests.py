"""Requests in each wire format: what is sent of a prompt."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import replace
from typing import Any

import pytest

from antiphon_kernel.layout import BlockPosition
from antiphon_kernel.messages import (
    AssistantMessage,
    DocumentBlock,
    ImageBlock,
    Message,
    TextBlock,
    Thinking,
    ToolMessage,
    ToolUse,
    UserMessage,
)
from antiphon_kernel.providers import (
    ModelKind,
    ModelPrompt,
    RemoteProvider,
    TextDelta,
)
from antiphon_kernel.providers.events import ThinkingDelta, ThinkingEnd, ToolCallEvent
from antiphon_kernel.types.frozen_json import JsonObject
from tests.kernel.providers.conftest import ModelServer
from tests.kernel.tools.files import PDF, PNG
from tests.wire.answering import Called, Said, Thought, answer
from tests.wire.asking import ask, joined, prompt_of
from tests.wire.server import FORMATS, WireServer, recorded

ANTHROPIC, OPENAI, CHAT, GOOGLE = FORMATS


def heard(*texts: str) -> UserMessage:
    return UserMessage(tuple(map(TextBlock, texts)))


def use(call_id: str, command: str, signature: str | None = None) -> ToolUse:
    return ToolUse(call_id, "shell", JsonObject({"command": command}), signature)


def result(call_id: str, text: str, *, is_error: bool = False) -> ToolMessage:
    return ToolMessage((TextBlock(text),), call_id, is_error)


CONVERSATION: tuple[Message, ...] = (
    heard("Look around."),
    AssistantMessage((TextBlock("I look."), use("tc_1", "ls"), use("tc_2", "pwd"))),
    result("tc_1", "a.txt"),
    result("tc_2", "no such thing", is_error=True),
    heard("(announcement)"),
)


async def sent(
    wire: WireServer, provider: RemoteProvider, kind: ModelKind, prompt: ModelPrompt
) -> Any:
    """Return the body that the server receives, which is the one that `payload` gives."""
    wire.answers.append(recorded(kind, "text"))
    await ask(provider, prompt)
    body = wire.requests[-1].body
    assert await provider.payload(prompt) == JsonObject(body)
    return body


@pytest.mark.parametrize("kind", FORMATS)
async def test_equal_prompts_give_the_same_bytes(wire: ModelServer, kind: ModelKind) -> None:
    for _ in range(2):
        await sent(wire, wire.model(kind), kind, prompt_of(*CONVERSATION))
    assert wire.requests[0].text == wire.requests[1].text


async def test_messages_have_all_results_of_a_batch_in_one_message(wire: ModelServer) -> None:
    body = await sent(wire, wire.model(ANTHROPIC), ANTHROPIC, prompt_of(*CONVERSATION))
    assert [message["role"] for message in body["messages"]] == ["user", "assistant", "user"]
    assert [
        (block["type"], block.get("tool_use_id"), block.get("is_error"))
        for block in body["messages"][2]["content"]
    ] == [
        ("tool_result", "tc_1", False),
        ("tool_result", "tc_2", True),
        ("text", None, None),
    ]
    assert body["max_tokens"] == 4096
    assert body["system"][0]["text"] == "You are Aria."
    assert [tool["name"] for tool in body["tools"]] == ["shell"]
    assert body["stream"] is True


async def test_chat_has_one_message_a_result(wire: ModelServer) -> None:
    body = await sent(wire, wire.model(CHAT), CHAT, prompt_of(*CONVERSATION))
    roles = [message["role"] for message in body["messages"]]
    assert roles == ["system", "user", "assistant", "tool", "tool", "user"]
    assert body["messages"][1]["content"] == "Look around."
    assert body["max_tokens"] == 4096
    assert body["stream_options"] == {"include_usage": True}


async def test_responses_keep_nothing_and_ask_for_their_reasoning(wire: ModelServer) -> None:
    body = await sent(wire, wire.model(OPENAI), OPENAI, prompt_of(*CONVERSATION))
    assert body["store"] is False
    assert "reasoning.encrypted_content" in body["include"]
    outputs = [item for item in body["input"] if item.get("type") == "function_call_output"]
    assert [item["call_id"] for item in outputs] == ["tc_1", "tc_2"]


async def test_contents_have_results_by_name_and_position(wire: ModelServer) -> None:
    body = await sent(wire, wire.model(GOOGLE), GOOGLE, prompt_of(*CONVERSATION))
    assert [content["role"] for content in body["contents"]][:3] == ["user", "model", "user"]
    answers = [part["functionResponse"] for part in body["contents"][2]["parts"]]
    assert [(one["name"], one["id"]) for one in answers] == [("shell", "tc_1"), ("shell", "tc_2")]
    assert body["generationConfig"]["maxOutputTokens"] == 4096


async def test_contents_are_those_that_the_library_itself_makes(
    wire: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    signature = base64.b64encode(b"\xfb\xef\xbe signed").decode()
    wire.answers.append(answer(GOOGLE, Thought("I wonder.", signature), Called("tc_9", "shell")))
    calls = [event for event in await ask(wire.model(GOOGLE)) if isinstance(event, ToolCallEvent)]
    image = hashlib.sha256(PNG).hexdigest()
    prompt = prompt_of(
        heard("Snake_case {and: braces}", "  two"),
        AssistantMessage((TextBlock("So."), use("tc_9", "ls", calls[0].signature))),
        ToolMessage((TextBlock('{"$ref": "#/a_b", "null_value": null}'),), "tc_9"),
        UserMessage((ImageBlock("image/png", image), TextBlock("Look."))),
        *CONVERSATION,
        files={image: PNG},
    )
    body = await sent(wire, wire.model(GOOGLE), GOOGLE, prompt)
    assert "thoughtSignature" in str(body)
    monkeypatch.setattr("antiphon_kernel.providers.google.hold_back", lambda *_: None)
    assert await sent(wire, wire.model(GOOGLE), GOOGLE, prompt) == body


@pytest.mark.parametrize("kind", FORMATS)
async def test_images_and_documents_are_sent_as_their_bytes(
    wire: ModelServer, kind: ModelKind
) -> None:
    image, document = (hashlib.sha256(data).hexdigest() for data in (PNG, PDF))
    files = {image: PNG, document: PDF}
    content = (
        TextBlock("See."),
        ImageBlock("image/png", image),
        DocumentBlock("application/pdf", document),
        ImageBlock("image/png", "0" * 64),
    )
    body = await sent(wire, wire.model(kind), kind, prompt_of(UserMessage(content), files=files))
    text = str(body)
    for data in (PNG, PDF):
        encoded = base64.b64encode(data).decode()
        assert encoded in text or encoded.replace("+", "-").replace("/", "_") in text
    assert "no longer there" in text


@pytest.mark.parametrize("kind", FORMATS)
async def test_what_was_signed_goes_back_as_it_came(wire: ModelServer, kind: ModelKind) -> None:
    provider = wire.model(kind)
    signature = base64.b64encode(b"\xfb\xef\xbe signed").decode()
    wire.answers.append(
        answer(kind, Thought("Think twice.", signature), Said("I look."), Called("c1", "shell"))
    )
    events = joined(await ask(provider))
    content: list[Any] = []
    thought = ""
    for event in events:
        match event:
            case ThinkingDelta(text):
                thought = text
            case ThinkingEnd(signed) if signed is not None:
                content.append(Thinking(thought, signed))
            case TextDelta(text):
                content.append(TextBlock(text))
            case ToolCallEvent(_, name, _, signed):
                content.append(ToolUse("tc_1", name, JsonObject(), signed))
            case _:
                pass
    messages = (heard("Go."), AssistantMessage(tuple(content)), result("tc_1", "done"))
    body = await sent(wire, provider, kind, prompt_of(*messages))
    if kind is CHAT:
        assert body["messages"][2]["reasoning_content"] == "Think twice."
    if kind is OPENAI:
        assert body["input"][1]["encrypted_content"] == signature
    if kind is ANTHROPIC:
        first = {"type": "thinking", "thinking": "Think twice.", "signature": signature}
        assert body["messages"][1]["content"][0] == first
    if kind is GOOGLE:
        back = body["contents"][1]["parts"][-1]["thoughtSignature"]
        assert base64.urlsafe_b64decode(back) == base64.b64decode(signature)
    other = wire.model(kind, model="gpt-5-mini" if kind is OPENAI else "another-model")
    unsigned = str(await sent(wire, other, kind, prompt_of(*messages)))
    assert signature not in unsigned and "Think twice." not in unsigned


async def test_redacted_thinking_goes_back_as_it_came(wire: ModelServer) -> None:
    provider = wire.model(ANTHROPIC)
    wire.answers.append(recorded(ANTHROPIC, "redacted-thinking"))
    thought, ended, said, _ = joined(await ask(provider))
    assert isinstance(thought, ThinkingDelta) and isinstance(ended, ThinkingEnd)
    assert isinstance(said, TextDelta)
    own = AssistantMessage((Thinking(thought.text, ended.signature), TextBlock(said.text)))
    body = await sent(wire, provider, ANTHROPIC, prompt_of(heard("a"), own, heard("b")))
    assert body["messages"][1]["content"][:2] == [
        {"type": "thinking", "thinking": "Some.", "signature": "c2lnbmF0dXJl"},
        {"type": "redacted_thinking", "data": "EmwKAhgB/+4y=="},
    ]


async def test_summaries_of_one_reasoning_go_back_as_they_came(wire: ModelServer) -> None:
    provider = wire.model(OPENAI)
    wire.answers.append(recorded(OPENAI, "two-summaries"))
    thought, ended, *_ = joined(await ask(provider))
    assert thought == ThinkingDelta("**First**\n\n**Second**")
    assert isinstance(ended, ThinkingEnd)
    own = AssistantMessage((Thinking("**First**\n\n**Second**", ended.signature), TextBlock("Hi.")))
    body = await sent(wire, provider, OPENAI, prompt_of(heard("a"), own, heard("b")))
    (reasoning,) = [item for item in body["input"] if item.get("type") == "reasoning"]
    assert [one["text"] for one in reasoning["summary"]] == ["**First**", "**Second**"]
    assert reasoning["encrypted_content"] == "c2lnbmF0dXJl"


async def test_budget_of_thinking_is_sent_as_each_service_takes_it(wire: ModelServer) -> None:
    for kind, thinking, expected in (
        (ANTHROPIC, None, None),
        (ANTHROPIC, 0, {"type": "disabled"}),
        (ANTHROPIC, 2000, {"type": "enabled", "budget_tokens": 2000}),
        (ANTHROPIC, 99_999, {"type": "enabled", "budget_tokens": 4095}),
        *((kind, 1000, "low") for kind in (OPENAI, CHAT)),
        *((kind, 8000, "medium") for kind in (OPENAI, CHAT)),
        *((kind, 50_000, "high") for kind in (OPENAI, CHAT)),
    ):
        body = await sent(wire, wire.model(kind, thinking=thinking), kind, prompt_of())
        of_openai = body.get("reasoning_effort") or body.get("reasoning", {}).get("effort")
        found = body.get("thinking") if kind is ANTHROPIC else of_openai
        assert found == expected, (kind, thinking)


def marked(body: Any) -> list[str]:
    """Return what is marked for the cache in a body of Anthropic's, in order."""
    found = [f"tool {tool['name']}" for tool in body["tools"] if "cache_control" in tool]
    found += ["system" for block in body["system"] if "cache_control" in block]
    for at, message in enumerate(body["messages"]):
        blocks = enumerate(message["content"])
        found += [f"{at}.{index}" for index, block in blocks if "cache_control" in block]
    return found


@pytest.mark.parametrize(
    ("marks", "expected"),
    [
        ((), ["tool shell", "system"]),
        ((BlockPosition(0, 0),), ["tool shell", "system", "0.0"]),
        ((BlockPosition(1, 2), BlockPosition(3, 0)), ["tool shell", "system", "1.2", "2.1"]),
        (
            (BlockPosition(0, 0), BlockPosition(1, 0), BlockPosition(3, 0)),
            ["system", "0.0", "1.2", "2.1"],
        ),
    ],
)
async def test_messages_are_marked_for_the_cache_at_most_four_times(
    wire: ModelServer, marks: tuple[BlockPosition, ...], expected: list[str]
) -> None:
    body = await sent(wire, wire.model(ANTHROPIC), ANTHROPIC, prompt_of(*CONVERSATION, marks=marks))
    assert marked(body) == expected


@pytest.mark.parametrize("kind", [OPENAI, CHAT, GOOGLE])
async def test_marks_change_nothing_where_there_are_none(
    wire: ModelServer, kind: ModelKind
) -> None:
    plain = await sent(wire, wire.model(kind), kind, prompt_of(*CONVERSATION))
    marks = (BlockPosition(0, 0), BlockPosition(3, 0))
    assert await sent(wire, wire.model(kind), kind, prompt_of(*CONVERSATION, marks=marks)) == plain


@pytest.mark.parametrize("marks", [(), (0,), (0, 1), (2,)])
async def test_pieces_of_a_message_are_the_same_wherever_it_is_marked(
    wire: ModelServer, marks: tuple[int, ...]
) -> None:
    picture = UserMessage((*heard("a", "b").content, ImageBlock("image/png", "0" * 64)))
    prompt = prompt_of(heard("A", "B", "C"), AssistantMessage((TextBlock("D"),)), picture)
    positions = tuple(BlockPosition(0, at) for at in marks)
    request = replace(prompt.conversation, marks=positions)
    body = await sent(wire, wire.model(ANTHROPIC), ANTHROPIC, replace(prompt, conversation=request))
    assert [block["text"] for block in body["messages"][0]["content"]] == ["A", " B", " C"]
    assert [one for one in marked(body) if one.startswith("0.")] == [f"0.{at}" for at in marks]
