"""The tools, resources and prompts that the conformance suite of MCP wants a server to have."""

from __future__ import annotations

import asyncio
import hmac
import json
import secrets
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final

import mcp_types as types
from mcp.server import Server
from mcp.server.caching import CacheHint
from mcp.server.context import ServerRequestContext
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    PromptsListChanged,
    ToolsListChanged,
)
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

Context = ServerRequestContext[Any, Any]
Handler = Callable[[Context, Any], Awaitable[dict[str, Any]]]

_PIXEL: Final = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJ"
    "RU5ErkJggg=="
)
_IMAGE: Final = {"type": "image", "data": _PIXEL, "mimeType": "image/png"}


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _resource(uri: str, media_type: str, text: str) -> dict[str, Any]:
    return {"type": "resource", "resource": {"uri": uri, "mimeType": media_type, "text": text}}


CONTENT: Final[dict[str, list[dict[str, Any]]]] = {
    "test_simple_text": [_text("This is a simple text response for testing.")],
    "test_image_content": [_IMAGE],
    "test_audio_content": [{"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav"}],
    "test_embedded_resource": [_resource("test://embedded-resource", "text/plain", "Embedded.")],
    "test_multiple_content_types": [
        _text("Multiple content types test:"),
        _IMAGE,
        _resource("test://mixed-content-resource", "application/json", '{"test": "data"}'),
    ],
}
"""By tool, what it returns."""


def _object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}


def _choices(*values: str) -> list[dict[str, str]]:
    return [{"const": one, "title": one.title()} for one in values]


STRING: Final = {"type": "string"}

FORMS: Final = {
    "test_elicitation": _object(response=STRING),
    "test_elicitation_sep1034_defaults": {
        "type": "object",
        "properties": {
            "name": {"type": "string", "default": "John Doe"},
            "age": {"type": "integer", "default": 30},
            "score": {"type": "number", "default": 95.5},
            "status": {
                "type": "string",
                "enum": ["active", "inactive", "pending"],
                "default": "active",
            },
            "verified": {"type": "boolean", "default": True},
        },
    },
    "test_elicitation_sep1330_enums": _object(
        untitledSingle={"type": "string", "enum": ["option1", "option2", "option3"]},
        titledSingle={"type": "string", "oneOf": _choices("value1", "value2", "value3")},
        legacyEnum={
            "type": "string",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        untitledMulti={
            "type": "array",
            "items": {"type": "string", "enum": ["option1", "option2", "option3"]},
        },
        titledMulti={"type": "array", "items": {"anyOf": _choices("value1", "value2", "value3")}},
    ),
}
"""By tool, the form that it asks people to fill in, in the middle of a call (2025-11-25)."""


def _form(message: str, **properties: Any) -> dict[str, Any]:
    params = {"message": message, "requestedSchema": _object(**properties)}
    return {"method": "elicitation/create", "params": params}


def _sample(text: str) -> dict[str, Any]:
    said = [{"role": "user", "content": _text(text)}]
    return {"method": "sampling/createMessage", "params": {"messages": said, "maxTokens": 100}}


_ROOTS: Final = {"method": "roots/list", "params": {}}
_NAME: Final = {"user_name": _form("What is your name?", name=STRING)}
_CONFIRM: Final = {"confirm": _form("Please confirm", ok={"type": "boolean"})}
_NEEDS: Final = {"elicitation/create": "elicitation", "sampling/createMessage": "sampling"}

ROUNDS: Final[dict[str, list[dict[str, Any]]]] = {
    "test_input_required_result_elicitation": [_NAME],
    "test_input_required_result_sampling": [
        {"capital_question": _sample("What is the capital of France?")}
    ],
    "test_input_required_result_list_roots": [{"client_roots": _ROOTS}],
    "test_input_required_result_request_state": [_CONFIRM],
    "test_input_required_result_tampered_state": [_CONFIRM],
    "test_input_required_result_multiple_inputs": [
        {**_NAME, "greeting": _sample("Generate a greeting"), "client_roots": _ROOTS}
    ],
    "test_input_required_result_multi_round": [
        {"step1": _form("Step 1: What is your name?", name=STRING)},
        {"step2": _form("Step 2: What is your favorite color?", color=STRING)},
    ],
    "test_input_required_result_capabilities": [{**_NAME, "greeting": _sample("Hello?")}],
    "test_streaming_elicitation": [_NAME],
}
"""By tool, what it asks for in each round before it is done (2026-07-28)."""

PROMPT_ROUND: Final = {"user_context": _form("What context should be used?", context=STRING)}

OTHERS: Final = (
    *("test_tool_with_logging", "test_logging_tool", "test_tool_with_progress", "test_sampling"),
    *("test_error_handling", "test_missing_capability"),
    *("test_trigger_tool_change", "test_trigger_prompt_change"),
)

PROMPTS: Final = {
    "test_simple_prompt": ((), [_text("This is a simple prompt for testing.")]),
    "test_prompt_with_arguments": (("arg1", "arg2"), []),
    "test_prompt_with_embedded_resource": (("resourceUri",), []),
    "test_prompt_with_image": ((), [_IMAGE, _text("Please analyze the image above.")]),
    "test_input_required_result_prompt": ((), []),
}
"""By prompt, its arguments and what it says, if that does not follow from them."""

RESOURCES: Final = {
    "test://static-text": {"mimeType": "text/plain", "text": "The static text resource."},
    "test://static-binary": {"mimeType": "image/png", "blob": _PIXEL},
    "test://watched-resource": {"mimeType": "text/plain", "text": "Watched resource content"},
}

_KEY: Final = secrets.token_bytes()


def _state(number: int) -> str:
    return f"{number}:{hmac.digest(_KEY, str(number).encode(), 'sha256').hex()}"


async def _answered(handler: Handler, ctx: Context, params: Any) -> dict[str, Any]:
    result = await handler(ctx, params)
    if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
        result.setdefault("resultType", "complete")
    return result


class Fixture:
    """One server of the suite."""

    def __init__(self) -> None:
        self._bus = InMemorySubscriptionBus()
        self.server = Server[Any](
            "conformance",
            version="1",
            cache_hints={
                "tools/list": CacheHint(1_000),
                "prompts/list": CacheHint(1_000),
                "resources/list": CacheHint(1_000),
                "resources/templates/list": CacheHint(1_000),
                "resources/read": CacheHint(1_000),
            },
            on_subscriptions_listen=ListenHandler(self._bus),
        )
        for method, params, handler in (
            ("tools/list", types.PaginatedRequestParams, self._list_tools),
            ("tools/call", types.CallToolRequestParams, self._call_tool),
            ("prompts/list", types.PaginatedRequestParams, self._list_prompts),
            ("prompts/get", types.GetPromptRequestParams, self._get_prompt),
            ("resources/list", types.PaginatedRequestParams, self._list_resources),
            ("resources/templates/list", types.PaginatedRequestParams, self._list_templates),
            ("resources/read", types.ReadResourceRequestParams, self._read_resource),
            ("resources/subscribe", types.SubscribeRequestParams, self._nothing),
            ("resources/unsubscribe", types.UnsubscribeRequestParams, self._nothing),
            ("logging/setLevel", types.SetLevelRequestParams, self._nothing),
            ("completion/complete", types.CompleteRequestParams, self._complete),
        ):
            self.server.add_request_handler(method, params, partial(_answered, handler))

    async def _nothing(self, ctx: Context, params: Any) -> dict[str, Any]:
        return {}

    async def _complete(self, ctx: Context, params: Any) -> dict[str, Any]:
        return {"completion": {"values": [], "total": 0, "hasMore": False}}

    async def _list_tools(self, ctx: Context, params: Any) -> dict[str, Any]:
        names = (*CONTENT, *FORMS, *ROUNDS, *OTHERS)
        described = {"description": "A tool of the suite.", "inputSchema": {"type": "object"}}
        return {"tools": [{"name": one, **described} for one in names]}

    async def _call_tool(self, ctx: Context, params: Any) -> dict[str, Any]:
        name, session = params.name, ctx.session
        if name in ROUNDS:
            return self._ask(ctx, params, ROUNDS[name])
        content = CONTENT.get(name, [_text("done")])
        match name:
            case "test_error_handling":
                return {"content": [_text("This tool fails on purpose.")], "isError": True}
            case "test_tool_with_logging" | "test_logging_tool":
                for text in ("started", "processing data", "completed"):
                    await session.send_log_message("info", text, None, ctx.request_id)
                    await asyncio.sleep(0.01)
            case "test_tool_with_progress":
                for progress in (0, 50, 100):
                    await session.report_progress(progress, 100)
                    await asyncio.sleep(0.01)
            case "test_sampling":
                said = types.SamplingMessage(
                    role="user", content=types.TextContent(text=params.arguments["prompt"])
                )
                got = await session.create_message(
                    [said], max_tokens=100, related_request_id=ctx.request_id
                )
                content = [_text(f"LLM response: {got.model_dump_json()}")]
            case "test_missing_capability":
                data = {"requiredCapabilities": {"sampling": {}}}
                code = types.MISSING_REQUIRED_CLIENT_CAPABILITY
                raise MCPError(code, "It takes sampling.", data)
            case "test_trigger_tool_change":
                await self._bus.publish(ToolsListChanged())
            case "test_trigger_prompt_change":
                await self._bus.publish(PromptsListChanged())
            case _ if name in FORMS:
                answer = await session.elicit_form("Please", FORMS[name], ctx.request_id)
                content = [_text(f"action={answer.action}, content={json.dumps(answer.content)}")]
            case _ if name not in CONTENT:
                raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {name}")
        return {"content": content}

    def _ask(self, ctx: Context, params: Any, rounds: list[dict[str, Any]]) -> dict[str, Any]:
        number, answers = 0, params.input_responses or {}
        if params.request_state is not None:
            number = int(params.request_state.partition(":")[0])
            if not hmac.compare_digest(params.request_state, _state(number)):
                raise MCPError(types.INVALID_PARAMS, "The state is not mine.")
        if rounds[number].keys() <= answers.keys():
            number += 1
        if number == len(rounds):
            said = {key: one.model_dump(mode="json") for key, one in answers.items()}
            return {"content": [_text(f"state-ok, hello {json.dumps(said)}")]}
        has = ctx.session.client_capabilities or types.ClientCapabilities()
        asked = {
            key: one
            for key, one in rounds[number].items()
            if one["method"] not in _NEEDS or getattr(has, _NEEDS[one["method"]]) is not None
        }
        result = {"resultType": "input_required", "inputRequests": asked}
        return {**result, "requestState": _state(number)}

    async def _list_prompts(self, ctx: Context, params: Any) -> dict[str, Any]:
        return {
            "prompts": [
                {
                    "name": name,
                    "description": "A prompt.",
                    "arguments": [{"name": one, "required": True} for one in takes],
                }
                for name, (takes, _) in PROMPTS.items()
            ]
        }

    async def _get_prompt(self, ctx: Context, params: Any) -> dict[str, Any]:
        if params.name not in PROMPTS:
            raise MCPError(types.INVALID_PARAMS, f"Unknown prompt: {params.name}")
        content, given = PROMPTS[params.name][1], params.arguments or {}
        if params.name == "test_input_required_result_prompt":
            if "user_context" not in (params.input_responses or {}):
                return {"resultType": "input_required", "inputRequests": PROMPT_ROUND}
            content = [_text("With the context that was given.")]
        elif "resourceUri" in given:
            embedded = _resource(given["resourceUri"], "text/plain", "Embedded.")
            content = [embedded, _text("Read it.")]
        elif given:
            content = [_text(f"arg1='{given['arg1']}', arg2='{given['arg2']}'")]
        return {"messages": [{"role": "user", "content": one} for one in content]}

    async def _list_resources(self, ctx: Context, params: Any) -> dict[str, Any]:
        return {"resources": [{"uri": uri, "name": uri} for uri in RESOURCES]}

    async def _list_templates(self, ctx: Context, params: Any) -> dict[str, Any]:
        return {"resourceTemplates": [{"uriTemplate": "test://template/{id}/data", "name": "data"}]}

    async def _read_resource(self, ctx: Context, params: Any) -> dict[str, Any]:
        uri, found = params.uri, RESOURCES.get(params.uri)
        if uri.startswith("test://template/"):
            number = uri.split("/")[3]
            found = {"mimeType": "application/json", "text": json.dumps({"id": number})}
        if found is None:
            raise MCPError(types.INVALID_PARAMS, f"Unknown resource: {uri}", {"uri": uri})
        return {"contents": [{"uri": uri, **found}]}
