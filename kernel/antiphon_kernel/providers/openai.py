"""Models asked in the forms of OpenAI: Responses and Chat Completions."""

from __future__ import annotations

from typing import Any, Final, Literal

import httpx2
from openai import AsyncOpenAI
from pydantic_ai.models import Model
from pydantic_ai.models.openai import (
    OpenAIChatModel,
    OpenAIChatModelSettings,
    OpenAIResponsesModel,
    OpenAIResponsesModelSettings,
)
from pydantic_ai.profiles.openai import OpenAIModelProfile
from pydantic_ai.providers.openai import OpenAIProvider

from antiphon_kernel.providers.library_model import LibraryModel, hold_back
from antiphon_kernel.providers.provider import ModelPrompt

OPENAI_URL: Final = "https://api.openai.com/v1"

LOW: Final = 2_048
"""Most tokens of reasoning that are low effort."""

MEDIUM: Final = 16_384


def reasoning_effort(tokens: int) -> Literal["none", "low", "medium", "high"]:
    """Return the effort that OpenAI has for a budget in tokens."""
    if tokens <= 0:
        return "none"
    return "low" if tokens <= LOW else "medium" if tokens <= MEDIUM else "high"


def _provider(base_url: str | None, client: httpx2.AsyncClient, key: str) -> OpenAIProvider:
    url = base_url or OPENAI_URL
    service = AsyncOpenAI(api_key=key, base_url=url, http_client=client, max_retries=0)
    hold_back(service.chat.completions, "messages")
    hold_back(service.responses, "input")
    return OpenAIProvider(openai_client=service)


class ResponsesModel(LibraryModel):
    """Model behind Responses; nothing of the conversation is kept there."""

    def open(self, client: httpx2.AsyncClient, key: str) -> Model[Any]:
        """Return the library's model."""
        provider = _provider(self.config.base_url, client, key)
        return OpenAIResponsesModel(self.config.model, provider=provider)

    def settings(self, prompt: ModelPrompt) -> OpenAIResponsesModelSettings:
        """Return the settings of a request."""
        settings = OpenAIResponsesModelSettings(
            max_tokens=prompt.max_tokens, openai_store=False, openai_truncation="disabled"
        )
        if self.config.thinking is not None:
            settings["openai_reasoning_effort"] = reasoning_effort(self.config.thinking)
        if self._model.profile.get("supports_thinking") and self.config.thinking != 0:
            settings["openai_reasoning_summary"] = "auto"
        return settings


class ChatModel(LibraryModel):
    """Model behind Chat Completions."""

    def open(self, client: httpx2.AsyncClient, key: str) -> Model[Any]:
        """Return the library's model."""
        url = self.config.base_url
        # Servers of others know `max_tokens` only, and refuse fields that they do not know.
        profile = OpenAIModelProfile(openai_chat_supports_max_completion_tokens=url is None)
        provider = _provider(url, client, key)
        return OpenAIChatModel(self.config.model, provider=provider, profile=profile)

    def settings(self, prompt: ModelPrompt) -> OpenAIChatModelSettings:
        """Return the settings of a request."""
        settings = OpenAIChatModelSettings(max_tokens=prompt.max_tokens)
        if self.config.thinking is not None:
            settings["openai_reasoning_effort"] = reasoning_effort(self.config.thinking)
        return settings
