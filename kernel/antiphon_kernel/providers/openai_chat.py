"""Models asked in the form of Chat Completions: OpenAI's and those of any compatible server."""

from __future__ import annotations

from typing import Any

import httpx2
from pydantic_ai.models import Model
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIChatModelSettings
from pydantic_ai.profiles.openai import OpenAIModelProfile
from pydantic_ai.providers.openai import OpenAIProvider

from antiphon_kernel.providers.library_model import LibraryModel
from antiphon_kernel.providers.openai import OPENAI_URL, WholeBodyClient, reasoning_effort
from antiphon_kernel.providers.provider import ModelPrompt


class ChatModel(LibraryModel):
    """Model behind Chat Completions."""

    def open(self, client: httpx2.AsyncClient, key: str) -> Model[Any]:
        """Return the library's model."""
        url = self.config.base_url
        service = WholeBodyClient(
            api_key=key, base_url=url or OPENAI_URL, http_client=client, max_retries=0
        )
        # Servers of others know `max_tokens` only, and refuse fields that they do not know.
        profile = OpenAIModelProfile(openai_chat_supports_max_completion_tokens=url is None)
        return OpenAIChatModel(
            self.config.model, provider=OpenAIProvider(openai_client=service), profile=profile
        )

    def settings(self, prompt: ModelPrompt) -> OpenAIChatModelSettings:
        """Return the settings of a request."""
        settings = OpenAIChatModelSettings(max_tokens=prompt.max_tokens)
        if self.config.thinking is not None:
            settings["openai_reasoning_effort"] = reasoning_effort(self.config.thinking)
        return settings
